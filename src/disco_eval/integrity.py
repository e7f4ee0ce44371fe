"""Whether all of a store, condensation, study, demo or kept sums is as it was written, and if not, what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .artifact import ARRAYS, damaged, load, parse
from .audit import JSON
from .checks import check_grades, check_probabilities
from .errors import DiscoError, FormatError
from .files import drafts, is_url
from .responses import Responses
from .select import sums
from .store import StoredArray, open_responses
from .studies.predictions import FILE as PREDICTIONS
from .studies.predictions import read_predictions
from .studies.run import STUDY, read_study, refuse_cut_off
from .studies.sealed import read_sealed, seal_of

CONDENSED, ZOO = "digits-condensed", "zoo.zarr"  # in a demo's folder

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Checked:
    """What was looked at and what was found.

    Attributes
    ----------
    path, kind : what it is. parts : how many parts (files, or stretches of answers) were read.
    damage : one line for each part that is not as it was written. notes : what is odd but harms nothing.
    """

    path: str
    kind: str
    parts: int
    damage: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def check(path: str | Path, tell: Tell | None = None) -> Checked:
    """Read everything at ``path`` and compare it with its checksums; ``tell`` hears of every part that is read.

    Raises FormatError where ``path`` is nothing that this package writes.
    """
    where = Path(path)
    looks: dict[str, tuple[bool, Callable[[Path], Iterator[str | None]]]] = {
        "condensation": ((where / JSON).is_file() or (where / ARRAYS).is_file(), _condensation),
        "demo": ((where / ZOO).is_dir() or (where / CONDENSED).is_dir(), _demo),
        "study": ((where / STUDY).is_file() or (where / PREDICTIONS).is_file(), _study),
        "sums of a disagreement": (_says(where, sums.KIND), _sums),
        "store": (is_url(path) or (where / "zarr.json").is_file(), lambda _: _store(str(path))),
    }
    for kind, (fits, look) in looks.items():
        if fits:
            found: list[str | None] = []
            for line in look(where):
                found.append(line)
                if tell:
                    tell(line or "")
            return Checked(str(path), kind, len(found), [d for d in found if d], _notes(path))
    refuse_cut_off(where)
    if not where.exists():
        raise FormatError(f"'{path}' does not exist; give the folder or URL of what is to be checked")
    raise FormatError(
        f"'{path}' is no store, condensation, study, demo or sums of a disagreement, or its description is lost"
    )


def _says(folder: Path, kind: str) -> bool:
    file = folder / "zarr.json"
    return file.is_file() and kind.encode() in file.read_bytes()


def _trial(work: Callable[..., Any], *args: Any) -> str | None:
    """None, or why the work could not be done."""
    try:
        work(*args)
    except DiscoError as e:
        return str(e)
    return None


def _notes(path: str | Path) -> list[str]:
    if is_url(path):
        return []
    notes = [
        f"'{left}' is a draft that a killed process left; the next write there removes it" for left in drafts(path)
    ]
    if (Path(path) / ".writing").exists():
        notes.append("a write is going on or was cut off; what it had not finished does not count")
    return notes


# ---- one kind each: yields, part by part, None or what is wrong with it ------------------------------------------


def _store(path: str) -> Iterator[str | None]:
    try:
        responses = open_responses(path)  # the descriptions and all columns
    except DiscoError as e:
        yield str(e)
        return
    yield None
    for name in ("correct", "probs"):
        array = getattr(responses, name)
        if array is not None:
            yield from _answers(responses, name, array)


def _answers(r: Responses, name: str, array: StoredArray) -> Iterator[str | None]:
    height, width = array.shard
    for m in range(0, r.n_models, height):
        for i in range(0, r.n_items, width):
            rows, columns = slice(m, min(m + height, r.n_models)), slice(i, min(i + width, r.n_items))
            wrong = _trial(_part, r, array, rows, columns)
            models, items = r.models.ids[rows], r.items.ids[columns]
            where = f"models '{models[0]}' to '{models[-1]}', items '{items[0]}' to '{items[-1]}'"
            yield wrong and f"{name}, {where} (file {array.file(m, i)}): {wrong}"


def _part(r: Responses, array: StoredArray, rows: slice, columns: slice) -> None:
    step = 16  # models: a shard of few models on many items, and one of many, are read in equal parts
    for first in range(rows.start, rows.stop, step):
        at = slice(first, min(first + step, rows.stop))
        part = array.take(at, columns)
        if part.ndim == 3:
            check_probabilities(part, r.models.ids[at], r.items.pick(columns))
        else:
            check_grades(part, r.models.ids[at], r.items.ids[columns])


def _condensation(folder: Path) -> Iterator[str | None]:
    wrong = _trial(parse, folder)
    yield wrong
    if not wrong:
        others = damaged(folder, parse(folder))
        yield from others
        yield None if any(others) else _trial(load, folder)


def _demo(folder: Path) -> Iterator[str | None]:
    yield from _condensation(folder / CONDENSED)
    yield from _store(str(folder / ZOO))
    yield _trial(_sealed, folder / PREDICTIONS)


def _study(folder: Path) -> Iterator[str | None]:
    wrong = _trial(read_study, folder)
    yield wrong
    named = [] if wrong else read_study(folder)["files"]
    yield from (f"'{folder / name}' is lost" for name in named if not (folder / name).is_file())
    yield _trial(read_predictions, folder)
    for file in sorted([*folder.glob("*.parquet"), *(folder / "parts").glob("*.parquet")]):
        if not file.name.startswith("."):
            yield _trial(_sealed, file)


def _sealed(file: Path) -> None:
    if seal_of(file) is None:
        raise FormatError(f"'{file}' has no checksum: it was changed, or is not of this study")
    read_sealed(file)


def _sums(folder: Path) -> Iterator[str | None]:
    for columns in sums.stretches(folder):
        yield _trial(sums.read_part, folder, columns)
