"""The cells of a study: who predicts whom with which methods, and the tables that come of it."""

from __future__ import annotations

import hashlib
import importlib
import json
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .. import __version__
from ..errors import ValidationError
from ..resources import memory_bound
from ..responses import Lazy, Responses
from ..select.shared import keep, once, source_irt
from ..splits import Split
from .methods import Method, Pair, describe
from .plans import SplitPlan
from .predictions import SCHEMA
from .sealed import is_whole, write_sealed

Array = NDArray[Any]
_ROOM = 0.5  # beyond [0, 1], which a regression may leave; further out is another unit
_WIDE = 2.0  # beyond [0, 1], which an end of a wide interval may lie
_IMPORTED = ("sklearn.cluster", "sklearn.decomposition", "sklearn.ensemble", "sklearn.linear_model", "scipy.optimize")
_IN_MEMORY = 2**28  # bytes of answers that a study holds in memory instead of reading them again and again


@dataclass(frozen=True, eq=False)
class Scene:
    """One benchmark, split and run: who predicts whom."""

    benchmark: str
    responses: Responses
    split: Split
    plan: str
    run: int
    key: str  # what its answers and models are, for the names of parts


@dataclass(frozen=True, eq=False)
class Unit:
    """Methods that share their anchors in one scene: what one process does at a time."""

    scene: Scene
    methods: tuple[Method, ...]
    n_anchors: int
    root: int
    files: tuple[Path, ...]  # one part for each method
    open: tuple[int, ...]  # which methods are to be done

    @property
    def open_files(self) -> list[Path]:
        return [self.files[k] for k in self.open]


def scenes_of(name: str, responses: Responses, plan: SplitPlan, runs: int, root: int) -> Iterator[Scene]:
    """Every run's split. Scenes with equal splits share one `Split` object, so their work is shared."""
    print_ = _fingerprint(responses)
    seen: dict[bytes, Split] = {}
    for run in range(runs):
        drawn = plan.draw(responses, _rng(root, "split", name, plan.name, run))
        split = seen.setdefault(drawn.source.tobytes() + b"|" + drawn.target.tobytes(), drawn)
        ids = responses.models.ids
        key = _digest([print_, name, plan.name, ids[split.source].tolist(), ids[split.target].tolist(), run, root])
        yield Scene(name, responses, split, plan.name, run, key)


def units_of(scene: Scene, methods: Sequence[Method], counts: Sequence[int], root: int, folder: Path) -> list[Unit]:
    units = []
    done: set[tuple[str, int]] = set()  # a method that takes all items for two numbers of anchors does so once
    for n in counts:
        groups: dict[str, list[Method]] = {}
        for m in methods:
            taken = m.count(n, scene.responses.n_items, scene.benchmark) if isinstance(m, Pair) else n
            if (m.name, taken) in done:
                continue
            done.add((m.name, taken))
            groups.setdefault(m.selection if isinstance(m, Pair) else m.name, []).append(m)
        for group in groups.values():
            parts = [_digest([scene.key, m.name, describe(m), n, __version__]) for m in group]
            files = tuple(folder / f"{part}.parquet" for part in parts)
            todo = tuple(k for k, file in enumerate(files) if not is_whole(file))
            units.append(Unit(scene, tuple(group), n, root, files, todo))
    return units


def fit_irt(scene: Scene, dims: int | None, token: str) -> tuple[str, int | None, Any]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return source_key(scene), dims, source_irt(_source(scene, token)[0], dims)


def run_unit(unit: Unit, token: str, shared: dict[Any, Any]) -> None:
    """One unit: choose anchors once, then let every method of the group predict; write one part for each."""
    keep_parts(unit, tables_of(unit, token, shared))


def keep_parts(unit: Unit, tables: Iterable[pl.DataFrame]) -> None:
    for file, table in zip(unit.open_files, tables, strict=True):
        write_sealed(table, file)


