"""What can go wrong with a user's input, as exceptions that say what came in, what was needed and what to do."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from inspect import signature
from numbers import Integral, Real

_MOST = 1_000_000  # of anything that an option counts: more would not end


class DiscoError(Exception):
    """The input is wrong in a way its owner can mend; the command line shows it as one line and exits with 2.

    What a message quotes from files may hold anything; control characters in it are shown by their numbers.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(printable(a) if isinstance(a, str) else a for a in args))


class ValidationError(DiscoError, ValueError):
    """A value lies outside what is allowed: not finite, not a probability, a label that no choice has."""


class AlignmentError(DiscoError, KeyError):
    """Two sets of ids that must agree do not: missing items, unknown models, another prompt."""

    def __str__(self) -> str:  # KeyError would show the repr of its argument
        return str(self.args[0]) if self.args else ""


class FormatError(DiscoError, ValueError):
    """A file is not what it should be: foreign, truncated, damaged, or written by a newer version."""


def printable(text: str) -> str:
    """The text on one line, with control characters, which could drive a terminal, shown by their numbers."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c == "\n" else c.encode("unicode_escape").decode() for c in text)


def some(ids: Iterable[object], limit: int = 3) -> str:
    """At most ``limit`` of the ids, joined for a message: ``a, b, c and 4 more``."""
    shown = [str(i) for i in ids]
    rest = len(shown) - limit
    return ", ".join(shown[:limit]) + (f" and {rest} more" if rest > 0 else "")


def options_of(method: Callable[..., object]) -> str:
    """The names of a method's options for a message: what it takes by name and has a default for."""
    names = [p.name for p in signature(method).parameters.values() if p.default is not p.empty and p.name != "rng"]
    return ", ".join(names) or "none"


def check_options(what: str, options: Mapping[str, object], methods: Sequence[Callable[..., object]]) -> None:
    """Refuse options that ``methods`` annotate as numbers or bool and that are none; ``what`` says whose they are."""
    for option in (p for method in methods for p in signature(method).parameters.values() if p.name in options):
        value, may_be = options[option.name], str(option.annotation).split(" | ")
        if value is None and "None" in may_be:
            continue
        kind = next((k for k in ("float", "int", "bool") if k in may_be), "")
        needed = _needed(kind, value)
        if needed:
            raise ValidationError(f"option '{option.name}' of {what} is {needed}, got {value!r}")


def check_kind(kind: str, **values: object) -> None:
    """Refuse values, by their names, that are not of a kind: ``"int"``, of any size, or ``"bool"``."""
    for name, value in values.items():
        if needed := _needed(kind, value, most=math.inf):
            raise ValidationError(f"{name} must be {needed}, got {value!r}")


def _needed(kind: str, value: object, most: float = _MOST) -> str:
    """What an option of this kind must be, where the value is not that; else nothing."""
    if kind == "bool":
        return "" if isinstance(value, Hashable) and value in (True, False) else "true or false"
    if kind == "float":
        if isinstance(value, bool) or not isinstance(value, Real):
            return "a number"
        return "" if _finite(value) else "a finite number"
    if kind == "int":
        if isinstance(value, bool) or not isinstance(value, Integral):
            return "a whole number"
        return "" if value <= most else f"a whole number up to {most:,}"
    return ""


def _finite(number: Real) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number that no float is
        return False


def unknown(kind: str, name: object, choices: Sequence[str]) -> str:
    """A message for a name that is not among the choices, with the closest one that is."""
    close = difflib.get_close_matches(str(name), choices, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    return f"{kind} '{name}' is not known.{hint} Choose from: {', '.join(choices)}."


_ALSO = {"base": "base_model", "base_model": "base"}  # a column of a table, an array of an npz file


def near_misses(given: Iterable[str], known: Sequence[str]) -> dict[str, str]:
    """Names that nobody knows but that are nearly ones which are not given, such as their plural: name to known one."""
    given = list(given)
    absent = [name for name in known if name not in given]
    found = {}
    for name in given:
        lower = name.lower()
        alike = (lower, lower[:-3] + "y" if lower.endswith("ies") else lower.removesuffix("s"))
        close = [k for k in absent if k in alike or _ALSO.get(k) in alike or sorted(k) == sorted(lower)]
        close = close or difflib.get_close_matches(lower, absent, n=1, cutoff=0.85)
        if name not in known and close:
            found[name] = close[0]
    return found
