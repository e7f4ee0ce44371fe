"""Stores larger than memory: speed beside a plain read of the same store, peak memory, and how both grow.

    python benchmarks/size.py [--models 400] [--items 5400] [--folder DIR] [--cluster]

Writes three ImageNet-shaped stores (1,000 classes, float16: 1/4, 1/2 and all of the size; 4.3 GB by default), measures
each in a process of its own, and deletes them. Machines differ and are shared, so read the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import disco_eval as de
from disco_eval import Items, Models, Responses, open_responses

CLASSES = 1000
_TOGETHER = 250  # items drawn together


class Classifiers:
    """Softmax of random logits in which the right class is favoured, made when it is asked for and always the same."""

    def __init__(self, n_models: int, n_items: int, n_classes: int = CLASSES, graded: bool = False) -> None:
        self.shape = (n_models, n_items) if graded else (n_models, n_items, n_classes)
        self.dtype = np.dtype(np.float32 if graded else np.float16)
        self.item_block = _TOGETHER
        self.n_classes = n_classes
        self.label = np.random.default_rng(1).integers(0, n_classes, n_items)

    def rows(self, models: Any) -> Any:
        raise NotImplementedError

    def take(self, models: Any, items: Any) -> np.ndarray:
        rows, columns = np.arange(self.shape[0])[models], np.arange(self.shape[1])[items]
        out = np.empty((len(rows), len(columns), *self.shape[2:]), self.dtype)
        for a, m in enumerate(rows.tolist()):
            for first in range(0, len(columns), _TOGETHER):
                at = columns[first : first + _TOGETHER]
                out[a, first : first + len(at)] = self._answers(m, at)
        return out

    def _answers(self, model: int, items: np.ndarray) -> np.ndarray:
        rng = np.random.default_rng([model, int(items[0])])
        gain = 1 + 7 * model / self.shape[0] - 2 * np.random.default_rng(int(items[0])).standard_normal(len(items))
        right = gain + 1.5 * rng.standard_normal(len(items)) > 4.5
        if len(self.shape) == 2:
            return right.astype(np.float32)
        logits = 1.2 * rng.standard_normal((len(items), self.n_classes), dtype=np.float32)
        guess = np.where(right, self.label[items], rng.integers(0, self.n_classes, len(items)))
        logits[np.arange(len(items)), guess] += 6
        np.exp(logits, out=logits)
        return logits / logits.sum(axis=1, keepdims=True)


def write(n_models: int, n_items: int, path: Path) -> None:
    probs = Classifiers(n_models, n_items)
    items = Items([f"val/{i}" for i in range(n_items)], n_choices=np.full(n_items, CLASSES), label=probs.label)
    grades = Classifiers(n_models, n_items, graded=True)
    Responses(Models([f"model-{m}" for m in range(n_models)]), items, grades, probs).save(path)


def plain_read(path: str, _: str) -> dict[str, Any]:
    """Every chunk decompressed, checksums and all, and nothing done with it."""
    r = open_responses(path)
    for columns in r.stretches():
        for first in range(0, r.n_models, 16):
            r.probs.take(slice(first, first + 16), columns)
    return {}


def measure(path: str, scheduler: str) -> dict[str, Any]:
    from disco_eval.resources import on_cluster
    from disco_eval.select.passes import disagreement

    with on_cluster(scheduler or None):
        responses = open_responses(path)
        pds, jsd = disagreement(responses, "both")
        return {"sums": [float(a.sum()) for a in (pds, jsd, responses.scores())]}


def condense(path: str, how: str) -> dict[str, Any]:
    select, _, predict = how.partition("+")
    small = de.condense(open_responses(path), 100, select=select, predict=predict, rng=0)
    return {"mae_pp": 100 * small.validation.mae}


def graded(_: str, how: str) -> dict[str, Any]:
    """5,000 models x 1,000 items of 0/1."""
    rng = np.random.default_rng(0)
    ability, difficulty = rng.normal(size=(5000, 1)), rng.normal(size=1000)
    right = rng.random((5000, 1000)) < 1 / (1 + np.exp(difficulty - ability))
    r = Responses.from_correct([f"model-{m}" for m in range(5000)], [f"item-{i}" for i in range(1000)], right)
    if how == "condense":
        return {"mae_pp": 100 * de.condense(r, 100, rng=0).validation.mae}
    split = de.splits.Split(np.arange(4980), np.arange(4980, 5000), "last20")
    table = de.study(["auto+auto", "pds+ridge", "uniform+direct"], r, split, [100], runs=2, rng=0)
    return {row["method"]: round(row["mae_pp"], 3) for row in table.summary().to_dicts()}


STEPS = {f.__name__: f for f in (plain_read, measure, condense, graded)}


def run(step: str, path: Path | str = "", how: str = "") -> dict[str, Any]:
    """One step in a process of its own: its seconds, its peak memory in GB, and what it says."""
    command = [sys.executable, __file__, "--step", step, str(path), how]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def peak_gb() -> float:
    """Peak memory of this process; what its parent had when it forked does not count."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def show(what: str, n_bytes: float, done: dict[str, Any], floor: dict[str, Any], note: str = "") -> None:
    speed = n_bytes / done["seconds"] / 1e6
    times = done["seconds"] / floor["seconds"]
    print(
        f"{what:40s} {done['seconds']:7.1f} s {speed:7.0f} MB/s {times:6.2f} x plain read {done['peak']:6.2f} GB {note}"
    )


