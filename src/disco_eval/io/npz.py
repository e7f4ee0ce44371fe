"""NumPy archives: one file with named arrays, no pickles.

| array | shape | what |
|---|---|---|
| ``models``, ``items`` | (M,), (N,) | names |
| ``probs`` or ``loglikelihoods`` | (M, N, C) | the answers |
| ``correct`` | (M, N) | grades; without the above these are the answers |
| ``labels`` | (N,) | index of the right choice; needed with probs or loglikelihoods |
| ``n_choices``, ``subtask``, ``weight``, ``digest``, ``cost`` | (N,) | optional, about the items |
| ``released``, ``family``, ``base_model``, ``revision`` | (M,) | optional, about the models |

``correct`` may stand beside ``probs`` or ``loglikelihoods`` where the benchmark grades otherwise than by the most
probable choice.
"""

from __future__ import annotations

import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, ValidationError, near_misses, some
from ..files import new_file
from ..resources import need
from ..responses import Items, Models, Responses

Array = NDArray[Any]

ANSWERS = ("probs", "loglikelihoods", "correct")
_UNREADABLE = (  # what numpy and zipfile raise for foreign, truncated and crafted files
    ValueError, OSError, EOFError, KeyError, NotImplementedError, OverflowError, MemoryError,
    RuntimeError, SyntaxError, tokenize.TokenError, TypeError, AttributeError, RecursionError,
    zipfile.BadZipFile, zlib.error, struct.error,
)  # fmt: skip
_ITEM = {"subtask": "subtask", "weight": "weight", "n_choices": "n_choices", "digest": "digest", "cost": "cost"}
_MODEL = {"released": "released", "family": "family", "base": "base_model", "revision": "revision"}


def read_npz(path: str | Path) -> Responses:
    """Responses from a NumPy archive of the layout above.

    Raises FormatError where the file is not an archive, is truncated, holds pickled objects, or lacks what is needed;
    ValidationError where the values are not allowed.
    """
    known = ["models", "items", "labels", *ANSWERS, *_ITEM.values(), *_MODEL.values()]
    arrays = read_arrays(Path(path), known)
    for name in ("models", "items"):
        if name not in arrays:
            raise FormatError(
                f"'{path}' has no array '{name}'; it has {some(arrays, 8)}. The layout: disco import npz --help"
            )
    if not arrays["models"].size or not arrays["items"].size:
        raise FormatError(
            f"'{path}' holds {arrays['models'].size} models and {arrays['items'].size} items; both are needed"
        )
    given = [name for name in ANSWERS if name in arrays]
    if not given:
        raise FormatError(f"'{path}' has none of {', '.join(ANSWERS)}; it has {some(arrays, 8)}")
    items = _items(arrays, arrays[given[0]])
    models = Models(arrays["models"], **{k: arrays.get(v) for k, v in _MODEL.items()})
    correct = arrays.get("correct")
    if "probs" in arrays and "loglikelihoods" in arrays:
        raise FormatError(f"'{path}' has both probs and loglikelihoods; keep one, so that nothing has to be guessed")
    if "probs" in arrays:
        return Responses.from_probs(models, items, arrays["probs"], correct=correct)
    if "loglikelihoods" in arrays:
        return Responses.from_loglikelihoods(models, items, arrays["loglikelihoods"], correct=correct)
    return Responses.from_correct(models, items, arrays["correct"])


def write_npz(responses: Responses, path: str | Path) -> None:
    """Write responses as a compressed NumPy archive, whole or not at all."""
    r = responses.load()
    models, items = r.models, r.items
    dates = np.where(np.isnat(models.released), "", models.released.astype(str)).astype(str)
    arrays: dict[str, Any] = {"models": models.ids, "items": items.ids, "correct": r.correct, "released": dates}
    arrays |= {file: getattr(items, own) for own, file in _ITEM.items() if getattr(items, own) is not None}
    arrays |= {file: getattr(models, own) for own, file in _MODEL.items() if own != "released"}
    if items.label is not None:
        arrays["labels"] = items.label
    if r.probs is not None:
        arrays["probs"] = r.probs
    with new_file(path) as draft, draft.open("wb") as out:
        np.savez_compressed(out, **arrays)


def read_arrays(path: Path, known: Sequence[str] | None = None) -> dict[str, Array]:
    """The arrays of a NumPy archive, or those of some names; FormatError where it is none, or holds pickled objects.

    Nothing is unpacked before its declared size is known to fit into the memory bound and to be that of its array.
    """
    try:
        with path.open("rb") as file:
            if file.read(6) == b"\x93NUMPY":
                raise FormatError(f"'{path}' is a single array, not an archive of named arrays (.npz)")
            with zipfile.ZipFile(file) as archive:
                members = {m.filename.removesuffix(".npy"): m for m in archive.infolist()}
                wanted = {name: m for name, m in members.items() if known is None or name in known}
                for name, meant in near_misses(members, known or ()).items():
                    raise FormatError(f"'{path}' has an array '{name}', which is not known; did you mean '{meant}'?")
                need(
                    2 * sum(m.file_size for m in wanted.values()),
                    f"the arrays of '{path}'",
                    "take fewer models at a time",
                )
                return {name: _member(archive, m) for name, m in wanted.items()}
    except FileNotFoundError:
        raise FormatError(f"'{path}' does not exist") from None
    except _UNREADABLE as e:
        if isinstance(e, (FormatError, ValidationError)):
            raise
        why = "it holds pickled objects" if "allow_pickle" in str(e) else " ".join(str(e).split())[:120] or "truncated"
        raise FormatError(f"'{path}' is not a readable NumPy archive ({why})") from None


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    """One array, after checking that its header promises what the archive says is there."""
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    with archive.open(member) as file, warnings.catch_warnings(action="ignore"):  # NumPy's, about old headers
        version = np.lib.format.read_magic(file)
        if version not in read_header:
            raise ValueError(f"'{member.filename}' is of the unknown version {version}")
        shape, _, dtype = read_header[version](file)
        if dtype.hasobject:
            raise ValueError("allow_pickle")
        if dtype.kind not in "biufUSM" or math.prod(shape) * dtype.itemsize != member.file_size - file.tell():
            raise ValueError(f"'{member.filename}' does not hold what it says")
        if not dtype.itemsize and math.prod(shape) > member.file_size:
            raise ValueError(f"'{member.filename}' holds empty texts alone")
        file.seek(0)
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _items(arrays: dict[str, Array], answers: Array) -> Items:
    named = {own: arrays.get(file) for own, file in _ITEM.items()}
    if named["n_choices"] is None and answers.ndim == 3:
        named["n_choices"] = np.full(len(arrays["items"]), answers.shape[2])
    return Items(arrays["items"], label=_label(arrays), **named)


def _label(arrays: dict[str, Array]) -> Array | None:
    label = arrays.get("labels")
    graded_only = "probs" not in arrays and "loglikelihoods" not in arrays
    return None if label is None or graded_only else label
