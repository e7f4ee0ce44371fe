"""The items on which the committee of source models disagrees most: the paper's selection (Section 3.1.2)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ValidationError, check_kind
from ..numerics.rng import Seed, generator
from ..responses import Responses
from . import passes
from .anchors import Anchors, by_id, check_count, highest
from .shared import keep, once


def pds(
    responses: Responses,
    n_anchors: int,
    rng: Seed = None,
    *,
    committee_size: int | None = None,
    stratify: bool = False,
    lowest: bool = False,
) -> Anchors:
    """The items of highest predictive diversity score, ``sum_c max_m p[m, c]``.

    A soft count of the different answers that the models give. With 0/1 grades it can only tell items on which all
    models agree from the rest, and the choice among those falls by chance: prefer `jsd` there.

    Parameters
    ----------
    committee_size
        How many source models, drawn at random, are asked; all by default. Near duplicates dilute disagreement, and
        the paper found 100 of 385 better than all on MMLU (its Appendix I).
    stratify
        Equal numbers from every subtask. The paper finds that it does not help (Table 2b).
    lowest
        The items of lowest disagreement instead: an ablation, never a good choice.

    Raises ValidationError for more anchors than items, or a committee larger than the sources.
    """
    return _most(responses, n_anchors, rng, "pds", committee_size, stratify, lowest)


def jsd(
    responses: Responses,
    n_anchors: int,
    rng: Seed = None,
    *,
    committee_size: int | None = None,
    stratify: bool = False,
    lowest: bool = False,
) -> Anchors:
    """The items of highest generalised Jensen-Shannon divergence, ``H(mean_m p) - mean_m H(p)``.

    The mutual information between which model answers and what it answers (the paper's Proposition 1). The parameters
    are those of `pds`.
    """
    return _most(responses, n_anchors, rng, "jsd", committee_size, stratify, lowest)


def disagreement(responses: Responses, measure: str) -> NDArray[Any]:
    """PDS or JSD (nats) of every item over all models of the responses, shape (n_items,), in one pass, made once."""
    value: NDArray[Any] = once(responses, ("disagreement", measure), lambda: passes.disagreement(responses, measure)[0])
    return value


def share_pass(responses: Responses, part: NDArray[Any], n_parts: int, measure: str) -> list[dict[Hashable, Any]]:
    """Make `disagreement` of all models and of all but each part in one pass over the responses.

    ``part`` (n_models,) says which part a model belongs to. What all models say is kept for these responses; what is
    returned, one entry a part, is for `keep` on the responses of the models outside that part.
    """
    value = passes.left_out_disagreement(responses, part, n_parts, measure)[:, 0]
    key = ("disagreement", measure)
    keep(responses, {key: value[0]})
    return [{key: row} for row in value[1:]]


def _most(
    responses: Responses,
    n_anchors: int,
    rng: Seed,
    measure: str,
    committee_size: int | None,
    stratify: bool,
    lowest: bool,
) -> Anchors:
    check_count(responses, n_anchors)
    for_committee, for_ties = generator(rng).spawn(2)
    value = disagreement(_committee(responses, committee_size, for_committee), measure)
    chosen = highest(responses, -value if lowest else value, n_anchors, for_ties, stratify=stratify)
    return Anchors.of(responses.items, chosen, measure, criterion=value[chosen])


def _committee(responses: Responses, size: int | None, rng: np.random.Generator) -> Responses:
    if size is None or size == responses.n_models:
        return responses
    check_kind("int", committee_size=size)
    if not 1 <= size <= responses.n_models:
        raise ValidationError(f"a committee of {size} was asked for, but there are {responses.n_models} source models")
    drawn = rng.choice(responses.n_models, size, replace=False)
    return responses.pick(models=np.sort(by_id(responses.models.ids)[drawn]))
