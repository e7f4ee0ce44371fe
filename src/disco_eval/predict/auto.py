"""The default score model: a Gaussian process, guarded by what the anchors say as a survey of the benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from ..errors import FormatError, ValidationError
from ..numerics.ability import AbilityLine, easiness
from ..numerics.gp import GaussianProcess
from ..numerics.rng import Seed
from ..numerics.survey import FEWEST, UNSEEN, Survey, left_to_chance
from ..responses import Responses
from ..select.anchors import Anchors
from ..splits import kin, telling_answers
from .base import Array, Arrays, Config, check_answers, clip, has_part, named_arrays, need, need_part
from .guard import GROWTH, LEAST_SD, START, SURE, beyond, older_share, survey_share
from .memories import Memories
from .mixture import LEAST_EXCESS, MOST_EXCESS
from .processes import Processes, evenly, views

FEWEST_SOURCES = 8
_EDGE = (0.05, 0.95)  # quantiles of the source scores between which a target counts as inside their range
_LEAST_SPREAD = 1e-6  # of the source scores, that nothing is divided by 0
_MOST = 1e3  # that a saved number of the guard can be


@dataclass(frozen=True, eq=False)
class Assessment:
    """What the parts of `Auto` say about every model; all arrays have shape (n_models,), scores are not clipped.

    Attributes
    ----------
    score : the estimate. scale : its standard error as far as the parts know it, for intervals to calibrate.
    process, process_sd : the Gaussian process. line : the ability line. survey, survey_se : the survey estimate; the
        line and its error where no anchor was drawn by chance.
    outside : how far the model lies outside the sources' range, in standard deviations of their scores; < 0 inside.
    leak : evidence that some anchors were remembered, of `numerics.memory`; with probabilities the larger of that of
        grades and that of the label's probabilities, each in units of what honest sources show.
    nearest : distance to the nearest answers among the sources that the process learned from, see `numerics.gp`.
    surveyed : whether the score moves to the survey estimate outside, so that the survey's interval holds for it.
    """

    score: Array
    scale: Array
    process: Array
    process_sd: Array
    line: Array
    survey: Array
    survey_se: Array
    outside: Array
    leak: Array
    nearest: Array
    surveyed: bool


class Auto:
    """Our best estimate: what source models teach where they apply, and what the anchors say by themselves where not.

    Inside the sources' range, a Gaussian process on the signature with the anchor accuracy as unpenalised mean (see
    `numerics.gp`); with probabilities, a mixture of three (on probabilities alone, with grades beside them, on
    grades alone) weighed by their left-out errors and by what each claims to know of the model.
    Every learned model is pulled towards its sources, so towards and beyond the edge of their range the estimate moves
    to the survey estimate from the anchors as a sample of the benchmark (`numerics.survey`): the two are weighed by
    their errors, that of the process growing with the distance (`predict.guard`). Where no anchors were drawn by
    chance (``--select pds``), the one-dimensional ability line takes its place, which is better than nothing and no
    guarantee.

    Parameters
    ----------
    guard : False for the Gaussian process alone (``--predict gp``): sharper inside the range, wrong outside.
    grades : True to learn from grades alone where the sources' probabilities are known too, for targets that will
        come without them.
    guess : whether models may be right by guessing, which `numerics.leakage` does not take for remembering; None to
        learn it from the sources.
    perfect : whether perfect answers are also looked at to tell who remembers (`predict.memories`); None to learn from
        the sources whether that helps.
    """

    name: ClassVar[str] = "auto"

    def __init__(
        self, guard: bool = True, grades: bool = False, guess: bool | None = None, perfect: bool | None = None
    ) -> None:
        for name, value in (("guard", guard), ("grades", grades), ("guess", guess), ("perfect", perfect)):
            if value not in ((True, False, None) if name in ("guess", "perfect") else (True, False)):
                raise ValidationError(f"option '{name}' of prediction 'auto' is true or false, got {value!r}")
        self.guard = bool(guard)
        self.grades = bool(grades)
        self.guess = guess
        self.perfect = perfect

    def fit(self, source: Responses, anchors: Anchors, rng: Seed = None) -> Self:
        if source.n_models < FEWEST_SOURCES:
            raise ValidationError(
                f"prediction 'auto' needs at least {FEWEST_SOURCES} source models, got {source.n_models}"
            )
        known, scores = source.pick(items=anchors.positions), source.scores()
        rows = evenly(known.models.ids, scores)
        telling = telling_answers(source)
        akin = kin(source.models, telling)
        self._ids = anchors.ids
        self._soft = known.probs is not None and known.items.label is not None and not self.grades
        self._weights = _in_the_mean(anchors)
        seen = views(known.pick(models=rows), self._soft, self._weights)
        self._processes = Processes.fit(seen, scores[rows], akin[rows], telling[rows])
        self._line = _fit_line(source, anchors, known.grades(), scores)
        self._survey = _fit_survey(source, anchors, known.grades(), scores)
        self._memories = Memories.fit(known, scores, akin, self._soft, self.guess, self.perfect)
        low, high = np.quantile(scores, _EDGE)
        spread = max(float(scores.std()), _LEAST_SPREAD)
        line_error = scores - self._line.predict(known.grades())
        line_sd = float(np.sqrt(np.mean(line_error**2)))
        self._facts = np.array([low, high, spread, self._processes.inflate, line_sd])
        self._edge: Array | None = np.array([GROWTH, START, SURE])
        return self

    def predict(self, answers: Responses) -> Array:
        return clip(self.assess(answers).score)

    def assess(self, answers: Responses) -> Assessment:
        """The estimate and what it rests on, for models' answers to exactly the anchors."""
        check_answers(answers, self._ids)
        if self._soft and answers.probs is None:
            raise ValidationError(
                "the answers hold grades only, but the source models' probabilities are part of this score model; "
                "give the probabilities of the choices, or condense with --predict-opt grades=true"
            )
        grades = answers.grades()
        seen = views(answers, self._soft, self._weights)
        process, sd = self._processes.predict(seen)
        line = self._line.predict(grades)
        survey, se = self._surveyed(grades, line, float(self._facts[4]))
        nearest = self._processes.each[0].nearest(seen[0][0])
        leak = self._memories.evidence(answers)
        return self._weighed(process, sd, line, (survey, se, self._survey is not None), leak, nearest)

    def told_by(self, found: Assessment, process: Array, sd: Array, survey: tuple[Array, Array, bool]) -> Assessment:
        """The same models by a process and a survey that know more answers, weighed as those of the anchors are.

        ``survey`` is its estimate, its error, and whether it is one (the ability line may stand in its place).
        """
        return self._weighed(process, sd, found.line, survey, found.leak, found.nearest)

    def _weighed(
        self, process: Array, sd: Array, line: Array, surveyed: tuple[Array, Array, bool], leak: Array, nearest: Array
    ) -> Assessment:
        """Process and survey (estimate, error, whether it is one) weighed by their errors and where models stand."""
        survey, se, is_survey = surveyed
        edges, spread = self._facts[:2], self._facts[2]
        outside = np.maximum(beyond(process, edges, spread), beyond(line, edges, spread))
        if self._sure is not None:  # where sources hardly differ, only the survey sees that a model does
            outside = np.maximum(outside, beyond(survey, edges, spread, self._sure * se))
            sd = np.maximum(sd, LEAST_SD * spread * np.maximum(outside, 0.0))
        weight = self.survey_weight(sd, se, outside)
        score = process + weight * (survey - process)
        scale = np.sqrt(((1 - weight) * sd) ** 2 + (weight * se) ** 2)
        guarded = self.guard and is_survey
        return Assessment(score, scale, process, sd, line, survey, se, outside, leak, nearest, guarded)

    @property
    def learned(self) -> Config:
        """The options that a fitted model learned from its sources where they were not given."""
        return {"guess": self._memories.grades.guesses, "perfect": self._memories.perfect is not None}

    @property
    def has_survey(self) -> bool:
        """Whether anchors were drawn by chance, so that they make a survey; else the ability line takes its place."""
        return self._survey is not None

    def difference_error(self, one: Array, other: Array) -> float | None:
        """Standard error of the survey's difference of two models, from grades (n_anchors,); None without a survey."""
        return None if self._survey is None else self._survey.difference_error(one, other)

    def _surveyed(self, grades: Array, line: Array, line_sd: float) -> tuple[Array, Array]:
        """The survey estimate and its error, each (n_models,); the line's where no anchors were drawn by chance."""
        if self._survey is None:
            return line, np.full(len(line), line_sd)
        unseen = UNSEEN if self._memories.knows_doubts else 0.0  # formats 1 to 6 knew none
        return self._survey.predict(grades, unseen)

    @property
    def _sure(self) -> float | None:
        """Standard errors by which the survey must be outside to count; None where it never does (formats 1 to 5)."""
        return float(self._edge[2]) if self._edge is not None and len(self._edge) == 3 else None

    def survey_weight(self, sd: Array, se: Array, outside: Array) -> Array:
        """Share of the survey in the estimate, (n_models,), from the errors of both and how far outside a model is."""
        if not self.guard:
            return np.zeros(len(outside))
        if self._edge is None:
            return older_share(sd, se, outside, self._facts[5:])
        return survey_share(sd, se, outside, *self._edge[:2])

    @property
    def soft(self) -> bool:
        """Whether it learned from probabilities beside grades."""
        return self._soft

    @property
    def processes(self) -> Processes:
        """What it learned from the source models' answers to the anchors."""
        return self._processes

    @property
    def weights(self) -> Array:
        """What each anchor counts for in the mean answer, (n_anchors,), sum 1."""
        return self._weights

    def config(self) -> Config:
        parts = {"soft": self._soft, "survey": self._survey is not None, "distance": self._edge is not None}
        return {"guard": self.guard, "grades": self.grades, "parts": parts | self._memories.parts()}

    def state(self) -> Arrays:
        arrays = {"facts": self._facts, "mix": self._processes.mix, "weights": self._weights}
        if self._edge is not None and self._processes.excess is not None:
            arrays |= {"edge": self._edge, "excess": self._processes.excess}
        for i, process in enumerate(self._processes.each):
            arrays |= named_arrays(f"process{i}", process)
        arrays |= named_arrays("line", self._line) | self._memories.state()
        return arrays if self._survey is None else arrays | named_arrays("survey", self._survey)

    @classmethod
    def restore(cls, config: Config, state: Arrays, ids: Array) -> Self:
        model = cls(config["guard"], config["grades"])
        model._ids = ids
        model._facts = need(state, "facts", (6 if len(state.get("facts", ())) == 6 else 5,))
        parts = config["parts"]
        n_anchors = len(ids)  # before format 7 every anchor counted the same in the mean answer
        weighted = has_part(parts, "weights")
        equal = np.full(n_anchors, 1 / n_anchors)
        model._weights = need(state, "weights", (n_anchors,)) if weighted else equal
        distance = has_part(parts, "distance")  # from format 5 on
        model._edge = need(state, "edge", (2 if len(state.get("edge", ())) == 2 else 3,)) if distance else None
        model._soft = has_part(parts, "soft")
        n = 3 if model._soft else 1
        mix, excess = need(state, "mix", (n,)), need(state, "excess", (n,)) if distance else None
        each = [GaussianProcess(**need_part(state, f"process{i}", GaussianProcess.shapes())) for i in range(n)]
        model._processes = Processes(each, mix, excess, float(model._facts[3]))
        model._line = AbilityLine(**need_part(state, "line", {"easiness": (len(ids),), "curve": (None,), "line": (2,)}))
        model._memories = Memories.restore(parts, state, n_anchors, guesses=distance, doubts=weighted)
        surveyed = has_part(parts, "survey")
        model._survey = Survey(**need_part(state, "survey", Survey.shapes())) if surveyed else None
        wrong = model._mismatch(len(ids))
        if wrong:
            raise FormatError(f"the saved score model 'auto' makes no sense: {wrong}")
        return model

    def _mismatch(self, n_anchors: int) -> str:
        """What does not fit together in restored arrays; empty if all does."""
        for p in self._processes.each:
            n, width = p.X.shape
            if not (len(p.alpha) == len(p.accuracy) == n and p.inverse.shape == (n, n) and len(p.centre) == width):
                return "the arrays of a process differ in length"
        if self._edge is not None and not (self._edge.min() >= 0 and self._edge.max() <= _MOST):
            return "the numbers of the edge are out of bounds"
        mix, excess = self._processes.mix, self._processes.excess
        if excess is not None and not ((excess >= LEAST_EXCESS) & (excess <= MOST_EXCESS)).all():
            return "the processes' errors are out of bounds"
        if self._weights.min() < 0 or abs(self._weights.sum() - 1) > 1e-6:
            return "the weights of the anchors are no shares"
        if mix.min() < 0 or not 0.5 < mix.sum() < 2:
            return "the shares of the processes are no shares"
        if not _LEAST_SPREAD <= self._facts[2] <= 1:
            return "the spread of the source scores is out of bounds"
        if not 0 <= self._facts[3] <= MOST_EXCESS:
            return "the size of the errors is out of bounds"
        if wrong := self._memories.mismatch():
            return wrong
        v = self._survey
        if v is None:
            return ""
        k = len(v.drawn)
        fits = len(v.shares) == len(v.values) == len(v.reach) == k and v.vectors.shape == (k, k)
        if not fits or len(v.certain) != n_anchors or k < FEWEST:
            return "the arrays of the survey differ in length"
        inside = v.drawn.min() >= 0 and v.drawn.max() < n_anchors
        return "" if inside else "the survey asks for anchors that do not exist"