def tables_of(unit: Unit, token: str, shared: dict[Any, Any]) -> Iterator[pl.DataFrame]:
    """The tables of the methods that have none yet, one after the other."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # also so that sums do not depend on how many threads share them
        for library in _IMPORTED:  # before the clock runs, or the first method would pay for it
            importlib.import_module(library)
        source, target = _source(unit.scene, token)
        keep(source, shared)
        for k in unit.open:
            yield _predict(unit, unit.methods[k], source, target)


def _predict(unit: Unit, m: Method, source: Responses, target: Responses) -> pl.DataFrame:
    scene = unit.scene
    draw = _rng(unit.root, "predict", scene.benchmark, scene.plan, scene.run, m.name, unit.n_anchors)
    began = time.perf_counter()
    chosen_in, n_sources, n_anchors = 0.0, source.n_models, unit.n_anchors
    if isinstance(m, Pair):
        keys = (unit.root, scene.benchmark, scene.plan, scene.run)
        part = source
        if m.n_sources is not None:
            part = once(source, ("part", *keys, m.n_sources), lambda: m.sources(source, _rng("sources", *keys)))
        n_sources, n_anchors = part.n_models, m.count(unit.n_anchors, source.n_items, scene.benchmark)

        def choose() -> tuple[Any, float]:
            start = time.perf_counter()
            return m.choose(part, n_anchors, _rng("select", *keys, m.selection)), time.perf_counter() - start

        anchors, chosen_in = once(part, ("anchors", *keys, m.selection, n_anchors), choose)
        n_anchors = len(anchors)  # a selection of one's own may take another number
        began = time.perf_counter()
        scores: Any = m.score(part, target, anchors, draw)
    else:
        scores = m.estimate(source, target, unit.n_anchors, draw)
    took = time.perf_counter() - began
    scores, low, high = _checked(m.name, scores, target.models.ids.tolist())
    n = target.n_models
    columns = {
        "benchmark": [scene.benchmark] * n,
        "method": [m.name] * n,
        "split": [scene.plan] * n,
        "run": [scene.run] * n,
        "n_anchors": [n_anchors] * n,
        "model": target.models.ids.tolist(),
        "truth": target.scores(),
        "estimate": scores,
        "low": low,
        "high": high,
        "n_sources": [n_sources] * n,
        "select_s": [chosen_in] * n,
        "predict_s": [took] * n,
    }
    return pl.DataFrame(columns, schema_overrides={k: v for k, v in SCHEMA.items() if k in columns})


def _checked(name: str, given: Any, models: list[str]) -> tuple[Array, Array | None, Array | None]:
    """A method's scores, low and high, clipped to [0, 1]; ValidationError where they are of another unit."""
    if isinstance(given, tuple) and len(given) != 3:
        raise ValidationError(
            f"method '{name}' gave a tuple of {len(given)}, expected scores or the triple (scores, low, high)"
        )
    scores, low, high = given if isinstance(given, tuple) else (given, None, None)
    scores = _numbers(name, "score", scores, models)
    strange = np.flatnonzero((scores < -_ROOM) | (scores > 1 + _ROOM))
    if len(strange):
        k = strange[0]
        raise ValidationError(
            f"method '{name}' gave {scores[k]:.6g} as the score of '{models[k]}'{_others(strange)}; "
            "scores are in [0, 1]; divide percent by 100"
        )
    if low is None and high is None:
        return np.clip(scores, 0.0, 1.0), None, None
    if low is None or high is None:
        only, other = ("high", "low") if low is None else ("low", "high")
        raise ValidationError(f"method '{name}' gave a {only} and None as the {other}; give both, or None for both")
    low, high = _ends(name, low, high, models)
    return np.clip(scores, 0.0, 1.0), np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _ends(name: str, low: Any, high: Any, models: list[str]) -> tuple[Array, Array]:
    """The ends of a method's intervals, which may lie beyond [0, 1], but not as far as those of another unit."""
    low, high = _numbers(name, "low", low, models), _numbers(name, "high", high, models)
    crossed = low > high + 1e-9
    far = (np.minimum(low, high) < -_WIDE) | (np.maximum(low, high) > 1 + _WIDE) | (low > 1 + _ROOM) | (high < -_ROOM)
    for wrong, why in (
        (far, "intervals are of scores in [0, 1]; divide percent by 100"),
        (crossed, "low is the lower end; swap the two"),
    ):
        found = np.flatnonzero(wrong)
        if len(found):
            k = found[0]
            raise ValidationError(
                f"method '{name}' gave {low[k]:.6g} to {high[k]:.6g} as the interval of '{models[k]}'"
                f"{_others(found)}; {why}"
            )
    return low, high


