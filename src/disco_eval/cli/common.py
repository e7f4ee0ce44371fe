"""What several commands share: options with one meaning, model lists, progress, tables."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..errors import DiscoError, some

if TYPE_CHECKING:
    from ..condensation import Condensation
    from ..condensing import Progress
    from ..responses import Responses
    from ..studies import Predictions

NO_TERMINAL = 1000  # columns
LEAST_NAME = 16  # columns of a table's first, where names are longer; narrower, a line could not be told

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is at --out.")]
Memory = Annotated[
    str | None,
    typer.Option("--memory", help="How much memory arrays may take, such as 2GB; a quarter of the machine by default."),
]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", help="Address of a dask cluster that does the work, tcp://host:8786; here by default."),
]
More = Annotated[
    int, typer.Option("--more", min=0, help="So many items of the condensation's reserve beside the anchors.")
]
Level = Annotated[float, typer.Option("--level", help="Nominal coverage of the intervals, between 0 and 1.")]


def store_name(store: str) -> str:
    """What a store at a path or URL is called: the last part of it, without its ending."""
    return Path(store.rstrip("/").rpartition("/")[2]).stem


def print_json(record: Any) -> None:
    """One JSON document on standard output; JSON knows no NaN, so what is no number is null."""
    print(json.dumps(_finite(record), indent=1, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def say(line: str) -> None:
    """A line for people, on standard error, so that standard output stays clean."""
    print(line, file=sys.stderr)


def read_names(file: Path) -> list[str]:
    """Model ids from a file, one a line; empty lines and lines that begin with # are passed over."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise DiscoError(f"'{file}' cannot be read as a list of model ids, one a line ({e})") from None
    names = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    if not names:
        raise DiscoError(f"'{file}' names no models; write one model id a line")
    return list(dict.fromkeys(names))


def open_parts(answers: list[Path], c: Condensation, more: int) -> list[tuple[Path, Responses]]:
    """The answers of every file, graded as the source models' were.

    Files that hold only a part of the items asked are put together, for every model those that it is in.
    """
    import numpy as np

    from ..io import open_answers
    from ..joining import behind, graded_alike

    asked, recorded = c.asked(more).ids, c.provenance.get("responses") or {}
    of = dict(zip(asked.tolist(), c.asked(more).subtask.tolist(), strict=True))
    whole: list[tuple[Path, Responses]] = []
    parts: list[tuple[Path, Responses]] = []
    for file in answers:
        start = f"{store_name(str(file))}/"  # several benchmarks that shared names of items were condensed together
        own = [name.removeprefix(start) for name in asked.tolist() if name.startswith(start)]
        bare = [name.partition("/")[2] for name in asked.tolist() if "/" in name]
        graded = (recorded.get("benchmarks") or {}).get(start[:-1]) or recorded
        responses = open_answers(file, items=np.array([*asked.tolist(), *own, *bare], dtype=str), graded=graded)
        mine = np.isin(responses.items.ids, asked)
        if not own and bare and not mine.any() and len(known := np.intersect1d(responses.items.ids, bare)):
            raise DiscoError(
                f"'{file}' calls items {some(known)}, the condensation {some(asked)}: give the items these names or, "
                "where several benchmarks were condensed together, the file that of its benchmark (the part before /)"
            )
        if own and not mine.any():
            responses = behind(start[:-1], responses.pick(items=np.isin(responses.items.ids, own)))
            mine = np.isin(responses.items.ids, asked)
        benchmarks = {of[item] for item in responses.items.ids[mine].tolist()}
        graded_alike(responses.provenance, recorded, f"'{c.benchmark}'", f"'{file}'", benchmarks)
        if mine.sum() == len(asked) or not mine.any():
            whole.append((file, responses))
        else:
            parts.append((file, responses.pick(items=mine)))
    if len(parts) < 2:
        return whole + parts
    return [*whole, *_joined(parts, len(asked))]


