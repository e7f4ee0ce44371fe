"""Tables of other makers, read by polars: whatever it makes of a damaged file becomes one line."""

from __future__ import annotations

import codecs
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import FormatError, ValidationError, some
from ..resources import need

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TIMES = {".csv": 10, ".tsv": 10, ".jsonl": 20, ".ndjson": 20}  # memory that a table takes against its text


_TURN = threading.RLock()  # standard error is one for all threads


@contextmanager
def without_panics() -> Iterator[None]:
    """Keep off the terminal what native code prints there: polars' panics, which come as errors as well."""
    with _TURN, _silence():
        yield


@contextmanager
def _silence() -> Iterator[None]:
    try:
        terminal = os.dup(2)
    except OSError:  # no standard error at all
        yield
        return
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


def read_frame(path: Path, kind: str | None = None, **options: Any) -> pl.DataFrame:
    """A table from a file by its ending (or ``kind``, such as ``".csv"``); options are polars'.

    Raises FormatError where the file cannot be read, ValidationError where its table would not fit into memory.
    """
    suffix = kind or path.suffix.lower()
    try:
        if suffix == ".parquet":
            with without_panics():
                need(_parquet_bytes(path), f"the table in '{path}'", "take fewer models at a time")
                return pl.read_parquet(path, **options)
        with path.open("rb") as file:
            if file.read(2) in _UTF_16:
                raise FormatError(f"'{path}' is text in UTF-16 (Excel's 'Unicode text'); save it as 'CSV UTF-8'")
        need(_TIMES[suffix] * path.stat().st_size, f"the table in '{path}'", "take fewer models at a time")
        return pl.read_csv(path, **options) if suffix in (".csv", ".tsv") else pl.read_ndjson(path, **options)
    except (ValidationError, FormatError):
        raise
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as e:  # polars raises errors of many kinds, and panics that are no Exception
        why = (_damaged_line(path) if suffix in (".jsonl", ".ndjson") else "") or _first_line(e)
        hint = "; save it as UTF-8" if "utf-8" in why.lower() and suffix != ".parquet" else ""
        raise FormatError(f"'{path}' cannot be read as {suffix[1:]}: {why}{hint}") from None


def of_one_subtask(frame: pl.DataFrame, path: str) -> pl.DataFrame:
    """The same table; ValidationError for items of one name in several subtasks: numbers that begin anew in each."""
    if "subtask" not in frame.columns:
        return frame
    each = frame.group_by("item").agg(pl.col("subtask").cast(pl.String).drop_nulls().unique().sort().alias("of"))
    several = each.filter(pl.col("of").list.len() > 1).sort("item")
    if len(several):
        item, of = several.row(0)
        raise ValidationError(
            f"'{path}': item '{item}' is of several subtasks, {some(of)} ({len(several)} such items): name items "
            f"apart, such as '{of[0]}/{item}' and '{of[1]}/{item}', or give each one subtask"
        )
    return frame


def _parquet_bytes(path: Path) -> int:
    """About what a Parquet file takes in memory: a few bytes can stand for a thousand million equal rows."""
    scan = pl.scan_parquet(path)
    n_rows = int(scan.select(pl.len()).collect().item())
    return 16 * n_rows * max(1, len(scan.collect_schema()))


def _damaged_line(path: Path) -> str:
    """Which line of a file of JSON lines is the first that is no JSON object; empty where each is one."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                found = json.loads(line) if line.strip() else {}
            except (ValueError, RecursionError) as e:
                utf_8 = " in UTF-8" if isinstance(e, UnicodeDecodeError) else ""
                return f"line {number} is no JSON{utf_8}: {_start(line)}"
            if not isinstance(found, dict):
                return f'line {number} is no JSON object, such as {{"model": "a"}}: {_start(line)}'
    return ""


def _start(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 60 else text[:60] + "…")


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0][:160] if str(error).strip() else type(error).__name__
