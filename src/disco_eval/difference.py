"""What two models' answers to the same items say of the difference of their full scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .condensation import Condensation
from .flags import OF_ESTIMATES
from .more import judged
from .numerics.intervals import normal_width
from .pairs import calibrate, distances, pairs_of
from .predict import Assessment, Auto
from .predict.guard import part_of
from .recipe import assess
from .responses import Responses
from .topup import LEVEL, MOST_AHEAD, Told, TopUp, doubted

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Asked:
    """One model: its answers to the anchors, to the further items, and what the score model makes of the former."""

    part: Responses
    further: Responses | None
    found: Assessment

    @classmethod
    def of(cls, c: Condensation, answers: Responses, more: int = 0) -> Asked:
        part = c.answers(answers)
        return cls(part, c.further(answers, more) if more else None, assess(c.score_model, part))

    @property
    def on_anchors(self) -> Array:
        """Grades, (n_anchors,)."""
        return np.asarray(self.part.grades()[0])

    @property
    def on_further(self) -> Array:
        """Grades on the further items, (more,)."""
        return np.asarray([] if self.further is None else self.further.grades()[0], dtype=np.float64)

    @property
    def on_all(self) -> Array:
        """Grades on all items asked, (n_anchors + more,)."""
        return np.concatenate([self.on_anchors, self.on_further])


@dataclass(frozen=True)
class Difference:
    """What is known of two models: see the fields of `Comparison`.

    ``half`` is the interval's half-width, ``by_itself`` that of the anchors as a survey; ``down`` and ``up`` are how
    much further the interval goes below and above.
    """

    difference: float
    half: float
    distance: float
    n_pairs: int
    typical: float
    unlike: bool
    flags: list[tuple[str, ...]]
    by_itself: float
    down: float = 0.0
    up: float = 0.0
    set_aside: bool = False
    whole: bool = False

    def flagged(self, leads: list[float]) -> Difference:
        """The same with the flag of models whose anchors are ahead of the further items."""
        pairs = zip(self.flags, leads, strict=True)
        return replace(self, flags=[(*f, *(("anchors-differ",) if lead > MOST_AHEAD else ())) for f, lead in pairs])

    @property
    def suspect(self) -> bool:
        """Whether the anchors may have leaked into either model."""
        return any({"odd-answers", "anchors-differ"} & set(own) for own in self.flags)


def told(c: Condensation, pair: list[Asked], level: float, more: int) -> Difference:
    """What is known of two models from all that was asked."""
    said = by_anchors(c, pair, level)
    if more:
        usual = said if level == LEVEL else by_anchors(c, pair, LEVEL)
        made = c.top_up(more)
        leads = [_lead(c, made, one) for one in pair]
        return _judged(c, made, with_more(said.flagged(leads), usual.half, made, pair, leads, level), pair)
    if c.leaves_nothing():
        return _known(said, pair[1].on_anchors - pair[0].on_anchors, c.items.weight)
    return said


def by_anchors(c: Condensation, pair: list[Asked], level: float) -> Difference:
    """What the anchors say, by pairs of sources and by themselves."""
    one, other = (asked.part for asked in pair)
    estimated = float(np.diff([np.clip(asked.found.score[0], 0, 1) for asked in pair])[0])
    by_grades = isinstance(c.score_model, Auto) and c.score_model.grades
    soft = not by_grades and all(r.probs is not None for r in (one, other, c.sources))
    distance = float(distances(one, other, soft)[0, 0])
    pairs = pairs_of(c.validation, distances(c.sources, c.sources, soft))
    share, half, n_pairs, typical = calibrate(c.benchmark, pairs, distance, level, one.n_items)
    far = bool(distance > pairs[2].max())
    by_survey, by_itself, unseen = _as_survey(c, pair, level)
    knows = c.validation.cautious  # formats 1 to 6 knew pairs only
    by_survey = 0.0 if not knows else 1.0 if far else by_survey
    difference = (share + by_survey * (1 - share)) * estimated
    half = float(np.linalg.norm([half, estimated - difference, max(by_survey, unseen) * by_itself]))
    flags = [c.own_flags(asked.part, asked.found)[0] for asked in pair]
    unlike = knows and (far or any("outside-range" in own for own in flags))
    return Difference(difference, half, distance, n_pairs, typical, unlike, flags, by_itself, *_reach(c, pair, level))


def _reach(c: Condensation, pair: list[Asked], level: float) -> tuple[float, float]:
    """How much further the difference may go below and above, since one model may be beyond all sources.

    As far as the interval of one reaches further than that of the other: what both may be beyond by is no difference.
    """
    sides = []
    for one in pair:
        half = c.validation.half_widths(one.found, level)
        sides.append([float(side[0]) for side in c.validation.reach(one.found, half, level)])
    (down, up), (own_down, own_up) = sides
    return max(up - own_up, 0.0) + max(own_down - down, 0.0), max(own_up - up, 0.0) + max(down - own_down, 0.0)


def _as_survey(c: Condensation, pair: list[Asked], level: float) -> tuple[float, float, float]:
    """What the anchors say of two models by themselves.

    Returns how much of the estimates is the survey's, the half-width of the difference's interval by the survey (by
    those of both estimates where there is none), and how little the anchors can tell that one is unlike the sources.
    """
    model, found = c.score_model, [one.found for one in pair]
    own, weight = float(np.hypot(*(c.validation.half_widths(f, level)[0] for f in found))), 0.0
    if isinstance(model, Auto):
        error = model.difference_error(*(one.on_anchors for one in pair))
        own = own if error is None else normal_width(level) * error
        weight = max(float(model.survey_weight(f.process_sd, f.survey_se, f.outside)[0]) for f in found)
    return weight, own, max(float(c.validation.unseen(f)[0]) for f in found)


def with_more(
    said: Difference,
    usual: float,
    made: TopUp,
    pair: list[Asked],
    leads: list[float],
    level: float,
) -> Difference:
    """What is known with the further items' own say, weighed by the errors of both; ``usual`` is the half-width at 0.9.

    Where the anchors of either model are suspect and lead, as many further items as anchors or more decide alone, and
    the interval reaches to what it would have been, since an honest model may be suspect by chance. Fewer items do not
    overrule more; where they disagree with the anchors, the interval reaches over theirs. ``leads`` are of the anchors.
    """
    both = [one.on_all for one in pair]
    if made.whole is not None:
        return _known(said, both[1] - both[0], made.whole)
    survey = float(np.diff(made.second.predict(np.stack(both))[0])[0])
    error, known = made.second.difference_error(both[0], both[1]), said.half / normal_width(level)
    share = float(part_of(np.array(usual / normal_width(LEVEL)), np.array(error)))
    mixed = said.difference + share * (survey - said.difference)
    odd = np.array(["odd-answers" in own for own in said.flags])
    doubt = doubted(odd, np.array(leads)).max()
    if doubt and len(pair[0].on_further) >= len(pair[0].on_anchors):
        own = made.quantile(level) * error
        aside = float(np.hypot(own, survey - mixed))
        return replace(said, difference=survey, half=aside, down=0.0, up=0.0, set_aside=True)
    half = made.quantile(level) * float(np.hypot((1 - share) * known, share * error))
    half += float(doubt) * max(abs(survey - mixed) + made.quantile(level) * error - half, 0.0)
    down, up = (1 - share) * said.down, (1 - share) * said.up
    return replace(said, difference=mixed, half=half, down=down, up=up)


def _judged(c: Condensation, made: TopUp, said: Difference, pair: list[Asked]) -> Difference:
    """The same, but for what anchors that are set aside say of the sources' range."""
    if not said.set_aside:
        return said
    alone = [made.alone(one.on_anchors[None], one.on_further[None], LEVEL).score[0] for one in pair]
    return replace(said, unlike=False, flags=[judged(c, f, float(s)) for f, s in zip(said.flags, alone, strict=True)])


def _lead(c: Condensation, made: TopUp, one: Asked) -> float:
    """By how many standard errors the anchors say a higher score of one model than its further items do."""
    typical = c.validation.half_widths(one.found, LEVEL)
    first = Told(np.clip(one.found.score, 0.0, 1.0), typical, typical)
    return float(made.ahead(one.on_anchors[None], one.on_further[None], first)[0])


def _known(said: Difference, differences: Array, weight: Array) -> Difference:
    """Where all items were asked: from the differences (n_items,) of the two models' grades."""
    difference = float(differences @ weight / weight.sum())
    flags = [tuple(f for f in own if f not in OF_ESTIMATES) for own in said.flags]
    said = replace(said, difference=difference, half=0.0, down=0.0, up=0.0, flags=flags)
    return replace(said, unlike=False, set_aside=False, whole=True)
