"""More models for a store that exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .checks import same_grading
from .errors import AlignmentError, some
from .files import only_writer
from .responses import Responses
from .store import array_of, model_columns, open_responses, seal, source_of


def append_models(responses: Responses, path: str | Path) -> None:
    """Add models to a store that exists; of what is there, only the last, partly filled shards are written again.

    The models become visible at the end, by one change of the store's description, so a killed append leaves the store
    as it was and can be repeated.

    Raises AlignmentError where the items are not those of the store (missing, others, or another prompt by digest), the
    answers were graded otherwise (another metric), or a model is there already; DiscoError where another process is
    writing to the store.
    """
    import zarr

    open_responses(path)  # refuses what is no store
    with only_writer(Path(path)):
        there = open_responses(path)
        added = _fitting(responses, there, str(path))
        group = zarr.open_group(str(path), mode="r+", zarr_format=3)
        first, total = there.n_models, there.n_models + added.n_models
        for name, values in model_columns(added.models).items():
            array = array_of(group, name)
            array.resize((total,))
            array[first:total] = values.astype(object)
        for name in ("correct", "probs") if added.probs is not None else ("correct",):
            array, source = array_of(group, name), source_of(added, name)
            array.resize((total, *array.shape[1:]))
            step = (array.shards or array.chunks)[1]
            for i in range(0, added.n_items, step):
                part = Responses._take(source, slice(None), slice(i, i + step))
                array[first:total, i : i + step, ...] = part
        seal(group, total, _joined(there.provenance, added.provenance))


def _joined(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The store's provenance, with what is known of each new model added under ``models``."""
    models = {**old.get("models", {}), **new.get("models", {})}
    return {**new, **old, "models": models} if models else {**new, **old}


def _fitting(responses: Responses, there: Responses, where: str) -> Responses:
    """The responses in the store's order of items, if they can be added to it."""
    twice = np.intersect1d(responses.models.ids, there.models.ids)
    if len(twice):
        raise AlignmentError(f"{len(twice)} models are in '{where}' already: {some(twice)}")
    same_grading(responses.provenance, there.provenance, f"'{where}'", "the models to add", ", or to another store")
    extra = np.setdiff1d(responses.items.ids, there.items.ids)
    if len(extra):
        raise AlignmentError(f"{len(extra)} items are not in '{where}': {some(extra)}; a store holds one set of items")
    added = responses.align(there.items.ids)
    both = (added.items.digest != "") & (there.items.digest != "")
    differs = both & (added.items.digest != there.items.digest)
    if differs.any():
        raise AlignmentError(
            f"{differs.sum()} items have another prompt or other choices than in '{where}' (digest): "
            f"{some(there.items.ids[differs])}; models must answer the same questions"
        )
    if (added.probs is None) != (there.probs is None):
        kinds = ("grades", "probabilities") if added.probs is None else ("probabilities", "grades")
        raise AlignmentError(f"'{where}' holds {kinds[1]}, but the models to add have {kinds[0]}; they cannot be mixed")
    if added.probs is not None and (added.items.n_choices != there.items.n_choices).any():
        other = there.items.ids[added.items.n_choices != there.items.n_choices]
        raise AlignmentError(f"{len(other)} items have another number of choices than in '{where}': {some(other)}")
    if added.max_choices != there.max_choices:
        raise AlignmentError(f"'{where}' holds {there.max_choices} choices per item, the added {added.max_choices}")
    return added


def same_items(added: Responses, there: Responses, where: str) -> None:
    """Refuse items with another right choice than in the store, or that count otherwise, or belong elsewhere.

    For files that anyone made: harnesses' outputs tell by their prompts. What the file to add does not say is not held
    against it. Raises AlignmentError.
    """
    both = np.intersect1d(added.items.ids, there.items.ids)
    if not len(both):
        return  # append_models says so
    ours, theirs = (r.items.pick(r.items.positions(both)) for r in (added, there))
    share, known = ours.weight / ours.weight.sum(), theirs.weight / theirs.weight.sum()
    other = {
        "another right choice": ours.label is not None and theirs.label is not None and ours.label != theirs.label,
        "another subtask": (ours.subtask != "") & (ours.subtask != theirs.subtask),
        "another weight": (np.ptp(ours.weight) > 0) & ~np.isclose(share, known),
        "another cost": ours.cost is not None and theirs.cost is not None and ~np.isclose(ours.cost, theirs.cost),
    }
    for what, differs in other.items():
        if np.any(differs):
            raise AlignmentError(
                f"{np.sum(differs)} items have {what} than in '{where}', such as {some(both[differs])}; models must "
                "answer the same questions"
            )
