"""Two models on the same anchors: the difference of their full scores, and whether a drop stays within a margin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .condensation import Condensation
from .difference import Asked, Difference, told
from .errors import ValidationError, check_kind, some
from .flags import FLAGS
from .responses import Responses, check_responses

Array = NDArray[Any]

ROUNDING = 1e-9  # of a difference of scores, which a drop of exactly the margin may be off
VERDICTS = {"passes": 0, "fails": 3, "undecided": 4}
"""What the verdicts are called, and the exit status of ``disco compare`` for each."""
SAME = 1e-6  # a distance that is but rounding


@dataclass(frozen=True)
class Comparison:
    """A candidate against a baseline, such as a quantised model against the original.

    Attributes
    ----------
    baseline, candidate : their names.
    difference : estimated full score of the candidate minus that of the baseline, in [-1, 1]; closer to 0 than the
        difference of the two estimates by as much as pairs of source models this alike were.
    low, high : an interval that holds the true difference in a share ``level`` of pairs as far apart as these.
    distance : root mean square over anchors of how far their grades are apart, 0 for equal answers; where there are
        probabilities, the distance between these counts as much (not where ours learned from grades alone).
    n_pairs, pair_distance : how many pairs of left-out source models it was calibrated on, and their median distance.
    margin : the drop that is still acceptable, in [0, 1], or None.
    verdict : ``"passes"`` where the whole interval lies at or above -margin, ``"fails"`` where it lies below, else
        ``"undecided"``; None without a margin.
    more_items : about how many more items would decide, if the estimate stays; 0 where decided. Of a suspect model (see
        `set_aside`) the anchors are not counted, since further items would have to decide without them.
    all_items : whether that is all there are: only the whole benchmark would.
    unlike : whether no pair of source models tells about these two, since one is outside the sources' range or they are
        further apart than any pair: difference and interval then rest, in part or wholly, on the anchors as a survey.
    more : number of items beyond the anchors that it rests on too.
    set_aside : whether it rests on the further items alone, since the anchors may have leaked into either model.
    whole : whether all items are known: the difference is what it is.
    baseline_flags, candidate_flags : what is unusual about each, keys of `disco_eval.flags.FLAGS`: a candidate
        that may have seen the anchors is no better for passing.
    """

    baseline: str
    candidate: str
    difference: float
    low: float
    high: float
    level: float
    distance: float
    n_pairs: int
    pair_distance: float
    margin: float | None = None
    verdict: str | None = None
    more_items: int = 0
    all_items: bool = False
    unlike: bool = False
    more: int = 0
    set_aside: bool = False
    whole: bool = False
    baseline_flags: tuple[str, ...] = ()
    candidate_flags: tuple[str, ...] = ()

    @property
    def warnings(self) -> list[str]:
        """What is unusual about the two, in sentences."""
        flags = {"baseline": self.baseline_flags, "candidate": self.candidate_flags}
        out = [side for side, own in flags.items() if "outside-range" in own]
        where = f"The {' and the '.join(out)} {'are' if len(out) > 1 else 'is'} outside the sources' range"
        why = where if out else "These two are further apart than any pair of sources"
        unlike = [f"{why}: difference and interval rest on what the anchors say by themselves, in part or wholly."]
        others = []
        for flag in FLAGS:
            sides = [side for side, own in flags.items() if flag in own]
            if sides and (flag != "outside-range" or not self.unlike):  # which says it already
                are = "are" if len(sides) > 1 else "is"
                others.append(f"The {' and the '.join(sides)} {are} flagged {flag}: {FLAGS[flag]}.")
        alike = ["Their answers to the anchors are all the same: is it one model, given twice?"]
        return (alike if self.distance < SAME and not self.whole else []) + (unlike if self.unlike else []) + others

    @property
    def basis(self) -> str:
        """What the interval rests on, in a sentence or two."""
        if self.whole:
            return "All items were asked: the difference is what it is."
        if self.set_aside:
            return f"Of {self.more} further items alone: the anchors may have leaked, and were set aside."
        apart = f"{self.pair_distance:.2f} (0: equal answers)"
        pairs = f"Calibrated on {self.n_pairs} pairs of source models at distance {apart}"
        more = f" With {self.more} further items." if self.more else ""
        return f"{pairs}; these two are at {self.distance:.2f}.{more}"

    @property
    def needed(self) -> str:
        """What would decide, in words; empty where decided."""
        if self.verdict != "undecided":
            return ""
        return (
            "only the whole benchmark would decide"
            if self.all_items
            else f"about {self.more_items} more items would decide if the estimate stays"
        )


def compare(
    condensation: Condensation,
    baseline: Responses,
    candidate: Responses,
    *,
    level: float = 0.9,
    margin: float | None = None,
    more: int = 0,
) -> Comparison:
    """Compare two models by their answers to the same anchors.

    Errors that both estimates share cancel in the difference, the more the more alike the two models are; and models
    that answer alike differ little. Difference and interval are therefore calibrated on pairs of source models at about
    the same distance, both left out of the condensation that estimated them; what that takes off the difference is
    added to the interval, since these two may be no such pair. At ``level`` 0.9 each side is wrong for about 5 % of
    pairs like those of the sources; variants that can only get worse have lost more than it says somewhat more often
    (``docs/theory``). As far as the two estimates are those of a survey (one model is at the edge of the sources'
    range or outside), so are the difference and its interval, and wholly where the two are further apart than any pair.
    The survey's interval comes in too where the anchors cannot tell whether a model is like the sources
    (`CrossValidation.half_widths`), and one model's own may reach beyond the sources' scores further than the other's
    (`CrossValidation.reach`); so far the difference may be larger.

    With ``more``, the first so many items of the reserve are a second, independent estimate of the difference, as a
    survey of both models; the two are weighed by their errors.

    Parameters
    ----------
    baseline, candidate : answers of one model each to at least the anchors, and the items of the reserve if ``more``.
    margin : the drop that is still acceptable, in [0, 1]: 0.01 is one point.

    Raises ValidationError for several models where one is asked for, or a margin outside (0, 1); DiscoError where the
    condensation has too few pairs of left-out source models (made by an old version: condense again).
    """
    _check(baseline, candidate, margin)
    check_kind("int", more=more)
    pair = [Asked.of(condensation, answers, more) for answers in (baseline, candidate)]
    said, n_left = told(condensation, pair, level, more), _left(condensation, more)
    (worst, best), (least, most) = (condensation.possible(one.part, one.further) for one in pair)
    fewest, most_apart = float((least - best)[0]), float((most - worst)[0])
    said = replace(said, difference=float(np.clip(said.difference, fewest, most_apart)))
    low = max(fewest, said.difference - said.half - said.down)
    high = min(most_apart, said.difference + said.half + said.up)
    verdict = _verdict(low, high, margin)
    more_items = _more_items(said, len(condensation.anchors), more, n_left, margin) if verdict == "undecided" else 0
    return Comparison(
        baseline=str(pair[0].part.models.ids[0]),
        candidate=str(pair[1].part.models.ids[0]),
        difference=said.difference,
        low=low,
        high=high,
        level=level,
        distance=said.distance,
        n_pairs=said.n_pairs,
        pair_distance=said.typical,
        margin=margin,
        verdict=verdict,
        more_items=more_items,
        all_items=0 < n_left <= more_items,
        more=more,
        unlike=said.unlike,
        set_aside=said.set_aside,
        whole=said.whole,
        baseline_flags=said.flags[0],
        candidate_flags=said.flags[1],
    )


def _check(baseline: Responses, candidate: Responses, margin: float | None) -> None:
    for who, answers in (("baseline", baseline), ("candidate", candidate)):
        check_responses(answers, "compare")
        if answers.n_models != 1:
            raise ValidationError(
                f"the {who} must be one model, but {answers.n_models} were given ({some(answers.models.ids)}); pick one"
            )
    if margin is not None and not (isinstance(margin, Real) and 0 < margin < 1):
        raise ValidationError(f"a margin must lie between 0 and 1 (one point is 0.01), got {margin!r}")


def _verdict(low: float, high: float, margin: float | None) -> str | None:
    """Of an interval of differences; None without a margin."""
    if margin is None:
        return None
    return "passes" if low >= -margin - ROUNDING else "fails" if high < -margin - ROUNDING else "undecided"


def _left(c: Condensation, more: int) -> int:
    """How many items that count towards the score were not asked."""
    if c.reserve is None:
        return max(int(c.provenance.get("n_items", len(c.anchors))) - len(c.anchors), 0)
    return c.reserve.n_items - int((c.reserve.shares[: len(c.anchors) + more] > 0).sum())


def _more_items(said: Difference, n_anchors: int, more: int, n_left: int, margin: float | None) -> int:
    """Items to add until the interval would exclude the margin, if the estimate stays.

    ``n`` further items, of the N beside the anchors, are a survey whose error is that of the anchors' times the root of
    ``(1 / n - 1 / N)``, and weighed with what was known before, see `with_more`. Where the anchors are suspect, the
    survey has to decide alone, with as many items as anchors or more.
    """
    if n_left == 0:
        return 0
    total = more + n_left
    allowed = max(abs(said.difference + (margin or 0.0)), 1e-9)  # half-width of an interval that ends at the margin
    square = max(said.by_itself, 1e-9) ** 2 / (1 / n_anchors - 1 / (n_anchors + total))  # of the survey of one item
    if said.set_aside:
        square, error, fewest = said.half**2 / (1 / more - 1 / total), allowed**2, 0
    elif said.suspect:
        error, fewest = allowed**2, n_anchors
    else:
        known, fewest = max(said.half, 1e-9) ** -2.0, 0
        if more:
            known = max(known - 1 / (square * (1 / more - 1 / total)), 0.0)
        error = 1 / max(allowed**-2.0 - known, 1e-12)
    needed = 1 / (1 / total + error / square)
    return max(1, min(n_left, int(np.ceil(max(needed, fewest) - more))))
