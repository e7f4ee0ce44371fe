"""Scores from the anchors and further items drawn by chance, as a survey estimates them: not by what sources teach."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .numerics.intervals import normal_width
from .numerics.survey import FEWEST, Survey, left_to_chance
from .predict.guard import part_of
from .select import Anchors
from .select.reserve import Reserve

Array = NDArray[Any]

LEVEL = 0.9  # of intervals; which estimate is given never depends on the level asked for, but on this one
DOUBTED = 1.25  # times what is said, that a first estimate is taken to err where sources are weak or end
MOST_AHEAD = 2.33  # standard errors that the anchors may be ahead of the further items: 1 % of honest models are more


@dataclass(frozen=True, eq=False)
class Told:
    """Scores of models, (n_models,), with the half-widths of their intervals at the level asked for and at `LEVEL`.

    ``down`` and ``up`` are what the intervals asked for go further below and above (`CrossValidation.reach`).
    """

    score: Array
    half: Array
    typical: Array
    down: Array | float = 0.0
    up: Array | float = 0.0

    @property
    def widest(self) -> Array:
        """How far the intervals go on their longer side, (n_models,)."""
        return self.half + np.maximum(self.down, self.up)

    def ends(self, scores: Array) -> tuple[Array, Array]:
        """The lower and upper ends of the intervals around ``scores`` (n_models,), which may lie outside [0, 1]."""
        return scores - self.half - self.down, scores + self.half + self.up

    def but(self, where: Array, other: Told) -> Told:
        """The same, but as ``other`` has it for the models ``where`` (n_models,) is true."""
        return Told(*(np.where(where, theirs, ours) for ours, theirs in self._beside(other)))

    def reaching(self, other: Told, share: Array) -> Told:
        """With intervals that go a share (n_models,) of the way to reaching over those of ``other``."""
        apart = np.abs(self.score - other.score)
        pairs = ((self.half, other.half), (self.typical, other.typical))
        half, typical = (own + share * np.maximum(apart + theirs - own, 0.0) for own, theirs in pairs)
        down, up = (np.maximum(side - (half - self.half), 0.0) for side in (self.down, self.up))  # no further for both
        return replace(self, half=half, typical=typical, down=down, up=up)

    def towards(self, other: Told, share: Array) -> Told:
        """Moved to ``other`` by a share (n_models,) of the way."""
        return Told(*(ours + share * (theirs - ours) for ours, theirs in self._beside(other)))

    def _beside(self, other: Told) -> list[tuple[Array | float, Array | float]]:
        return [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]


@dataclass(frozen=True, eq=False)
class TopUp:
    """A design-based estimate: how the items were drawn, not how alike models are, says how sure it is.

    Two survey estimates (`numerics.survey`: source models predict, the items drawn correct them; augmented inverse
    probability weighting) that err independently of each other: one from the anchors with a known chance, one from the
    further items, drawn from what the anchors left. They are mixed by how many items they rest on and leave, never
    by what the model answered. The second holds for any model. The first does where the anchors are drawn blindly
    (`stratified`); those of `auto` are picked from among those drawn, and what bias that leaves is measured
    (``docs/theory/more-items.md``). Where the further items are all that the anchors left, nothing is estimated.

    Attributes
    ----------
    first : from the anchors alone; None where fewer than 4 of them were drawn by chance.
    second : from the further items, with the anchors standing for themselves.
    share : of the first in the mixture.
    n_drawn : items drawn by chance on which the estimate rests, for Student's t.
    whole : share of the score of every item, (n_anchors + more,), where that is all of them and the score is known;
        else None.
    """

    first: Survey | None
    second: Survey
    share: float
    n_drawn: int
    whole: Array | None = None

    @classmethod
    def fit(cls, anchors: Anchors, grades: Array, scores: Array, reserve: Reserve, more: int) -> TopUp:
        """From source models' ``grades`` (n, n_anchors) and ``scores`` (n,), for the first ``more`` of the reserve."""
        reserve.check(more)
        k = len(anchors)
        chance = np.concatenate([np.ones(k), np.minimum(reserve.chance[:more] * more / len(reserve), 1 - 1e-9)])
        both = np.concatenate([grades, reserve.grades[:, :more]], axis=1)
        shares, whole = reserve.shares[: k + more], reserve.whole(k + more)
        second = Survey.fit(both, scores, shares, chance, reserve.n_items)
        by_chance = int(left_to_chance(anchors.chance, shares[:k]).sum())
        if by_chance < FEWEST:
            return cls(None, second, 0.0, more, whole)
        first = Survey.fit(grades, scores, shares[:k], anchors.chance, reserve.n_items)
        errs = [s.size[0] ** 2 * float(s.shares @ s.shares) * _left(s) for s in (first, second)]
        return cls(first, second, errs[1] / sum(errs), by_chance + more, whole)

    def quantile(self, level: float) -> float:
        """Standard errors on either side of the estimate that make an interval of this level."""
        from scipy.stats import t

        return float(t.ppf(0.5 + level / 2, self.n_drawn - 1))

    def ahead(self, anchors: Array, further: Array, first: Told) -> Array:
        """By how many standard errors the anchors say a higher score than the further items do, (n_models,).

        Anchors that were not drawn by chance say what is told of the models ``first``, from them alone. A few further
        items tell their own error badly; Student's quantile makes up for it. 0 where the anchors left no others.
        """
        from scipy.stats import norm, t

        if self.whole is not None:
            return np.zeros(len(anchors))
        score, error = first.score, first.typical / normal_width(LEVEL)
        if self.first is not None:
            score, error = self.first.predict(anchors)
        second, se = self.second.predict(np.concatenate([anchors, further], axis=1))
        doubt = t.ppf(norm.cdf(MOST_AHEAD), further.shape[1] - 1) / MOST_AHEAD
        return np.asarray((score - second) / np.hypot(error, doubt * se))

    def surveyed(self, anchors: Array, further: Array, odd: Array, lead: Array, level: float) -> Told:
        """The design-based estimates of models whose anchors may be ``odd``, or have the ``lead``, (n_models,) each.

        Such anchors stand for themselves only, where there are as many further items. Fewer do not overrule more: they
        stand for the others too, and the interval reaches over that of the further items, as far as `doubted` says. It
        also reaches to what anchors that are not odd would have made of the estimate, since an honest model may be
        ahead by chance: wholly where the lead is just enough, not at all at twice that.
        """
        ahead, alone = lead > MOST_AHEAD, self.alone(anchors, further, level)
        score, se = self.predict(anchors, further, np.zeros(len(anchors), dtype=bool))
        both = Told(np.clip(score, 0.0, 1.0), *(self.quantile(q) * se for q in (level, LEVEL)))
        if further.shape[1] < anchors.shape[1]:
            return both.reaching(alone, doubted(odd, lead))
        told, by_chance = both.but(odd | ahead, alone), np.clip(2 - lead / MOST_AHEAD, 0.0, 1.0) * (ahead & ~odd)
        apart = by_chance * (told.score - both.score)
        return Told(told.score, np.hypot(told.half, apart), np.hypot(told.typical, apart))

    def alone(self, anchors: Array, further: Array, level: float) -> Told:
        """What the further items say, with the anchors for themselves only, by Student's quantile for so many."""
        from scipy.stats import t

        score, se = self.predict(anchors, further, np.ones(len(anchors), dtype=bool))
        halves = (float(t.ppf(0.5 + q / 2, further.shape[1] - 1)) * se for q in (level, LEVEL))
        return Told(np.clip(score, 0.0, 1.0), *halves)

    def mixed(self, first: Told, anchors: Array, further: Array, level: float) -> Told:
        """A first estimate, from the anchors and what sources teach, and the survey of the further items.

        The second is unbiased whatever the first was, so their errors are uncorrelated, and they are weighed by them.
        """
        second, se = self.second.predict(np.concatenate([anchors, further], axis=1))
        share = part_of(first.typical / normal_width(LEVEL), se)
        own = ((level, first.half), (LEVEL, first.typical))
        half, typical = (self.quantile(q) * np.hypot((1 - share) * h / normal_width(q), share * se) for q, h in own)
        score = np.clip(first.score + share * (second - first.score), 0.0, 1.0)
        return Told(score, half, typical, (1 - share) * first.down, (1 - share) * first.up)

    def told(
        self, first: Told, surveyed: Told, anchors: Array, further: Array, *, inside: Array, weak: bool, level: float
    ) -> tuple[Told, Array]:
        """What is told of models that may resemble the sources, and of which that is the survey's, (n_models,).

        The mixture. Where sources are ``weak``, or a model is not well ``inside`` (n_models,) their range, the first
        estimate is believed less. With weak ones the survey is told where its interval is the narrower.
        """
        if self.whole is not None:
            return surveyed, np.ones(len(inside), dtype=bool)
        doubt = np.where(inside & ~np.array(weak), 1.0, DOUBTED)
        doubted = replace(first, half=doubt * first.half, typical=doubt * first.typical)
        mixed = self.mixed(doubted, anchors, further, level)
        use = weak & (surveyed.typical < mixed.typical)
        return mixed.but(use, surveyed), use

    def predict(self, anchors: Array, further: Array, leaked: Array) -> tuple[Array, Array]:
        """Scores and standard errors, (n_models,), from grades on the anchors and on the further items.

        ``leaked`` (n_models,) is true where the anchors are suspect; they then stand for themselves only.
        """
        both = np.concatenate([anchors, further], axis=1)
        if self.whole is not None:
            return both @ self.whole, np.zeros(len(both))
        second, se = self.second.predict(both)
        if self.first is None:
            return second, se
        first, se_first = self.first.predict(anchors)
        share = np.where(leaked, 0.0, self.share)
        return share * first + (1 - share) * second, np.sqrt((share * se_first) ** 2 + ((1 - share) * se) ** 2)


def doubted(odd: Array, lead: Array) -> Array:
    """How far intervals reach to what further items say that are too few to overrule the anchors, (n_models,), 0 to 1.

    Wholly where the anchors are ahead by more than chance explains; of ``odd`` models (n_models,) as far as they are on
    the way there.
    """
    return np.where(lead > MOST_AHEAD, 1.0, odd * np.clip(lead / MOST_AHEAD, 0.0, 1.0))


def _left(survey: Survey) -> float:
    """Share of the items to estimate that were not drawn: where that is small, the drawn ones leave little open."""
    return max(1 - len(survey.drawn) / float(survey.size[1]), 1e-9)