def _joined(parts: list[tuple[Path, Responses]], n_asked: int) -> list[tuple[Path, Responses]]:
    """Every model's answers from the files that it is in; those without all asked are left out if others have all."""
    from ..joining import beside

    files: dict[str, list[int]] = {}
    for k, (_, responses) in enumerate(parts):
        for name in responses.models.ids.tolist():
            files.setdefault(name, []).append(k)
    found = []
    for own in dict.fromkeys(map(tuple, files.values())):
        names = [name for name, of in files.items() if tuple(of) == own]
        picked = [parts[k][1].pick(models=parts[k][1].models.positions(names)) for k in own]
        found.append((parts[own[0]][0], beside(picked)))
    complete = [(file, responses) for file, responses in found if responses.n_items == n_asked]
    left = [name for _, r in found if r.n_items < n_asked for name in r.models.ids.tolist()]
    if complete and left:
        say(f"{len(left)} models are in some of the files only and are left out: {some(left)}")
    return complete or found


def options(pairs: list[str] | None) -> dict[str, Any]:
    """``["committee_size=100", "parts=probs,correct"]`` as keyword arguments; values are JSON or else text."""
    out: dict[str, Any] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise DiscoError(f"'{pair}' is no option; write NAME=VALUE, such as committee_size=100")
        out[name.replace("-", "_")] = _value(name, value)
    return out


def _value(name: str, text: str) -> Any:
    if name == "parts":
        return tuple(text.split(","))
    if text == "none":
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def command_line() -> str:
    """The command as it was typed, to be kept with what it made."""
    return shlex.join(["disco", *sys.argv[1:]])


def keep(folder: Path, kind: str, *, name: str | None = None, **found: Any) -> Path:
    """Keep a record of this command in its folder and write the report beside it."""
    from ..report import record
    from ..report.pages import report

    record.keep(folder, kind, command_line(), **found)
    return report(folder, name=name)


def may_keep(out: Path | None, kind: str) -> None:
    """Raise DiscoError, before the work is done, where `keep_new` would not write to ``out``."""
    from ..files import may_write
    from ..report.record import FILE

    if out is not None:
        may_write(out, FILE, f'"kind": "{kind}"', overwrite=True)


def keep_new(out: Path, kind: str, **found: Any) -> None:
    """The same in a folder of its own; a former one of this kind is replaced."""
    from ..files import new_folder
    from ..report.record import FILE

    with new_folder(out, FILE, kind=f'"kind": "{kind}"', overwrite=True) as draft:
        draft.mkdir()
        keep(draft, kind, name=out.name, **found)


@contextmanager
def progress() -> Iterator[Progress]:
    """A progress bar on standard error, silent where that is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


def print_study(predictions: Predictions) -> None:
    """A study's tables: drawn to the terminal's width, or in markdown where output is piped."""
    from ..report.tables import cells, markdown, tables

    for table in tables(predictions):
        if not sys.stdout.isatty():
            print(markdown(table))
            continue
        for benchmark in table.benchmarks:
            where = ", ".join(w for w in (benchmark, f"split {table.split or 'given'}") if w)
            columns = ["selection", "prediction", "MAE (points)", "rank"]
            print_table(
                f"{where}, {table.n_anchors} anchors, {table.targets}", columns, cells(table, benchmark), left=2
            )


def print_table(title: str, columns: list[str], rows: list[list[str]], *, left: int = 1) -> None:
    """A table on standard output; the first ``left`` columns hold names, the others numbers.

    As wide as the terminal, or as COLUMNS says; in a pipe or a file, where lines are searched, as wide as it needs.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=_width())
    console.print(Text(f"\n{title}", style="bold"), soft_wrap=True)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_header=any(columns))
    for k, name in enumerate(columns):
        words = k == 0 or name == "flags"  # may take several lines: cut off, models could not be told apart
        justify: Literal["left", "right"] = "left" if k < left else "right"
        least = min(LEAST_NAME, max(len(name), *(len(row[0]) for row in rows))) if k == 0 and rows else None
        table.add_column(
            name, justify=justify, overflow="fold" if words else "ellipsis", no_wrap=not words, min_width=least
        )
    for row in rows:
        table.add_row(*map(Text, row))  # names are shown as they are, never read as markup
    console.print(table)


def _width() -> int | None:
    """Columns of a table at most; None for those of the terminal."""
    return None if sys.stdout.isatty() or os.environ.get("COLUMNS") else NO_TERMINAL


def fits(columns: list[str], rows: list[list[str]]) -> bool:
    """Whether `print_table` has room for all columns but the first, and enough of that for names to be told apart."""
    from rich.cells import cell_len
    from rich.console import Console

    first, *others = (max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True))
    return min(first, LEAST_NAME) + sum(3 + width for width in others) + 2 <= Console(width=_width()).width
