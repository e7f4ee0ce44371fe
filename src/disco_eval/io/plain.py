"""Pickles of plain values and numeric arrays, read without running anything that is in them, in bounded memory."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError

Array = NDArray[Any]

_KINDS = frozenset("fiubUS")
_HEAVIEST = 10_000_000  # values that nested tuples may stand for: they share parts, so a few bytes can mean 2^1000


def load_plain(path: str | Path) -> Any:
    """A pickle of plain values and numeric numpy arrays; anything else raises FormatError before it is called."""
    try:
        with open(path, "rb") as file:
            return _Plain(file).load()
    except FormatError as e:
        raise FormatError(f"'{path}': {e}") from None
    except OSError as e:
        raise FormatError(f"'{path}' cannot be read: {e.strerror}") from None
    except Exception as e:  # a damaged pickle can fail in any way; nothing of it was run
        why = " ".join(f"{type(e).__name__}: {e}".split())[:160]
        raise FormatError(f"'{path}' is no pickle of plain data, or is damaged ({why})") from None


class _Bounded:
    """A file that never promises more bytes than it has, so that a length in a pickle allocates nothing by itself."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = file.seek(0, 2)
        file.seek(0)
        self.readline = file.readline

    def read(self, n: int) -> bytes:
        if not 0 <= n <= self._size - self._file.tell():
            raise EOFError(f"it asks for {str(n)[:20]} bytes that the file does not have")
        return self._file.read(n)

    def readinto(self, buffer: Any) -> int:
        buffer[:] = self.read(len(buffer))
        return len(buffer)


class _Plain(pickle._Unpickler):  # in Python: its memo is a dict, the other's grows to any index that a file names
    """Knows how to make arrays from their bytes and nothing else; every other name in the file is refused."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(_Bounded(file))
        self._weights: dict[int, tuple[int, Any]] = {}

    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN.get((module.replace("numpy._core.", "numpy.core."), name))
        if known is None:
            raise FormatError(f"it asks for '{module}.{name}', which is not data; the file was not opened further")
        return known

    def _weigh(self) -> None:
        """Refuse tuples that hold each other so often that to compare or show them would never end."""
        value = self.stack[-1]  # type: ignore[attr-defined]
        weight = 1 + sum(self._weights[id(v)][0] if id(v) in self._weights else 1 for v in value)
        if weight > _HEAVIEST:
            raise FormatError("its tuples hold each other too often")
        self._weights[id(value)] = (weight, value)  # kept, so that its id stays its own

    def _build(self) -> None:
        """The state of an array or of its type, after checking that it makes sense."""
        stack = self.stack  # type: ignore[attr-defined]
        state = stack.pop()
        made = stack[-1]
        if isinstance(made, np.dtype):
            _check_dtype_state(made, state)
        elif isinstance(made, np.ndarray):
            _check_array_state(state)
        else:
            raise FormatError(f"it gives a state to a value of type {type(made).__name__}")
        made.__setstate__(state)


def _then_weigh(load: Callable[[Any], None]) -> Callable[[Any], None]:
    def both(self: Any) -> None:
        load(self)
        self._weigh()

    return both


def _refuse(self: Any) -> None:
    raise FormatError("it holds sets or makes objects, which no such file needs")


_Plain.dispatch = dict(pickle._Unpickler.dispatch)
for _code in (pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3):
    _Plain.dispatch[_code[0]] = _then_weigh(_Plain.dispatch[_code[0]])
for _code in (
    pickle.EMPTY_SET, pickle.ADDITEMS, pickle.FROZENSET, pickle.INST, pickle.OBJ, pickle.NEWOBJ, pickle.NEWOBJ_EX,
    pickle.PERSID, pickle.BINPERSID, pickle.EXT1, pickle.EXT2, pickle.EXT4,
):  # fmt: skip
    _Plain.dispatch[_code[0]] = _refuse
_Plain.dispatch[pickle.BUILD[0]] = _Plain._build  # type: ignore[assignment]


def _check_dtype_state(made: np.dtype[Any], state: Any) -> None:
    """(version, byte order, subtype, names, fields, item size, alignment, flags, ...): the order alone may differ."""
    fits = isinstance(state, tuple) and 8 <= len(state) <= 9 and type(state[0]) is int
    fits = fits and state[1] in ("<", ">", "|", "=") and state[2] is state[3] is state[4] is None
    own = (made.itemsize, made.alignment, made.flags)
    fits = fits and all(type(s) is int and s in (-1, o) for s, o in zip(state[5:7], own[:2], strict=True))
    if not fits or type(state[7]) is not int or state[7] not in (0, made.flags) or state[8:] not in ((), (None,)):
        raise FormatError("it holds an array of a type that no plain array has")


def _check_array_state(state: Any) -> None:
    """(version, shape, type, whether in Fortran's order, bytes)."""
    fits = isinstance(state, tuple) and len(state) == 5 and type(state[0]) is int and _is_shape(state[1])
    if not fits or not isinstance(state[2], np.dtype) or state[2].kind not in _KINDS:
        raise FormatError("it holds an array that is neither numbers nor text")
    n_bytes = state[2].itemsize * _count(state[1])
    if not isinstance(state[4], bytes) or len(state[4]) != n_bytes or not n_bytes or type(state[3]) not in (bool, int):
        raise FormatError("it holds an array whose bytes do not fit its shape")


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, tuple) and len(shape) <= 8 and all(type(n) is int and 0 <= n < 2**40 for n in shape)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count


