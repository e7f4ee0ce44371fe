"""disco anchors: which items to evaluate."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import DiscoError, unknown
from .common import Json, More, Overwrite, print_json, say

if TYPE_CHECKING:
    from ..condensation import Condensation

FORMATS = ("ids", "csv", "json", "lm-eval", "task-dir", "inspect", "lmms-eval")


def anchors(
    condensation: Annotated[Path, typer.Argument(help="A folder that 'disco condense' wrote.", metavar="DIR")],
    form: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")] = "ids",
    out: Annotated[Path | None, typer.Option("--out", help="For task-dir and lmms-eval: the folder to write.")] = None,
    tasks_path: Annotated[
        Path | None,
        typer.Option("--tasks-path", help="For task-dir and lmms-eval: a folder of tasks, their --include_path."),
    ] = None,
    more: More = 0,
    as_json: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Print the anchors: the items on which a model must be evaluated to be estimated.

    With --more the items in reserve follow, which 'disco estimate' asks for where the anchors are not enough.

    ids: one a line. csv, json: with subtask, and weight and criterion of the anchors. lm-eval: a file for --samples (a
    note on standard error says when that is safe). task-dir: a folder of lm_eval tasks with the prompts frozen, for any
    back end. inspect: ids for --sample-id. lmms-eval: a folder of tasks with the anchors alone, for --include_path.
    """
    from ..artifact import load
    from ..harness.formats import inspect_ids, samples_file

    form = "json" if as_json else form
    if form not in FORMATS:
        raise DiscoError(unknown("format", form, FORMATS))
    c = load(condensation)
    if form == "ids":
        print("\n".join(c.asked(more).ids.tolist()))
    elif form == "inspect":
        print(inspect_ids(c, more))
    elif form == "lm-eval":
        text, note = samples_file(c, more)
        print(text)
        say(note)
    elif form == "task-dir":
        _task_folder(c, out, tasks_path, more, overwrite)
    elif form == "lmms-eval":
        _lmms_folder(c, out, tasks_path, more, overwrite)
    else:
        _table(c, form, more)


def _task_folder(c: Condensation, out: Path | None, tasks_path: Path | None, more: int, overwrite: bool) -> None:
    from ..harness.formats import write_task_folder
    from ..harness.prompts import Settings

    if out is None:
        raise DiscoError("--format task-dir writes a folder; name it with --out")
    names = write_task_folder(c, out, Settings(tasks_path, more=more), overwrite=overwrite)
    print(f"lm-eval run --include_path {out} --tasks {','.join(names)} --log_samples --output_path ANSWERS --model ...")


def _lmms_folder(c: Condensation, out: Path | None, tasks_path: Path | None, more: int, overwrite: bool) -> None:
    from ..harness.lmms import write_lmms_tasks

    if out is None:
        raise DiscoError("--format lmms-eval writes a folder; name it with --out")
    names = write_lmms_tasks(c, out, tasks_path, more=more, overwrite=overwrite)
    print(
        f"python -m lmms_eval --include_path {out} --tasks {','.join(names)} --log_samples --output_path ANSWERS "
        "--model ..."
    )


def _table(c: Condensation, form: str, more: int) -> None:
    known = c.anchors.criterion == c.anchors.criterion  # NaN where chance chose
    criterion = [v if k else None for v, k in zip(c.anchors.criterion.tolist(), known, strict=True)]
    columns = (c.anchors.ids.tolist(), c.items.subtask.tolist(), c.anchors.weights.round(12).tolist(), criterion)
    names = ("id", "subtask", "weight", "criterion")
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    further = c.asked(more).pick(slice(len(rows), None))
    reserve = [{"id": i, "subtask": s} for i, s in zip(further.ids.tolist(), further.subtask.tolist(), strict=True)]
    if form == "json":
        print_json({"benchmark": c.benchmark, "method": c.anchors.method, "anchors": rows, "reserve": reserve})
        return
    writer = csv.DictWriter(sys.stdout, names)
    writer.writeheader()
    writer.writerows([*rows, *reserve])
