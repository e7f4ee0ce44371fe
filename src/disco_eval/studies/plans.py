"""Splits by name, for studies: fixed ones, and ones that every run draws anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .. import splits
from ..errors import DiscoError, unknown
from ..responses import Responses
from ..splits import Split

Draw = Callable[[Responses, np.random.Generator], Split]


@dataclass(frozen=True)
class SplitPlan:
    """A way to split, called once for every run; one that draws nothing gives every run the same targets.

    ``name`` is what the table's column ``split`` holds.
    """

    name: str
    draw: Draw


def _plans(cutoff: str | None) -> dict[str, Draw]:
    def chronological(responses: Responses, rng: np.random.Generator) -> Split:
        return splits.chronological(responses, cutoff)

    return {
        "iid": lambda responses, rng: splits.iid(responses),
        "random": _random,
        "chronological": chronological,
        "bootstrap": lambda responses, rng: splits.bootstrap(chronological(responses, rng), rng),
        "family": lambda responses, rng: splits.by_group(responses, "family", rng=rng),
        "base": lambda responses, rng: splits.by_group(responses, "base", rng=rng),
        "first10": lambda responses, rng: _first(responses, 0.1),
        "top10": lambda responses, rng: splits.by_performance(responses, 0.1),
        "top30": lambda responses, rng: splits.by_performance(responses, 0.3, 0.5),
    }


def _random(responses: Responses, rng: np.random.Generator) -> Split:
    n = max(1, round(0.2 * responses.n_models))
    mixed = rng.permutation(responses.n_models)
    return Split(np.sort(mixed[n:]), np.sort(mixed[:n]), "random")


def _first(responses: Responses, fraction: float) -> Split:
    n = max(1, round(fraction * responses.n_models))
    every = np.arange(responses.n_models)
    return Split(every[n:], every[:n], "first10")


SPLITS = tuple(_plans(None))


def split_plan(split: str | Split | SplitPlan, cutoff: str | None = None) -> SplitPlan:
    """A plan from a name, a fixed `Split`, or as it is.

    Names: ``iid`` (every tenth model a target), ``random`` (a fifth, drawn in every run), ``chronological`` (the newest
    tenth, or from ``cutoff`` on), ``bootstrap`` (nine tenths of each side of it, drawn in every run), ``family`` and
    ``base`` (whole groups, drawn in every run), ``first10`` (the first tenth of the models as they stand: the authors'
    file lists the newest first), ``top10`` (best tenth from all others), ``top30`` (best 30 % from the worst
    half: the gap).

    Raises DiscoError for another name.
    """
    if isinstance(split, SplitPlan):
        return split
    if isinstance(split, Split):
        return SplitPlan(split.name, lambda responses, rng: split)
    plans = _plans(cutoff)
    if split not in plans:
        raise DiscoError(unknown("split", split, list(plans)))
    return SplitPlan(split, plans[split])


def split_plans(
    given: str | Split | SplitPlan | Sequence[str | Split | SplitPlan], cutoff: str | None = None
) -> list[SplitPlan]:
    """One or several splits as plans; refuses two of one name, and a ``cutoff`` that none of them has a use for."""
    several = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    if cutoff is not None and not {"chronological", "bootstrap"} & {s for s in several if isinstance(s, str)}:
        raise DiscoError(f"a cutoff ({cutoff}) is for the splits chronological and bootstrap, and neither is asked for")
    plans = [split_plan(s, cutoff) for s in several]
    names = [p.name for p in plans]
    if len(set(names)) != len(names) or not names:
        raise DiscoError(f"a study needs one or more splits of different names, got {names}")
    return plans
