"""What source models teach of the anchors and further items together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from .numerics.intervals import normal_width
from .predict import Assessment, Auto, ScoreModel
from .predict.processes import Processes, evenly, views
from .recipe import possible
from .responses import Responses
from .select import Anchors
from .select.reserve import Reserve, draw_first
from .splits import kin
from .topup import LEVEL, TopUp

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Taught:
    """The default score model of the anchors and further items together.

    Its processes learn from the source models' answers to all of these items, and the survey of all takes the place of
    the survey of the anchors; beside the edge of the sources' range and beyond it the two are weighed as ever
    (`predict.guard`). So with as many further items as anchors a model is estimated about as well as from twice as many
    anchors. The ability line, evidence of memory and distances to the sources stay those of the anchors.

    Attributes
    ----------
    model : of the anchors alone. processes : of all items. weights : (n_anchors + more,) of these in the mean answer.
    survey : the design-based estimate.
    """

    model: Auto
    processes: Processes
    weights: Array
    survey: TopUp

    @classmethod
    def fit(cls, model: Auto, anchors: Anchors, known: Responses, scores: Array, reserve: Reserve, more: int) -> Taught:
        """From source models' answers ``known`` to the anchors and ``scores`` (n,), for the first ``more`` items."""
        label = None if reserve.label_probs is None else reserve.label_probs[:, :more]
        grades = reserve.grades[:, :more]
        survey = TopUp.fit(anchors, known.grades(), scores, reserve, more)
        weights, rows = _in_the_mean(model, reserve, more), evenly(known.models.ids, scores)
        some = known.pick(models=rows)
        seen = views(some, model.soft, weights, (grades[rows], None if label is None else label[rows]))
        answers = np.concatenate([known.grades(), grades], axis=1)[rows]
        processes = Processes.fit(seen, scores[rows], kin(some.models, answers), answers, model.processes)
        return cls(model, processes, weights, survey)

    def assess(self, found: Assessment, answers: Responses, further: Responses) -> Assessment:
        """What it says of models that were ``found`` so from the ``answers`` to the anchors alone.

        A few items tell their own error badly; Student's quantile at the usual level makes up for it. Where no anchor
        was drawn by chance, fewer further items than anchors are too few for a survey of their own.
        """
        label = further.label_probs().astype(np.float32) if self.model.soft else None
        seen = views(answers, self.model.soft, self.weights, (further.grades(), label))
        honest = np.zeros(answers.n_models, dtype=bool)
        survey, se = self.survey.predict(answers.grades(), further.grades(), honest)
        se = se * self.survey.quantile(LEVEL) / normal_width(LEVEL)
        few = self.survey.first is None and further.n_items < answers.n_items
        told = (found.survey, found.survey_se, found.surveyed) if few else (survey, se, True)
        return self.model.told_by(found, *self.processes.predict(seen), told)


def is_taught(model: ScoreModel) -> TypeGuard[Auto]:
    """Whether further items can be learned from with this score model: ours, with its guard."""
    return isinstance(model, Auto) and model.guard


def is_soft(model: ScoreModel) -> bool:
    """Whether probabilities of further items are learned from too."""
    return is_taught(model) and model.soft


def assess_with_more(
    model: ScoreModel,
    anchors: Anchors,
    source: Responses,
    unseen: Responses,
    found: Assessment,
    rng: np.random.Generator,
) -> tuple[Array, Array, int]:
    """Scores and their claimed errors, (n_models,) each, of models that also answer further items.

    These are drawn here (`draw_first`): as many as anchors, where that leaves enough. Their number is the third. NaN
    and 0 where none can be.
    """
    nothing = np.full(unseen.n_models, np.nan)
    if not is_taught(model):
        return nothing, nothing, 0
    reserve = draw_first(source, anchors, rng, soft=model.soft)
    if reserve is None:
        return nothing, nothing, 0
    more, at = len(reserve), source.items.positions(reserve.items.ids)
    known, answers = (r.pick(items=anchors.positions) for r in (source, unseen))
    taught = Taught.fit(model, anchors, known, source.scores(), reserve, more)
    told, asked = taught.assess(found, answers, unseen.pick(items=at)), np.concatenate([anchors.positions, at])
    return possible(told.score, unseen.pick(items=asked), unseen.items.weight, asked), told.scale, more


def _in_the_mean(model: Auto, reserve: Reserve, more: int) -> Array:
    """What every item counts for in the mean answer, (n_anchors + more,), sum 1.

    The anchors stand for the benchmark; so do the further items, with the anchors for themselves. The two are weighed
    by how many equal items either rests on and what it leaves, so that a few heavy items keep their weight.
    """
    n = len(model.weights)
    shares, own = reserve.shares[:n], reserve.shares[n : n + more] / reserve.chance[:more]
    left, unasked = 1 - shares.sum(), 1 - reserve.shares[: n + more].sum()
    second = np.concatenate([shares, left * own / own.sum()])
    first = np.concatenate([model.weights, np.zeros(more)])
    error, error_second = float(first @ first) * left, float(second[n:] @ second[n:]) * max(unasked, 0.0) / left
    share = error_second / (error + error_second)
    return np.asarray(share * first + (1 - share) * second)
