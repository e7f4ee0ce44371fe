"""Which models are sources and which are targets: the paper's splits, and ours by family or base model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DiscoError, ValidationError, check_kind, some, unknown
from .numerics.likeness import alike, with_copies
from .numerics.rng import Seed, generator
from .responses import Models, Responses

Array = NDArray[Any]

TELLING = 300  # items, at most, by which copies of a model are told
LEAST_ALIKE = 0.1  # of the models must err like another, for that to count as kinship
FEWEST_GROUPS = 5  # of kin by answers, for folds to keep them together; fewer where fewer folds are asked for
FEWEST_NAMED = 2  # families or base models, for the same
LARGEST = 2 / 3  # share of the models that one of these may hold, to be left out in one fold
KEPT_TOGETHER = {  # what folds leave out, by `CrossValidation.grouped_by`
    "none": "models",
    "family": "whole families",
    "base": "whole base models",
    "answers": "groups of like models",
}
MOST_PARTS = 10  # of the models, of which one may be copies of one model
LEAST_LEFT = 8  # models to learn from without the largest group, else it is not kept together


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of source and target models, which never overlap, and a note on what the split had to leave out."""

    source: Array
    target: Array
    name: str
    note: str = ""

    def __post_init__(self) -> None:
        for side in ("source", "target"):
            at = np.asarray(getattr(self, side)).ravel()
            if (len(at) and at.dtype.kind not in "iu") or (at < 0).any() or len(np.unique(at)) < len(at):
                raise ValidationError(f"{side} models of a split are distinct positions, 0 and up; got {some(at)}")
        both = np.intersect1d(self.source, self.target)
        if len(both):
            raise ValidationError(f"{len(both)} models are both source and target")
        if not len(self.source) or not len(self.target):
            side = "source" if not len(self.source) else "target"
            raise ValidationError(f"the split '{self.name}' leaves no {side} models; give it more models to work on")


def iid(responses: Responses, every: int = 10, start: int = 0) -> Split:
    """Every ``every``-th model, in the order they stand, is a target (paper: every tenth)."""
    check_kind("int", every=every, start=start)
    if every < 2:
        raise ValidationError(f"every={every} would leave no source models; use 2 or more")
    target = np.arange(start % every, responses.n_models, every)
    return Split(_others(responses, target), target, "iid")


def chronological(responses: Responses, cutoff: str | None = None, fraction: float = 0.9) -> Split:
    """Older models predict newer ones (paper, Section 4.2: sources before 2024-01-13, 9 to 1).

    Give ``cutoff``, a date on and after which models are targets, or the ``fraction`` of dated models, oldest first,
    that are sources. Models without a date are left out and counted in the split's ``note``.
    """
    released = responses.models.released
    dated = np.flatnonzero(~np.isnat(released))
    if not len(dated):
        raise DiscoError("a chronological split needs dates, but no model has one; set 'released' or use another split")
    if cutoff is not None:
        try:
            day = None if isinstance(cutoff, Number) else np.datetime64(cutoff, "D")
        except ValueError:
            day = None
        if day is None or np.isnat(day):
            raise ValidationError(f"cutoff '{cutoff}' is not a date; write it as 2024-01-13")
        newer = released[dated] >= day
        source, target = dated[~newer], dated[newer]
    else:
        _check_fraction(fraction)
        order = dated[np.lexsort((responses.models.ids[dated], released[dated]))]
        n = round(fraction * len(order))
        source, target = np.sort(order[:n]), np.sort(order[n:])
    missing = responses.n_models - len(dated)
    note = f"{missing} of {responses.n_models} models have no date and are left out" if missing else ""
    return Split(source, target, "chronological", note)


def by_performance(responses: Responses, target: float = 0.1, source: float | None = None) -> Split:
    """The best models are targets: the stress test (paper, Appendix F).

    ``target`` is the top fraction that are targets; ``source`` the bottom fraction that are sources, by default all
    others. The paper's gap is ``target=0.3, source=0.5``.
    """
    source = 1 - target if source is None else source
    for value in (target, source):
        _check_fraction(value)
    if target + source > 1 + 1e-9:
        raise ValidationError(f"target {target} and source {source} overlap; together they may be at most 1")
    order = np.lexsort((responses.models.ids, responses.scores()))
    n = responses.n_models
    best = order[n - round(target * n) :]
    worst = order[: min(round(source * n), n - len(best))]
    return Split(np.sort(worst), np.sort(best), f"top{round(100 * target)}")


def by_group(
    responses: Responses, by: str = "family", held_out: list[str] | None = None, fraction: float = 0.2, rng: Seed = 0
) -> Split:
    """Whole families (``by="family"``) or base models (``by="base"``) are targets, so no target has a near duplicate.

    ``held_out`` names the groups; otherwise groups are drawn at random until they hold ``fraction`` of the models.
    Models whose group is unknown are sources.
    """
    group = _groups(responses.models, by)
    names = np.unique(group[group != ""])
    if not len(names):
        raise DiscoError(
            f"a split by {by} needs models whose {by} is known, but none is; give it, or use another split"
        )
    if held_out is None:
        _check_fraction(fraction)
        held_out, count = [], 0
        for name in generator(rng).permutation(names).tolist():
            if count >= fraction * responses.n_models:
                break
            held_out.append(name)
            count += int((group == name).sum())
    strange = set(held_out) - set(names.tolist())
    if strange:
        raise DiscoError(f"no model is of {by} {some(sorted(strange))}; there are {some(names, 8)}")
    target = np.flatnonzero(np.isin(group, held_out))
    return Split(_others(responses, target), target, by)


