"""The paper's language table at its full size: 424 models x 14,042 items x 4 choices, 5 runs, 100 anchors, every row.

    python benchmarks/table1.py [--jobs 2]

The answers are simulated: ten dimensions of ability, so that item response theory has something to find, and families
of like models. Bounds: 5 CPU minutes and 1.5 GB, children included (the authors' code: about 3 CPU hours, 12 GB).
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from disco_eval import Items, Models, Responses, open_responses, study
from disco_eval.numerics.irt import fit_2pl
from disco_eval.studies import preset


def simulated(n_models: int = 424, n_items: int = 14_042, n_choices: int = 4, n_dims: int = 10) -> Responses:
    """Answers whose logit for the right choice is a . theta - b and a little noise, 57 subtasks, 40 families."""
    rng = np.random.default_rng(0)
    family = rng.integers(0, 40, n_models)
    theta = rng.normal(size=(40, n_dims))[family] + 0.6 * rng.normal(size=(n_models, n_dims))
    theta[:, 0] = np.linspace(-1, 3, n_models) + 0.3 * rng.normal(size=n_models)
    a = 0.35 * rng.normal(size=(n_items, n_dims))
    a[:, 0] = np.abs(a[:, 0]) + 0.6
    label = rng.integers(0, n_choices, n_items)
    logits = rng.normal(scale=0.8, size=(n_models, n_items, n_choices)).astype(np.float32)
    logits += rng.normal(scale=0.7, size=(40, n_items, n_choices)).astype(np.float32)[family]
    logits[:, np.arange(n_items), label] += (theta @ a.T - rng.normal(size=n_items)).astype(np.float32)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=2, keepdims=True)
    models = Models(
        [f"model-{m}" for m in range(n_models)],
        family=[f"family-{f}" for f in family],
        released=np.datetime64("2023-01-01") + rng.permutation(n_models),
    )
    items = Items(
        [f"item/{i}" for i in range(n_items)],
        label=label,
        n_choices=np.full(n_items, n_choices),
        subtask=[f"subtask-{i % 57}" for i in range(n_items)],
    )
    return Responses.from_probs(models, items, logits)


def used() -> tuple[float, float]:
    """CPU seconds and the largest resident gigabytes of this process or one of its children."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    return cpu, max(own.ru_maxrss, children.ru_maxrss) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--store", type=Path, help="the simulated store; made where it is not there yet")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = args.store or Path(folder) / "simulated.zarr"
        if not store.exists():
            import subprocess
            import sys

            code = f"from table1 import simulated; simulated().save({str(store)!r})"  # its memory is not the study's
            subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)
        responses = open_responses(store)
        correct = responses.grades()[:385]
        start = time.process_time()
        fit_2pl(correct, 5)
        print(f"IRT, 385 x 14,042 at 5 dimensions: {time.process_time() - start:.1f} CPU s (bound 10)")
        del correct
        before, wall = used()[0], time.perf_counter()
        made = study(preset("table1", responses).methods, responses, "chronological", 100, 5, 0, jobs=args.jobs)
        if args.jobs > 1:
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor().shutdown(wait=True)  # so that the system counts what the workers used
        cpu, gigabytes = used()
        print(
            f"table1: {cpu - before:.0f} CPU s (bound 300), {time.perf_counter() - wall:.0f} s, "
            f"{gigabytes:.2f} GB (bound 1.5)"
        )
        print(made.summary().select("method", "n_anchors", "mae_pp", "spearman"))


if __name__ == "__main__":
    main()
