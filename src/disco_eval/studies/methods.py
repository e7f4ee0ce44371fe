"""What a study compares: selections paired with predictions, and methods that are neither."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..condensing import condense
from ..errors import DiscoError, ValidationError, unknown
from ..flags import is_alarmed
from ..numerics.clusters import clusters_1d
from ..predict import PREDICTORS, ScoreModel, predictor
from ..responses import Responses
from ..select import SELECTORS, Anchors, selector
from ..select.anchors import by_id, check_count
from .spec import class_spec, held_spec, object_spec, spec

Array = NDArray[Any]
Options = Mapping[str, Any]


@runtime_checkable
class Method(Protocol):
    """Anything a study can run: a name, and scores of target models from source models.

    ``target`` holds the targets' answers to all items, so that a method may choose items for each model; looking at
    more than ``n_anchors`` of them would be cheating, and only the method can know.
    """

    @property
    def name(self) -> str: ...

    def estimate(
        self, source: Responses, target: Responses, n_anchors: int, rng: np.random.Generator
    ) -> Array | tuple[Array, Array, Array]:
        """Scores (n_targets,) in [0, 1], or a triple (scores, low, high) of such arrays, of finite numbers.

        A study clips scores a little outside, such as a regression's 1.02, to [0, 1], and low and high, of which both
        or neither may be None, likewise. It refuses scores below -0.5 or above 1.5, and intervals that lie there or
        reach below -2 or above 3, which are of another unit: divide percent by 100.
        """
        ...


@dataclass(frozen=True)
class Condensed:
    """The whole product: `condense` with its default methods, and its estimates with their intervals.

    Attributes
    ----------
    name : what tables call it.
    times : so many times the number of anchors are asked beside them of models that are alarmed, from the reserve; what
        is left of it where that is less.
    """

    name: str = "default"
    times: float = 0.0

    def estimate(
        self, source: Responses, target: Responses, n_anchors: int, rng: np.random.Generator
    ) -> tuple[Array, Array, Array]:
        small = condense(source, n_anchors, rng=rng, curve=False)
        left = 0 if small.reserve is None else len(small.reserve)
        more = min(left, round(self.times * n_anchors))
        plain = small.estimate(target)
        topped = small.estimate(target, more=more) if more else plain
        alarmed = [is_alarmed(e.flags) for e in plain]
        found = [b if alarm else a for a, b, alarm in zip(plain, topped, alarmed, strict=True)]
        score, low, high = np.array([[e.score, e.low, e.high] for e in found]).reshape(-1, 3).T
        return score, low, high


@dataclass(frozen=True)
class Pair:
    """A selection and a prediction: the usual method.

    Attributes
    ----------
    name : what tables call it; never parsed.
    select : a name in ``select.SELECTORS``, or a function ``(responses, n_anchors, rng, **options) -> Anchors``.
    predict : a name in ``predict.PREDICTORS``, or a function ``(**options) -> ScoreModel`` that makes a fresh one.
    select_options, predict_options : keyword arguments of the two.
    times : anchors for each one asked for, for all benchmarks or by name (``""`` for any other). Metabench needs 1.5
        (MMLU, ARC), 2 (WinoGrande) or 4.5 (HellaSwag).
    n_sources : learn from so many source models, drawn anew in every run; None for all.
    """

    name: str
    select: str | Callable[..., Anchors] = "pds"
    predict: str | Callable[..., ScoreModel] = "forest"
    select_options: Options = field(default_factory=dict)
    predict_options: Options = field(default_factory=dict)
    times: float | Mapping[str, float] = 1.0
    n_sources: int | None = None
    _specs: tuple[str, str] = field(init=False, repr=False, compare=False)  # of either, with its options

    def __post_init__(self) -> None:  # once: what a function holds may change while it is called
        both = (self.select, self.select_options), (self.predict, self.predict_options)
        texts = tuple(f"{spec(function)}{held_spec(sorted(options.items()))}" for function, options in both)
        object.__setattr__(self, "_specs", texts)

    def count(self, n_anchors: int, n_items: int, benchmark: str = "") -> int:
        """How many anchors it really takes: ``times`` as many, never more than there are items."""
        given = self.times
        times = given.get(benchmark, given.get("", 1.0)) if isinstance(given, Mapping) else given
        return n_anchors if times == 1 else max(1, min(n_items, round(times * n_anchors)))

    def choose(self, source: Responses, n_anchors: int, rng: np.random.Generator) -> Anchors:
        """The anchors, from source models alone."""
        if isinstance(self.select, str):
            return selector(self.select, **self.select_options)(source, n_anchors, rng)
        try:
            signature(self.select).bind(source, n_anchors, rng, **self.select_options)
        except TypeError as e:
            raise DiscoError(f"selection of '{self.name}' does not take {dict(self.select_options)} ({e})") from None
        chosen = self.select(source, n_anchors, rng, **self.select_options)
        if not isinstance(chosen, Anchors):
            raise ValidationError(
                f"the selection of '{self.name}' gave a {type(chosen).__name__}, expected Anchors: "
                "Anchors.of(responses.items, positions, name)"
            )
        return chosen

    def score(self, source: Responses, target: Responses, anchors: Anchors, rng: np.random.Generator) -> Array:
        """Estimated scores of the targets from their answers on the anchors alone."""
        if isinstance(self.predict, str):
            model = predictor(self.predict, **self.predict_options)
        else:
            model = self.predict(**self.predict_options)
        return model.fit(source, anchors, rng).predict(target.align(anchors.ids))

    def estimate(self, source: Responses, target: Responses, n_anchors: int, rng: np.random.Generator) -> Array:
        """Both steps; see `Method`."""
        for_sources, for_anchors, for_model = rng.spawn(3)
        part = self.sources(source, for_sources)
        anchors = self.choose(part, self.count(n_anchors, source.n_items), for_anchors)
        return self.score(part, target, anchors, for_model)

    def sources(self, source: Responses, rng: np.random.Generator) -> Responses:
        """The source models it learns from: all, or ``n_sources`` drawn at random."""
        if self.n_sources is None or self.n_sources == source.n_models:
            return source
        if not 1 <= self.n_sources <= source.n_models:
            raise ValidationError(f"'{self.name}' asks for {self.n_sources} source models of {source.n_models}")
        drawn = rng.choice(source.n_models, self.n_sources, replace=False)
        return source.pick(models=np.sort(by_id(source.models.ids)[drawn]))

    @property
    def selection(self) -> str:
        """What the choice of anchors depends on, as text: methods that share it share their anchors in every run."""
        return f"{self._specs[0]}/{self.n_sources}"

    @property
    def irt_dims(self) -> list[int | None]:
        """Which fits of item response theory it needs (see `source_irt`), so that a study makes each one once."""
        dims = []
        if self.select == "anchor_irt":
            dims.append(self.select_options.get("n_dims"))
        if self.predict in ("pirt", "gpirt"):
            dims.append(self.predict_options.get("n_dims"))
        if self.predict == "ability_irt":
            dims.append(self.predict_options.get("n_dims", 1))
        return dims


@dataclass(frozen=True)
class SSEPY:
    """Stratified estimate from the target's own confidence (Fogliato et al., 2024; paper, Appendix J.2).

    For every target alone: k-means of its highest probability on each item into ``n_anchors`` clusters; the item
    nearest to each centre is graded, and counts for its cluster (Horvitz-Thompson: cluster weight over total). It needs
    the target's answers to all items, so it saves labels and no inference; source models play no part.
    """

    name: str = "ssepy"

    def estimate(self, source: Responses, target: Responses, n_anchors: int, rng: np.random.Generator) -> Array:
        """See `Method`. Raises ValidationError where only grades are known, or for more anchors than items."""
        if target.probs is None:
            raise ValidationError("ssepy needs the targets' probabilities, but the responses hold grades only")
        check_count(target, n_anchors)
        order = by_id(target.items.ids)
        weight = target.items.weight[order] / target.items.weight.sum()
        scores = np.empty(target.n_models)
        for m in range(target.n_models):
            one = target.pick(models=[m])
            confidence = one.outcomes()[0].max(axis=1).astype(np.float64)[order]
            right = one.grades()[0][order]
            scores[m] = _stratified(confidence, right, weight, n_anchors, rng)
        return np.clip(scores, 0.0, 1.0)


def _stratified(confidence: Array, right: Array, weight: Array, k: int, rng: np.random.Generator) -> float:
    labels, centres = clusters_1d(confidence, k)
    mass = np.bincount(labels, weights=weight, minlength=k)
    order = np.lexsort((rng.permutation(len(labels)), np.abs(confidence - centres[labels]), labels))
    first = np.flatnonzero(np.diff(labels[order], prepend=-1))
    chosen = order[first]
    return float(mass[labels[chosen]] @ right[chosen])


def describe(method: Method) -> str:
    """What makes two methods the same, as text: of a user's own its repr, or what it holds, and what its class does."""
    if isinstance(method, Pair):
        return f"{method.selection}/{method.times}|{method._specs[1]}"
    shown = object_spec(method) if type(method).__repr__ is not object.__repr__ else held_spec(method)
    return shown + class_spec(method, __package__.split(".")[0])


