"""Every model's scores on the subtasks, shrunk to what is told of its overall score, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .calibration import CrossValidation
from .estimates import SubtaskEstimate
from .numerics.intervals import normal_width
from .predict import Assessment
from .predict.subtasks import KNOWN, SubtaskErrors, SubtaskModel, agreeing, eased, informed, left_of, parts_of
from .responses import Items, Responses
from .select.reserve import Reserve
from .topup import LEVEL, Told

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Subtasks:
    """What estimates the subtasks of a condensation.

    Attributes
    ----------
    names : the subtasks. model : what maps overall scores and answers to the anchors to their scores.
    sources : the source models' answers to the anchors. source_scores : (n_sources,) theirs on the whole benchmark.
    validation : what error to expect. reserve : items that may be asked beside the anchors.
    shares : what part of the benchmark every anchor and item in reserve carries; None if not known.
    """

    names: tuple[str, ...]
    model: SubtaskModel
    sources: Responses
    source_scores: Array
    validation: CrossValidation
    reserve: Reserve | None
    shares: Array | None

    @property
    def mae(self) -> Array:
        """Mean absolute error to expect on every subtask, (n_subtasks,), in [0, 1]: 0 where all of it are anchors."""
        errors, _ = self._errors
        left, mean = left_of(self.parts()), errors.each(lambda shares: float(np.abs(shares).mean()))
        return np.asarray(left * errors.expected(left * self.model.size) * mean)

    def parts(self, more: int = 0) -> Array:
        """What share of each subtask every anchor and further item is, (n_asked, n_subtasks); 0 where not known."""
        asked, total, shares, n = self._asked(more), self.model.total, self.shares, self.sources.n_items
        weight = asked.weight
        if shares is not None and not shares[:n].any():  # no anchor counts
            weight = np.where(np.arange(len(asked)) < n, 0.0, weight)
        older = not total.any() and self.reserve is not None and more > 0  # a format that does not know what they weigh
        if older and self.reserve is not None and self.reserve.whole(len(asked)) is not None:
            total = np.array([weight[asked.subtask == name].sum() for name in self.names])
        return parts_of(asked, self.names, total, weight)

    def estimate(
        self, part: Responses, further: Responses | None, found: Assessment, scores: Array, told: Told, level: float
    ) -> list[tuple[SubtaskEstimate, ...]]:
        """Every model's estimates of the subtasks.

        ``part`` are the answers to the anchors, of which ``found`` was made, and ``further`` those to the first items
        of the reserve; overall the ``scores`` (n_models,) are ``told``.
        """
        more = 0 if further is None else further.n_items
        parts = self.parts(more)
        anchors, own = np.split(parts, [part.n_items])
        rest, unlike, doubtful = self._rest(part, further, found, scores, anchors, own)
        known = part.grades() @ anchors + (0.0 if further is None else further.grades() @ own)
        left = left_of(parts)
        values = np.clip(known + left * agreeing(known, rest, left, scores, self.model.total), 0.0, 1.0)
        width, down, up = self._widths(found, told, level, left, left_of(anchors), unlike, doubtful)
        low = np.minimum(np.maximum(known, values - width - down), values)
        high = np.maximum(np.minimum(known + left, values + width + up), values)
        counts = [int((self._asked(more).subtask == name).sum()) for name in self.names]
        rows = zip(values.tolist(), low.tolist(), np.minimum(high, 1.0).tolist(), strict=True)  # but for rounding
        return [tuple(starmap(SubtaskEstimate, zip(self.names, *row, counts, strict=True))) for row in rows]

    # ---- private -----------------------------------------------------------------------------------------------

    def _asked(self, more: int) -> Items:
        items = self.sources.items
        return items.then(self.reserve.items.pick(slice(0, more))) if more and self.reserve is not None else items

    @cached_property
    def _errors(self) -> tuple[SubtaskErrors, SubtaskErrors]:
        """Of sources left out with their kin, and of ones left out alone; the former twice if that is unknown."""
        v, noise = self.validation, self.model.noise
        strangers, alone = SubtaskErrors.of(v.subtask_error, v.subtask_left, noise), v.relatives
        if alone is None or not np.isfinite(alone.subtask_error).any():
            return strangers, strangers
        return strangers, SubtaskErrors.of(alone.subtask_error, alone.subtask_left, noise)

    def _rest(
        self,
        part: Responses,
        further: Responses | None,
        found: Assessment,
        scores: Array,
        anchors: Array,
        own: Array,
    ) -> tuple[Array, Array, Array]:
        """What is left of every subtask, as it is predicted, (n_models, n_subtasks), and how far to doubt that.

        ``anchors`` and ``own`` are the parts of subtasks that the anchors and the further items are. The doubt is how
        far off it may be, squared, since the model is beyond the sources' scores, and what share of it still stands.
        """
        model, usual, (strangers, alone) = self.model, self._usual_rest, self._errors
        rest = model.rest(part, np.clip(found.score, 0.0, 1.0), anchors)  # which further items have no part in yet
        unlike = self._unlike(rest, scores)
        rest, still = informed(rest, usual, unlike, model.noise, anchors, part.grades(), self.sources.grades())
        unlike = unlike * still
        if further is None or self.reserve is None:
            return rest, unlike, np.ones((1, 1))
        taken = self.reserve.grades[:, : further.n_items]
        doubt = strangers.doubt + self._near(found) * (alone.doubt - strangers.doubt) + unlike
        rest, doubtful = informed(rest, usual, doubt, model.noise, own, further.grades(), taken)
        return np.clip(rest + eased(usual, left_of(anchors), own, taken), 0.0, 1.0), unlike, doubtful

    def _widths(
        self, found: Assessment, told: Told, level: float, left: Array, at_first: Array, unlike: Array, doubtful: Array
    ) -> tuple[Array, Array, Array]:
        """Half-widths of the intervals, and how much further they go below and above, (n_models, n_subtasks) each.

        ``left`` and ``at_first`` are what all items asked, and the anchors alone, leave of every subtask. The score's
        error beyond that of sources left out, and what its interval reaches further, are shared out as subtasks go with
        the score. The mean of the ends over all subtasks is no nearer than those of the score.
        """
        model = self.model
        error, of_alone = (e.within(level, left * model.size, doubtful * (e.doubt + unlike)) for e in self._errors)
        error = error + self._near(found) * (of_alone - error)
        slopes = left * model.line[1] / np.maximum(at_first, KNOWN)
        worse = np.maximum(told.typical**2 - self.validation.half_width(LEVEL) ** 2, 0.0)
        worse = worse * (normal_width(level) / normal_width(LEVEL)) ** 2
        width = np.sqrt((left * error) ** 2 + doubtful * slopes**2 * worse[:, None])
        if not model.total.any():  # formats before 12 do not know what subtasks count for
            return width, np.zeros_like(width), np.zeros_like(width)
        weight = model.total / model.total.sum()
        along = np.maximum(slopes, 0.0) if weight @ np.maximum(slopes, 0.0) > KNOWN else left
        along = along / max(float(weight @ along), KNOWN)
        further = [np.maximum(told.half + side - width @ weight, 0.0)[:, None] * along for side in (told.down, told.up)]
        return width, further[0], further[1]

    def _near(self, found: Assessment) -> Array:
        """How likely the sources hold a relative of each model, (n_models, 1)."""
        return self.validation.kin(found)[:, None]

    @cached_property
    def _usual_rest(self) -> Array:
        """Mean over the sources of what the anchors leave of every subtask, as it is predicted, (n_subtasks,)."""
        rest = self.model.rest(self.sources, self.source_scores, self.parts())
        return np.asarray(rest.mean(axis=0))

    def _unlike(self, rest: Array, scores: Array) -> Array:
        """How far off, squared, what sources teach of subtasks may be for models beyond their scores, as ``rest``.

        As far as a model is outside, its subtasks need not go with the overall score as those of the sources do: each
        may be off by half as much, and their differences (of ``rest`` from the overall ``scores``) need not be its own.
        """
        beyond = np.maximum(self.source_scores.min() - scores, scores - self.source_scores.max()).clip(0.0)[:, None]
        share = beyond / np.maximum(beyond + self.source_scores.std(), KNOWN)
        return np.asarray((beyond / 2) ** 2 + share**2 * (rest - scores[:, None]) ** 2)
