"""What VLMEvalKit keeps of an evaluation: a folder per model, and in it one sheet a benchmark that says what was right.

Read are ``MODEL_DATASET_JUDGE_result.xlsx`` (choices; a column ``hit``) and ``MODEL_DATASET_auxmatch.xlsx`` (yes or no;
``score``), or the same as ``.tsv``. Items are named ``DATASET/index``; their digest is a hash over the question and the
choices. Answers are grades: the kit asks models to write, and keeps no log-likelihoods. It has no option for single
items, but takes a table of one's own as a benchmark: one named ``DATASET_anchors`` is read as answers to DATASET.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import polars as pl
from numpy.typing import ArrayLike

from ..errors import AlignmentError, DiscoError, FormatError, ValidationError, some
from ..resources import need
from ..responses import Responses
from .frames import read_frame, without_panics
from .importing import all_of
from .records import ALL, Record, Wanted, grade_of, in_layout, one_model

ANCHORS = "_anchors"  # ends the name of a benchmark of one's own that holds the anchors of another
_SHEET = re.compile(r"(?P<data>.+?)_(?:(?P<match>auxmatch)|(?P<judge>exact_matching|[^_]+)_result)")
_ENDINGS = (".xlsx", ".tsv")
_SAYS = ("hit", "score")
_TIMES = 8  # what a sheet takes in memory against its text


def vlmevalkit(paths: Sequence[Path]) -> Iterator[tuple[str, Callable[..., Responses]]]:
    """Readers for VLMEvalKit's output folders, one per model; several benchmarks of a model are its subtasks.

    A model is named by the innermost folder with whose name the file's name begins; the links that the kit makes to its
    latest run count once. Raises FormatError where a folder holds no such sheet, AlignmentError where a model has two
    of one benchmark.
    """
    found: dict[str, dict[str, tuple[Path, str]]] = {}
    for path in paths:
        once = {f.resolve(): f for f in sorted(path.rglob("*"), reverse=True) if _is_sheet(f)} if path.is_dir() else {}
        sheets = sorted(once.values())
        if not sheets:
            raise FormatError(
                f"'{path}' holds no MODEL_DATASET_JUDGE_result.xlsx or _auxmatch.xlsx (or .tsv) of VLMEvalKit; give "
                "the folder that --work-dir named, after an evaluation"
            )
        for sheet in sheets:
            model, data, judge = _named(sheet)
            first, _ = found.setdefault(model, {}).setdefault(data, (sheet, judge))
            if first.resolve() != sheet.resolve():
                raise AlignmentError(f"'{model}' has two sheets of {data}: '{first}', '{sheet}'; keep one")
    for model, of in found.items():
        yield model, partial(_read, model, of)


def read_vlmevalkit(paths: Iterable[str | Path], *, items: ArrayLike | None = None) -> Responses:
    """Answers of every model in some output folders, in memory. ``items`` keeps only those.

    Raises what `vlmevalkit` and `check_items` raise.
    """
    wanted = Wanted(items)
    return all_of([read(wanted) for _, read in vlmevalkit([Path(path) for path in paths])], items)


def holds_sheets(folder: Path) -> bool:
    """Whether there is a sheet of VLMEvalKit in a folder."""
    return any(_is_sheet(file) for file in folder.rglob("*"))


def _is_sheet(file: Path) -> bool:
    return file.suffix in _ENDINGS and _SHEET.fullmatch(file.stem) is not None and file.is_file()


def _named(sheet: Path) -> tuple[str, str, str]:
    """Model, benchmark and judge, which a sheet's name holds: where one ends is known from the folder's name."""
    model = next((part for part in reversed(sheet.parts[:-1]) if sheet.stem.startswith(f"{part}_")), None)
    match = _SHEET.fullmatch(sheet.stem.removeprefix(f"{model}_"))
    if model is None or match is None:
        raise FormatError(
            f"'{sheet}' lies in no folder of its model's name, so where that ends is unknown; keep the folders as "
            "VLMEvalKit wrote them"
        )
    return model, match["data"].removesuffix(ANCHORS), match["judge"] or match["match"]


def _read(model: str, sheets: dict[str, tuple[Path, str]], wanted: Wanted = ALL) -> Responses:
    records: list[Record] = []
    for data in wanted.tasks(sheets):
        sheet, _ = sheets[data]
        with in_layout(sheet, "a sheet of VLMEvalKit"):
            records += _records(data, _frame(sheet), sheet)
    graded = {data: judge for data, (_, judge) in sheets.items()}
    provenance = {"harness": "vlmevalkit", "metric": "default", "graded": graded, "models": {model: {}}}
    return one_model(model, records, provenance)


def _records(data: str, frame: pl.DataFrame, sheet: Path) -> Iterator[Record]:
    says = next((name for name in _SAYS if name in frame.columns), None)
    if says is None or "index" not in frame.columns:
        raise FormatError(
            f"'{sheet}' needs a column index and one of {', '.join(_SAYS)}; it has {some(frame.columns, 8)}"
        )
    asked = [name for name in frame.columns if name == "question" or re.fullmatch("[A-Z]", name)]
    for row in frame.iter_rows(named=True):
        index = _whole(row["index"])
        try:
            grade = grade_of(row[says])
        except ValidationError as e:
            raise ValidationError(f"'{sheet}', index {index}: {e}") from None
        text = "\x1f".join(f"{name}\x1e{row[name]}" for name in asked if row[name] is not None)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16] if asked else ""
        yield Record(f"{data}/{index}", data, grade, digest)


def _whole(index: str | None) -> str:
    """An item's number as written: spreadsheets turn 12 into 12.0."""
    if index is None:
        raise FormatError("a row has no index")
    return re.sub(r"^(\d+)\.0$", r"\1", index)


def _frame(sheet: Path) -> pl.DataFrame:
    """All cells as text."""
    if sheet.suffix == ".tsv":
        return read_frame(sheet, separator="\t", infer_schema=False, null_values=[""])
    try:
        with zipfile.ZipFile(sheet) as archive:
            n_bytes = sum(part.file_size for part in archive.infolist())
        need(_TIMES * n_bytes, f"the sheet in '{sheet}'", "split it")
        with without_panics():
            return pl.read_excel(sheet, engine="calamine", infer_schema_length=0)
    except DiscoError:
        raise
    except ImportError:
        raise DiscoError("reading .xlsx needs fastexcel: pip install 'disco-eval[excel]'") from None
    except BaseException as e:  # a damaged archive; calamine's own errors; polars' panics
        if isinstance(e, (KeyboardInterrupt, SystemExit)):
            raise
        raise FormatError(f"'{sheet}' cannot be read as .xlsx: {' '.join(str(e).split())[:120]}") from None
