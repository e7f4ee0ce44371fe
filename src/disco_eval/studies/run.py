"""The study: methods x splits x runs x numbers of anchors, resumable and parallel, one long table."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .. import __version__
from ..errors import ValidationError
from ..files import new_file
from ..numerics.rng import Seed
from ..responses import Responses
from ..select.shared import keep, once, source_irt
from ..splits import Split
from .confidence import write_calibration
from .methods import Method, Pair, describe, methods_of
from .plans import SplitPlan, split_plans
from .predictions import SCHEMA, Predictions

Array = NDArray[Any]
Progress = Callable[[str, int, int], None]
TIMES = "times.parquet"
_IN_MEMORY = 2**28  # bytes of answers that a study holds in memory instead of reading them again and again
_TIMES = ("benchmark", "method", "split", "run", "n_anchors", "n_sources", "n_targets", "select_s", "predict_s")


@dataclass(frozen=True, eq=False)
class _Scene:
    """One benchmark, split and run: who predicts whom."""

    benchmark: str
    responses: Responses
    split: Split
    plan: str
    run: int
    key: str  # what its answers and models are, for the names of parts


@dataclass(frozen=True, eq=False)
class _Unit:
    """Methods that share their anchors in one scene: what one process does at a time."""

    scene: _Scene
    methods: tuple[Method, ...]
    n_anchors: int
    root: int
    parts: tuple[str, ...]
    folder: Path


def study(
    methods: Sequence[str | Method],
    responses: Responses | Mapping[str, Responses],
    split: str | Split | SplitPlan | Sequence[str | Split | SplitPlan],
    n_anchors: Sequence[int] | int = (100,),
    runs: int = 5,
    rng: Seed = 0,
    *,
    out: str | Path | None = None,
    jobs: int = 1,
    benchmark: str = "benchmark",
    cutoff: str | None = None,
    times: bool = False,
    progress: Progress | None = None,
) -> Predictions:
    """Compare methods the way the paper does: everything random is drawn anew in every run.

    Parameters
    ----------
    methods
        Names (see `methods.method`) or objects: a `Pair`, or anything with a name and ``estimate``.
    responses
        Source and target models' answers, or several benchmarks by name.
    split
        One or several: a name (see `plans.split_plan`), a `Split`, or a `SplitPlan`.
    n_anchors, runs, rng
        Numbers of anchors; how often; a seed. The same seed gives the same table, whatever ``jobs`` is and however
        often the study was interrupted. A method's draws do not depend on which others run beside it.
    out
        A folder for ``predictions.parquet``, finished parts, times and calibration. A study that was stopped and is
        started again with the same arguments takes up its finished parts; None keeps nothing.
    jobs
        Processes that work side by side, one thread each.
    benchmark
        What to call the benchmark where ``responses`` is a single one.
    cutoff
        First day of the targets in chronological splits; otherwise the newest tenth.
    times
        Fill the column ``seconds`` with measured times of each method and run (choosing, fitting, predicting). Off by
        default, as times differ from one run of the program to the next; ``out`` has them in ``times.parquet`` anyway.

    Raises DiscoError for unknown names, and whatever a method raises.
    """
    chosen = methods_of(methods)
    plans = split_plans(split, cutoff)
    counts = [n_anchors] if isinstance(n_anchors, int) else list(n_anchors)
    if runs < 1 or jobs < 1 or not counts or min(counts) < 1 or not chosen:
        raise ValidationError(
            f"a study needs methods, runs >= 1, jobs >= 1, anchors >= 1; got {runs}, {jobs}, {counts}"
        )
    named = responses if isinstance(responses, Mapping) else {benchmark: responses}
    root = int(np.random.default_rng(rng).integers(2**62))
    scenes = [s for name, r in named.items() for plan in plans for s in _scenes(name, r, plan, runs, root)]
    with tempfile.TemporaryDirectory() if out is None else _Kept(Path(out)) as folder:
        units = [u for s in scenes for u in _units(s, chosen, counts, root, Path(folder) / "parts")]
        _work(units, jobs, progress)
        table, measured = _collect(units, [m.name for m in chosen])
        if times:
            table = _with_times(table, measured)
        result = Predictions(table)
        if out is not None:
            result.save(out)
            with new_file(Path(out) / TIMES) as draft:
                measured.write_parquet(draft)
            write_calibration(named, out)
            _describe(Path(out), chosen, plans, counts, runs, root)
    return result


class _Kept:
    """A folder that stays, with the same shape as a temporary one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        return str(self.folder)

    def __exit__(self, *args: object) -> None:
        pass