def _in_the_mean(anchors: Anchors) -> Array:
    """What each anchor counts for in the mean answer, (n_anchors,), sum 1.

    Those drawn by chance count for what they stand for. Those chosen otherwise stand for themselves alone, which would
    all but leave them out; they count like any anchor, or for their own share of the score where that is more.
    """
    n, chosen = len(anchors), np.isnan(anchors.chance)
    if chosen.all():
        return np.full(n, 1 / n)
    drawn = anchors.weights / anchors.weights[~chosen].sum() * (1 - chosen.sum() / n)
    counts = np.where(chosen, np.maximum(anchors.weights, 1 / n), drawn)
    return np.asarray(counts / counts.sum())


def _fit_line(source: Responses, anchors: Anchors, grades: Array, scores: Array) -> AbilityLine:
    ease = easiness(source.item_means(), source.n_models)
    return AbilityLine.fit(grades, ease, source.items.weight, anchors.positions, scores)


def _fit_survey(source: Responses, anchors: Anchors, grades: Array, scores: Array) -> Survey | None:
    share = source.items.weight / source.items.weight.sum()
    if left_to_chance(anchors.chance, share[anchors.positions]).sum() < FEWEST:
        return None
    return Survey.fit(grades, scores, share[anchors.positions], anchors.chance, int((share > 0).sum()))
