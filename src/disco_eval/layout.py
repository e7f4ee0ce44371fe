"""How the arrays of a store may be cut and packed: what is refused before anything of it is read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .resources import need

if TYPE_CHECKING:
    import zarr

_MANY_PIECES, _SMALL_PIECE = 100_000, 4096  # every piece costs some 2 kB and a task while it is read
_CODECS = {"bytes", "vlen-utf8", "blosc", "crc32c", "sharding_indexed"}


def check_layout(array: zarr.Array[Any], name: str, n_dims: int) -> None:
    """Refuse an array before anything of it is read, where reading could take more than a store made here needs.

    One of a single dimension is read whole, others by the chunk. Raises ValueError; ValidationError where a part is
    larger than memory may be.
    """
    if array.ndim != n_dims:
        raise ValueError(f"its array '{name}' has {array.ndim} dimensions")
    for sizes in (array.chunks, array.shards or array.chunks):
        if min(sizes) < 1:
            raise ValueError(f"its array '{name}' is cut into pieces of shape {sizes}")
    pieces = math.prod(-(-length // size) for length, size in zip(array.shape, array.chunks, strict=True))
    if pieces > _MANY_PIECES and array.nbytes < _SMALL_PIECE * pieces:
        raise ValueError(f"its array '{name}' is cut into {pieces} small pieces, not as made here")
    size = max(array.dtype.itemsize, 16) * math.prod(array.shape if n_dims == 1 else array.chunks)
    need(2 * size, f"a part of the array '{name}'", "it is no store that was made here")
    packing = {str(codec.to_dict()["name"]) for codec in _all_codecs(array)}
    if packing - _CODECS:
        raise ValueError(f"its array '{name}' is packed by {', '.join(sorted(packing - _CODECS))}, not as made here")


def _all_codecs(array: zarr.Array[Any]) -> list[Any]:
    """The codecs of an array, and within its shards."""
    outer = list(array.metadata.codecs)  # type: ignore[union-attr]
    return outer + [
        inner for codec in outer for inner in (*getattr(codec, "codecs", ()), *getattr(codec, "index_codecs", ()))
    ]
