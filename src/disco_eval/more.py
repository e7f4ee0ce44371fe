"""Estimates of models that answered items of the reserve beside the anchors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .calibration import OUTSIDE
from .flags import is_alarmed
from .predict import Assessment
from .predict.guard import START, part_of
from .responses import Responses
from .topup import LEVEL, MOST_AHEAD, Told, doubted

if TYPE_CHECKING:
    from .condensation import Condensation

Array = NDArray[Any]
Flags = list[tuple[str, ...]]


def top_up(
    c: Condensation, part: Responses, further: Responses, found: Assessment, first: Told, level: float
) -> tuple[Told, Flags, Array]:
    """What is told of models that answered ``further`` items, their flags, and of which it is a survey's alone.

    ``part`` are their answers to the anchors, ``found`` and ``first`` what these say.

    What source models teach of all items together (`further.Taught`); or, of another score model or a file that
    knows no errors of it, the first estimate and the survey of the further items (`TopUp.told`), of an alarmed
    model the survey. Always the survey where all items are answered, where anchors may have leaked or are ahead of the
    further items; where the sources are weak, or alike, the two are weighed by their errors. Anchors
    that may have leaked stand for themselves, once there are as many further items; but where these say no lower a
    score, nothing that leaked has made it higher, and such a model is told as any other. With fewer further items the
    interval reaches over that of these. As far as sources differ by too little for answers to tell that a model is
    unlike them (a benchmark near floor or ceiling), the second counts in any case.
    """
    more = further.n_items
    taught = c.taught(more)
    made = c.top_up(more) if taught is None else taught.survey
    grades = (part.grades(), further.grades())
    lead = made.ahead(*grades, first)  # of the anchors
    found = found if taught is None else taught.assess(found, part, further)
    ahead, overruled = lead > MOST_AHEAD, more >= len(c.anchors)
    own = [(*f, *(("anchors-differ",) if d else ())) for f, d in zip(c.own_flags(part, found), ahead, strict=True)]
    flags = [(*of_model, *c.source_flags) for of_model in own]
    odd = np.array(["odd-answers" in of_model for of_model in own], dtype=bool) & ((lead > 0) | (not overruled))
    surveyed, weak = made.surveyed(*grades, odd, lead, level), bool(c.source_flags)
    inside, alarmed = found.outside < -START, np.array([is_alarmed(of_model) for of_model in flags], dtype=bool)
    told, by_survey = made.told(first, surveyed, *grades, inside=inside, weak=weak, level=level)
    told, by_survey = told.but(alarmed, surveyed), by_survey | alarmed
    aside = (odd | ahead) & overruled
    flags = [judged(c, f, score) if a else f for f, a, score in zip(flags, aside, surveyed.score, strict=True)]
    if taught is None:
        return told, flags, by_survey
    share = c.validation.share_of_folds(more, len(c.anchors))
    half, typical = (c.validation.half_widths(found, each, share) for each in (level, LEVEL))
    doubt = c.validation.unseen(found)
    own_words = Told(np.clip(found.score, 0.0, 1.0), half, typical, *c.validation.reach(found, half, level))
    told = own_words.towards(told, doubt)
    alone = odd | (ahead & overruled) | (made.whole is not None)
    if weak:
        told = told.towards(surveyed, part_of(told.typical, surveyed.typical))
    told = told if overruled else told.reaching(made.alone(*grades, level), doubted(odd, lead))
    return told.but(alone, surveyed), flags, alone


def judged(c: Condensation, flags: tuple[str, ...], score: float) -> tuple[str, ...]:
    """The flags of a model whose anchors are set aside: what these say of its range is, too."""
    room = OUTSIDE * float(c.source_scores.std())
    within = c.source_scores.min() - room <= score <= c.source_scores.max() + room
    return tuple(f for f in flags if f != "lines-disagree" and not (f == "outside-range" and within))
