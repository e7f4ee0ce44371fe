"""disco watch: a learning curve of checkpoints."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DiscoError
from .common import Json, Level, More, keep, print_json, print_table, say

if TYPE_CHECKING:
    from ..condensation import Condensation
    from ..harness.watch import Watch


def watch(
    condensation: Annotated[Path, typer.Argument(help="A condensation made from lm_eval's outputs.", metavar="DIR")],
    checkpoints: Annotated[Path, typer.Argument(help="Folder in which a training run saves its checkpoints.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the table, the report and the picture.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Estimate what is there and stop.")] = False,
    interval: Annotated[float, typer.Option("--interval", help="Seconds between two looks.", min=0)] = 30.0,
    settle: Annotated[
        float, typer.Option("--settle", help="Seconds without change after which a checkpoint is whole.", min=0)
    ] = 10.0,
    model: Annotated[str, typer.Option("--model", help="A model type of lm_eval.")] = "hf",
    model_args: Annotated[str, typer.Option("--model-args", help="Added to pretrained=CHECKPOINT.")] = "",
    tasks_path: Annotated[Path | None, typer.Option("--tasks-path", help="Folder of task files.")] = None,
    batch_size: Annotated[str | None, typer.Option("--batch-size", help="A number, or auto.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:1, ...")] = None,
    level: Level = 0.9,
    more: More = 0,
    as_json: Json = False,
) -> None:
    """Estimate each checkpoint of a training run once, as it appears, and keep a learning curve.

    Stop it at any time; it goes on where it was. Example: **disco watch mmlu-100 runs/my-model --device cuda**
    """
    from ..artifact import load
    from ..harness.prompts import Settings, check_tasks
    from ..harness.watch import Watch
    from ..numerics.intervals import check_level

    if not checkpoints.is_dir():
        raise DiscoError(
            f"'{checkpoints}' is not a folder; name the one in which the training run saves its checkpoints"
        )
    folder = out or Path(f"{checkpoints.resolve().name}-{condensation.resolve().name}")
    settings = Settings(tasks_path, more=more)
    c = load(condensation)
    c.asked(more)  # refused here, not for every checkpoint
    check_level(level)
    _check_same(folder, c, level, more)
    check_tasks(c, settings)
    job = Watch(
        c,
        checkpoints,
        folder,
        model,
        model_args,
        batch_size,
        device,
        settings,
        level,
        0.0 if once else settle,
    )
    failures: dict[str, str] = {}
    while True:
        _round(job, failures)
        if once:
            break
        time.sleep(interval)
    _finish(job, failures, as_json)


def _check_same(folder: Path, c: Condensation, level: float, more: int) -> None:
    """Refuse to go on with a curve whose points were made otherwise: they would stand side by side."""
    from ..harness.watch import TABLE
    from ..report.record import read, summary

    before = read(folder) if (folder / TABLE).exists() else None
    if before is None:
        return
    made, now = before.get("condensation") or {}, summary(c)
    told: dict[str, tuple[Any, Any]] = {
        "condensation": (made and {key: made.get(key, now[key]) for key in now}, now),
        "level": (before.get("level"), level),
        "number of further items": (before.get("more", 0), more),
    }
    other = [what for what, (then, today) in told.items() if then != today]
    if other:
        raise DiscoError(
            f"'{folder}' holds a curve made with another {' and another '.join(other)}; give another --out, or the "
            "same options to go on"
        )


def _round(job: Watch, failures: dict[str, str]) -> None:
    def failed(checkpoint: Path, error: DiscoError) -> None:
        if failures.get(checkpoint.name) != str(error):
            say(f"{checkpoint.name}: {error}")
        failures[checkpoint.name] = str(error)

    for point in job.estimate_waiting(failed):
        span = f"{100 * point.low:.1f} to {100 * point.high:.1f}"
        say(f"{point.checkpoint}: {100 * point.score:.1f} ({span})  {point.flags}")
        failures.pop(point.checkpoint, None)
        _draw(job)


def _draw(job: Watch) -> None:
    from ..report.curve import learning_curve
    from ..report.record import summary

    points, n_asked = job.points(), len(job.condensation.asked(job.settings.more))
    title = f"{job.condensation.benchmark}: {len(points)} checkpoints, {n_asked} items each"
    keep(job.out, "watch", condensation=summary(job.condensation), level=job.level, more=job.settings.more)
    learning_curve(
        [p.step for p in points],
        [p.score for p in points],
        [p.low for p in points],
        [p.high for p in points],
        job.out / "learning-curve.png",
        title=title,
        level=job.level,
    )


def _finish(job: Watch, failures: dict[str, str], as_json: bool) -> None:
    points = job.points()
    if as_json:
        print_json({"benchmark": job.condensation.benchmark, "points": [vars(p) for p in points], "failed": failures})
    elif points:
        rows = [
            [p.checkpoint, str(p.step), f"{100 * p.score:.1f}", f"{100 * p.low:.1f} to {100 * p.high:.1f}", p.flags]
            for p in points
        ]
        columns = ["checkpoint", "step", "score", f"{100 * job.level:g} % interval", "flags"]
        print_table(f"Checkpoints on {job.condensation.benchmark}", columns, rows)
        print(f"Report: {job.out / 'report.html'}; picture: {job.out / 'learning-curve.png'}")
    if failures:
        raise DiscoError(f"{len(failures)} checkpoints failed: {', '.join(failures)} (see above)")
    if not points:
        raise DiscoError(f"'{job.checkpoints}' holds no complete checkpoint (a folder with config.json and weights)")
