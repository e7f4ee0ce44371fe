"""A condensed benchmark, and the estimates that it makes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .calibration import CrossValidation, source_flags
from .checks import same_questions
from .errors import AlignmentError, ValidationError, check_kind, some
from .estimates import Estimate, ranked
from .flags import OF_ESTIMATES
from .further import Taught, is_soft, is_taught
from .joining import graded_alike, without_places
from .more import top_up
from .numerics.gp import squared_distances
from .numerics.survey import FEWEST
from .predict import Assessment, ScoreModel, signature
from .predict.subtasks import KNOWN, SubtaskModel
from .recipe import assess
from .responses import Items, Responses, check_responses
from .select import Anchors
from .select.reserve import Reserve
from .subtasks import Subtasks
from .topup import LEVEL, Told, TopUp

if TYPE_CHECKING:
    from .comparison import Comparison

Array = NDArray[Any]

RERUN = 0.05  # mean difference of grades up to which a model of a source's name is it, run again; or one anchor's


@dataclass(frozen=True, eq=False)
class Condensation:
    """A condensed benchmark: its anchors, a fitted score model, and what is known about its errors.

    Make one with `condense`, keep it with `save`, get it back with `load`.

    Attributes
    ----------
    benchmark : its name.
    anchors : the chosen items.
    sources : the source models' answers to the anchors; its ``items`` are the anchors with labels and digests.
    source_scores : (n_sources,) their scores on the whole benchmark.
    score_model : maps answers on the anchors to a score.
    validation : what error to expect.
    provenance : how it was made, as JSON values.
    reserve : items to ask where the anchors are not enough; None where fewer than 4 are left, or in old files.
    total_weight : of all items of the benchmark; None in files made before it was kept, and where no anchor has any.
    subtask_names, subtask_model : the subtasks and what estimates their scores; empty and None where there are none.
    """

    benchmark: str
    anchors: Anchors
    sources: Responses
    source_scores: Array
    score_model: ScoreModel
    validation: CrossValidation
    provenance: dict[str, Any] = field(default_factory=dict)
    reserve: Reserve | None = None
    total_weight: float | None = None
    subtask_names: tuple[str, ...] = ()
    subtask_model: SubtaskModel | None = None

    def __repr__(self) -> str:
        mae = 100 * self.validation.mae
        return f"Condensation('{self.benchmark}', {len(self.anchors)} anchors, error about {mae:.2f} points)"

    @property
    def items(self) -> Items:
        """The anchors as items: subtasks, labels, digests."""
        return self.sources.items

    def answers(self, responses: Responses) -> Responses:
        """The answers to the anchors, in their order, after checking that they are answers to the same questions.

        Raises AlignmentError where anchors are missing, their prompt (digest), label or choices differ from those
        that the source models answered, or they were graded by another metric.
        """
        check_responses(responses, "an estimate")
        missing = np.setdiff1d(self.anchors.ids, responses.items.ids)
        if len(missing):
            raise AlignmentError(
                f"no answer for {len(missing)} of {len(self.anchors)} anchors of '{self.benchmark}' from "
                f"{_named(responses)}: "
                f"{some(missing)}. Evaluate the models on all anchors ('disco anchors' lists them)."
            )
        graded_alike(responses.provenance, self.provenance.get("responses"), f"'{self.benchmark}'")
        part = responses.align(self.anchors.ids)
        with_choices = self.sources.probs is not None and part.probs is not None
        same_questions(self.items, part.items, f"'{self.benchmark}'", with_choices=with_choices)
        probs = None if self.sources.probs is None else self._own_choices(part.probs)
        return Responses(part.models, self.items, part.correct, probs)

    def asked(self, more: int = 0) -> Items:
        """The items to evaluate: the anchors, then the first ``more`` of the reserve; ValidationError for too many."""
        check_kind("int", more=more)
        if not more:
            return self.items
        return self.items.then(self.need_reserve(more).items.pick(slice(0, more)))

    def estimate(self, answers: Responses, level: float = 0.9, *, more: int = 0) -> list[Estimate]:
        """Estimated full-benchmark score of every model in ``answers``, in their order.

        Answers to other items are ignored. ``level`` is the nominal coverage of ``low`` to ``high``: the errors that
        the same procedure made on source models it had not seen.

        With ``more``, the answers hold the first so many items of the reserve too, and the estimate is that of a score
        model of all these items, with the errors of its own; outside the sources' range, and where anchors may have
        leaked, it is a survey's, which does not rest on the model's being like the sources (`disco_eval.more`).

        Raises AlignmentError where anchors are missing or are other questions; ValidationError for a level outside
        (0, 1), or answers without the probabilities that the signature needs.
        """
        self.asked(more)
        part = self.answers(answers)
        further = self.further(answers, more) if more else None
        found = assess(self.score_model, part)
        half, typical = (self.validation.half_widths(found, each) for each in (level, LEVEL))
        told = Told(np.clip(found.score, 0.0, 1.0), half, typical, *self.validation.reach(found, half, level))
        flags = [(*own, *self.source_flags) for own in self.own_flags(part, found)]
        surveyed = np.zeros(len(flags), dtype=bool)
        if further is not None:
            told, flags, surveyed = top_up(self, part, further, found, told, level)
        least, most = self.possible(part, further)
        scores = np.clip(told.score, least, most)
        low, high = (np.clip(end, least, most) for end in told.ends(scores))
        if self.leaves_nothing(more):
            flags = [tuple(f for f in own if f not in OF_ESTIMATES) for own in flags]
            low = high = scores
        nearest = self._nearest(part)
        by_subtask = (
            [()] * part.n_models
            if self.subtasks is None
            else self.subtasks.estimate(part, further, found, scores, told, level)
        )
        ranks = ranked((scores, low, high), self.source_scores, self._as_sources(part))
        return [
            Estimate(
                model=str(name),
                score=float(scores[i]),
                low=float(low[i]),
                high=float(high[i]),
                level=level,
                flags=flags[i],
                nearest=tuple(self.sources.models.ids[nearest[i]].tolist()),
                subtasks=by_subtask[i],
                more=int(more),
                rank=ranks[i],
                surveyed=bool(surveyed[i]),
            )
            for i, name in enumerate(part.models.ids.tolist())
        ]

    def compare(
        self,
        baseline: Responses,
        candidate: Responses,
        *,
        level: float = 0.9,
        margin: float | None = None,
        more: int = 0,
    ) -> Comparison:
        """A candidate against a baseline on the same anchors; see `disco_eval.compare`."""
        from .comparison import compare

        return compare(self, baseline, candidate, level=level, margin=margin, more=more)

    def further(self, answers: Responses, more: int) -> Responses:
        """The answers to the first ``more`` items of the reserve, in their order; see `answers`."""
        items = self.need_reserve(more).items.pick(slice(0, more))
        missing = np.setdiff1d(items.ids, answers.items.ids)
        if len(missing):
            who = _named(answers)
            raise AlignmentError(
                f"no answer for {len(missing)} of the {more} more items of '{self.benchmark}' from {who}, though all "
                f"anchors have one: {some(missing)}. Evaluate the models on all that 'disco anchors DIR --more {more}' "
                "lists."
            )
        found, soft = answers.align(items.ids), self.need_reserve(more).label_probs is not None
        probs = found.probs if soft else None
        with_choices, called = probs is not None, "further items"
        same_questions(items, found.items, f"'{self.benchmark}'", with_choices=with_choices, called=called)
        return Responses(found.models, items, found.correct, probs)

    def leaves_nothing(self, more: int = 0) -> bool:
        """Whether the anchors and the first ``more`` items of the reserve are all that count: nothing is estimated."""
        shares = self.shares
        return shares is not None and bool(1 - shares[: len(self.items) + more].sum() < KNOWN)

    @property
    def shares(self) -> Array | None:
        """What part of the benchmark's weight each anchor, and each item in reserve, carries; None if not known."""
        if self.reserve is not None:
            return self.reserve.shares
        total = self.total_weight
        if total is None and self.provenance.get("n_items") == len(self.items):  # of an old file: all items are anchors
            total = float(self.items.weight.sum())
        return None if total is None else np.asarray(self.items.weight / total)

    def possible(self, part: Responses, further: Responses | None = None) -> tuple[Array, Array]:
        """The least and the most that models' scores can be, (n_models,), whatever they answer to all other items.

        ``part`` are the answers to the anchors, ``further`` those to the first items of the reserve.
        """
        shares, n = self.shares, len(self.items)
        if shares is None:
            return np.zeros(part.n_models), np.ones(part.n_models)
        end = n + (0 if further is None else further.n_items)
        earned, left = part.grades() @ shares[:n], 1 - shares[:end].sum()
        if further is not None:
            earned = earned + further.grades() @ shares[n:end]
        return np.maximum(earned - KNOWN, 0.0), np.minimum(earned + left + KNOWN, 1.0)  # but for rounding

    def top_up(self, more: int) -> TopUp:
        """The design-based estimate from the anchors and the first ``more`` items of the reserve."""
        return TopUp.fit(self.anchors, self.sources.grades(), self.source_scores, self.need_reserve(more), more)

    @cached_property
    def source_flags(self) -> tuple[str, ...]:
        """What is wrong with the source models as a whole, as keys of `FLAGS`; every estimate carries them."""
        return source_flags(self.sources, self.validation)

    def own_flags(self, answers: Responses, found: Assessment) -> list[tuple[str, ...]]:
        """The flags of every model that concern it alone, from its ``answers`` to the anchors and what they tell."""
        known = np.array([k is not None for k in self._as_sources(answers)], dtype=bool)
        unusual = self.validation.unusual(found)  # no source is unlike the sources
        masks = {"source-model": known, **{f: m & ~known if f in OF_ESTIMATES else m for f, m in unusual.items()}}
        return [tuple(name for name, mask in masks.items() if mask[i]) for i in range(answers.n_models)]

    def _as_sources(self, answers: Responses) -> list[int | None]:
        """Which source model every model is, None for new ones: of the same name, and right on the same anchors.

        Names such as ``checkpoint-1000`` come again; a source run again may differ on one anchor in twenty.
        """
        known = {name: i for i, name in enumerate(self.sources.models.ids.tolist())}
        ours, theirs = self.sources.grades(), answers.grades()
        most = max(RERUN, 1 / len(self.anchors))
        at = [known.get(name) for name in answers.models.ids.tolist()]
        return [k if k is not None and np.abs(ours[k] - theirs[i]).mean() <= most else None for i, k in enumerate(at)]

    def save(self, path: Any, *, overwrite: bool = False) -> None:
        """Write the condensation to a folder: JSON, safetensors and a README card; whole or not at all."""
        from .artifact import write_condensation

        write_condensation(self, path, overwrite=overwrite)

    def without_local_paths(self) -> Condensation:
        """The same without the places of the source models' files on this machine: what is shared."""
        if "responses" not in self.provenance:
            return self
        shared = without_places(self.provenance["responses"])
        return replace(self, provenance={**self.provenance, "responses": shared})

    def need_reserve(self, more: int) -> Reserve:
        """The items in reserve, of which ``more`` are wanted; ValidationError where there are not so many."""
        if self.reserve is None:
            raise ValidationError(
                f"'{self.benchmark}' keeps no items in reserve: fewer than {FEWEST} that count are no anchors, or it "
                "was made by an old version"
            )
        self.reserve.check(more)
        return self.reserve

    def taught(self, more: int) -> Taught | None:
        """The score model of the anchors and the first ``more`` items of the reserve.

        None for another score model than ours, and where its errors were not measured (formats 1 to 13).
        """
        reserve, model = self.need_reserve(more), self.score_model
        known = self.validation.n_more and not (is_soft(model) and reserve.label_probs is None)
        if not known or not is_taught(model):
            return None
        if more not in self._taught:
            self._taught[more] = Taught.fit(model, self.anchors, self.sources, self.source_scores, reserve, more)
        return self._taught[more]

    @cached_property
    def _taught(self) -> dict[int, Taught]:
        return {}

    @property
    def subtask_mae(self) -> Array:
        """Mean absolute error to expect on every subtask, (n_subtasks,), in [0, 1]: 0 where all of it are anchors."""
        return np.zeros(0) if self.subtasks is None else self.subtasks.mae

    @cached_property
    def subtasks(self) -> Subtasks | None:
        """What estimates the subtasks; None where there are none."""
        if self.subtask_model is None:
            return None
        known = (self.sources, self.source_scores, self.validation, self.reserve, self.shares)
        return Subtasks(self.subtask_names, self.subtask_model, *known)

    @cached_property
    def _source_signatures(self) -> Array:
        return signature(self.sources)

    def _nearest(self, answers: Responses, n: int = 3) -> Array:
        if answers.probs is None and self.sources.probs is not None:
            distance = squared_distances(answers.grades(), self.sources.grades())
        else:
            distance = squared_distances(signature(answers), self._source_signatures)
        return np.argsort(distance.round(4), axis=1, kind="stable")[:, :n]  # equal ones by position, not by last bits

    def _own_choices(self, probs: Any) -> Any:
        """Probabilities cut or widened to as many choices as the sources hold; what is cut or added is absent."""
        if probs is None:
            return None
        width = self.sources.max_choices
        if probs.shape[2] < width:
            return np.pad(probs, ((0, 0), (0, 0), (0, width - probs.shape[2])))
        return probs[:, :, :width]


def _named(answers: Responses) -> str:
    """Whose answers they are, for a message."""
    return some([f"'{model}'" for model in answers.models.ids.tolist()], 1) or "no model"
