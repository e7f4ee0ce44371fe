"""Populations with a known structure, made on the spot."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from disco_eval import Items, Models, Responses


def population(
    n_models: int = 24,
    n_items: int = 60,
    n_choices: int = 4,
    *,
    graded: bool = False,
    ragged: bool = False,
    seed: int = 0,
) -> Responses:
    """Models of rising ability answering items of rising difficulty; families of three.

    ``ragged`` gives items 2 to ``n_choices`` choices; ``graded`` keeps only right and wrong.
    """
    rng = np.random.default_rng(seed)
    own = rng.integers(2, n_choices + 1, n_items) if ragged else np.full(n_items, n_choices)
    label = rng.integers(0, own)
    logits = rng.normal(size=(n_models, n_items, n_choices))
    ability, difficulty = np.linspace(-1, 3, n_models), np.linspace(-2, 2, n_items)
    logits[:, np.arange(n_items), label] += ability[:, None] - rng.permutation(difficulty)
    logits[:, np.arange(n_choices) >= own[:, None]] = -np.inf
    p = np.exp(logits)
    p /= p.sum(axis=2, keepdims=True)
    models = Models(
        [f"model-{m:03d}" for m in rng.permutation(n_models)],
        family=[f"family-{m // 3}" for m in range(n_models)],
        base=[f"base-{m // 2}" for m in range(n_models)],
        released=np.datetime64("2024-01-01") + np.arange(n_models),
    )
    items = Items(
        [f"task/{i:03d}" for i in rng.permutation(n_items)],
        subtask=[f"sub{i % 3}" for i in range(n_items)],
        weight=1 + rng.random(n_items),
        n_choices=own,
        label=label,
        digest=[f"{i:08x}" for i in range(n_items)],
    )
    responses = Responses.from_probs(models, items, p)
    return Responses.from_correct(models, items, responses.correct) if graded else responses


@pytest.fixture
def make() -> Callable[..., Responses]:
    return population


@pytest.fixture
def responses() -> Responses:
    return population()
