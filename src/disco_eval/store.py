"""Responses on disk: a Zarr v3 store that opens lazily, written whole or not at all.

Layout (format 1), a Zarr group whose arrays carry dimension names, so xarray and other Zarr readers understand it:

    correct (model, item)            probs (model, item, choice)                 float, optional probs
    model, family, base, revision (model) strings   released (model) ISO dates, "" if unknown
    the attribute n_models says how many models count: an append writes beyond it first and raises it last
    item, subtask, digest (item) strings            weight, n_choices, label, cost (item) numbers, the last two optional

Chunks hold a few models and few neighbouring items, so a pass over the models reads everything once and gathering 100
anchors reads only their chunks. Many chunks share a shard, so a large store is not a million files. Each chunk ends in
a checksum: a damaged one is an error, never a number.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import AlignmentError, DiscoError, FormatError, some
from .files import new_folder
from .responses import Items, Lazy, Models, Responses

if TYPE_CHECKING:
    import zarr

Array = NDArray[Any]

FORMAT = 1
KIND = "disco-eval responses"
_CHUNK_BYTES = 2**18
_SHARD_BYTES = 2**25
_MODELS_PER_CHUNK = 16
_MODEL_COLUMNS = ("model", "family", "base", "revision", "released")
_ARRAYS = (
    *_MODEL_COLUMNS, "item", "subtask", "digest", "weight", "n_choices", "label", "cost", "correct", "probs",
)  # fmt: skip


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
        columns = _as_slice(items)
        try:
            if isinstance(columns, slice) and not isinstance(_as_slice(rows), slice):
                return self._scattered(rows, columns)
            part = np.asarray(self._array.oindex[_as_slice(rows), columns])
        except (ValueError, OSError, RuntimeError, KeyError) as e:
            raise FormatError(
                f"'{self._where}' is damaged: {_line(e)}. Write it again from the original results."
            ) from None
        return part

    def _scattered(self, rows: Array, columns: slice) -> Array:
        """Models here and there, neighbouring items: whole stretches of models are read and thinned out.

        Gathered by Zarr itself, the index alone would take twenty times the memory of what is read.
        """
        height = int((self._array.shards or self._array.chunks)[0])
        width = len(range(*columns.indices(self._array.shape[1])))
        out = np.empty((len(rows), width, *self._array.shape[2:]), self._array.dtype)
        stretch = rows // height
        for s in np.unique(stretch):
            at = np.flatnonzero(stretch == s)
            first, last = int(rows[at].min()), int(rows[at].max())
            out[at] = np.asarray(self._array[first : last + 1, columns])[rows[at] - first]
        return out


def write_store(responses: Responses, path: str | Path, *, overwrite: bool = False) -> None:
    """Write responses to a new store at ``path``: to a temporary name first, renamed when it is complete."""
    with new_folder(path, "zarr.json", kind=KIND, overwrite=overwrite) as draft:
        _fill(responses, draft)


def append_models(responses: Responses, path: str | Path) -> None:
    """Add models to a store that exists; what is there is neither read nor written again.

    The models become visible at the end, by one change of the store's description, so a killed append leaves the store
    as it was and can be repeated.

    Raises AlignmentError where the items are not those of the store (missing, others, or another prompt by digest) or a
    model is there already; DiscoError where another process is writing to the store.
    """
    import zarr

    there = open_responses(path)
    added = _fitting(responses, there, str(path))
    with _only_writer(Path(path)):
        group = zarr.open_group(str(path), mode="r+", zarr_format=3)
        first, total = there.n_models, there.n_models + added.n_models
        for name, values in _model_columns(added.models).items():
            array = _array(group, name)
            array.resize((total,))
            array[first:total] = values.astype(object)
        for name in ("correct", "probs") if added.probs is not None else ("correct",):
            array, source = _array(group, name), _source(added, name)
            array.resize((total, *array.shape[1:]))
            step = (array.shards or array.chunks)[1]
            for i in range(0, added.n_items, step):
                part = Responses._take(source, slice(None), slice(i, i + step))
                array[first:total, i : i + step, ...] = part
        _seal(group, total, _joined(there.provenance, added.provenance))


def _joined(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The store's provenance, with what is known of each new model added under ``models``."""
    models = {**old.get("models", {}), **new.get("models", {})}
    return {**new, **old, "models": models} if models else {**new, **old}


def _fitting(responses: Responses, there: Responses, where: str) -> Responses:
    """The responses in the store's order of items, if they can be added to it."""
    twice = np.intersect1d(responses.models.ids, there.models.ids)
    if len(twice):
        raise AlignmentError(f"{len(twice)} models are in '{where}' already: {some(twice)}")
    extra = np.setdiff1d(responses.items.ids, there.items.ids)
    if len(extra):
        raise AlignmentError(f"{len(extra)} items are not in '{where}': {some(extra)}; a store holds one set of items")
    added = responses.align(there.items.ids)
    both = (added.items.digest != "") & (there.items.digest != "")
    differs = both & (added.items.digest != there.items.digest)
    if differs.any():
        raise AlignmentError(
            f"{differs.sum()} items have another prompt or other choices than in '{where}' (digest): "
            f"{some(there.items.ids[differs])}; models must answer the same questions"
        )
    if (added.probs is None) != (there.probs is None):
        kinds = ("grades", "probabilities") if added.probs is None else ("probabilities", "grades")
        raise AlignmentError(f"'{where}' holds {kinds[1]}, but the models to add have {kinds[0]}; they cannot be mixed")
    if added.probs is not None and (added.items.n_choices != there.items.n_choices).any():
        other = there.items.ids[added.items.n_choices != there.items.n_choices]
        raise AlignmentError(f"{len(other)} items have another number of choices than in '{where}': {some(other)}")
    if added.max_choices != there.max_choices:
        raise AlignmentError(f"'{where}' holds {there.max_choices} choices per item, the added {added.max_choices}")
    return added


