"""Several benchmarks that the same models answered, as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from .axes import Array, Models
from .checks import same_grading
from .errors import AlignmentError, ValidationError, some
from .responses import Responses


def together(benchmarks: Mapping[str, Responses]) -> Responses:
    """The models that answered every benchmark, on the items of all; each benchmark counts the same, as a subtask.

    Items keep their names where no two benchmarks share one, else every name is put behind its benchmark's. With
    grades only in one of them, grades are what is kept of all.

    Raises AlignmentError where no model answered them all.
    """
    names, parts = list(benchmarks), list(benchmarks.values())
    clash = len(np.unique(np.concatenate([p.items.ids for p in parts]))) < sum(p.n_items for p in parts)
    joined = beside([_renamed(name, p, clash) for name, p in zip(names, parts, strict=True)])
    parts = [p.pick(models=p.models.positions(joined.models.ids)) for p in parts]
    known = {k: _known([getattr(p.models, k) for p in parts]) for k in ("released", "family", "base", "revision")}
    provenance = {"benchmarks": {name: p.provenance for name, p in zip(names, parts, strict=True)}}
    models = Models(joined.models.ids, **known)
    return Responses(models, joined.items, joined.correct, joined.probs, provenance)


def recorded_of(responses: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """What the provenance of answers says of each of several benchmarks put together, or of the one, under ""."""
    responses = responses or {}
    several = responses.get("benchmarks")
    return {name: dict(about or {}) for name, about in several.items()} if several else {"": dict(responses)}


def graded_alike(
    new: Mapping[str, Any],
    old: Mapping[str, Any] | None,
    whose: str,
    what: str = "these answers",
    benchmarks: Iterable[str] | None = None,
) -> None:
    """Refuse answers by another metric than others' to the same benchmark, or to each of several put together.

    ``benchmarks`` are those of several that one benchmark's answers are to; by default those whose tasks it has.
    Raises AlignmentError.
    """
    ours, theirs = recorded_of(new), recorded_of(old)
    if "" in theirs:
        if "" in ours:
            same_grading(ours[""], theirs[""], whose, what)
        return
    for name, about in theirs.items():
        shared = set(ours.get("", {}).get("graded") or {}) & set(about.get("graded") or {})
        if name in ours:
            same_grading(ours[name], about, f"'{name}'", what)
        elif "" in ours and (shared if benchmarks is None else name in set(benchmarks)):
            same_grading(ours[""], about, f"'{name}'", what)


def without_places(responses: Mapping[str, Any]) -> dict[str, Any]:
    """The same provenance without the places of the models' files on this machine."""
    if several := responses.get("benchmarks"):
        return {**responses, "benchmarks": {name: without_places(about or {}) for name, about in several.items()}}
    models = responses.get("models") or {}
    abouts = {m: {k: v for k, v in about.items() if k != "results"} for m, about in models.items()}
    return {**responses, **({"models": abouts} if abouts else {})}


def beside(parts: Sequence[Responses]) -> Responses:
    """The models that are in all parts, with their answers to the items of every part.

    Raises AlignmentError where no model is in all of them; ValidationError where an item comes twice.
    """
    others = [set(p.models.ids.tolist()) for p in parts[1:]]
    common = [m for m in parts[0].models.ids.tolist() if all(m in other for other in others)]
    if not common:
        raise AlignmentError(f"no model is in all of the files: one has {some(parts[0].models.ids)}, another others")
    parts = [p.pick(models=p.models.positions(common)).load() for p in parts]
    items = parts[0].items
    for p in parts[1:]:
        twice = np.intersect1d(items.ids, p.items.ids)
        if len(twice):
            raise ValidationError(f"{len(twice)} items are in several files: {some(twice)}; give each answer once")
        items = items.then(p.items)
    probs = None if any(p.probs is None for p in parts) else _padded([np.asarray(p.probs) for p in parts])
    correct = np.concatenate([np.asarray(p.correct, dtype=np.float64) for p in parts], axis=1)
    return Responses(parts[0].models, items, correct, probs, reduce(_alike, (p.provenance for p in parts)))


def _alike(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """What both tell: all that either says, without what they contradict each other in."""
    both = {k: _alike(v, b[k]) for k, v in a.items() if isinstance(v, Mapping) and isinstance(b.get(k), Mapping)}
    return {k: both.get(k, v) for k, v in {**b, **a}.items() if k in both or k not in a or k not in b or a[k] == b[k]}


def behind(name: str, r: Responses) -> Responses:
    """The same with every item's name behind its benchmark's, as `together` names items that two benchmarks share."""
    items = r.items.having(ids=[f"{name}/{i}" for i in r.items.ids.tolist()])
    return Responses(r.models, items, r.correct, r.probs, r.provenance)


def _renamed(name: str, r: Responses, clash: bool) -> Responses:
    """The same with the benchmark as every item's subtask and equal total weight."""
    r = behind(name, r) if clash else r
    items = r.items.having(subtask=np.full(r.n_items, name), weight=r.items.weight / r.items.weight.sum())
    return Responses(r.models, items, r.correct, r.probs)


def _padded(probs: list[Array]) -> Array:
    """Probabilities side by side, as wide as the item with the most choices; choices that an item lacks are 0."""
    width = max(p.shape[2] for p in probs)
    return np.concatenate([np.pad(p, ((0, 0), (0, 0), (0, width - p.shape[2]))) for p in probs], axis=1)


def _known(columns: list[Array]) -> Array:
    """For every model what the first benchmark says that knows it."""
    out = columns[0]
    for column in columns[1:]:
        out = np.where(np.isnat(out) if out.dtype.kind == "M" else out == "", column, out)
    return out