_SAME: dict[str, tuple[str, Options]] = {
    "random": ("uniform", {"stratify": True})
}  # the paper's Random is spread over subtasks


def _registry() -> dict[str, Method]:
    selections: dict[str, tuple[str, Options]] = {**{name: (name, {}) for name in SELECTORS}, **_SAME}
    pairs: dict[str, Method] = {
        f"{s}+{p}": Pair(f"{s}+{p}", function, p, select_options=options)
        for s, (function, options) in selections.items()
        for p in PREDICTORS
    }
    return {**pairs, "ssepy": SSEPY(), "default": Condensed("default")}


def method(name: str) -> Method:
    """A method by name: any selection and prediction, such as ``"pds+forest"``, ``"ssepy"``, or
    ``"default"``, the product as it comes.

    ``random`` is ``uniform`` with equal numbers from every subtask, as in the paper. An unknown name raises DiscoError.
    """
    known = _registry()
    if name not in known:
        left, _, right = name.partition("+")  # for the message alone
        if not right and (left in SELECTORS or left in PREDICTORS):
            raise DiscoError(f"'{name}' is half a method; write a selection and a prediction, such as auto+auto")
        if not right:
            raise DiscoError(
                unknown("method", name, ["default", "pds+forest", "random+direct", "anchor_corr+gpirt", "ssepy"])
            )
        if left not in SELECTORS and left not in _SAME:
            raise DiscoError(unknown("selection", left, [*_SAME, *SELECTORS]))
        raise DiscoError(unknown("prediction", right, list(PREDICTORS)))
    return known[name]


def methods_of(given: str | Method | Iterable[str | Method]) -> list[Method]:
    """Methods from names or objects; refuses two of one name, and what is no method."""
    out: list[Method] = []
    single = isinstance(given, str) or not isinstance(given, Iterable)
    each: Iterable[Any] = [given] if single else given  # type: ignore[assignment]
    for entry in each:
        chosen = method(entry) if isinstance(entry, str) else entry
        if isinstance(chosen, type):
            raise ValidationError(f"{chosen.__name__} is a class; give an object of it, such as {chosen.__name__}()")
        if not isinstance(chosen, Method):
            raise ValidationError(
                f"{entry!r} is no method: it needs a name and estimate(source, target, n_anchors, rng)"
            )
        if not isinstance(chosen.name, str) or not chosen.name.strip():
            raise ValidationError(f"the name of a method is {chosen.name!r}, expected a text that is not empty")
        out.append(chosen)
    names = [m.name for m in out]
    if len(set(names)) != len(names):
        twice = sorted({n for n in names if names.count(n) > 1})
        raise ValidationError(f"two methods have the same name: {', '.join(twice)}; give each its own")
    return out
