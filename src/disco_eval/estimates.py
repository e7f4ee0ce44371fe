"""What is told about one model: its estimated scores, with intervals and flags."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SubtaskEstimate:
    """One model's estimated score on one subtask, in [0, 1], with its interval, and how many items asked are of it."""

    name: str
    score: float
    low: float
    high: float
    n_anchors: int


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
    subtasks : an estimate for every subtask, where the benchmark has several.
    more : number of items beyond the anchors that the estimate rests on; with any, it is design-based: nothing is
        assumed about the model.
    """

    model: str
    score: float
    low: float
    high: float
    level: float
    flags: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()
    subtasks: tuple[SubtaskEstimate, ...] = ()
    more: int = 0

    def __str__(self) -> str:
        note = f"  [{', '.join(self.flags)}]" if self.flags else ""
        span = f"{100 * self.low:.1f} to {100 * self.high:.1f} at {100 * self.level:g} %"
        return f"{self.model}: {100 * self.score:.1f} ({span}){note}"
