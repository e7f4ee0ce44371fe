"""Choosing the anchors: functions ``(responses, n_anchors, rng, **options) -> Anchors``, one per published method."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import DiscoError, check_options, options_of, unknown
from .anchors import Anchors
from .chance import complete, stratified
from .clustered import anchor_conf, anchor_corr, anchor_irt
from .default import auto
from .disagreement import jsd, pds
from .optimal import hybrid, sharp
from .searched import best_for_validation, every_kth
from .uniform import uniform

Selector = Callable[..., Anchors]

SELECTORS: dict[str, Selector] = {
    "auto": auto,
    "stratified": stratified,
    "hybrid": hybrid,
    "sharp": sharp,
    "uniform": uniform,
    "pds": pds,
    "jsd": jsd,
    "anchor_conf": anchor_conf,
    "anchor_corr": anchor_corr,
    "anchor_irt": anchor_irt,
    "best_for_validation": best_for_validation,
    "every_kth": every_kth,
}


def selector(name: str, **options: Any) -> Selector:
    """The selection function of a name, with these options; an unknown name or option raises DiscoError and says which
    there are."""
    if name not in SELECTORS:
        raise DiscoError(unknown("selection", name, list(SELECTORS)))
    method = SELECTORS[name]
    takes = options_of(method)
    if not set(options) <= set(takes.split(", ")):
        raise DiscoError(f"selection '{name}' does not take these options: {options}; it takes {takes}")
    check_options(f"selection '{name}'", options, [method])
    return partial(method, **options)


__all__ = [
    "SELECTORS",
    "Anchors",
    "anchor_conf",
    "anchor_corr",
    "anchor_irt",
    "auto",
    "best_for_validation",
    "complete",
    "every_kth",
    "hybrid",
    "jsd",
    "pds",
    "selector",
    "sharp",
    "stratified",
    "uniform",
]
