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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .checks import check_provenance
from .errors import FormatError, ValidationError
from .files import is_url, new_folder, put_back, reachable
from .layout import check_layout
from .responses import Items, Lazy, Models, Responses

if TYPE_CHECKING:
    import zarr

Array = NDArray[Any]

FORMAT = 1
KIND = "disco-eval responses"
MARKER = "zarr.json"  # the file that shows a folder to be a store
_CHUNK_BYTES = 2**18
_SHARD_BYTES = 2**25
_MODELS_PER_CHUNK = 16
ANSWERS = ("correct", "probs")
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
        return self.shard[1]

    @property
    def shard(self) -> tuple[int, int]:
        """Models and items that share a file."""
        sizes = self._array.shards or self._array.chunks
        return int(sizes[0]), int(sizes[1])

    def file(self, model: int, item: int) -> str:
        """The file, within the store, that holds the answer of a model to an item."""
        height, width = self.shard
        rest = (0,) * (self._array.ndim - 2)
        place = "/".join(str(k) for k in (int(self._models[model]) // height, item // width, *rest))
        return f"{self._array.basename}/c/{place}"

    def rows(self, models: Array) -> StoredArray:
        """A view of some of the models; reads nothing."""
        return StoredArray(self._array, self._where, self._models[models])

    def take(self, models: Array | slice, items: Array | slice) -> Array:
        """Read some models and items, shape (models, items[, choices])."""
        rows = self._models[models]
        columns = _as_slice(items)
        try:
            if isinstance(columns, slice) and not isinstance(_as_slice(rows), slice):
                part = self._scattered(rows, columns)
            else:
                part = np.asarray(self._array.oindex[_as_slice(rows), columns])
            if part.ndim == 2 and np.isnan(part).any():  # probabilities are checked as such
                raise ValueError(f"a file of its array '{self._array.basename}' is lost")
        except (ValueError, OSError, RuntimeError, KeyError) as e:
            raise FormatError(
                f"'{self._where}' is damaged: {_line(e)}. Write it again from the original results."
            ) from None
        return part

    def _scattered(self, rows: Array, columns: slice) -> Array:
        """Models here and there, neighbouring items: whole stretches of models are read and thinned out.

        Gathered by Zarr itself, the index alone would take twenty times the memory of what is read.
        """
        height = self.shard[0]
        width = len(range(*columns.indices(self._array.shape[1])))
        out = np.empty((len(rows), width, *self._array.shape[2:]), self._array.dtype)
        stretch = rows // height
        for s in np.unique(stretch):
            at = np.flatnonzero(stretch == s)
            first, last = int(rows[at].min()), int(rows[at].max())
            out[at] = np.asarray(self._array[first : last + 1, columns])[rows[at] - first]
        return out


def write_store(
    responses: Responses, path: str | Path, *, overwrite: bool = False, dtype: DTypeLike | None = None
) -> None:
    """Write responses to a new store at ``path``: to a temporary name first, renamed when it is complete.

    ``dtype`` is the type that probabilities are kept in, ``"float16"`` for half the space; by default their own.
    """
    if dtype is not None and np.dtype(dtype).kind != "f":
        raise ValidationError(f"probabilities are kept as float16, float32 or float64, not as {np.dtype(dtype)}")
    check_provenance(responses.provenance)
    with new_folder(path, MARKER, kind=KIND, overwrite=overwrite) as draft:
        _fill(responses, draft, dtype)


def open_responses(path: str | Path) -> Responses:
    """Open a store of responses; the answers stay where they are until they are used.

    ``path`` is a folder, or a URL that fsspec knows (``s3://``, ``gs://``, ``https://``); credentials are those that
    its package finds by itself.

    Raises FormatError where ``path`` is not a store, is damaged, or was written by a newer version; DiscoError where a
    URL's package is missing.
    """
    where = str(path)
    group = _open(where)
    about = dict(group.attrs)
    if about.get("kind") != KIND:
        raise FormatError(f"'{where}' is a Zarr group but not a store of responses. Make one with 'disco import'.")
    if about.get("format") != FORMAT:
        raise FormatError(
            f"'{where}' has store format {about.get('format')!r}, this version reads {FORMAT}. "
            "Update disco-eval, or write the store again with this version."
        )
    try:
        arrays: Any = about["arrays"]
        _check_sizes(group, arrays)
        _verify(group, about)
        found = _read(group, where, _count(about, array_of(group, "correct").shape[0]), set(arrays))
        provenance = about.get("provenance", {})
        found.provenance = dict(provenance) if isinstance(provenance, dict) else {}
        return found
    except (FormatError, ValidationError):
        raise
    except (KeyError, ValueError, OSError, RuntimeError, TypeError, AttributeError, ArithmeticError) as e:
        raise FormatError(f"'{where}' is damaged: {_line(e)}. Write it again from the original results.") from None


def _open(where: str) -> zarr.Group:
    import zarr

    if is_url(where):
        reachable(where)
    else:
        put_back(Path(where))
        if not Path(where).exists():
            raise FormatError(f"'{where}' does not exist. 'disco import FORMAT SOURCE --out STORE' makes a store.")
    try:
        return zarr.open_group(where, mode="r", zarr_format=3)
    except Exception as e:  # zarr raises many kinds for foreign folders; each means the same here
        raise FormatError(
            f"'{where}' is not a store of responses ({_line(e)}). Make one with 'disco import'."
        ) from None


def _check_sizes(group: zarr.Group, names: Any) -> None:
    """Refuse arrays whose description promises more than memory holds, or packing that can hide any size."""
    for name in names:
        check_layout(array_of(group, name), name, {"correct": 2, "probs": 3}.get(name, 1))


def _count(about: dict[str, Any], most: int) -> int:
    n_models = about.get("n_models")
    if not isinstance(n_models, int) or not 0 <= n_models <= most:
        raise ValueError(f"it says that it has {str(n_models)[:20]} models, but its arrays hold {most}")
    return n_models


def _read(group: zarr.Group, where: str, n_models: int, named: set[str]) -> Responses:
    """The first ``n_models`` of every array: what lies beyond was left by an append that did not finish."""

    def column(name: str) -> Any:
        return None if name not in named else np.asarray(array_of(group, name)[:])

    def text(name: str) -> Array:
        values = np.array(column(name).tolist(), dtype=str)
        return values[:n_models] if name in _MODEL_COLUMNS else values

    def answers(name: str) -> StoredArray:
        return StoredArray(array_of(group, name), where, np.arange(n_models))

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


def array_of(group: zarr.Group, name: str) -> zarr.Array[Any]:
    import zarr

    found = group.get(name)
    if not isinstance(found, zarr.Array):
        raise FormatError(f"a store of responses needs an array '{name}', which this one lacks")
    return found


def _fill(responses: Responses, draft: Path, dtype: DTypeLike | None = None) -> None:
    import zarr

    group = zarr.open_group(str(draft), mode="w", zarr_format=3)
    models, items = responses.models, responses.items
    texts = {
        "model": model_columns(models),
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
        _answers(group, "probs", responses, ("model", "item", "choice"), dtype)
    seal(group, responses.n_models, responses.provenance)  # last: a store without it is not opened


def seal(group: zarr.Group, n_models: int, provenance: dict[str, Any]) -> None:
    """Write the store's description in one go: how many models count, and checksums of all that describes it.

    Chunks end in checksums of their own; the descriptions of the arrays (type, shape, chunks) and this one do not, and
    a flipped bit there would change data without a word. A lost file of a column reads as empty values, so the
    columns' content has checksums here too.
    """
    about: dict[str, Any] = {"kind": KIND, "format": FORMAT, "n_models": n_models, "provenance": provenance}
    about["arrays"] = {name: description(group, name) for name in _ARRAYS if name in group}
    about["columns"] = {name: _content(group, name, n_models) for name in about["arrays"] if name not in ANSWERS}
    group.update_attributes({**about, "checksum": _checksum(about)})  # in one write, unlike group.attrs.update


def _content(group: zarr.Group, name: str, n_models: int) -> str:
    """A checksum of what a column says, up to the last model that counts."""
    values = np.asarray(array_of(group, name)[:])
    kept = values[:n_models] if name in _MODEL_COLUMNS else values
    return hashlib.sha256(json.dumps(kept.tolist()).encode()).hexdigest()[:32]


def description(group: zarr.Group, name: str) -> str:
    """A checksum of an array's description, less its number of models, which an append changes first."""
    array = array_of(group, name)
    text = json.loads(json.dumps(array.metadata.to_dict(), default=str))
    if name in _MODEL_COLUMNS or name in ANSWERS:
        text["shape"][0] = None
    return hashlib.sha256(json.dumps(text, sort_keys=True).encode()).hexdigest()[:32]


def _checksum(about: dict[str, Any]) -> str:
    names = ("kind", "format", "n_models", "provenance", "arrays", *(("columns",) if "columns" in about else ()))
    own = {name: about.get(name) for name in names}
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()


def _verify(group: zarr.Group, about: dict[str, Any]) -> None:
    """Refuse a store whose description is not the one that was written."""
    if about.get("checksum") != _checksum(about):
        raise ValueError("the checksum of its description does not fit")
    for name, expected in about["arrays"].items():
        if description(group, name) != expected:
            raise ValueError(f"the description of its array '{name}' does not fit its checksum")
    for name, expected in about.get("columns", {}).items():
        if _content(group, name, about["n_models"]) != expected:
            raise ValueError(f"its column '{name}' does not fit its checksum")


def model_columns(models: Models) -> dict[str, Array]:
    released = np.where(np.isnat(models.released), "", models.released.astype(str))
    named = {"model": models.ids, "released": released, "family": models.family, "base": models.base}
    return {**named, "revision": models.revision}


def source_of(responses: Responses, name: str) -> Array | Lazy:
    source = responses.correct if name == "correct" else responses.probs
    assert source is not None
    return source


def _put(group: zarr.Group, name: str, values: Array, dims: tuple[str, ...], dtype: Any = None) -> None:
    array = group.create_array(
        name, shape=values.shape, dtype=dtype or values.dtype, chunks=(max(1, len(values)),), dimension_names=dims,
        compressors=codecs(),
    )  # fmt: skip
    array[:] = values


def _answers(
    group: zarr.Group, name: str, responses: Responses, dims: tuple[str, ...], dtype: DTypeLike | None = None
) -> None:
    """Copy an array of answers shard by shard, so memory stays that of one shard."""
    source = source_of(responses, name)
    kept = np.dtype(source.dtype if dtype is None else dtype)
    chunks, shards = chunking(source.shape, kept.itemsize)
    array = group.create_array(
        name, shape=source.shape, dtype=kept, chunks=chunks, shards=shards, dimension_names=dims,
        compressors=codecs(kept.itemsize), fill_value=np.nan,  # a file that is lost must not read as zeros
    )  # fmt: skip
    for m in range(0, source.shape[0], shards[0]):
        for i in range(0, source.shape[1], shards[1]):
            rows = slice(m, min(m + shards[0], source.shape[0]))
            columns = slice(i, min(i + shards[1], source.shape[1]))
            array[rows, columns] = Responses._take(source, rows, columns)


def chunking(shape: tuple[int, ...], itemsize: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of chunk and shard for an array (model, item[, choice]): about 256 KiB and at most about 32 MiB.

    Always as if there were 16 models or more, so that a store which begins with one is as fast when it has grown.
    """
    n_models, n_items, rest = max(1, shape[0]), max(1, shape[1]), tuple(shape[2:])
    cell = itemsize * int(np.prod(rest, dtype=np.int64))
    m = _MODELS_PER_CHUNK
    i = int(np.clip(_CHUNK_BYTES // (m * cell), 1, n_items))
    chunk_bytes = m * i * cell
    across = min(-(-n_items // i), max(1, _SHARD_BYTES // chunk_bytes))
    down = min(-(-n_models // m), max(1, _SHARD_BYTES // (chunk_bytes * across)))
    return (m, i, *rest), (m * down, i * across, *rest)


def codecs(itemsize: int = 1) -> list[Any]:
    """Bit planes apart, then LZ4, chosen by measurement (decision 0120), and a checksum.

    Blosc says how much it unpacks to, 2 GB at most, before it does.
    """
    from zarr.codecs import BloscCodec, Crc32cCodec

    shuffle: Literal["noshuffle", "bitshuffle"] = "noshuffle" if itemsize == 1 else "bitshuffle"
    return [BloscCodec(typesize=itemsize, cname="lz4", clevel=1, shuffle=shuffle), Crc32cCodec()]


def _as_slice(at: Array | slice) -> Array | slice:
    """Neighbouring positions as a slice, which Zarr reads without gathering."""
    if isinstance(at, slice) or len(at) == 0 or (np.diff(at) != 1).any():
        return at
    return slice(int(at[0]), int(at[-1]) + 1)


def _line(error: BaseException) -> str:
    said = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
    return "a checksum does not fit" if said.startswith("Stored and computed checksum") else said
