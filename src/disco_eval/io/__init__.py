"""Readers and writers, one file per format: results that exist become Responses."""

from __future__ import annotations

from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..checks import GRADING
from ..errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from ..responses import Responses
    from .authors import read_authors
    from .npz import read_npz, write_npz
    from .table import read_table, write_table

_HOME = {
    "read_authors": "authors",
    "read_npz": "npz",
    "write_npz": "npz",
    "read_table": "table",
    "write_table": "table",
}

__all__ = ["open_answers", "read_authors", "read_npz", "read_table", "write_npz", "write_table"]


def open_answers(
    path: str | Path,
    items: ArrayLike | None = None,
    columns: Mapping[str, str] | None = None,
    graded: Mapping[str, Any] | None = None,
) -> Responses:
    """Responses from whatever is at ``path``: a store, a folder that lm_eval, lmms-eval or VLMEvalKit wrote, a ``.npz``
    archive, a long table.

    ``items`` are those that will be used: a table or output may lack answers to others. ``columns`` are a table's names
    for columns that are called otherwise, as in `read_table`. ``graded`` is the provenance of other answers, or of
    several benchmarks put together: outputs of the same harness are read by the same metric.

    Raises FormatError where it is none of these.
    """
    if columns and not _is_table(path):
        raise FormatError(f"'{path}' is no table, so its columns cannot be named; import it from a table with them")
    from ..files import is_url
    from ..store import open_responses
    from .npz import read_npz

    if is_url(path):
        return open_responses(path)
    where = Path(path)
    if where.suffix.lower() == ".npz":
        return read_npz(where)
    if where.is_dir() and not (where / "zarr.json").exists():
        found = _outputs(where, items, graded or {})
        if found is not None:
            return found
    if (where / "condensation.json").is_file():
        raise FormatError(f"'{where}' is a condensation, not models' answers; disco info and disco report show it")
    if where.is_dir() or not where.exists():
        return open_responses(where)
    from .table import SUFFIXES, read_table

    if where.suffix.lower() not in SUFFIXES:
        raise FormatError(f"'{where}' is neither a store, nor ends in .npz or one of {', '.join(SUFFIXES)}")
    return read_table(where, columns, items=items)


def _outputs(folder: Path, items: ArrayLike | None, graded: Mapping[str, Any]) -> Responses | None:
    """What a harness wrote to a folder, by the metric of ``graded`` where that is of the same; None if none did."""
    from .vlmevalkit import holds_sheets, read_vlmevalkit

    files = list(folder.rglob("results*.json"))  # others' files may be called so too
    logged = any(next(file.parent.glob("samples_*.jsonl"), None) for file in files)
    if not logged and next(folder.rglob("*_results.json"), None):
        from .lmms_eval import read_lmms_eval

        return read_lmms_eval([folder], items=items, **_told(graded, "lmms-eval"))
    if not logged and holds_sheets(folder):
        return read_vlmevalkit([folder], items=items)
    if files:
        from .lm_eval import read_lm_eval

        return read_lm_eval([folder], items=items, **_told(graded, "lm-eval"))
    return None


def _told(graded: Mapping[str, Any], harness: str) -> dict[str, Any]:
    """How answers of a harness were graded; of several benchmarks of it put together, what is no contradiction."""
    every = [one for one in (graded.get("benchmarks") or {"": graded}).values() if one.get("harness") == harness]
    told = [{name: one[name] for name in GRADING if one.get(name, "default") != "default"} for one in every]
    by_task = [one.get("graded") or {} for one in every]
    together = {task: how for one in by_task for task, how in one.items()}
    if every and all(by_task) and all(together[task] == how for one in by_task for task, how in one.items()):
        metric = ";".join(f"{escape(task)}={how}" for task, how in together.items())  # what really decided every task
        told = [{**one, "metric": metric} for one in told]
    return told[0] if every and all(one == told[0] for one in told) else {}


def _is_table(path: str | Path) -> bool:
    from .table import SUFFIXES

    return Path(path).suffix.lower() in SUFFIXES


def __getattr__(name: str) -> Any:
    """Readers load on first use: polars alone takes longer to import than an estimate to make."""
    if name in _HOME:
        import importlib

        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'disco_eval.io' has no attribute '{name}'")
