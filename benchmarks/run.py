"""Speed and memory, each measured beside its floor or its peer in the same run and reported as a ratio.

    python benchmarks/run.py [--models 385] [--items 14042]

The size is the paper's MMLU. Machines differ and are shared, so read the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from disco_eval import Items, Responses, condense
from disco_eval.io import write_npz
from disco_eval.numerics.disagreement import Disagreement


def population(n_models: int, n_items: int, n_choices: int = 4) -> Responses:
    """Models of rising ability on items of random difficulty: enough structure for trees to grow."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, n_choices, n_items)
    logits = rng.normal(size=(n_models, n_items, n_choices)).astype(np.float32)
    skill = np.linspace(-1, 3, n_models)[:, None] - rng.normal(size=n_items)
    logits[:, np.arange(n_items), label] += skill.astype(np.float32)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=2, keepdims=True)
    subtask = [f"subtask-{i % 57}" for i in range(n_items)]
    items = Items(
        [f"item/{i}" for i in range(n_items)], label=label, n_choices=np.full(n_items, n_choices), subtask=subtask
    )
    return Responses.from_probs([f"model-{m}" for m in range(n_models)], items, logits)


def best(run: Callable[[], object], repeats: int = 7) -> float:
    """Least seconds of several runs: what the work takes when nothing else disturbs it."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def author_style_jsd(probs: np.ndarray) -> np.ndarray:
    """The formula as one writes it first: whole arrays in double precision, one step after the other."""
    p = np.clip(probs.astype(np.float64), 1e-12, None)
    mean = p.mean(axis=0)
    return -(mean * np.log(mean)).sum(axis=-1) + (p * np.log(p)).sum(axis=-1).mean(axis=0)


def show(what: str, seconds: float, floor: float, beside: str, bound: str = "") -> None:
    print(f"{what:34s} {seconds:9.4f} s   {seconds / floor:7.2f} x {beside:34s} {bound}")


def _disagreement(probs: np.ndarray, measures: str) -> None:
    Disagreement(*probs.shape[1:], measures=measures).update(probs)


def disagreement(r: Responses) -> None:
    probs = np.asarray(r.probs)
    read = best(probs.max)
    show("read the probabilities once", read, read, "itself (maximum of all)")
    for measure, bound in (("pds", "wanted: at most 4"), ("jsd", "wanted: at most 10"), ("both", "")):
        seconds = best(partial(_disagreement, probs, measure))
        show(f"disagreement, {measure}", seconds, read, "one read", bound)
    show("JSD as one writes it first", best(lambda: author_style_jsd(probs), 2), read, "one read")


def condensing(r: Responses) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu = time.process_time()
    small = condense(r, 100, select="pds", predict="forest", rng=0)
    cpu = time.process_time() - cpu
    default = time.process_time()
    condense(r, 100, rng=0)
    default = time.process_time() - default
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    from sklearn.ensemble import RandomForestRegressor

    X = np.asarray(small.sources.probs).reshape(r.n_models, -1)[:, :256]
    one = time.process_time()
    RandomForestRegressor(n_jobs=1, random_state=0).fit(X, r.scores())
    one = time.process_time() - one
    show("condense, PDS + forest (CPU)", cpu, one, "one forest alone (6 are fitted)", "wanted: under 20 s")
    show("condense, the default (CPU)", default, one, "one forest alone", "wanted: under 60 s")
    print(f"{'':34s} memory: {before / 2**20:.2f} GB before, {peak / 2**20:.2f} GB at the peak (wanted: under 1)")


def cold_estimate(r: Responses) -> None:
    disco = Path(sys.executable).parent / "disco"
    with tempfile.TemporaryDirectory() as folder:
        small = condense(r.pick(items=np.arange(1000)), 100, rng=0, n_folds=2)
        small.save(f"{folder}/c")
        write_npz(r.pick(models=[0]).align(small.anchors.ids), f"{folder}/answers.npz")
        python = best(lambda: subprocess.run([sys.executable, "-c", "import numpy"], check=True), 5)
        command = [str(disco), "estimate", f"{folder}/c", f"{folder}/answers.npz", "--json"]
        run = best(lambda: subprocess.run(command, check=True, capture_output=True), 5)
        show("disco estimate, cold", run, python, "python -c 'import numpy'", "wanted: under 1 s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=385)
    parser.add_argument("--items", type=int, default=14_042)
    given = parser.parse_args()
    responses = population(given.models, given.items)
    print(f"{responses!r}, {np.asarray(responses.probs).nbytes / 1e6:.0f} MB\n")
    disagreement(responses)
    condensing(responses)
    cold_estimate(responses)
