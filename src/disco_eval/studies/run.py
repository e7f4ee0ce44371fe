"""The study: methods x splits x runs x numbers of anchors, resumable and parallel, one long table."""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import polars as pl
from numpy.typing import NDArray

from .. import __version__
from ..errors import DiscoError, FormatError, ValidationError, check_kind, some
from ..files import checksum_of, new_file, only_local, tidy_inside
from ..numerics.rng import Seed, generator
from ..resources import Here, limited, memory_bound, workers
from ..responses import Responses, check_responses
from ..splits import Split
from .cells import (
    Scene,
    Unit,
    fit_irt,
    forget_sources,
    keep_parts,
    run_unit,
    scenes_of,
    source_key,
    tables_of,
    units_of,
)
from .confidence import write_calibration
from .methods import Method, Pair, describe, methods_of
from .outdated import remove_outdated
from .plans import SplitPlan, split_plans
from .predictions import FILE, SCHEMA, Predictions
from .sealed import checksum, is_whole, read_sealed, seal_of, write_sealed
from .spec import lasting

Array = NDArray[Any]
Progress = Callable[[str, int, int], None]
TIMES = "times.parquet"
STUDY = "study.json"
_TIMES = ("benchmark", "method", "split", "run", "n_anchors", "n_sources", "n_targets", "select_s", "predict_s")


