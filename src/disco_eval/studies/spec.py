"""What methods do and hold as text, by which studies tell them apart: the same in every process where that can be."""

from __future__ import annotations

import copyreg
import hashlib
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from types import CellType, CodeType, ModuleType
from typing import Any

import numpy as np

_PLAIN = {str, bytes, int, float, complex, bool, type(None)}  # whose repr says all
_BRACKETS: dict[type[Any], str] = {list: "[]", tuple: "()", set: "{}", frozenset: "{}", dict: "{}"}
_LONG = 1000  # letters, beyond which a digest stands for what something holds
_PROCESS = uuid.uuid4().hex
_UNLIKE: dict[int, Any] = {}  # by id; kept, so that no other object gets the id


def spec(value: Any) -> str:
    """A selection or prediction as text: its name, or where the function lives and what it does.

    Functions of one name (lambdas, a function that was edited, a method of another object) are told apart by their
    code, defaults and what they hold: of the scope that made them, or of their object.
    """
    if isinstance(value, str):
        return value
    try:
        return _Writer().typed(value)
    except RecursionError:
        return _unlike(value)


def held_spec(value: Any) -> str:
    """What a method was given (options, fields) as text: its repr where that says all, also of what lists hold."""
    try:
        return _Writer().bare(value)
    except RecursionError:
        return _unlike(value)


def object_spec(value: Any) -> str:
    """The repr of an object; where that is a dataclass's own, with all that its fields hold."""
    shown = repr(value)
    if not is_dataclass(value):
        return shown
    held = {f.name: getattr(value, f.name) for f in fields(value) if f.repr}
    name = type(value).__qualname__
    if shown != f"{name}({', '.join(f'{key}={v!r}' for key, v in held.items())})":
        return shown
    return f"{name}({', '.join(f'{key}={held_spec(v)}' for key, v in held.items())})"


def class_spec(value: Any, but: str) -> str:
    """A digest of what the classes of an object do and hold, without those of the package ``but``; "" of those.

    What the functions call beside, and what a module holds, is not part of it.
    """
    writer, held = _Writer(), []
    for kind in type(value).__mro__:
        if kind.__module__.split(".")[0] in ("builtins", "typing", "abc", but):
            continue
        for name, entry in sorted(vars(kind).items()):
            inner = entry.func if isinstance(entry, cached_property) else entry
            inner = getattr(inner, "__func__", getattr(inner, "fget", inner))  # of static methods, of properties
            if hasattr(inner, "__code__") or not (name.startswith("__") or name == "_abc_impl"):
                held.append((kind.__qualname__, name, writer.typed(inner)))
    return f"#{_digest(held)}" if held else ""


def lasting(text: str) -> str:
    """A text without where objects lay in memory and how functions are written.

    The first changes from process to process; a function that was edited is still the same method, made again.
    """
    return re.sub(r" at 0x[0-9a-f]+|#[0-9a-f]{16}", "", text)


