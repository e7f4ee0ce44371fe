"""Condense a benchmark: choose anchors, fit a score model, and find out how far its estimates can be trusted."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import __version__
from .calibration import CrossValidation, Recipe, assess, cross_validate, source_flags
from .errors import AlignmentError, ValidationError, some
from .numerics.rng import Seed
from .predict import Assessment, ScoreModel, signature
from .predict.regressors import squared_distance
from .responses import Items, Responses
from .select import Anchors
from .splits import folds

Array = NDArray[Any]
Progress = Callable[[str, int, int], None]

FEWEST_SOURCES = 10


@dataclass(frozen=True)
class Estimate:
    """One model's estimated score on the whole benchmark.

    Attributes
    ----------
    model : its name.
    score : the estimate, in [0, 1].
    low, high : an interval that should hold the true score in a share ``level`` of models like the sources.
    level : that share.
    flags : what is unusual about this model, as keys of `disco_eval.calibration.FLAGS`, which has the words.
    nearest : the source models whose answers on the anchors are most alike, nearest first.
    """

    model: str
    score: float
    low: float
    high: float
    level: float
    flags: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()

    def __str__(self) -> str:
        note = f"  [{', '.join(self.flags)}]" if self.flags else ""
        span = f"{100 * self.low:.1f} to {100 * self.high:.1f} at {100 * self.level:g} %"
        return f"{self.model}: {100 * self.score:.1f} ({span}){note}"


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
    """

    benchmark: str
    anchors: Anchors
    sources: Responses
    source_scores: Array
    score_model: ScoreModel
    validation: CrossValidation
    provenance: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        mae = 100 * self.validation.mae
        return f"Condensation('{self.benchmark}', {len(self.anchors)} anchors, error about {mae:.2f} points)"

    @property
    def items(self) -> Items:
        """The anchors as items: subtasks, labels, digests."""
        return self.sources.items

    def answers(self, responses: Responses) -> Responses:
        """The answers to the anchors, in their order, after checking that they are answers to the same questions.

        Raises AlignmentError where anchors are missing, or their prompt (digest), label or choices differ from those
        that the source models answered.
        """
        missing = np.setdiff1d(self.anchors.ids, responses.items.ids)
        if len(missing):
            who = f"'{responses.models.ids[0]}'" + (f" and {n} more" if (n := responses.n_models - 1) else "")
            raise AlignmentError(
                f"no answer for {len(missing)} of {len(self.anchors)} anchors of '{self.benchmark}' from {who}: "
                f"{some(missing)}. Evaluate the models on all anchors ('disco anchors' lists them)."
            )
        part = responses.align(self.anchors.ids)
        self._same_questions(part.items, part.probs is not None)
        if self.sources.probs is None:
            return Responses(part.models, self.items, part.correct)
        return Responses(part.models, self.items, part.correct, self._own_choices(part.probs))

    def estimate(self, answers: Responses, level: float = 0.9) -> list[Estimate]:
        """Estimated full-benchmark score of every model in ``answers``, in their order.

        Answers to items other than the anchors are ignored. ``level`` is the nominal coverage of ``low`` to ``high``:
        the errors that the same procedure made on source models it had not seen.

        Raises AlignmentError where anchors are missing or are other questions; ValidationError for a level outside
        (0, 1), or answers without the probabilities that the signature needs.
        """
        part = self.answers(answers)
        found = assess(self.score_model, part)
        scores, halves = np.clip(found.score, 0.0, 1.0), self.validation.half_widths(found, level)
        flags = self._flags(part, found)
        nearest = self._nearest(part)
        return [
            Estimate(
                model=str(name),
                score=float(score),
                low=float(max(0.0, score - half)),
                high=float(min(1.0, score + half)),
                level=level,
                flags=flags[i],
                nearest=tuple(self.sources.models.ids[near].tolist()),
            )
            for i, (name, score, half, near) in enumerate(
                zip(part.models.ids.tolist(), scores, halves, nearest, strict=True)
            )
        ]

    @cached_property
    def source_flags(self) -> tuple[str, ...]:
        """What is wrong with the source models as a whole, as keys of `FLAGS`; every estimate carries them."""
        return source_flags(self.sources, self.validation)

    def _flags(self, answers: Responses, found: Assessment) -> list[tuple[str, ...]]:
        """The flags of every model, what concerns it alone first."""
        masks = {"source-model": np.isin(answers.models.ids, self.sources.models.ids)}
        masks |= self.validation.unusual(found)
        return [
            (*(name for name, mask in masks.items() if mask[i]), *self.source_flags) for i in range(answers.n_models)
        ]

    def save(self, path: Any, *, overwrite: bool = False) -> None:
        """Write the condensation to a folder: JSON, safetensors and a README card; whole or not at all."""
        from .artifact import write_condensation

        write_condensation(self, path, overwrite=overwrite)

    def without_local_paths(self) -> Condensation:
        """The same without the places of the source models' files on this machine: what is shared."""
        recorded = self.provenance.get("responses") or {}
        if "models" not in recorded:
            return self
        abouts = {
            name: {k: v for k, v in about.items() if k != "results"} for name, about in recorded["models"].items()
        }
        return replace(self, provenance={**self.provenance, "responses": {**recorded, "models": abouts}})

    @cached_property
    def _source_signatures(self) -> Array:
        return signature(self.sources)

    def _nearest(self, answers: Responses, n: int = 3) -> Array:
        if answers.probs is None and self.sources.probs is not None:
            distance = squared_distance(answers.grades(), self.sources.grades())
        else:
            distance = squared_distance(signature(answers), self._source_signatures)
        return np.argsort(distance, axis=1, kind="stable")[:, :n]

    def _same_questions(self, theirs: Items, with_choices: bool) -> None:
        ours = self.items
        both = (ours.digest != "") & (theirs.digest != "")
        checks = {"prompt (digest)": both & (ours.digest != theirs.digest)}
        if ours.label is not None and theirs.label is not None:
            checks["label"] = ours.label != theirs.label
        if self.sources.probs is not None and with_choices:
            checks["number of choices"] = ours.n_choices != theirs.n_choices
        for what, differs in checks.items():
            if differs.any():
                raise AlignmentError(
                    f"the {what} of {differs.sum()} anchors differs between the answers and the condensation of "
                    f"'{self.benchmark}': {some(ours.ids[differs])}. The models must answer the very same questions."
                )

    def _own_choices(self, probs: Any) -> Any:
        """Probabilities cut or widened to as many choices as the sources hold; what is cut or added is absent."""
        if probs is None:
            return None
        width = self.sources.max_choices
        if probs.shape[2] < width:
            return np.pad(probs, ((0, 0), (0, 0), (0, width - probs.shape[2])))
        return probs[:, :, :width]


