"""Responses on disk: a Zarr v3 store that opens lazily, written whole or not at all.

Layout (format 1), a Zarr group whose arrays carry dimension names, so xarray and other Zarr readers understand it:

    correct (model, item)            probs (model, item, choice)                 float, optional probs
    model, family, base, revision (model) strings   released (model) ISO dates, "" if unknown
    item, subtask, digest (item) strings            weight, n_choices, label, cost (item) numbers, the last two optional

Chunks hold a few models and few neighbouring items, so a pass over the models reads everything once and gathering 100
anchors reads only their chunks. Many chunks share a shard, so a large store is not a million files. Each chunk ends in
a checksum: a damaged one is an error, never a number.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import FormatError
from .files import new_folder
from .responses import Items, Models, Responses

if TYPE_CHECKING:
    import zarr

Array = NDArray[Any]

FORMAT = 1
KIND = "disco-eval responses"
_CHUNK_BYTES = 2**18
_SHARD_BYTES = 2**25
_MODELS_PER_CHUNK = 16


class StoredArray:
    """An array of a store, or some of its models, read only when a part is taken."""

    def __init__(self, array: zarr.Array[Any], where: str, models: Array | None = None) -> None:
        self._array = array
        self._where = where
        self._models = np.arange(array.shape[0]) if models is None else models

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self._models), *self._array.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self._array.dtype)

    @property
    def item_block(self) -> int:
        """Items stored together: those of one shard, the unit that is read at once."""
        sizes = self._array.shards or self._array.chunks
        return int(sizes[1])

    def rows(self, models: Array) -> StoredArray:
        """A view of some of the models; reads nothing."""
        return StoredArray(self._array, self._where, self._models[models])

    def take(self, models: Array | slice, items: Array | slice) -> Array:
        """Read some models and items, shape (models, items[, choices])."""
        rows = self._models[models]
        at: tuple[Any, ...] = (_as_slice(rows), _as_slice(items))
        try:
            part = np.asarray(self._array.oindex[at])
        except (ValueError, OSError, RuntimeError, KeyError) as e:
            raise FormatError(
                f"'{self._where}' is damaged: {_line(e)}. Write it again from the original results."
            ) from None
        return part


def write_store(responses: Responses, path: str | Path, *, overwrite: bool = False) -> None:
    """Write responses to a new store at ``path``: to a temporary name first, renamed when it is complete."""
    with new_folder(path, "zarr.json", overwrite=overwrite) as draft:
        _fill(responses, draft)


def open_responses(path: str | Path) -> Responses:
    """Open a store of responses; the answers stay on disk until they are used.

    Raises FormatError where ``path`` is not a store, is damaged, or was written by a newer version.
    """
    import zarr

    where = str(path)
    if not Path(path).exists():
        raise FormatError(f"'{where}' does not exist. Make a store with 'disco import FORMAT SOURCE --out {where}'.")
    try:
        group = zarr.open_group(where, mode="r", zarr_format=3)
        about = dict(group.attrs)
    except Exception as e:  # zarr raises many kinds for foreign folders; each means the same here
        raise FormatError(
            f"'{where}' is not a store of responses ({_line(e)}). Make one with 'disco import'."
        ) from None
    if about.get("kind") != KIND:
        raise FormatError(f"'{where}' is a Zarr group but not a store of responses. Make one with 'disco import'.")
    if about.get("format") != FORMAT:
        raise FormatError(
            f"'{where}' has store format {about.get('format')!r}, this version reads {FORMAT}. "
            "Update disco-eval, or write the store again with this version."
        )
    try:
        return _read(group, where)
    except FormatError:
        raise
    except (KeyError, ValueError, OSError, RuntimeError, TypeError) as e:
        raise FormatError(f"'{where}' is damaged: {_line(e)}. Write it again from the original results.") from None


def _read(group: zarr.Group, where: str) -> Responses:
    names = set(group.array_keys())

    def column(name: str) -> Any:
        return None if name not in names else np.asarray(_array(group, name)[:])

    def text(name: str) -> Array:
        return np.array(column(name).tolist(), dtype=str)

    items = Items(
        text("item"),
        subtask=text("subtask"),
        digest=text("digest"),
        weight=column("weight"),
        n_choices=column("n_choices"),
        label=column("label"),
        cost=column("cost"),
    )
    models = Models(
        text("model"), released=text("released"), family=text("family"), base=text("base"), revision=text("revision")
    )
    probs = StoredArray(_array(group, "probs"), where) if "probs" in names else None
    return Responses(models, items, StoredArray(_array(group, "correct"), where), probs)


def _array(group: zarr.Group, name: str) -> zarr.Array[Any]:
    import zarr

    found = group.get(name)
    if not isinstance(found, zarr.Array):
        raise FormatError(f"a store of responses needs an array '{name}', which this one lacks")
    return found


def _fill(responses: Responses, draft: Path) -> None:
    import zarr

    group = zarr.open_group(str(draft), mode="w", zarr_format=3)
    models, items = responses.models, responses.items
    released = np.where(np.isnat(models.released), "", models.released.astype(str))
    texts = {
        "model": {"model": models.ids, "released": released, "family": models.family, "base": models.base},
        "item": {"item": items.ids, "subtask": items.subtask, "digest": items.digest},
    }
    texts["model"]["revision"] = models.revision
    for axis, columns in texts.items():
        for name, values in columns.items():
            _put(group, name, values.astype(object), (axis,), dtype=str)
    numbers = {"weight": items.weight, "n_choices": items.n_choices, "label": items.label, "cost": items.cost}
    for name, numbers_of in numbers.items():
        if numbers_of is not None:
            _put(group, name, numbers_of, ("item",))
    _answers(group, "correct", responses, ("model", "item"))
    if responses.probs is not None:
        _answers(group, "probs", responses, ("model", "item", "choice"))
    group.attrs.update({"kind": KIND, "format": FORMAT})  # last: a store without it is not opened


def _put(group: zarr.Group, name: str, values: Array, dims: tuple[str, ...], dtype: Any = None) -> None:
    array = group.create_array(
        name, shape=values.shape, dtype=dtype or values.dtype, chunks=(max(1, len(values)),), dimension_names=dims,
        compressors=_codecs(),
    )  # fmt: skip
    array[:] = values


def _answers(group: zarr.Group, name: str, responses: Responses, dims: tuple[str, ...]) -> None:
    """Copy an array of answers shard by shard, so memory stays that of one shard."""
    source = responses.correct if name == "correct" else responses.probs
    assert source is not None
    chunks, shards = chunking(source.shape, source.dtype.itemsize)
    array = group.create_array(
        name, shape=source.shape, dtype=source.dtype, chunks=chunks, shards=shards, dimension_names=dims,
        compressors=_codecs(),
    )  # fmt: skip
    for m in range(0, source.shape[0], shards[0]):
        for i in range(0, source.shape[1], shards[1]):
            rows = slice(m, min(m + shards[0], source.shape[0]))
            columns = slice(i, min(i + shards[1], source.shape[1]))
            array[rows, columns] = Responses._take(source, rows, columns)


def chunking(shape: tuple[int, ...], itemsize: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of chunk and shard for an array (model, item[, choice]): about 256 KiB and at most about 32 MiB."""
    n_models, n_items, rest = max(1, shape[0]), max(1, shape[1]), tuple(shape[2:])
    cell = itemsize * int(np.prod(rest, dtype=np.int64))
    m = min(n_models, _MODELS_PER_CHUNK)
    i = int(np.clip(_CHUNK_BYTES // (m * cell), 1, n_items))
    chunk_bytes = m * i * cell
    across = min(-(-n_items // i), max(1, _SHARD_BYTES // chunk_bytes))
    down = min(-(-n_models // m), max(1, _SHARD_BYTES // (chunk_bytes * across)))
    return (m, i, *rest), (m * down, i * across, *rest)


def _codecs() -> list[Any]:
    from zarr.codecs import Crc32cCodec, ZstdCodec

    return [ZstdCodec(level=1), Crc32cCodec()]


def _as_slice(at: Array | slice) -> Array | slice:
    """Neighbouring positions as a slice, which Zarr reads without gathering."""
    if isinstance(at, slice) or len(at) == 0 or (np.diff(at) != 1).any():
        return at
    return slice(int(at[0]), int(at[-1]) + 1)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