def study(
    methods: str | Method | Iterable[str | Method],
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
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Predictions:
    """Compare methods the way the paper does: everything random is drawn anew in every run.

    Splits that draw nothing (a fixed `Split`, ``iid``, ``chronological``, ``first10``, ``top10``, ``top30``) have the
    same targets in every run: runs then differ in anchors and fits alone.

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
        started again with the same arguments takes up its finished parts, as does one that asks for all of it and more
        (methods, splits, benchmarks, anchors, runs); None keeps nothing. Where predictions change, the tables, figures
        and report made of the former ones are removed.
    jobs
        Processes that work side by side, one thread each.
    benchmark
        What to call the benchmark where ``responses`` is a single one.
    cutoff
        First day of the targets in chronological splits; otherwise the newest tenth.
    times
        Fill the column ``seconds`` with measured times of each method and run (choosing, fitting, predicting). Off by
        default, as times differ from one run of the program to the next; ``out`` has them in ``times.parquet`` anyway.

    overwrite
        Replace another study in ``out``. Parts of it that this one shares are taken up.

    Raises DiscoError for unknown names, and where ``out`` holds another finished study or
    predictions of an unknown one, and whatever a method raises.
    """
    chosen = methods_of(methods)
    plans = split_plans(split, cutoff)
    counts = list(n_anchors) if isinstance(n_anchors, Iterable) else [n_anchors]
    if not all(isinstance(n, Integral) and not isinstance(n, bool) for n in counts):
        raise ValidationError(f"numbers of anchors are whole numbers, got {n_anchors!r}")
    check_kind("int", runs=runs, jobs=jobs)
    counts = [int(n) for n in counts]
    if runs < 1 or jobs < 1 or not counts or min(counts) < 1 or not chosen:
        raise ValidationError(
            "a study needs at least one method, runs >= 1, jobs >= 1 and anchors >= 1; got "
            f"{len(chosen)} methods, runs={runs}, jobs={jobs}, anchors={counts}"
        )
    named = responses if isinstance(responses, Mapping) else {benchmark: responses}
    if not all(isinstance(name, str) for name in named):
        raise ValidationError(f"benchmarks are called by text, got {some(map(repr, named))}")
    for given in named.values():
        check_responses(given, "study")
    root = int(generator(rng).integers(2**62))
    scenes = [s for name, r in named.items() for plan in plans for s in scenes_of(name, r, plan, runs, root)]
    record = _record(scenes, chosen, plans, counts, runs, root)
    if out is not None and not overwrite:
        _no_other(Path(out), record)
    with tempfile.TemporaryDirectory() if out is None else _Kept(Path(out)) as folder:
        tidy_inside(Path(folder))
        tidy_inside(Path(folder) / "parts")
        units = [u for s in scenes for u in units_of(s, chosen, counts, root, Path(folder) / "parts")]
        _work(units, jobs, progress)
        table, measured = _collect(units, [m.name for m in chosen])
        if times:
            table = _with_times(table, measured)
        result = Predictions(table)
        if out is not None:
            if overwrite or not _holds(Path(out), table):
                remove_outdated(Path(out))
            write_sealed(measured, Path(out) / TIMES)
            write_calibration(named, out)
            _describe(Path(out), record)
            result.save(out)  # last: predictions without a description are refused
    return result


class _Kept:
    """A folder that stays, with the same shape as a temporary one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> str:
        only_local(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        return str(self.folder)

    def __exit__(self, *args: object) -> None:
        pass


def _work(units: list[Unit], jobs: int, progress: Progress | None) -> None:
    """Do what is not done yet. With several processes, fits that all need are made first, and handed to them."""
    open_units = [u for u in units if u.open]
    ready = len(units) - len(open_units)
    token = uuid.uuid4().hex
    if isinstance(workers(), Here) and (jobs == 1 or len(open_units) < 2):
        for k, unit in enumerate(open_units):
            _tell(progress, ready + k, len(units))
            run_unit(unit, token, {})
        _tell(progress, len(units), len(units))
        forget_sources()
        return
    with _staff(jobs) as results:
        needs = list(_needs(open_units).values())
        fits: dict[str, dict[Any, Any]] = {}
        for k, (key, dims, fitted) in enumerate(results([(fit_irt, scene, dims, token) for scene, dims in needs])):
            _tell(progress, k, len(needs), "item response theory")
            fits.setdefault(key, {})[("irt", dims)] = fitted
        tasks = [(run_unit, u, token, fits.get(source_key(u.scene), {})) for u in open_units]
        for k, _ in enumerate(results(tasks)):
            _tell(progress, ready + k + 1, len(units))


@contextmanager
def _staff(jobs: int) -> Iterator[Callable[[list[tuple[Any, ...]]], Iterator[Any]]]:
    """Results of ``(function, scene or unit, ...)`` as they are ready: on the cluster, or by processes side by side."""
    if not isinstance(workers(), Here):
        yield _from_cluster
        return
    from joblib import Parallel, delayed

    each = memory_bound() // jobs
    with Parallel(n_jobs=jobs, return_as="generator_unordered") as pool:
        yield lambda tasks: pool(delayed(_limited)(each, *task) for task in tasks)


def _limited(memory: int, function: Callable[..., Any], *args: Any) -> Any:
    with limited(memory):
        return function(*args)


def _from_cluster(tasks: list[tuple[Any, ...]]) -> Iterator[Any]:
    """The workers get the responses once, not with every task, and send tables back: they may have another disk."""
    staff = workers()
    shared: dict[int, Any] = {}
    away = []
    for function, what, *rest in tasks:
        scene = what.scene if isinstance(what, Unit) else what
        responses = shared.setdefault(id(scene.responses), staff.share(scene.responses))
        bare = replace(scene, responses=None)
        away.append((_away, (function, replace(what, scene=bare) if isinstance(what, Unit) else bare, responses, rest)))
    for k, result in staff.results(away):
        if tasks[k][0] is run_unit:
            keep_parts(tasks[k][1], result)
        yield result


def _away(function: Callable[..., Any], what: Any, responses: Responses, rest: list[Any]) -> Any:
    """On a worker: put the responses back and do the work, without writing anything."""
    if isinstance(what, Unit):
        unit = replace(what, scene=replace(what.scene, responses=responses))
        return list(tables_of(unit, *rest))
    return function(replace(what, responses=responses), *rest)


def _tell(progress: Progress | None, done: int, total: int, what: str = "methods x runs") -> None:
    if progress:
        progress(what, done, total)


def _needs(units: list[Unit]) -> dict[tuple[str, int | None], tuple[Scene, int | None]]:
    needs: dict[tuple[str, int | None], tuple[Scene, int | None]] = {}
    for unit in units:
        for m in unit.methods:
            if isinstance(m, Pair) and m.n_sources is None:
                for dims in m.irt_dims:
                    needs.setdefault((source_key(unit.scene), dims), (unit.scene, dims))
    return needs


def _collect(units: list[Unit], order: list[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """All parts in the order of benchmarks, splits, methods, anchors and runs; and what each one took."""
    place = {name: k for k, name in enumerate(order)}
    scene_rank: dict[tuple[str, str], int] = {}
    found = []
    for u in units:
        rank = scene_rank.setdefault((u.scene.benchmark, u.scene.plan), len(scene_rank))
        for m, file in zip(u.methods, u.files, strict=True):
            table = read_sealed(file)
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


def _record(
    scenes: list[Scene], methods: list[Method], plans: list[SplitPlan], counts: list[int], runs: int, root: int
) -> dict[str, Any]:
    """What a study is asked for; ``benchmarks`` has for each one and split a digest of its first run's answers."""
    benchmarks: dict[str, dict[str, str]] = {}
    for scene in scenes:
        benchmarks.setdefault(scene.benchmark, {}).setdefault(scene.plan, scene.key)
    return {
        "version": __version__,
        "methods": {m.name: describe(m) for m in methods},
        "splits": [p.name for p in plans],
        "n_anchors": counts,
        "runs": runs,
        "root": root,
        "benchmarks": benchmarks,
    }


def _no_other(out: Path, new: dict[str, Any]) -> None:
    """Refuse a folder with a finished study of which this one would lose something, or may.

    Of what older versions did not record nothing is asked.
    """
    try:
        old = read_study(out)
    except FormatError as e:
        if not (out / FILE).exists():
            return
        raise DiscoError(
            f"'{out}' holds predictions, but of which study is not known: {e}. Choose another --out, or replace them "
            "with --overwrite"
        ) from None
    lost = _lost(old, new)
    if lost:
        raise DiscoError(
            f"'{out}' holds another study: {'; '.join(lost)}. Choose another --out, or replace it with --overwrite"
        )


def _lost(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What a finished study holds and a new one would not, in words."""
    lost = []
    for key, what in (
        ("methods", "methods"),
        ("splits", "splits"),
        ("n_anchors", "anchors"),
        ("benchmarks", "benchmarks"),
    ):
        gone = [name for name in old.get(key, ()) if name not in new[key]]
        if gone:
            lost.append(f"it has the {what} {some(gone, 6)}, which are not asked for now")
    other = [
        n for n, text in old["methods"].items() if n in new["methods"] and lasting(text) != lasting(new["methods"][n])
    ]
    if other:
        lost.append(f"{some(other, 6)} had other options")
    if old["runs"] > new["runs"]:
        lost.append(f"it has {old['runs']} runs, not {new['runs']}")
    if old["root"] != new["root"]:
        lost.append("it has another seed")
        return lost
    for name, scenes in old.get("benchmarks", {}).items():
        now = new["benchmarks"].get(name, {})
        if any(now.get(split, key) != key for split, key in scenes.items()):
            lost.append(f"the answers to {name}, or who the targets are, were others")
    return lost


def _holds(out: Path, table: pl.DataFrame) -> bool:
    return is_whole(out / FILE) and seal_of(out / FILE) == checksum(table)


def _describe(out: Path, record: dict[str, Any]) -> None:
    files = sorted({FILE} | {file.name for file in out.glob("*.parquet") if not file.name.startswith(".")})
    record = {**record, "files": files}
    with new_file(out / STUDY) as draft:
        draft.write_text(json.dumps({**record, "checksum": checksum_of(record)}, indent=1) + "\n", encoding="utf-8")


def refuse_cut_off(folder: Path) -> None:
    """Say of a folder with a study's finished parts and nothing else how to get the rest."""
    if (folder / "parts").is_dir() and not (folder / STUDY).exists():
        raise FormatError(
            f"'{folder}' is a study that was cut off; the same 'disco study' again goes on with what is done"
        )


def read_study(folder: Path) -> dict[str, Any]:
    """What a study was asked for, from its folder; FormatError where that is missing or damaged."""
    file = folder / STUDY
    try:
        record = json.loads(file.read_bytes())
        fits = record.pop("checksum") == checksum_of(record)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise FormatError(f"'{file}' is missing or is not the description of a study ({str(e)[:100]})") from None
    if not fits:
        raise FormatError(f"'{file}' is damaged or was edited: its checksum does not fit")
    return dict(record)
