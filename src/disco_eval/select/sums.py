"""Sums of a disagreement that stay on disk, so that models added to a store later need no second pass over the others.

A folder with a Zarr group (layout 2): ``max``, ``sum`` and ``plogp`` (item, choice), float64, as in
`numerics.disagreement`; ``model`` and ``item``, the names; every chunk ends in a checksum. Its attributes say what it
is and carry a checksum of the names, so that sums of other items or models are never added up, and of how every array
is laid out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import AlignmentError, FormatError, some
from ..files import new_folder
from ..layout import check_layout
from ..numerics.disagreement import Disagreement
from ..responses import Responses
from ..store import array_of, codecs, description
from . import passes

if TYPE_CHECKING:
    import zarr

Array = NDArray[Any]

KIND = "disco-eval disagreement"
FORMAT = 2
_NAMES = ("max", "sum", "plogp")


@dataclass(frozen=True, eq=False)
class Updated:
    """PDS and JSD (nats) of every item, (n_items,), and how many models had to be read for them."""

    pds: Array
    jsd: Array
    n_read: int


def update(responses: Responses, path: str | Path) -> Updated:
    """Disagreement of all models, from the sums kept at ``path`` and one pass over the models that are new since.

    Makes the folder where there is none. The new sums replace the old ones when they are complete.

    Raises AlignmentError where the sums count models that the responses lack, or are of other items; FormatError where
    the folder holds something else or is damaged.
    """
    import zarr

    where = Path(path)
    old = _read(where) if where.exists() else None
    known = [] if old is None else _text(old, "model")
    _same(responses, known, old, str(path))
    new = responses.pick(models=~np.isin(responses.models.ids, known))
    pds, jsd = np.empty(responses.n_items), np.empty(responses.n_items)
    with new_folder(path, "zarr.json", kind=KIND, overwrite=True) as draft:
        group = zarr.open_group(str(draft), mode="w", zarr_format=3)
        for name in _NAMES:
            _create(group, name, (responses.n_items, responses.max_choices))
        for columns, total in _totals(new, old, len(known)):
            for name, array in total.state().items():
                array_of(group, name)[columns] = array
            pds[columns], jsd[columns] = total.pds(), total.jsd()
        for name, ids in (
            ("model", np.concatenate([np.array(known, str), new.models.ids])),
            ("item", responses.items.ids),
        ):
            array = group.create_array(name, shape=ids.shape, dtype=str, chunks=(len(ids),), compressors=codecs())
            array[:] = ids.astype(object)
        group.update_attributes({"kind": KIND, "format": FORMAT, "checksum": _checksum(group)})
    return Updated(pds, jsd, new.n_models)


def stretches(path: Path) -> Iterator[slice]:
    """The items of kept sums, a few at a time, for `read_part`; FormatError where there are none, or damaged ones."""
    array = array_of(_read(path), "max")
    for first in range(0, array.shape[0], array.chunks[0]):
        yield slice(first, min(first + array.chunks[0], array.shape[0]))


def read_part(path: Path, columns: slice) -> Disagreement:
    """The accumulator of some neighbouring items; FormatError where it is damaged."""
    group = _read(path)
    return _part(group, columns, len(_text(group, "model")))


def _totals(new: Responses, old: zarr.Group | None, n_known: int) -> Any:
    """(items, accumulator over the old and the new models) of every stretch of items."""
    if not new.n_models:
        assert old is not None
        yield from ((columns, _part(old, columns, n_known)) for columns in new.stretches())
        return
    for columns, fresh in passes.accumulate(new, "both"):
        yield columns, fresh if old is None else _part(old, columns, n_known).merge(fresh)


def _part(group: zarr.Group, columns: slice, n_models: int) -> Disagreement:
    try:
        sums = {name: np.asarray(array_of(group, name)[columns]) for name in _NAMES}
        if not all(np.isfinite(values).all() for values in sums.values()):
            raise ValueError("a file is missing")
        return Disagreement.restore(n_models, sums)
    except (ValueError, OSError, RuntimeError, KeyError) as e:
        raise FormatError(f"the kept sums are damaged ({' '.join(str(e).split())[:120]}); delete them") from None


def _create(group: zarr.Group, name: str, shape: tuple[int, int]) -> None:
    chunks = (max(1, min(shape[0], 2**20 // (8 * shape[1]))), shape[1])
    group.create_array(name, shape=shape, dtype="f8", chunks=chunks, fill_value=np.nan, compressors=codecs(8))


def _read(path: Path) -> zarr.Group:
    import zarr

    try:
        group = zarr.open_group(str(path), mode="r", zarr_format=3)
        about = dict(group.attrs)
        fits = about.get("kind") == KIND and about.get("format") == FORMAT
        if fits:
            for name in (*_NAMES, "model", "item"):
                check_layout(array_of(group, name), name, 2 if name in _NAMES else 1)
            fits = about.get("checksum") == _checksum(group)
    except Exception as e:  # zarr raises many kinds for foreign folders
        raise FormatError(f"'{path}' holds no sums of a disagreement ({' '.join(str(e).split())[:120]})") from None
    if not fits:
        raise FormatError(
            f"'{path}' holds no sums of a disagreement, or is damaged or of another version; choose another folder, or "
            f"delete it"
        )
    return group


def _checksum(group: zarr.Group) -> str:
    layout = [f"{description(group, name)}{array_of(group, name).shape}" for name in (*_NAMES, "model", "item")]
    text = "\x1e".join(["\x1f".join(_text(group, name)) for name in ("model", "item")] + layout)
    return hashlib.sha256(text.encode()).hexdigest()


def _text(group: zarr.Group, name: str) -> list[str]:
    return [str(v) for v in np.asarray(array_of(group, name)[:]).tolist()]


def _same(responses: Responses, known: list[str], old: zarr.Group | None, where: str) -> None:
    if old is None:
        return
    gone = np.setdiff1d(known, responses.models.ids)
    if len(gone):
        raise AlignmentError(
            f"'{where}' counts {len(gone)} models that are not in the responses: {some(gone)}; choose another folder"
        )
    if _text(old, "item") != responses.items.ids.tolist() or array_of(old, "max").shape[1] != responses.max_choices:
        raise AlignmentError(f"'{where}' holds sums of other items or choices; choose another folder")
