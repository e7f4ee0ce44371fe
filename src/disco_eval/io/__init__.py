"""Readers and writers, one file per format: results that exist become Responses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    """Responses from whatever is at ``path``: a store, an output folder of lm_eval or lmms-eval, a ``.npz`` archive, a
    long table.

    ``items`` are those that will be used: a table or output may lack answers to others. ``columns`` are a table's names
    for columns that are called otherwise, as in `read_table`. ``graded`` is the provenance of other answers: outputs of
    the same harness are read by the same metric.

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
    if where.is_dir() and not (where / "zarr.json").exists() and next(where.rglob("results*.json"), None):
        from .lm_eval import read_lm_eval

        normalised = bool(_recorded(graded, "lm-eval").get("length_normalised"))
        return read_lm_eval([where], metric=_metric(graded, "lm-eval"), length_normalised=normalised, items=items)
    if where.is_dir() and not (where / "zarr.json").exists() and next(where.rglob("*_results.json"), None):
        from .lmms_eval import read_lmms_eval

        return read_lmms_eval([where], metric=_metric(graded, "lmms-eval"), items=items)
    if where.is_dir() or not where.exists():
        return open_responses(where)
    from .table import SUFFIXES, read_table

    if where.suffix.lower() not in SUFFIXES:
        raise FormatError(f"'{where}' is neither a store, nor ends in .npz or one of {', '.join(SUFFIXES)}")
    return read_table(where, columns, items=items)


def _recorded(graded: Mapping[str, Any] | None, harness: str) -> Mapping[str, Any]:
    return graded if graded and graded.get("harness") == harness else {}


def _metric(graded: Mapping[str, Any] | None, harness: str) -> str | None:
    metric = _recorded(graded, harness).get("metric")
    return metric if isinstance(metric, str) and metric != "default" else None


def _is_table(path: str | Path) -> bool:
    from .table import SUFFIXES

    return Path(path).suffix.lower() in SUFFIXES


def __getattr__(name: str) -> Any:
    """Readers load on first use: polars alone takes longer to import than an estimate to make."""
    if name in _HOME:
        import importlib

        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'disco_eval.io' has no attribute '{name}'")
