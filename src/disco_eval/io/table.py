"""Long tables (CSV, JSON lines, Parquet): one row per answer, or one row per choice of an answer.

| column (default name) | what |
|---|---|
| ``model``, ``item`` | names; every model needs every item exactly once (once per choice) |
| ``score`` | the grade in [0, 1], one row per answer; or: |
| ``choice`` and ``prob`` or ``loglikelihood`` | one row per choice |
| ``label`` | with choices: the right one, written as in ``choice`` |
| ``subtask``, ``weight``, ``digest``, ``cost`` | optional, the same in all rows of an item |
| ``family``, ``base``, ``released``, ``revision`` | optional, the same in all rows of a model |

Choices are numbered within each item in sorted order, so letters, numbers and texts all do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from ..errors import DiscoError, FormatError, ValidationError, near_misses, some, unknown
from ..files import new_file
from ..responses import Items, Models, Responses
from .frames import of_one_subtask, read_frame
from .records import single

Array = NDArray[Any]

_ABOUT_ITEM = ("subtask", "weight", "digest", "cost")
_ABOUT_MODEL = ("family", "base", "released", "revision")
COLUMNS = ("model", "item", "score", "choice", "prob", "loglikelihood", "label", *_ABOUT_ITEM, *_ABOUT_MODEL)
_VALUES = ("score", "prob", "loglikelihood")
_HEAD = 2**20  # bytes of a first line that are looked at
_WIDE = 20  # columns that mean nothing to us, from which a table looks as if it had one for every item
SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


def read_table(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    items: ArrayLike | None = None,
    leave_out: str | None = None,
) -> Responses:
    """Responses from a long table.

    Parameters
    ----------
    path : a ``.csv``, ``.tsv``, ``.jsonl`` or ``.parquet`` file.
    columns : the file's names for the columns that are called otherwise there, ``{"item": "question_id"}``.
    items : keep only these items; rows of others are ignored, whatever they lack.
    leave_out : ``"models"`` that have no answer to some item, or ``"items"`` that some model has no answer to; the
        provenance names them. None refuses either.

    Raises
    ------
    FormatError
        The file cannot be read, or lacks a column.
    ValidationError
        A cell is missing or there twice (named), or holds something that is not allowed.
    """
    frame = of_one_subtask(_rename(_read(Path(path)), dict(columns or {}), str(path)), str(path))
    if items is not None:
        wanted = np.asarray(items, dtype=str).tolist()
        found, frame = frame["item"].unique(maintain_order=True), frame.filter(pl.col("item").is_in(wanted))
        if frame.is_empty() and len(found):
            raise FormatError(
                f"'{path}' holds no rows of the items asked for, such as {some(wanted)}; its items are "
                f"{some(found.drop_nulls()) or 'empty'}"
            )
    if frame.is_empty():
        raise FormatError(f"'{path}' holds no rows")
    for name in ("model", "item"):
        if frame[name].null_count():
            raise ValidationError(f"'{path}': column '{name}' is empty in {frame[name].null_count()} rows")
    kinds = [name for name in _VALUES if name in frame.columns]
    if len(kinds) != 1:
        raise FormatError(
            f"'{path}' needs exactly one of the columns {', '.join(_VALUES)}; it has {' and '.join(kinds)}"
        )
    value, left = kinds[0], list[str]()
    if leave_out is not None:
        left = _incomplete(frame, value, leave_out, str(path))
        frame = frame.filter(~pl.col("model" if leave_out == "models" else "item").is_in(left))
    frame = frame.with_columns(_number(frame, value, str(path)))
    r = (_graded if value == "score" else _chosen)(frame, value, str(path), items is not None)
    return Responses(r.models, r.items, r.correct, r.probs, {"left_out": {leave_out: left}}) if left else r


def write_table(responses: Responses, path: str | Path) -> None:
    """Write responses as a long table, one row per answer or, with probabilities, per choice; whole or not at all.

    Raises DiscoError for probabilities without labels, or with grades that do not follow from them: a table has no
    column for these.
    """
    r = responses.load()
    items, models = r.items, r.models
    m, i = (a.ravel() for a in np.indices((r.n_models, r.n_items)))
    columns: dict[str, Any] = {}
    if r.probs is None:
        columns["score"] = np.asarray(r.correct).ravel()
    else:
        if items.label is None:
            raise DiscoError(
                "a table of probabilities needs the labels, which these responses lack; write a store instead"
            )
        by_choice = Responses.from_probs(models, items, np.asarray(r.probs)).grades()
        otherwise = (by_choice != r.grades()).any(axis=0)
        if otherwise.any():
            raise DiscoError(
                f"{otherwise.sum()} items are not graded by the most probable choice, such as "
                f"{some(items.ids[otherwise])}, and a table of probabilities has no column for grades; write a store "
                "or an npz file instead"
            )
        own = np.flatnonzero((np.arange(r.max_choices) < items.n_choices[:, None])[i].ravel())
        answer, choice = np.divmod(own, r.max_choices)
        m, i = m[answer], i[answer]
        columns = {
            "choice": choice,
            "prob": np.asarray(r.probs)[m, i, choice].astype(np.float64),
            "label": items.label[i],
        }
    known = {name: getattr(items, name) for name in ("subtask", "digest")}
    known |= {name: getattr(models, name) for name in ("family", "base", "revision")}
    about = {name: v[i if name in _ABOUT_ITEM else m] for name, v in known.items() if (v != "").any()}
    if (items.weight != 1).any():
        about["weight"] = items.weight[i]
    if items.cost is not None:
        about["cost"] = items.cost[i]
    if not np.isnat(models.released).all():
        about["released"] = np.where(np.isnat(models.released), "", models.released.astype(str))[m].astype(str)
    frame = pl.DataFrame({"model": models.ids[m], "item": items.ids[i], **columns, **about})
    with new_file(path) as draft:
        _write(frame, draft, Path(path).suffix)


# ---- files -----------------------------------------------------------------------------------------------------


def _read(path: Path) -> pl.DataFrame:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise FormatError(f"'{path}' should end in one of {', '.join(SUFFIXES)}, so that its format is known")
    if not path.is_file():
        raise FormatError(f"'{path}' does not exist or is not a file")
    if suffix in (".csv", ".tsv"):
        separator = "," if suffix == ".csv" else "\t"
        _check_separator(path, separator)
        # as text: ids such as 001 or 1e5 are names, not numbers
        return read_frame(path, separator=separator, infer_schema=False)
    frame = read_frame(path) if suffix == ".parquet" else read_frame(path, infer_schema_length=None)
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    if nested:
        raise FormatError(f"'{path}' has lists or records in {some(nested)}; a long table has one value a cell")
    return frame


def _check_separator(path: Path, separator: str) -> None:
    """Refuse a file whose first line is cut by another separator, as spreadsheets of some countries write it."""
    with path.open("rb") as file:
        first = file.readline(_HEAD)
    try:
        head = first.decode("utf-8")
    except UnicodeDecodeError:  # compressed, or no text at all
        return
    others = [other for other in (";", "\t", ",", "|") if other != separator and other in head]
    if separator not in head and others:
        raise FormatError(
            f"'{path}' separates its columns by {others[0]!r}, expected {separator!r}; save it with that, and numbers "
            "with a point"
        )


def _write(frame: pl.DataFrame, path: Path, suffix: str) -> None:
    if suffix == ".csv":
        frame.write_csv(path)
    elif suffix == ".tsv":
        frame.write_csv(path, separator="\t")
    elif suffix == ".parquet":
        frame.write_parquet(path)
    elif suffix in (".jsonl", ".ndjson"):
        frame.write_ndjson(path)
    else:
        raise FormatError(f"'{path.name}' should end in one of {', '.join(SUFFIXES)}")


def _check_names(names: list[str], columns: dict[str, str], path: str) -> None:
    """Refuse columns of one name, which Polars numbers, and ones that are nearly known."""
    for name in names:
        again = re.fullmatch(r"(.+)_duplicated_\d+", name)
        if again and again[1] in names:
            raise FormatError(f"'{path}' has the column '{again[1]}' twice; remove one, or nobody knows which counts")
    others = [name for name in names if name not in columns.values()]
    for name, meant in near_misses(others, ("label", *_ABOUT_ITEM, *_ABOUT_MODEL)).items():
        if meant not in columns:
            raise FormatError(f"'{path}' has a column '{name}', which is not known; did you mean '{meant}'? Rename it.")


def _rename(frame: pl.DataFrame, columns: dict[str, str], path: str) -> pl.DataFrame:
    for ours, theirs in columns.items():
        if ours not in COLUMNS:
            raise DiscoError(unknown("column", ours, COLUMNS))
        if theirs not in frame.columns:
            raise FormatError(f"'{path}': " + unknown("column", theirs, frame.columns))
    _check_names(frame.columns, columns, path)
    renamed = frame.select(
        [pl.col(theirs).alias(ours) for ours, theirs in columns.items()]
        + [pl.col(name) for name in frame.columns if name in COLUMNS and name not in columns]
    )
    for name in ("model", "item"):
        if name not in renamed.columns:
            wide = len(frame.columns) - len(renamed.columns) >= _WIDE and not set(renamed.columns) & set(_VALUES)
            raise FormatError(
                f"'{path}' has no column '{name}' (columns: {some(frame.columns, 12)}). "
                + (
                    "One row for each model and item is needed, not a column for each of them."
                    if wide or (name == "model" and not set(renamed.columns) & set(_VALUES))
                    else _named(name)
                )
            )
    if not set(renamed.columns) & set(_VALUES):
        raise FormatError(
            f"'{path}' needs exactly one of the columns {', '.join(_VALUES)}; it has none "
            f"(columns: {some(frame.columns, 12)}). {_named('score')}"
        )
    return renamed.with_columns(pl.col("model").cast(pl.String), pl.col("item").cast(pl.String))


def _incomplete(frame: pl.DataFrame, value: str, which: str, path: str) -> list[str]:
    """The models without an answer (a choice) to some item, or the items without one of some model; at most half."""
    choice = ["choice"] if "choice" in frame.columns else []
    if which == "models":
        name, other, cells = "model", "items", pl.struct("item", *choice)
        wanted = pl.lit(frame.select(cells.n_unique()).item())
    elif which == "items":
        name, other, cells = "item", "models", pl.struct("model", *choice)
        wanted = frame["model"].n_unique() * (pl.col("choice").n_unique() if choice else pl.lit(1))
    else:
        raise DiscoError(f"--leave-out takes models or items, not '{which}'")
    answered = frame.filter(pl.col(value).cast(pl.String).str.strip_chars() != "")  # neither empty nor null
    given = answered.group_by(name).agg(cells.n_unique().alias("#given"))
    count = frame.group_by(name).agg(wanted.alias("#wanted")).join(given, on=name, how="left")
    left: list[str] = count.filter(pl.col("#given").fill_null(0) < pl.col("#wanted"))[name].sort().to_list()
    if 2 * len(left) > len(count):
        raise ValidationError(
            f"'{path}': {len(left)} of {len(count)} {which} are incomplete, too many to leave out; leave out the "
            f"{other} that are"
        )
    return left


def _number(frame: pl.DataFrame, name: str, path: str) -> pl.Series:
    column = frame[name]
    if column.dtype == pl.Boolean or column.dtype.is_numeric():
        numbers = column.cast(pl.Float64)
    else:
        text = column.cast(pl.String).str.strip_chars().str.to_lowercase().replace({"true": "1", "false": "0"})
        numbers = text.cast(pl.Float64, strict=False)
    empty = numbers.is_null() | numbers.is_nan()
    if empty.any():
        row = frame.row(int(empty.arg_max() or 0), named=True)
        held = "is empty: leave out rows without an answer" if row[name] is None else f"is {row[name]!r}"
        raise ValidationError(
            f"'{path}': {name} of model '{row['model']}', item '{row['item']}' {held}, expected a number "
            f"({empty.sum()} such rows)"
        )
    return numbers


# ---- from long to square ---------------------------------------------------------------------------------------


def _graded(frame: pl.DataFrame, value: str, path: str, asked: bool) -> Responses:
    models, items = _names(frame, "model"), _names(frame, "item")
    m, i = _codes(frame["model"], models), _codes(frame["item"], items)
    cells = m * len(items) + i
    _complete(cells, len(models), np.arange(len(items) + 1), lambda k: _cell(models, items, k), path, asked)
    grades = np.empty((len(models), len(items)), np.float32)
    grades[m, i] = single(frame[value].to_numpy())
    return Responses.from_correct(_about_models(frame, models), _about_items(frame, items, path), grades)


def _chosen(frame: pl.DataFrame, value: str, path: str, asked: bool) -> Responses:
    if "choice" not in frame.columns:
        raise FormatError(f"'{path}' has {value} but no column 'choice'. {_named('choice')}")
    if "label" not in frame.columns:
        raise FormatError(f"'{path}' has {value} but no column 'label' for the right choice. {_named('label')}")
    empty = frame.filter(pl.col("choice").is_null() | pl.col("label").is_null())
    if len(empty):
        raise ValidationError(f"'{path}': choice or label of {_who(empty)} is empty ({len(empty)} such rows)")
    frame = _numbered(frame)
    frame = frame.with_columns(pl.col("choice").rank("dense").over("item").cast(pl.Int64).sub(1).alias("#choice"))
    models, items = _names(frame, "model"), _names(frame, "item")
    m, i, c = _codes(frame["model"], models), _codes(frame["item"], items), frame["#choice"].to_numpy()
    n_choices = np.zeros(len(items), dtype=np.int64)
    np.maximum.at(n_choices, i, c + 1)
    start = np.concatenate([[0], np.cumsum(n_choices)])
    width = int(start[-1])

    def cell(k: int) -> str:
        item = int(np.searchsorted(start, k % width, side="right")) - 1
        return f"{_cell(models, items, k // width * len(items) + item)}, choice {k % width - start[item] + 1}"

    _complete(m * width + start[i] + c, len(models), start, cell, path, asked)
    table = np.full((len(models), len(items), int(n_choices.max())), 0.0 if value == "prob" else -np.inf, np.float32)
    table[m, i, c] = single(frame[value].to_numpy())
    about = _about_items(frame, items, path, n_choices=n_choices, label=_labels(frame, items, path))
    make = Responses.from_probs if value == "prob" else Responses.from_loglikelihoods
    return make(_about_models(frame, models), about, table)


def _numbered(frame: pl.DataFrame) -> pl.DataFrame:
    """Choices and labels as whole numbers where all of them are, so that 10 comes after 9."""
    numbers = [frame[name].cast(pl.String).cast(pl.Int64, strict=False).alias(name) for name in ("choice", "label")]
    return frame if any(n.null_count() for n in numbers) else frame.with_columns(numbers)


def _who(frame: pl.DataFrame) -> str:
    row = frame.row(0, named=True)
    return f"model '{row['model']}', item '{row['item']}'"


def _labels(frame: pl.DataFrame, items: list[str], path: str) -> Array:
    """The label of every item as the number of its choice."""
    same = frame["choice"].dtype == frame["label"].dtype
    match = (
        pl.col("choice") == pl.col("label")
        if same
        else pl.col("choice").cast(pl.String) == pl.col("label").cast(pl.String)
    )
    right = frame.filter(match).group_by("item").agg(pl.col("#choice").unique())
    found = {row["item"]: row["#choice"] for row in right.iter_rows(named=True)}
    bad = [item for item in items if len(found.get(item, ())) != 1]
    if bad:
        what = "several labels" if bad[0] in found else "a label that none of its choices has"
        raise ValidationError(f"'{path}': item '{bad[0]}' has {what} ({len(bad)} such items)")
    return np.array([found[item][0] for item in items], dtype=np.int64)


def _complete(cell: Array, n_models: int, start: Array, name: Any, path: str, asked: bool) -> None:
    count = np.bincount(cell, minlength=n_models * (width := int(start[-1])))
    twice, missing = np.flatnonzero(count > 1), np.flatnonzero(count == 0)
    if len(twice):
        raise ValidationError(
            f"'{path}': {name(int(twice[0]))} is there {count[twice[0]]} times ({len(twice)} such cells); where an "
            "item was answered several times, give the mean"
        )
    if len(missing):
        models, items = np.unique(missing // width), np.unique(np.searchsorted(start, missing % width, side="right"))
        too = "" if asked else f", --leave-out items {len(items)} of {len(start) - 1} items"
        raise ValidationError(
            f"'{path}': {name(int(missing[0]))} is missing ({len(missing)} of {len(count)} cells). All models must "
            f"answer all items; 'disco import table --leave-out models' drops {len(models)} of {n_models} models{too}."
        )


def _cell(models: list[str], items: list[str], k: int) -> str:
    return f"model '{models[k // len(items)]}', item '{items[k % len(items)]}'"


def _names(frame: pl.DataFrame, name: str) -> list[str]:
    names: list[str] = frame[name].unique(maintain_order=True).to_list()
    return names


def _codes(column: pl.Series, names: list[str]) -> Array:
    codes: Array = column.replace_strict(names, list(range(len(names))), return_dtype=pl.Int64).to_numpy()
    return codes


def _about_items(frame: pl.DataFrame, items: list[str], path: str, **known: Any) -> Items:
    return Items(items, **known, **{k: _constant(frame, "item", k, path) for k in _ABOUT_ITEM})


def _about_models(frame: pl.DataFrame, models: list[str]) -> Models:
    return Models(models, **{k: _constant(frame, "model", k, "") for k in _ABOUT_MODEL})


def _constant(frame: pl.DataFrame, axis: str, name: str, path: str) -> Array | None:
    """A column that says the same in all rows of an item or model, once per item or model; None if it is not there."""
    if name not in frame.columns:
        return None
    numeric = name in ("weight", "cost")
    column = _number(frame, name, path) if numeric else frame[name].cast(pl.String).fill_null("")
    each = frame.select(axis, column.alias("#")).group_by(axis, maintain_order=True).agg(pl.col("#").unique())
    several = each.filter(pl.col("#").list.len() > 1)
    if len(several):
        row = several.row(0)
        mean = "; give it one, such as the mean over models" if numeric and axis == "item" else ""
        raise ValidationError(f"{axis} '{row[0]}' has several values of {name}: {some(row[1])}{mean}")
    return np.array(each["#"].list.first().to_list(), dtype=np.float64 if numeric else str)


def _named(column: str) -> str:
    """What to do where the file calls a column otherwise; only the import takes options about a file."""
    return f"Name it with 'disco import table --column {column}=NAME'."
