"""The demo: a real benchmark condensed, and models it has never met estimated, in well under two minutes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..condensation import Condensation
from ..condensing import condense
from ..errors import ValidationError
from ..estimates import Estimate
from ..numerics.metrics import mae_pp, spearman
from ..recipe import Recipe
from ..responses import Responses
from ..select import uniform
from ..splits import Split, folds
from .predictions import Predictions, from_table
from .zoo import digits_zoo

Array = NDArray[Any]
Progress = Callable[[str, int, int], None]


DEFAULT, PAPER = "disco-eval's default", "the paper's: PDS, PCA, forest"
RECIPES = {DEFAULT: ("auto", "auto"), PAPER: ("pds", "forest")}  # label: selection, prediction


@dataclass(frozen=True, eq=False)
class Comparison:
    """Estimates of the same models by several methods."""

    truth: Array
    estimates: dict[str, Array]

    def rows(self) -> Iterator[tuple[str, float, float]]:
        """(method, MAE in points, Spearman's rho) of each."""
        for label, estimate in self.estimates.items():
            yield label, mae_pp(self.truth, estimate), spearman(self.truth, estimate)


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demo found.

    Attributes
    ----------
    responses : the zoo. split : which of its models were sources and targets.
    condensation : the default, fitted on the sources.
    estimates : the targets' estimates, in order.
    random : all methods on the targets. families : all methods on every model, its whole family left out.
    """

    responses: Responses
    split: Split
    condensation: Condensation
    estimates: list[Estimate]
    random: Comparison
    families: Comparison

    def predictions(self) -> Predictions:
        """Both comparisons as a study's table."""
        ids = self.responses.models.ids
        parts = [
            _long(name, c, ids[at], len(self.condensation.anchors))
            for name, c, at in (
                ("models held out", self.random, self.split.target),
                ("whole families held out", self.families, np.arange(len(ids))),
            )
        ]
        return from_table(pl.concat(parts), "the demo's table")


def _long(split: str, c: Comparison, models: Array, n_anchors: int) -> pl.DataFrame:
    rows = [
        ("digits", method, split, 0, n_anchors, str(m), float(t), float(e))
        for method, estimate in c.estimates.items()
        for m, t, e in zip(models, c.truth, estimate, strict=True)
    ]
    names = ["benchmark", "method", "split", "run", "n_anchors", "model", "truth", "estimate"]
    return pl.DataFrame(rows, schema=names, orient="row")


def run_demo(n_models: int = 240, n_anchors: int = 100, seed: int = 0, progress: Progress | None = None) -> Demo:
    """Train the zoo, hold a sixth of it out, condense the others, and estimate it.

    Raises ValidationError for fewer than 60 models, too few for sources and targets.
    """
    if n_models < 60:
        raise ValidationError(f"the demo needs at least 60 models to have sources and targets, not {n_models}")
    tell = progress or (lambda what, done, total: None)
    for_split, for_families, for_direct = np.random.default_rng(seed).spawn(3)
    responses = digits_zoo(n_models, seed=seed, progress=tell)
    target = np.sort(for_split.choice(n_models, n_models // 6, replace=False))
    split = Split(np.setdiff1d(np.arange(n_models), target), target, "random")
    source, unseen = responses.pick(models=split.source), responses.pick(models=split.target)
    made = {}
    for k, (label, (select, predict)) in enumerate(RECIPES.items()):
        tell("condensing", k, len(RECIPES))
        made[label] = condense(source, n_anchors, select=select, predict=predict, benchmark="digits", rng=seed)
    estimates = made[DEFAULT].estimate(unseen)
    found = {label: np.array([e.score for e in c.estimate(unseen)]) for label, c in made.items()}
    direct = _direct(unseen, n_anchors, for_direct)
    return Demo(
        responses=responses,
        split=split,
        condensation=made[DEFAULT],
        estimates=estimates,
        random=Comparison(unseen.scores(), {**found, f"mean of {n_anchors} random items": direct}),
        families=_unseen_families(responses, n_anchors, for_families, tell),
    )


def _unseen_families(responses: Responses, n_anchors: int, rng: np.random.Generator, tell: Progress) -> Comparison:
    """Every model estimated with its whole family held out, four folds of families."""
    found = {label: np.full(responses.n_models, np.nan) for label in RECIPES}
    parts = list(folds(responses.models, 4, rng, by="family"))
    for k, (fit_on, left_out) in enumerate(parts):
        tell("unseen families", k, len(parts))
        source, unseen = responses.pick(models=fit_on), responses.pick(models=left_out)
        for label, estimate in found.items():
            anchors, model = Recipe(n_anchors, *RECIPES[label]).make(source, rng.spawn(1)[0])
            estimate[left_out] = model.predict(unseen.pick(items=anchors.positions))
    found[f"mean of {n_anchors} random items"] = _direct(responses, n_anchors, rng.spawn(1)[0])
    return Comparison(responses.scores(), found)


def _direct(responses: Responses, n_anchors: int, rng: np.random.Generator) -> Array:
    """Mean over random items, drawn anew for each model, so one lucky draw does not decide the comparison."""
    each = [
        responses.pick(models=[m], items=uniform(responses, n_anchors, draw).positions).scores()[0]
        for m, draw in enumerate(rng.spawn(responses.n_models))
    ]
    return np.array(each)