def _numbers(name: str, what: str, given: Any, models: list[str]) -> Array:
    """One finite number for each model, (n_models,)."""
    try:
        if np.iscomplexobj(given):
            raise TypeError("complex numbers")
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as e:
        raise ValidationError(f"method '{name}' gave a {what} that is no number for each model ({e})") from None
    if values.shape != (len(models),):
        raise ValidationError(
            f"method '{name}' gave a {what} of shape {values.shape}, expected ({len(models)},): one for each target"
        )
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise ValidationError(
            f"method '{name}' gave {values[wrong[0]]} as the {what} of '{models[wrong[0]]}'{_others(wrong)}; "
            "every target needs a finite number"
        )
    return values


def _others(which: Array) -> str:
    return f" and the like for {len(which) - 1} more" if len(which) > 1 else ""


_SOURCES: OrderedDict[tuple[str, str], tuple[Responses, Responses]] = OrderedDict()  # a process's own, the last few


def _source(scene: Scene, token: str) -> tuple[Responses, Responses]:
    """Source and target responses of a scene; the same objects for the same models, so that work on them is shared."""
    key = (token, source_key(scene))
    both = _SOURCES.get(key)
    if both is None:
        source, target = (_near(scene.responses.pick(models=side)) for side in (scene.split.source, scene.split.target))
        both = _SOURCES[key] = (source, target)
        while len(_SOURCES) > 2:
            _SOURCES.popitem(last=False)
    return both


def _near(responses: Responses) -> Responses:
    """In memory if that is little: every method takes its anchors out again, and unpacking a store takes longer."""
    array = responses.correct if responses.probs is None else responses.probs
    if isinstance(array, np.ndarray) or _size(array) > min(_IN_MEMORY, memory_bound() // 8):
        return responses
    # block by block: read at once, a store takes several times its size
    starts = range(0, responses.n_items, array.item_block)
    parts = [responses.pick(items=np.arange(a, min(a + array.item_block, responses.n_items))) for a in starts]
    correct = np.concatenate([cast(Array, p.correct) for p in parts], axis=1)
    probs = None if responses.probs is None else np.concatenate([cast(Array, p.probs) for p in parts], axis=1)
    return Responses(responses.models, responses.items, correct, probs)


def _size(array: Array | Lazy) -> int:
    return int(np.prod(array.shape)) * array.dtype.itemsize


def forget_sources() -> None:
    """Let go of the responses that this process held for its last cells."""
    _SOURCES.clear()


def source_key(scene: Scene) -> str:
    split = scene.split
    return _digest([scene.benchmark, split.source.tolist(), split.target.tolist()])


def _rng(*words: Any) -> np.random.Generator:
    """A generator of its own for each purpose: what one method draws does not move another's draws."""
    text = hashlib.sha256(json.dumps([str(w) for w in words]).encode()).digest()
    return np.random.default_rng(np.random.SeedSequence(list(np.frombuffer(text, np.uint32))))


def _digest(record: Any) -> str:
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()[:24]


def _fingerprint(responses: Responses) -> str:
    """A digest of everything that a study sees: parts made from other responses are not taken up."""
    h = hashlib.sha256()
    models, items = responses.models, responses.items
    for texts in (models.ids, models.family, models.base, models.released.astype(str), items.ids, items.subtask):
        h.update("\n".join(texts.tolist()).encode() + b"\0")
    for numbers in (items.weight, items.n_choices, items.label, responses.scores()):
        h.update(b"-" if numbers is None else numbers.tobytes())
    for rows, columns, block in responses.blocks():
        h.update(f"{rows.start},{columns.start}".encode() + np.ascontiguousarray(block).tobytes())
    return h.hexdigest()