def _scenes(name: str, responses: Responses, plan: SplitPlan, runs: int, root: int) -> Iterator[_Scene]:
    """Every run's split. Scenes with equal splits share one `Split` object, so their work is shared."""
    print_ = _fingerprint(responses)
    seen: dict[bytes, Split] = {}
    for run in range(runs):
        drawn = plan.draw(responses, _rng(root, "split", name, plan.name, run))
        split = seen.setdefault(drawn.source.tobytes() + b"|" + drawn.target.tobytes(), drawn)
        ids = responses.models.ids
        key = _digest([print_, name, plan.name, ids[split.source].tolist(), ids[split.target].tolist(), run, root])
        yield _Scene(name, responses, split, plan.name, run, key)


def _units(scene: _Scene, methods: Sequence[Method], counts: Sequence[int], root: int, folder: Path) -> list[_Unit]:
    units = []
    for n in counts:
        groups: dict[str, list[Method]] = {}
        for m in methods:
            groups.setdefault(m.selection if isinstance(m, Pair) else m.name, []).append(m)
        for group in groups.values():
            parts = tuple(_digest([scene.key, m.name, describe(m), n, __version__]) for m in group)
            units.append(_Unit(scene, tuple(group), n, root, parts, folder))
    return units


def _work(units: list[_Unit], jobs: int, progress: Progress | None) -> None:
    """Do what is not done yet. With several processes, fits that all need are made first, and handed to them."""
    open_units = [u for u in units if not all((u.folder / f"{p}.parquet").is_file() for p in u.parts)]
    ready = len(units) - len(open_units)
    if jobs == 1 or len(open_units) < 2:
        token = uuid.uuid4().hex
        for k, unit in enumerate(open_units):
            _tell(progress, ready + k, len(units))
            _run(unit, token, {})
        _tell(progress, len(units), len(units))
        _SOURCES.clear()
        return
    from joblib import Parallel, delayed

    token = uuid.uuid4().hex
    with Parallel(n_jobs=jobs, return_as="generator_unordered") as pool:
        needs = _needs(open_units)
        fits: dict[str, dict[Any, Any]] = {}
        tasks = (delayed(_fit)(scene, dims, token) for scene, dims in needs.values())
        for k, (key, dims, fitted) in enumerate(pool(tasks)):
            _tell(progress, k, len(needs), "item response theory")
            fits.setdefault(key, {})[("irt", dims)] = fitted
        jobs_ = (delayed(_run)(u, token, fits.get(_source_key(u.scene), {})) for u in open_units)
        for k, _ in enumerate(pool(jobs_)):
            _tell(progress, ready + k + 1, len(units))


def _tell(progress: Progress | None, done: int, total: int, what: str = "methods x runs") -> None:
    if progress:
        progress(what, done, total)


def _needs(units: list[_Unit]) -> dict[tuple[str, int | None], tuple[_Scene, int | None]]:
    needs: dict[tuple[str, int | None], tuple[_Scene, int | None]] = {}
    for unit in units:
        for m in unit.methods:
            if isinstance(m, Pair) and m.n_sources is None:
                for dims in m.irt_dims:
                    needs.setdefault((_source_key(unit.scene), dims), (unit.scene, dims))
    return needs


def _fit(scene: _Scene, dims: int | None, token: str) -> tuple[str, int | None, Any]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return _source_key(scene), dims, source_irt(_source(scene, token)[0], dims)


