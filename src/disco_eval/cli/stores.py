"""What `disco import` says of a store and how it writes one of answers that came in one file."""

from __future__ import annotations

from itertools import chain, count
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from ..errors import DiscoError, some
from .common import print_json, say

if TYPE_CHECKING:
    from ..responses import Responses


def say_doubts(responses: Responses) -> None:
    from ..doubts import doubts

    for sentence in doubts(responses):
        say(sentence)


def next_step(out: Path, r: Responses) -> str:
    """What to type next: 100 anchors, or a third of a benchmark that has hardly more items; few models are targets."""
    from ..condensing import FEWEST_SOURCES

    if r.n_models < FEWEST_SOURCES:
        few = f"('disco condense' takes {FEWEST_SOURCES} models or more)"
        return f"Next: disco estimate CONDENSATION {quote(str(out))} {few}"
    n = 100 if r.n_items >= 300 else max(r.n_items // 3, 1)
    first = f"{out.stem}-{n}"
    name = next(free for free in chain([first], (f"{first}-{k}" for k in count(2))) if not Path(free).exists())
    return f"Next: disco condense {quote(str(out))} --out {quote(name)}" + (f" --anchors {n}" if n != 100 else "")


def may_write(out: Path, overwrite: bool, float16: bool, add: bool) -> None:
    """Refuse what cannot be written, or added to, before answers are read that may take long."""
    from ..files import is_url
    from ..files import may_write as may_make
    from ..store import KIND, MARKER

    if add:
        if is_url(out):
            raise DiscoError(f"stores at URLs are only read; '{out}' cannot be added to")
        if float16:
            raise DiscoError("a store keeps the type of its probabilities; leave out --float16 with --add")
        if overwrite:
            raise DiscoError("--add adds to what is at --out, --overwrite replaces it; give one of them")
        if not out.exists():
            raise DiscoError(f"'{out}' does not exist, so there is nothing to add to; leave out --add")
    elif out.exists() and not overwrite:
        raise DiscoError(
            f"'{out}' exists already; add to it with --add, overwrite it with --overwrite, or name another"
        )
    else:
        may_make(out, MARKER, KIND, overwrite)


def write(
    responses: Responses, out: Path, overwrite: bool, as_json: bool, float16: bool = False, add: bool = False
) -> None:
    """Save and say what was saved; with ``add``, the models that the store at ``out`` does not hold."""
    n_added = 0
    if add:
        responses, n_added = _added(responses, out)
    else:
        responses.save(out, overwrite=overwrite, dtype="float16" if float16 else None)
    if as_json:
        print_json({"out": str(out), "n_models": responses.n_models, "n_items": responses.n_items})
    else:
        say_doubts(responses)
        print(f"{out}: {f'{n_added} models added; now ' if add else ''}{responses!r}")
        print(next_step(out, responses))
        if n_added:
            print(f"Or, to keep the anchors of a condensation: disco condense {quote(str(out))} --update DIR --out NEW")


def _added(responses: Responses, out: Path) -> tuple[Responses, int]:
    """The store with the models that it did not hold, and how many these are."""
    import numpy as np

    from ..appending import append_models, same_items
    from ..store import open_responses

    there = open_responses(out)
    same_items(responses, there, str(out))
    new = ~np.isin(responses.models.ids, there.models.ids)
    if n := int((~new).sum()):
        say(f"{n} models are in '{out}' already and are skipped: {some(responses.models.ids[~new])}")
        _tell_changed(responses.pick(models=np.flatnonzero(~new)), there)
    if new.any():
        append_models(responses.pick(models=np.flatnonzero(new)), out)
    return open_responses(out), int(new.sum())


def _tell_changed(skipped: Responses, there: Responses) -> None:
    """Say which of the models that are in the store already answer otherwise now."""
    import numpy as np

    both = np.intersect1d(skipped.items.ids, there.items.ids)
    known = there.pick(models=there.models.positions(skipped.models.ids)).align(both).grades()
    other = (np.abs(known - skipped.align(both).grades()) > 1e-6).any(axis=1)
    if other.any():
        which = some(skipped.models.ids[other])
        say(f"{other.sum()} of them have other answers now, not taken: {which}. To have them, import with --overwrite")