def sizes(n_models: int, n_items: int, folder: Path, cluster: bool) -> None:
    for models, items in ((n_models // 4, n_items), (n_models, n_items // 2), (n_models, n_items)):
        path, n_bytes = folder / f"{models}x{items}.zarr", 2.0 * models * items * CLASSES
        start = time.perf_counter()
        write(models, items, path)
        took = time.perf_counter() - start
        on_disk = sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
        print(f"\n{models} models x {items} items x {CLASSES} classes: {n_bytes / 1e9:.2f} GB")
        print(f"{'made and written':40s} {took:7.1f} s   {on_disk / 1e9:.2f} GB on disk")
        read = run("plain_read", path)
        show("plain read", n_bytes, read, read)
        once = run("measure", path)
        show("PDS + JSD + scores, one pass", n_bytes, once, read, "wanted: under 1 GB, flat")
        if models * items == n_models * n_items:
            for how in ("auto+auto", "pds+forest"):
                show(f"condense, {how}", n_bytes, run("condense", path, how), read, "wanted: under 1.5 GB")
            if cluster:
                on_two_workers(path, n_bytes, read, once)
        shutil.rmtree(path)


def on_two_workers(path: Path, n_bytes: float, read: dict[str, Any], once: dict[str, Any]) -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as two:
        there = run("measure", path, two.scheduler_address)
    show("the same on two dask workers", n_bytes, there, read, f"same sums: {there['sums'] == once['sums']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=400)
    parser.add_argument("--items", type=int, default=5400)
    parser.add_argument("--folder", type=Path, help="where the stores are written for a while")
    parser.add_argument("--cluster", action="store_true", help="once more on a local dask cluster of two processes")
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        name, path, how = given.step
        start = time.perf_counter()
        said = STEPS[name](path, how)
        print(json.dumps({"seconds": time.perf_counter() - start, "peak": peak_gb(), **said}))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        sizes(given.models, given.items, Path(folder), given.cluster)
    print("\n5,000 models x 1,000 items of 0/1")
    for how in ("condense", "study"):
        done = run("graded", how=how)
        said = {k: v for k, v in done.items() if k not in ("seconds", "peak")}
        print(f"{how:40s} {done['seconds']:7.1f} s {done['peak']:6.2f} GB {said}  wanted: minutes, under 1 GB")


if __name__ == "__main__":
    main()