def condense(
    responses: Responses,
    n_anchors: int = 100,
    *,
    select: str = "auto",
    predict: str = "auto",
    select_options: Mapping[str, Any] | None = None,
    predict_options: Mapping[str, Any] | None = None,
    benchmark: str = "benchmark",
    n_folds: int = 5,
    rng: Seed = None,
    progress: Progress | None = None,
) -> Condensation:
    """Condense a benchmark to ``n_anchors`` items from source models' answers to all of it.

    Chooses anchors, fits a score model, and repeats both without each fold of source models (whole families where they
    are known) to learn what error to expect for a model it has not seen.

    Parameters
    ----------
    responses : the source models' answers, in memory or a store on disk.
    n_anchors : how many items to keep.
    select, predict : names of a selection (`disco_eval.select.SELECTORS`) and a prediction
        (`disco_eval.predict.PREDICTORS`). ``"auto"``, our own best, by default; ``"pds"`` and ``"forest"`` are the
        paper's.
    select_options, predict_options : their keyword arguments, such as ``{"committee_size": 100}``.
    benchmark : what to call it.
    n_folds : parts of the cross-validation.
    rng : seed or generator; the same one gives the same condensation.
    progress : called with (what, done, total) as the work goes on.

    Raises
    ------
    ValidationError
        Fewer than ten source models, more anchors than items, or options out of range.
    """
    if responses.n_models < FEWEST_SOURCES:
        raise ValidationError(
            f"{responses.n_models} source models are too few to learn from; give at least {FEWEST_SOURCES}, "
            "better 50 or more, with known answers to the whole benchmark"
        )
    recipe = Recipe(n_anchors, select, predict, select_options or {}, predict_options or {})
    seed = rng if isinstance(rng, int) else None
    final, for_folds, *for_fold = np.random.default_rng(rng).spawn(2 + n_folds)
    tell = progress or (lambda what, done, total: None)
    parts = list(folds(responses.models, n_folds, for_folds))
    tell("condensing", 0, len(parts) + 1)
    shared = recipe.share(responses, parts)
    anchors, score_model = recipe.make(responses, final)
    tell_fold = partial(_tell_fold, tell, len(parts))
    validation = cross_validate(responses, recipe, parts, for_fold, shared, tell_fold)
    return Condensation(
        benchmark=benchmark,
        anchors=anchors,
        sources=responses.pick(items=anchors.positions),
        source_scores=responses.scores(),
        score_model=score_model,
        validation=validation,
        provenance={
            "disco_eval": __version__,
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "n_items": responses.n_items,
            "seed": seed,
            "select": {"name": select, **recipe.select_options},
            "predict": {"name": predict, **recipe.predict_options},
            **({"responses": responses.provenance} if responses.provenance else {}),
        },
    )


def _tell_fold(tell: Progress, n_folds: int, done: int) -> None:
    tell("validating", done + 1, n_folds + 1)