@contextmanager
def _only_writer(store: Path) -> Iterator[None]:
    lock = store / ".writing"
    try:
        lock.touch(exist_ok=False)
    except FileExistsError:
        raise DiscoError(
            f"another process is writing to '{store}'; wait for it, or delete {lock} if no such process runs"
        ) from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


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
        _verify(group, about)
        arrays: Any = about["arrays"]
        found = _read(group, where, _count(about, _array(group, "correct").shape[0]), set(arrays))
        provenance = about.get("provenance", {})
        found.provenance = dict(provenance) if isinstance(provenance, dict) else {}
        return found
    except FormatError:
        raise
    except (KeyError, ValueError, OSError, RuntimeError, TypeError, AttributeError) as e:
        raise FormatError(f"'{where}' is damaged: {_line(e)}. Write it again from the original results.") from None


def _count(about: dict[str, Any], most: int) -> int:
    n_models = about.get("n_models")
    if not isinstance(n_models, int) or not 0 <= n_models <= most:
        raise ValueError(f"it says that it has {str(n_models)[:20]} models, but its arrays hold {most}")
    return n_models


def _read(group: zarr.Group, where: str, n_models: int, named: set[str]) -> Responses:
    """The first ``n_models`` of every array: what lies beyond was left by an append that did not finish."""

    def column(name: str) -> Any:
        return None if name not in named else np.asarray(_array(group, name)[:])

    def text(name: str) -> Array:
        values = np.array(column(name).tolist(), dtype=str)
        return values[:n_models] if name in _MODEL_COLUMNS else values

    def answers(name: str) -> StoredArray:
        return StoredArray(_array(group, name), where, np.arange(n_models))

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
    return Responses(models, items, answers("correct"), answers("probs") if "probs" in named else None)


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
    texts = {
        "model": _model_columns(models),
        "item": {"item": items.ids, "subtask": items.subtask, "digest": items.digest},
    }
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
    _seal(group, responses.n_models, responses.provenance)  # last: a store without it is not opened


def _seal(group: zarr.Group, n_models: int, provenance: dict[str, Any]) -> None:
    """Write the store's description in one go: how many models count, and checksums of all that describes it.

    Chunks end in checksums of their own; the descriptions of the arrays (type, shape, chunks) and this one do not, and
    a flipped bit there would change data without a word.
    """
    about: dict[str, Any] = {"kind": KIND, "format": FORMAT, "n_models": n_models, "provenance": provenance}
    about["arrays"] = {name: _description(group, name) for name in _ARRAYS if name in group}
    group.attrs.update({**about, "checksum": _checksum(about)})


def _description(group: zarr.Group, name: str) -> str:
    """A checksum of an array's description, less its number of models, which an append changes first."""
    array = _array(group, name)
    text = json.loads(json.dumps(array.metadata.to_dict(), default=str))
    if name in _MODEL_COLUMNS or name in ("correct", "probs"):
        text["shape"][0] = None
    return hashlib.sha256(json.dumps(text, sort_keys=True).encode()).hexdigest()[:32]


def _checksum(about: dict[str, Any]) -> str:
    own = {name: about.get(name) for name in ("kind", "format", "n_models", "provenance", "arrays")}
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()


def _verify(group: zarr.Group, about: dict[str, Any]) -> None:
    """Refuse a store whose description is not the one that was written."""
    if about.get("checksum") != _checksum(about):
        raise ValueError("the checksum of its description does not fit")
    for name, expected in about["arrays"].items():
        if _description(group, name) != expected:
            raise ValueError(f"the description of its array '{name}' does not fit its checksum")


def _model_columns(models: Models) -> dict[str, Array]:
    released = np.where(np.isnat(models.released), "", models.released.astype(str))
    named = {"model": models.ids, "released": released, "family": models.family, "base": models.base}
    return {**named, "revision": models.revision}


def _source(responses: Responses, name: str) -> Array | Lazy:
    source = responses.correct if name == "correct" else responses.probs
    assert source is not None
    return source


def _put(group: zarr.Group, name: str, values: Array, dims: tuple[str, ...], dtype: Any = None) -> None:
    array = group.create_array(
        name, shape=values.shape, dtype=dtype or values.dtype, chunks=(max(1, len(values)),), dimension_names=dims,
        compressors=_codecs(),
    )  # fmt: skip
    array[:] = values


def _answers(group: zarr.Group, name: str, responses: Responses, dims: tuple[str, ...]) -> None:
    """Copy an array of answers shard by shard, so memory stays that of one shard."""
    source = _source(responses, name)
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