def _run(unit: _Unit, token: str, shared: dict[Any, Any]) -> None:
    """One unit: choose anchors once, then let every method of the group predict; write one part for each."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # also so that sums do not depend on how many threads share them
        source, target = _source(unit.scene, token)
        keep(source, shared)
        for m, part in zip(unit.methods, unit.parts, strict=True):
            file = unit.folder / f"{part}.parquet"
            if not file.is_file():
                table = _predict(unit, m, source, target)
                with new_file(file) as draft:
                    table.write_parquet(draft)


def _predict(unit: _Unit, m: Method, source: Responses, target: Responses) -> pl.DataFrame:
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
        began = time.perf_counter()
        scores: Any = m.score(part, target, anchors, draw)
    else:
        scores = m.estimate(source, target, unit.n_anchors, draw)
    took = time.perf_counter() - began
    low = high = None
    if isinstance(scores, tuple):
        scores, low, high = scores
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (target.n_models,) or not np.isfinite(scores).all():
        raise ValidationError(
            f"method '{m.name}' gave scores of shape {scores.shape}, expected {target.n_models} numbers"
        )
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


_SOURCES: OrderedDict[tuple[str, str], tuple[Responses, Responses]] = OrderedDict()  # a process's own, the last few


def _source(scene: _Scene, token: str) -> tuple[Responses, Responses]:
    """Source and target responses of a scene; the same objects for the same models, so that work on them is shared."""
    key = (token, _source_key(scene))
    if key not in _SOURCES:
        parts = (scene.split.source, scene.split.target)
        source, target = (_near(scene.responses.pick(models=side)) for side in parts)
        _SOURCES[key] = (source, target)
        while len(_SOURCES) > 2:
            _SOURCES.popitem(last=False)
    return _SOURCES[key]


def _near(responses: Responses) -> Responses:
    """In memory if that is little: every method takes its anchors out again, and unpacking a store takes longer."""
    array = responses.correct if responses.probs is None else responses.probs
    if isinstance(array, np.ndarray) or int(np.prod(array.shape)) * array.dtype.itemsize > _IN_MEMORY:
        return responses
    # block by block: read at once, a store takes several times its size
    starts = range(0, responses.n_items, array.item_block)
    parts = [responses.pick(items=np.arange(a, min(a + array.item_block, responses.n_items))) for a in starts]
    correct = np.concatenate([cast(Array, p.correct) for p in parts], axis=1)
    probs = None if responses.probs is None else np.concatenate([cast(Array, p.probs) for p in parts], axis=1)
    return Responses(responses.models, responses.items, correct, probs)


def _source_key(scene: _Scene) -> str:
    split = scene.split
    return _digest([scene.benchmark, split.source.tolist(), split.target.tolist()])


def _collect(units: list[_Unit], order: list[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """All parts in the order of benchmarks, splits, methods, anchors and runs; and what each one took."""
    place = {name: k for k, name in enumerate(order)}
    scene_rank: dict[tuple[str, str], int] = {}
    found = []
    for u in units:
        rank = scene_rank.setdefault((u.scene.benchmark, u.scene.plan), len(scene_rank))
        for m, part in zip(u.methods, u.parts, strict=True):
            table = pl.read_parquet(u.folder / f"{part}.parquet")
            found.append(((rank, place[m.name], u.n_anchors, u.scene.run), table))
    found.sort(key=lambda pair: pair[0])
    tables = [table for _, table in found]
    every = pl.concat(tables).with_columns(pl.lit(None, dtype=pl.Float64).alias("seconds"))
    firsts = pl.concat([t.head(1).with_columns(pl.lit(len(t)).alias("n_targets")) for t in tables])
    return every.select([pl.col(k).cast(v) for k, v in SCHEMA.items()]), firsts.select(_TIMES)


def _with_times(table: pl.DataFrame, measured: pl.DataFrame) -> pl.DataFrame:
    keys = ["benchmark", "method", "split", "run", "n_anchors"]
    took = measured.select([*keys, (pl.col("select_s") + pl.col("predict_s")).alias("took")])
    joined = table.join(took, on=keys, how="left", maintain_order="left")
    return joined.with_columns(pl.col("took").alias("seconds")).drop("took")


def _describe(
    out: Path, methods: list[Method], plans: list[SplitPlan], counts: list[int], runs: int, root: int
) -> None:
    record = {
        "version": __version__,
        "methods": {m.name: describe(m) for m in methods},
        "splits": [p.name for p in plans],
        "n_anchors": counts,
        "runs": runs,
        "root": root,
    }
    with new_file(out / "study.json") as draft:
        draft.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


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
