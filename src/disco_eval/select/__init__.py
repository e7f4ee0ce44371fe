"""Choosing the anchors: functions ``(responses, n_anchors, rng, **options) -> Anchors``, one per published method."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import DiscoError, unknown
from .anchors import Anchors
from .chance import auto, stratified
from .disagreement import jsd, pds
from .optimal import hybrid, sharp
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
}


def selector(name: str) -> Selector:
    """The selection function of a name; an unknown one raises DiscoError and says which there are."""
    if name not in SELECTORS:
        raise DiscoError(unknown("selection", name, list(SELECTORS)))
    return SELECTORS[name]


__all__ = [
    "SELECTORS",
    "Anchors",
    "auto",
    "hybrid",
    "jsd",
    "pds",
    "selector",
    "sharp",
    "stratified",
    "uniform",
]
