"""What error to expect: source models predicted by condensations made without them, and what is unusual about one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .numerics.intervals import normal_width, rarely_exceeded, symmetric_quantile
from .numerics.leakage import ODD
from .numerics.likeness import effective_number
from .predict import Assessment
from .predict.guard import START, part_of
from .recipe import distance_apart
from .relatives import Relatives
from .responses import Responses
from .select.reserve import Reserve
from .splits import KEPT_TOGETHER

Array = NDArray[Any]

LEAST_ODD = 0.5  # evidence of memory, of which left-out sources exceed 1 one time in twenty: less is never odd
OUTSIDE = 0.1  # standard deviations of the source scores beyond their edge, from which on an estimate is alarmed
NEAR = OUTSIDE + START  # standard deviations before that, over which intervals widen: from where estimates move
APART = 0.98  # share of left-out sources whose two estimates lie closer than those of an alarmed model
LONE = 0.01  # of the sources, so few that a model as good as they are is hardly like any
FEW_SOURCES = 40
TOO_LITTLE = 1e-9  # of an error of random items, to gain on: all items are anchors
FEW_KINDS = 8.0  # effective number of different source models, below which they are too alike
FEW_FAMILIES = 4  # named families, or models of none, below which sources say little about another one


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Source models predicted by a condensation made without them: what error to expect for a new model.

    Attributes
    ----------
    truth, estimate : (n_sources,) true scores and out-of-fold estimates, anchors chosen anew in every fold.
    direct_mae : mean absolute error of the plain mean over random items, on the same models.
    direct_items : how many these are on average: as many as the anchors, or as cost as much where cost chose the
        anchors; None in files made before it was kept, as many.
    grouped_by : what was kept together in a fold: ``"family"``, ``"base"``, ``"answers"`` (models that err
        alike) or ``"none"``.
    n_folds : how many parts the source models were cut into.
    scale : (n_sources,) standard error that the score model claimed for each; 1 where it claims none.
    apart : (n_sources,) distance of its two estimates in their standard errors; NaN where there is one only.
    leak : (n_sources,) evidence that anchors were remembered, of models that saw none; NaN where there is none.
    fold : (n_sources,) which fold left each one out; -1 where unknown.
    nearest : (n_sources,) distance to the nearest source that the process learned from; NaN where none is measured
        (another score model, formats 1 to 5).
    more_error, more_scale, n_more : true minus estimated score, and the claimed standard error, of the same models with
        answers to ``n_more`` further items too, (n_sources,) each; NaN and 0 where these are not learned from (another
        score model, formats 1 to 13).
    relatives : the same models left out in folds that ignore kin; None where all folds do, or none is measured.
    near : standard deviations of the source scores over which intervals widen, before an estimate is alarmed.
    trusts_kin : whether a model that has a relative among the sources is no stranger: its interval widens from the edge
        on, and the anchors tell enough; False in formats 1 to 7.
    cautious : whether intervals count in that the anchors tell too little to see that a model is unlike the sources;
        False in formats 1 to 6.
    reaches : whether intervals reach to what the survey leaves open beyond the sources' scores; False in formats 1 to
        14.
    lone : share of the sources, at least one, that are passed over on either side when it is asked where their scores
        end; 0, none, in format 15.
    subtask_error : (n_sources, n_subtasks) true minus estimated mean of what the anchors leave of every subtask; NaN
        where they hold all of it.
    subtask_left : (n_sources, n_subtasks) how many items of it that is.
    curve : (k, 3) what fewer source models would have given: their number, mean absolute error, its standard error;
        the last row is that of the folds themselves.
    by_anchors : (k, 3) what other numbers of anchors gave, where an error was asked for (`sizing.enough_anchors`): the
        number, mean absolute error, its standard error; no rows otherwise.
    """

    truth: Array
    estimate: Array
    direct_mae: float
    grouped_by: str
    n_folds: int
    scale: Array
    apart: Array
    leak: Array
    fold: Array
    subtask_error: Array
    subtask_left: Array
    curve: Array
    nearest: Array
    relatives: Relatives | None
    more_error: Array
    more_scale: Array
    n_more: int
    direct_items: float | None = None
    near: float = NEAR
    trusts_kin: bool = True
    cautious: bool = True
    reaches: bool = True
    lone: float = LONE
    by_anchors: Array = field(default_factory=lambda: np.zeros((0, 3)))

    def __repr__(self) -> str:
        what = KEPT_TOGETHER[self.grouped_by]
        error = f"error {100 * self.mae:.2f} ± {100 * self.mae_se:.2f} points"
        return f"CrossValidation({error}, {len(self.truth)} source models, {what} left out in {self.n_folds} folds)"

    @property
    def mae(self) -> float:
        """Mean absolute error of the out-of-fold estimates, in [0, 1]."""
        return float(np.abs(self.truth - self.estimate).mean())

    @property
    def mae_se(self) -> float:
        """Standard error of `mae`, from the folds, each of which has anchors of its own; 0 where folds are unknown."""
        error = np.abs(self.truth - self.estimate)
        each = [float(error[self.fold == k].mean()) for k in np.unique(self.fold)]
        return float(np.std(each, ddof=1) / np.sqrt(len(each))) if len(each) > 1 else 0.0

    def beside(self, relatives: Relatives) -> CrossValidation:
        """The same with errors of sources left out alone; further items count where both kinds of folds had some."""
        both = replace(self, relatives=relatives)
        return both if np.isfinite(relatives.more_error).all() else both.untaught()

    def believed(self, reserve: Reserve | None, sources: Responses) -> CrossValidation:
        """The same; without errors with further items where folds asked most of what the anchors now leave.

        Nor where ``sources`` (their answers to the anchors) are alike and no fold left out a kind of its own: what
        they teach of other models is not known then.
        """
        most = reserve is not None and reserve.is_most(self.n_more)
        alike = self.grouped_by == "none" and "alike-sources" in source_flags(sources, self)
        return self.untaught() if most or alike else self

    def untaught(self) -> CrossValidation:
        """The same without errors with further items, which are then not learned from."""
        none = np.full(len(self.truth), np.nan)
        alone = None if self.relatives is None else replace(self.relatives, more_error=none, more_scale=none)
        return replace(self, relatives=alone, more_error=none, more_scale=none, n_more=0)

    @property
    def more_mae(self) -> float | None:
        """`mae` of the same models with ``n_more`` further items; None where these are not learned from."""
        return float(np.abs(self.more_error).mean()) if self.n_more else None

    def against(self, n_anchors: int) -> str:
        """What the error is compared with, in words: random items, as many as the anchors or as cost as much."""
        if self.direct_items is None or abs(self.direct_items - n_anchors) < 0.5:
            return "as many random items"
        n = f"{self.direct_items:.0f}"
        return "1 random item, which costs as much" if n == "1" else f"{n} random items, which cost as much"

    @property
    def takes_all_for_strangers(self) -> bool:
        """Whether intervals are those of new families for every model, though kin and distances are known."""
        return self.relatives is None and self.grouped_by != "none" and bool(np.isfinite(self.nearest).all())

    def half_width(self, level: float) -> float:
        """How far an estimate lies from the truth in a share ``level`` of left-out sources (finite-sample quantile)."""
        return symmetric_quantile(self.truth - self.estimate, level)

    def share_of_folds(self, more: int, n_anchors: int) -> float:
        """How far ``more`` further items go towards what the folds asked, by their share of all answers, 0 to 1."""
        if not self.n_more or not more:
            return 0.0
        return min(more / (more + n_anchors) * (self.n_more + n_anchors) / self.n_more, 1.0)

    def times(self, found: Assessment, level: float, more: bool = False) -> Array:
        """By how many claimed standard errors a share ``level`` of models like each one is missed, (n_models,).

        Of sources left out with their family and of ones left out alone, by how likely the sources hold a relative;
        with ``more``, of the same with as many further items as the folds asked.
        """
        error, scale = (self.more_error, self.more_scale) if more else (self.truth - self.estimate, self.scale)
        times = np.full(len(found.score), symmetric_quantile(error / np.maximum(scale, 1e-9), level))
        if self.relatives is not None:
            times += self.kin(found) * (self.relatives.quantile(level, more) - times)
        return times

    def half_widths(self, found: Assessment, level: float, more: float = 0.0) -> Array:
        """Half-width of the interval of every assessed model, shape (n_models,); ``more`` is of `share_of_folds`.

        The quantile of the left-out sources' errors in units of the claimed standard error, times what is claimed for
        the model. Where folds keep families, it lies between the quantile of sources left out with their family and
        that of sources left out alone, by how likely the sources hold a relative of the model.

        Outside the sources' range no calibration on sources holds; there the interval is as wide as that of the survey
        estimate, and moves towards it from shortly before the edge, since a stranger beyond it may look like a model
        just inside; for a model whose relative is a source, from the edge on. The estimate, which the process still
        has a part in, errs less than the survey alone near the edge, so this covers (``docs/theory``). The wider of
        both where the estimate does not move to the survey (no guard, or no anchors drawn by chance).

        Where sources differ by little against the survey's error, the anchors cannot tell a model that is unlike them
        (a benchmark that they all solve, or none does): the survey's interval comes in by its variance's part in both,
        as far as the model may be a stranger.

        A model whose answers are odd has at least the survey's interval. Where its anchors leaked, that is too little.
        """
        times = self.times(found, level)  # scales are 0 where all scores are equal
        if more:
            times += more * (self.times(found, level, True) - times)
        half = times * np.maximum(found.scale, 1e-9)
        normal = normal_width(level)
        if not np.isfinite(found.outside).all():  # a score model that knows no survey estimate
            return np.asarray(half)
        early, late = (np.clip((found.outside - OUTSIDE) / width + 1, 0.0, 1.0) for width in (self.near, OUTSIDE))
        near = early + self.kin(found) * self.trusts_kin * (late - early)
        outside = normal * found.survey_se
        half = np.sqrt(half**2 + (self.unseen(found) * outside) ** 2)
        half = (1 - near) * half + near * outside if found.surveyed else np.maximum(half, near * outside)
        odd = self.unusual(found)["odd-answers"]
        return np.asarray(np.where(odd, np.maximum(half, outside), half))

    def reach(self, found: Assessment, half: Array, level: float) -> tuple[Array, Array]:
        """How much further than ``half`` (n_models,) intervals go below and above, to hold models beyond the sources.

        Few anchors, or sources that differ by little, pull a model that is better than all of them back among them, and
        nothing about it looks unusual. Only the survey can tell. So where its one-sided bound lies above the sources'
        scores, or below them (`ends`), the interval goes up to that bound: any score up there may be the true one. Less
        where the sources are likely to hold a relative of the model, by how much smaller relatives make the mean square
        error.
        """
        nothing = np.zeros(len(half))
        if not (self.reaches and found.surveyed):
            return nothing, nothing
        worst, best = self.ends
        score, bound = np.clip(found.score, 0.0, 1.0), normal_width(2 * level - 1) * found.survey_se
        worth = 0.0 if self.relatives is None else self.relatives.worth(self.truth - self.estimate)
        strange = 1 - self.kin(found) * worth
        lowest, highest = found.survey - bound, found.survey + bound
        below, above = lowest < worst, highest > best
        down, up = np.maximum(score - half - lowest, 0.0), np.maximum(highest - score - half, 0.0)
        return strange * np.where(below, down, 0.0), strange * np.where(above, up, 0.0)

    @property
    def ends(self) -> tuple[float, float]:
        """The scores from which on hardly any source is worse, or better (`lone`)."""
        known, k = np.sort(self.truth), max(1, round(self.lone * len(self.truth))) if self.lone else 0
        return float(known[k]), float(known[-1 - k])

    def kin(self, found: Assessment) -> Array:
        """How likely the sources hold a relative of each model, (n_models,); 0 where none of them has any."""
        if self.relatives is None:
            return np.zeros(len(found.score))
        return self.relatives.likely(found.nearest, self.nearest)

    def unseen(self, found: Assessment) -> Array:
        """How little the anchors can tell that each model is unlike the sources, (n_models,), 0 to 1."""
        if not (self.cautious and found.surveyed):
            return np.zeros(len(found.score))
        strange = 1 - self.kin(found) * self.trusts_kin
        return np.asarray(part_of(found.survey_se, self.truth.std()) * strange)

    def more_sources(self) -> tuple[float, bool]:
        """How much lower the error would be with twice the source models, and whether that is more than noise.

        The ratio of the last halving is carried on. (0, False) where the curve has fewer than two points.
        """
        if len(self.curve) < 2:
            return 0.0, False
        (n, before, se_before), (last, now, se) = self.curve[-2:]
        if before <= 0 or now <= 0 or last <= n:
            return 0.0, False
        power = np.log(before / now) / np.log(last / n)
        return float(max(now * (1 - 2**-power), 0.0)), bool(before - now > 2 * np.hypot(se_before, se))

    def unusual(self, found: Assessment) -> dict[str, Array]:
        """Flag to mask (n_models,): which assessed models are out of what the left-out sources were like."""
        leak = self.leak[np.isfinite(self.leak)]
        odd = rarely_exceeded(leak, ODD) if len(leak) else np.inf
        far = max(2.0, float(np.nanquantile(self.apart, APART))) if np.isfinite(self.apart).any() else np.inf
        return {  # comparisons with NaN, what a score model does not know, are false
            "outside-range": found.outside > OUTSIDE,
            "lines-disagree": distance_apart(found) > far,
            "odd-answers": found.leak > max(odd, LEAST_ODD),
        }


def source_flags(sources: Responses, validation: CrossValidation) -> tuple[str, ...]:
    """What is wrong with the source models, from their kin, their answers to the anchors and the errors left out."""
    m = sources.models
    family = np.where(m.family != "", m.family, m.base)
    n_families = len(np.unique(np.where(family != "", family, m.ids)))
    found = {
        "few-sources": sources.n_models < FEW_SOURCES,
        "alike-sources": n_families < FEW_FAMILIES or effective_number(sources.grades()) < FEW_KINDS,
        "no-gain": TOO_LITTLE < validation.direct_mae < validation.mae,
    }
    return tuple(name for name, is_so in found.items() if is_so)