class _ArrayType:
    """Stands for ``numpy.ndarray`` where a pickle names it; it cannot be called by one."""

    def __init__(self) -> None:
        raise FormatError("it makes an array without bytes")


def _empty(kind: Any, shape: Any, code: Any) -> Array:
    if kind is not _ArrayType:
        raise FormatError("it makes an array of a type that is no plain array")
    return np.empty((0,), np.uint8)


def _dtype(code: Any, *flags: Any) -> np.dtype[Any]:
    text = code.decode("ascii") if isinstance(code, bytes) else code
    if not isinstance(text, str) or len(text) > 12 or text.lstrip("<>|=")[:1] not in _KINDS or "," in text:
        raise FormatError(f"it holds an array of type {str(text)[:20]!r}; numbers and text alone are read")
    made = np.dtype(text, False, True)  # a copy: the pickle sets the byte order of what it gets
    if made.kind not in _KINDS or not made.itemsize:
        raise FormatError(f"it holds an array of type {text!r}; numbers and text alone are read")
    return made


def _from_buffer(buffer: Any, dtype: Any, shape: Any, order: Any) -> Array:
    if not isinstance(dtype, np.dtype) or dtype.kind not in _KINDS or not _is_shape(shape):
        raise FormatError("it holds an array that is neither numbers nor text")
    if not isinstance(buffer, (bytes, bytearray)):
        raise FormatError("it holds an array without bytes")
    return np.frombuffer(buffer, dtype).reshape(shape, order="F" if order == "F" else "C")


def _scalar(dtype: Any, data: Any) -> Any:
    if not isinstance(dtype, np.dtype) or dtype.kind not in _KINDS or not isinstance(data, bytes):
        raise FormatError("it holds a scalar that is neither a number nor text")
    return np.frombuffer(data, dtype)[0]


def _latin(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str):
        raise FormatError("it holds bytes that were no text")
    return text.encode("latin1")  # how old protocols write bytes


_KNOWN: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _ArrayType,
    ("numpy", "dtype"): _dtype,
    ("numpy.core.multiarray", "_reconstruct"): _empty,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy.core.numeric", "_frombuffer"): _from_buffer,
    ("_codecs", "encode"): _latin,
    ("collections", "OrderedDict"): dict,
}
