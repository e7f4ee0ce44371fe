"""Checkpoints of a training run, each estimated once as it appears."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ..condensation import Condensation
from ..errors import DiscoError, FormatError
from ..estimates import Estimate
from ..files import new_file
from .prompts import AnchorTask, Settings, anchor_tasks
from .run import Asked, holds, load_model, pretrained, run_anchors

TABLE = "checkpoints.csv"
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


@dataclass(frozen=True)
class Point:
    """One checkpoint on the learning curve; ``step`` is the last number in its name, or without one the next."""

    checkpoint: str
    step: int
    score: float
    low: float
    high: float
    flags: str
    seconds: float

    @classmethod
    def of(cls, checkpoint: str, step: int, estimate: Estimate, seconds: float) -> Point:
        return cls(checkpoint, step, estimate.score, estimate.low, estimate.high, " ".join(estimate.flags), seconds)


@dataclass(frozen=True)
class Watch:
    """What to estimate and how: ``model_args`` are added to ``pretrained=CHECKPOINT``."""

    condensation: Condensation
    checkpoints: Path
    out: Path
    model: str = "hf"
    model_args: str = ""
    batch_size: str | None = None
    device: str | None = None
    settings: Settings = field(default_factory=Settings)
    level: float = 0.9
    settle_s: float = 10.0

    def __post_init__(self) -> None:
        pretrained(self.checkpoints)  # what is wrong with the folder's own path would fail every checkpoint in it

    def points(self) -> list[Point]:
        """The table so far, by step."""
        return read_points(self.out / TABLE)

    def waiting(self) -> list[Path]:
        """Checkpoints that are complete and not in the table, by step.

        A folder counts as complete when it holds a config and weights and nothing in it changed for ``settle_s``
        seconds.
        """
        done = {p.checkpoint for p in self.points()}
        folders = [p for p in self.checkpoints.iterdir() if p.is_dir() and p.name not in done]
        ready = ((_step(p.name), p) for p in folders if _complete(p, self.settle_s))
        return [p for _, p in sorted(ready, key=lambda own: (own[0] is None, own[0] or 0, own[1].name))]

    def estimate_waiting(self, failed: Callable[[Path, DiscoError], None]) -> Iterator[Point]:
        """Estimate every waiting checkpoint; each is in the table before the next begins."""
        tasks: list[AnchorTask] | None = None
        for checkpoint in self.waiting():
            started = time.perf_counter()
            try:
                asked = Asked.of(self.model, pretrained(checkpoint, self.model_args))
                lm = load_model(self.model, asked.model_args, self.batch_size, self.device)
                tasks = tasks or list(anchor_tasks(self.condensation, self.settings, lm))
                folder = self.out / "answers" / checkpoint.name
                answers = run_anchors(
                    self.condensation, lm, folder, name=checkpoint.name, tasks=tasks, asked=asked,
                    resume=holds(folder, checkpoint.name, asked),  # not what it was when it was written half
                )  # fmt: skip
                (estimate,) = self.condensation.estimate(answers, self.level, more=self.settings.more)
            except DiscoError as e:
                failed(checkpoint, e)
                continue
            before = self.points()
            step = _step(checkpoint.name)
            if step is None:  # such as "final"
                step = max((p.step for p in before), default=-1) + 1
            point = Point.of(checkpoint.name, step, estimate, time.perf_counter() - started)
            write_points([*before, point], self.out / TABLE)
            yield point


def read_points(file: Path) -> list[Point]:
    """A table that `write_points` wrote; none if there is no file."""
    if not file.exists():
        return []
    points: list[Point] = []
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            points.extend(_point(row) for row in csv.DictReader(lines))
    except (KeyError, ValueError, TypeError):  # not text, no such column, no number, a line that is too short
        raise FormatError(
            f"'{file}': row {len(points) + 1} is no checkpoint's; take out what another wrote, or delete the file to "
            "begin anew"
        ) from None
    return points


def write_points(points: list[Point], file: Path) -> None:
    """The table, by step, written whole or not at all."""
    with new_file(file) as draft, draft.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, [f.name for f in fields(Point)])
        writer.writeheader()
        writer.writerows(asdict(p) for p in sorted(points, key=lambda p: (p.step, p.checkpoint)))


def _point(row: dict[str, str]) -> Point:
    return Point(**{f.name: _cast(f.name, row[f.name]) for f in fields(Point)})


def _cast(name: str, text: str) -> Any:
    return int(text) if name == "step" else text if name in ("checkpoint", "flags") else float(text)


def _complete(folder: Path, settle_s: float) -> bool:
    try:
        latest = max(f.stat().st_mtime for f in folder.rglob("*") if f.is_file())
        weights = any(True for pattern in _WEIGHTS for _ in folder.glob(pattern))
    except (OSError, ValueError):  # a trainer takes old checkpoints away; nothing is in it yet
        return False
    return weights and (folder / "config.json").is_file() and time.time() - latest >= settle_s


def _step(name: str) -> int | None:
    numbers = re.findall(r"\d+", name)
    return int(numbers[-1]) if numbers else None
