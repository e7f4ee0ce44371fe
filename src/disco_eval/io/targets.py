"""Which choice is right, where a harness writes its number, or its text, or neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .records import Record


@dataclass(frozen=True)
class Meant:
    """The choice that a row's target is the number of, and the one that it is the text of; None where there is none.

    ``best`` is the most probable choice, and ``right`` whether that is the right one, where the row says so.
    """

    number: int | None
    text: int | None
    best: int
    right: bool | None


def meant_by(target: str, choices: list[str], ll: Sequence[float], acc: float | None) -> Meant:
    number = int(target) if target.isdecimal() and int(target) < len(ll) else None
    text = choices.index(target) if target in choices else None
    return Meant(number, text, int(np.argmax(ll)), None if acc is None else acc == 1)


def by_grade(ll: Sequence[float], acc: float | None) -> int | None:
    """The right choice of several contexts with one continuation (WinoGrande), where the target is neither.

    A right answer is the label, a wrong one of two choices leaves the other. ``acc`` is whether the most probable
    choice is right: another metric, such as ``acc_norm``, grades another choice.
    """
    best = int(np.argmax(ll))
    if acc == 1:
        return best
    return 1 - best if acc == 0 and len(ll) == 2 else None


def settled(records: Sequence[Record], meant: Sequence[Meant | None]) -> list[Record]:
    """The records with their labels, as far as the targets of the task tell them without doubt.

    A target such as "1" may be the number of one choice and the text of another. A task writes all of its targets as
    numbers, or all as texts: as those that can only be one of them are, so are the others. Where all could be both,
    the grades tell, if they are right wherever the choice of one of the two is the most probable, and not of the other.
    """
    told = [m for m in meant if m is not None]
    kinds = {m.number is not None for m in told if (m.number is None) != (m.text is None)}
    if not kinds and any(m.number != m.text for m in told):
        agree = {
            numbers: all(m.right == (m.best == (m.number if numbers else m.text)) for m in told)
            for numbers in (True, False)
        }
        kinds = {numbers for numbers, fits in agree.items() if fits}
    by_number = next(iter(kinds)) if len(kinds) == 1 else None
    return [r if m is None else replace(r, label=_label(m, by_number)) for r, m in zip(records, meant, strict=True)]


def _label(meant: Meant, by_number: bool | None) -> int | None:
    if meant.number == meant.text or meant.text is None:
        return meant.number
    if meant.number is None or by_number is False:
        return meant.text
    return meant.number if by_number else None