def bootstrap(split: Split, rng: Seed, fraction: float = 0.9) -> Split:
    """A random part of each side of a split, without replacement (paper, Appendix D.2: 90 % of each side)."""
    _check_fraction(fraction)
    draw = generator(rng)

    def part(side: Array) -> Array:
        return np.sort(draw.choice(side, max(1, round(fraction * len(side))), replace=False))

    return Split(part(split.source), part(split.target), f"{split.name}-bootstrap", split.note)


def folds(
    models: Models, n_folds: int, rng: Seed, by: str = "auto", answers: Array | None = None
) -> Iterator[tuple[Array, Array]]:
    """Cross-validation over models: (positions to fit on, positions left out) for every fold.

    ``by="family"`` or ``"base"`` keeps groups together, so that what is left out has no near duplicate in what is
    fitted on; ``"answers"`` those whose ``answers`` (n_models, k) err alike; ``"none"`` ignores kinship;
    ``"auto"`` takes the first of these that is known well enough (`fold_groups`). Models of no known kin that gave the
    very same answers as another, one upload under two names, stay with it. The folds do not depend on the order of the
    models.
    """
    check_folds(n_folds)
    draw = generator(rng)
    group = _kept_together(models, n_folds, by, answers)
    if answers is not None:
        group = np.unique(group)[with_copies(group, answers, len(group) // min(n_folds, MOST_PARTS))]
    names, member = np.unique(group, return_inverse=True)
    fold_of = np.empty(len(names), dtype=np.int64)
    size = np.bincount(member)
    load = np.zeros(n_folds)
    shuffled = draw.permutation(len(names))
    for g in shuffled[np.argsort(-size[shuffled], kind="stable")]:  # large groups first, to the emptiest fold
        fold_of[g] = int(np.argmin(load))
        load[fold_of[g]] += size[g]
    fold = fold_of[member]
    for f in range(n_folds):
        out = fold == f
        if out.any() and not out.all():
            yield np.flatnonzero(~out), np.flatnonzero(out)


def _kept_together(models: Models, n_folds: int, by: str, answers: Array | None) -> Array:
    """Which models stay together, (n_models,) names; see `folds`."""
    by = fold_groups(models, n_folds, answers) if by == "auto" else by
    if by == "answers":
        if answers is None:
            raise DiscoError("folds by answers need the answers")
        return alike(models.ids, answers, len(models.ids) // min(n_folds, FEWEST_GROUPS))
    group = models.ids if by == "none" else _groups(models, by)
    return np.where(group == "", models.ids, group)


def with_relatives(models: Models, n_folds: int, answers: Array) -> Array:
    """Which models have another that ``folds(by="auto")`` keeps with them, (n_models,) bool."""
    _, member, sizes = np.unique(
        _kept_together(models, n_folds, "auto", answers), return_inverse=True, return_counts=True
    )
    return np.asarray(sizes[member] > 1)


def check_folds(n_folds: int) -> None:
    """Refuse a number of folds that leaves nothing out, or nothing to learn from."""
    check_kind("int", n_folds=n_folds)
    if n_folds < 2:
        raise ValidationError(f"cross-validation needs at least 2 folds, got {n_folds}")


def telling_answers(responses: Responses) -> Array:
    """Grades on up to `TELLING` items, by which copies of a model are told, (n_models, k), in any order."""
    steps = np.linspace(0, responses.n_items - 1, min(TELLING, responses.n_items)).round().astype(np.int64)
    return responses.grades(np.argsort(responses.items.ids, kind="stable")[steps])


def fold_groups(models: Models, n_folds: int, answers: Array | None = None) -> str:
    """Which kinship ``folds(by="auto")`` keeps together: ``"family"``, ``"base"``, ``"answers"`` or ``"none"``.

    The first of family and base that is known for half of the models or more, has two groups or more (with more folds
    than groups each group is one), and none that holds more than `LARGEST` of the models or leaves fewer than
    `LEAST_LEFT`: what is learned without it would say little about what is learned with it. Names that no two models
    share say nothing. Where neither is, models whose ``answers`` (n_models, k) err alike count as kin, if there are
    `FEWEST_GROUPS` or more (with fewer folds, as many as there are folds) and a tenth or more of the models have any.
    """
    n, fewest = len(models.ids), min(n_folds, FEWEST_GROUPS)
    for by in ("family", "base"):
        group = _groups(models, by)
        names, sizes = np.unique(group[group != ""], return_counts=True)
        says = len(names) >= FEWEST_NAMED and 2 * sizes.sum() >= n and sizes.max() > 1
        if says and sizes.max() <= min(LARGEST * n, max(n - LEAST_LEFT, 1)):
            return by
    if answers is None:
        return "none"
    names, sizes = np.unique(alike(models.ids, answers, n // fewest), return_counts=True)
    return "answers" if len(names) >= fewest and sizes[sizes > 1].sum() >= LEAST_ALIKE * n else "none"


def kin(models: Models, answers: Array) -> Array:
    """Which models are kin, (n_models,) names: as is said of half of them or more, else those that err alike.

    ``answers`` (n_models, k) are grades on some items.
    """
    known, named = models.groups(), (models.family != "") | (models.base != "")
    if 2 * named.sum() >= len(named) and len(np.unique(known)) < len(known):
        return known
    return alike(models.ids, answers, len(known) // 5)


def _groups(models: Models, by: str) -> Array:
    if by not in ("family", "base"):
        raise DiscoError(unknown("grouping of models", by, ["family", "base"]))
    return models.family if by == "family" else models.base


def _others(responses: Responses, target: Array) -> Array:
    return np.setdiff1d(np.arange(responses.n_models), target)


def _check_fraction(value: float) -> None:
    if not 0 < value < 1:
        raise ValidationError(f"a fraction must lie between 0 and 1, got {value}")
