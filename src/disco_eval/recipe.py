"""How a condensation is made, to be repeated without each fold of source models, and what its score model says."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ValidationError
from .predict import Assessment, Auto, ScoreModel, predictor
from .responses import Responses
from .select import Anchors, complete, selector
from .select.disagreement import share_pass

Array = NDArray[Any]

FEWEST_CHOOSERS = 8  # models of a fold that choose anchors, where those of an update do


@dataclass(frozen=True)
class Recipe:
    """How to choose anchors and fit a score model: done once for all sources and once without each fold.

    ``chosen_by`` are the source models that choose the anchors, where others came later and only teach; None for all.
    """

    n_anchors: int
    select: str
    predict: str
    select_options: Mapping[str, Any] = field(default_factory=dict)
    predict_options: Mapping[str, Any] = field(default_factory=dict)
    mixed: bool = False
    chosen_by: frozenset[str] | None = None

    @property
    def by_cost(self) -> bool:
        """Whether what items cost had a part in choosing the anchors."""
        return bool(self.select_options.get("cost_power")) or self.select_options.get("budget") is not None

    @classmethod
    def of(cls, provenance: Mapping[str, Any], n_anchors: int) -> Recipe:
        """The recipe that a condensation's provenance tells."""
        named = {step: dict(provenance.get(step) or {"name": "auto"}) for step in ("select", "predict")}
        select, predict = (str(named[step].pop("name")) for step in ("select", "predict"))
        return cls(n_anchors, select, predict, named["select"], named["predict"], bool(provenance.get("mixed")))

    def make(self, source: Responses, rng: np.random.Generator) -> tuple[Anchors, ScoreModel]:
        """Anchors chosen, and a score model fitted, on these source models."""
        for_anchors, for_model = rng.spawn(2)
        anchors = self._choose(self._choosers(source), for_anchors)
        model = predictor(self.predict, **self.predict_options).fit(source, anchors, for_model)
        return anchors, model

    def make_without(self, n_left_out: int, source: Responses, rng: np.random.Generator) -> tuple[Anchors, ScoreModel]:
        """The same for a fold, whose errors are told as such: with all source models it went well."""
        try:
            return self.make(source, rng)
        except ValidationError as e:
            raise ValidationError(
                f"{e}. This is where {n_left_out} of {n_left_out + source.n_models} source models are left out to see "
                "how well they are estimated: ask for less, take more folds, or give more models"
            ) from None

    def _choosers(self, source: Responses) -> Responses:
        """Those of these source models that choose; all, where a fold holds too few that should."""
        if self.chosen_by is None:
            return source
        choose = np.isin(source.models.ids, list(self.chosen_by))
        committee = self.select_options.get("committee_size") or 0
        return source.pick(models=choose) if choose.sum() >= max(FEWEST_CHOOSERS, committee) else source

    def _choose(self, source: Responses, rng: np.random.Generator) -> Anchors:
        select = selector(self.select, **self.select_options)
        if not self.mixed:
            return select(source, self.n_anchors, rng)
        if self.n_anchors < 2:
            raise ValidationError("mixed anchors are half chosen and half drawn by chance; ask for at least 2")
        if self.select_options.get("budget") is not None:
            raise ValidationError(
                "mixed anchors are half drawn blindly, whatever they cost; leave out the budget or --mixed"
            )
        for_half, for_rest = rng.spawn(2)
        half = select(source, self.n_anchors // 2, for_half)
        return complete(source, half, self.n_anchors - len(half), for_rest)

    def share(self, responses: Responses, parts: list[tuple[Array, Array]]) -> list[dict[Hashable, Any]]:
        """What all folds need and one pass over the responses can make, one entry a fold; see `select.share_pass`."""
        alone = self.chosen_by is not None or self.select_options.get("committee_size") is not None
        if alone or self.select not in ("pds", "jsd"):
            return [{} for _ in parts]
        part = np.empty(responses.n_models, dtype=np.int64)
        for k, (_, left_out) in enumerate(parts):
            part[left_out] = k
        return share_pass(responses, part, len(parts), self.select)


def described(step: Mapping[str, Any] | None) -> str:
    """A selection or prediction of a provenance in words: its name, and its options where they were given."""
    name, *rest = [
        str(value) if key == "name" else f"{key}={f'{value:g}' if isinstance(value, float) else value}"
        for key, value in (step or {"name": "unknown"}).items()
        if value is not None
    ]
    return f"{name} ({', '.join(rest)})" if rest else name


def assess(model: ScoreModel, answers: Responses) -> Assessment:
    """What a score model says about every model; a score alone (scale 1, the rest unknown) where it is not `Auto`."""
    if isinstance(model, Auto):
        return model.assess(answers)
    score = model.predict(answers)
    unknown = np.full(len(score), np.nan)
    return Assessment(score, np.ones(len(score)), *(unknown,) * 8, surveyed=False)


def assess_unseen(model: ScoreModel, unseen: Responses, at: Array) -> Assessment:
    """The same of models with answers to all items, by those at positions ``at``: with scores that these can be."""
    answers = unseen.pick(items=at)
    found = assess(model, answers)
    return replace(found, score=possible(found.score, answers, unseen.items.weight, at))


def possible(scores: Array, answers: Responses, weight: Array, at: Array) -> Array:
    """``scores`` (n_models,) moved to where ``answers`` to the items at positions ``at``, of all, leave them possible.

    ``weight`` (n_items,) is that of all items of the benchmark.
    """
    share = weight[at] / weight.sum()
    earned = answers.grades() @ share
    return np.asarray(np.clip(scores, earned, np.minimum(earned + max(1 - share.sum(), 0.0), 1.0)))


def distance_apart(found: Assessment) -> Array:
    """How far the process and the survey estimate of every model lie apart, in their standard errors, (n_models,)."""
    error = np.sqrt(found.process_sd**2 + found.survey_se**2)
    apart: Array = np.abs(found.process - found.survey) / np.maximum(error, 1e-9)  # 0 where all scores are equal
    return apart