class _Writer:
    """Writes anything as text; what holds itself stands there as ``itself``, and what is held twice is read once."""

    def __init__(self) -> None:
        self.seen: dict[int, tuple[Any, str]] = {}  # by id; with the object, so that no other one takes its place

    def typed(self, value: Any) -> str:
        """Text that also tells lists, numbers and words apart."""
        name, text = _name(type(value)), self.bare(value)
        simple = type(value) in _PLAIN or type(value) in _BRACKETS or isinstance(value, np.generic)
        return f"{name}: {text}" if simple and not text.startswith(f"{name}: ") else text

    def bare(self, value: Any) -> str:
        """Text of a value, which is its repr where that says all."""
        if type(value) in _PLAIN or (isinstance(value, np.generic) and not isinstance(value, np.void)):
            return repr(value)
        if id(value) in self.seen:
            return self.seen[id(value)][1]
        self.seen[id(value)] = value, "itself"
        text = self._held(value) if type(value) in _BRACKETS else self._other(value)
        if len(text) > _LONG:
            text = f"{_name(type(value))}: {_digest(lasting(text))}#{_digest(text)}"
        self.seen[id(value)] = value, text
        return text

    def _held(self, value: Any) -> str:
        if isinstance(value, dict):
            each = [f"{self.bare(key)}: {self.bare(v)}" for key, v in value.items()]
        else:
            each = [self.bare(v) for v in value]
        if isinstance(value, (set, frozenset)):
            each.sort()
        brackets = _BRACKETS[type(value)]
        single = "," if isinstance(value, tuple) and len(each) == 1 else ""
        kind = "frozenset" if isinstance(value, frozenset) else "set" if isinstance(value, set) else ""
        return f"{kind}{brackets[0]}{', '.join(each)}{single}{brackets[1]}"

    def _other(self, value: Any) -> str:
        if type(value) is np.ndarray:  # repr leaves out the middle of a long one
            in_parts = value.dtype.hasobject or value.dtype.names is not None
            content = self.bare(value.tolist()) if in_parts else hashlib.sha256(value.tobytes()).hexdigest()[:16]
            return f"{value.dtype}{value.shape}: {content}"
        if isinstance(value, partial):
            return f"partial({self.typed(value.func)}, {self._all(value.args)}, {self._named(value.keywords)})"
        if isinstance(value, CellType):
            try:
                return self.typed(value.cell_contents)
            except ValueError:  # of a function that is defined later
                return "empty"
        if hasattr(value, "__code__"):
            return self._function(value)
        if isinstance(value, ModuleType):
            return f"module {value.__name__}"
        if not hasattr(value, "__qualname__") or not callable(value):  # a generator has one too
            return self._object(value)
        inside = [getattr(value, key, None) for key in ("__self__", "__wrapped__")]  # a method in C, a cache
        known = [v for v in inside if v is not None and not isinstance(v, ModuleType)]
        return f"{_name(value)}{self._all(known) if known and not isinstance(value, type) else ''}"

    def _function(self, value: Any) -> str:
        of = self.typed(value.__self__) if hasattr(value, "__self__") else ""
        by_order, by_name, held = (getattr(value, f"__{k}__", None) for k in ("defaults", "kwdefaults", "closure"))
        defaults, held = (self._all(by_order or ()), self._named(by_name or {})), self._all(held or ())
        return f"{_name(value)}#{_digest((*_does(value.__code__), defaults, held, of))}"

    def _object(self, value: Any) -> str:
        """An object by what a pickle of it would hold; nothing is pickled or read from one."""
        name = _name(type(value))
        try:
            reduce: Any = copyreg.dispatch_table.get(type(value))
            made = reduce(value) if reduce else value.__reduce_ex__(4)
            if isinstance(made, str):
                return f"{name}: {made}"
            make, args, state, *more = (*made, None, None, None)[:5]
            contents = [list(entries) for entries in more if entries is not None]
        except RecursionError:
            raise
        except Exception:  # a lock, an open file: whatever it says of itself, it is like no other one
            return _unlike(value)
        usual = make is copyreg.__newobj__ and len(args) == 1 and args[0] is type(value)  # type: ignore[attr-defined]
        parts = [] if usual else [self.bare(make), self.bare(args)]
        attributes = isinstance(state, dict) and all(isinstance(key, str) for key in state)
        if attributes:  # what was computed once and kept follows from the rest
            kept = {key for key in state if isinstance(getattr(type(value), key, None), cached_property)}
            state = {key: v for key, v in state.items() if key not in kept} or None
            attributes = state is not None
        parts += [str(self._named(state))] if attributes else [] if state is None else [self.bare(state)]
        return f"{name}: {' '.join([*parts, *map(self.bare, contents)])}"

    def _all(self, values: Iterable[Any]) -> list[str]:
        return [self.typed(v) for v in values]

    def _named(self, values: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [(name, self.typed(values[name])) for name in sorted(values)]


def _name(of: Any) -> str:
    return f"{getattr(of, '__module__', None)}.{of.__qualname__}"


def _unlike(value: Any) -> str:
    """The text of what cannot be told from others: one that nothing else in any process has."""
    _UNLIKE[id(value)] = value
    return f"{_name(type(value))} at 0x{_PROCESS}{id(value):016x}"


def _does(code: CodeType) -> tuple[Any, ...]:
    """What a function's code does, without where it stands: its own text in bytes, names and constants."""
    constants = [_does(c) if isinstance(c, CodeType) else _sorted(c) for c in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, constants


def _sorted(constant: Any) -> Any:
    """A set of constants in an order that is the same in every process."""
    return sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant


def _digest(record: Any) -> str:
    return hashlib.sha256(repr(record).encode()).hexdigest()[:16]
