"""Reading lm_eval's samples, beside a plain JSON parse of the same files: seconds and peak memory.

    python benchmarks/importing.py [--megabytes 1000] [--models 5]

The files are multiple choice as MMLU logs it: four requests a row that repeat the prompt, once with five worked
examples (few long rows) and once with none (many short rows).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

WANTED_S, WANTED_MB = 60, 500

PLAIN = """
import json, sys
for file in sys.argv[1:]:
    with open(file, "rb") as lines:
        for line in lines:
            json.loads(line)
"""


def write_run(folder: Path, model: str, n_bytes: int, shots: int, seed: int) -> None:
    """One model's results file and its samples: 57 tasks, as many rows as fill the bytes."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    context = "".join(
        f'Question {i}: what is the sum of the parts? \u2014 "all"\nA. x\nB. y\nAnswer: A\n\n' * 8 for i in range(shots)
    )
    n_rows = max(57, n_bytes // len(json.dumps(row(rng, context, 0))))
    names = [f"mmlu_subject_{t}" for t in range(57)]
    for t, task in enumerate(names):
        with (folder / f"samples_{task}_2026-01-01T00-00-00.000000.jsonl").open("w") as out:
            for doc in range(n_rows // 57 + (t < n_rows % 57)):
                out.write(json.dumps(row(rng, context, doc)) + "\n")
    about = {"results": {}, "model_name": model, "config": {}, "n-shot": dict.fromkeys(names, shots)}
    (folder / "results_2026-01-01T00-00-00.000000.json").write_text(json.dumps(about))


def row(rng: np.random.Generator, context: str, doc: int) -> dict[str, object]:
    ll = (-10 * rng.random(4)).round(4)
    gold = doc % 4
    prompt = f"{context}Question: number {doc}?\nAnswer:"
    answers = [[[str(x), "False"]] for x in ll]
    return {
        "doc_id": doc,
        "doc": {"question": prompt[-600:], "choices": ["alpha", "beta", "gamma", "delta"], "answer": gold},
        "target": str(gold),
        "arguments": {f"gen_args_{k}": {"arg_0": prompt, "arg_1": f" {c}"} for k, c in enumerate("ABCD")},
        "resps": answers,
        "filtered_resps": [a[0] for a in answers],
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": "0" * 64,
        "prompt_hash": "0" * 64,
        "target_hash": "0" * 64,
        "acc": float(int(np.argmax(ll)) == gold),
    }


MEASURE = """
import resource, subprocess, sys
quiet = subprocess.DEVNULL
subprocess.run(sys.argv[1:], check=True, stdout=quiet, stderr=quiet)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def measured(command: list[str]) -> tuple[float, float]:
    """Wall seconds and peak megabytes of a process of its own."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", MEASURE, *command], check=True, capture_output=True, text=True)
    return time.perf_counter() - start, int(done.stdout) / 1024


def compare(megabytes: int, models: int, shots: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        for m in range(models):
            write_run(runs / f"m{m}", f"team/model-{m}", megabytes * 10**6 // models, shots, m)
        files = sorted(map(str, runs.rglob("*.jsonl")))
        size = sum(Path(f).stat().st_size for f in files) / 1e6
        plain_s, plain_mb = measured([sys.executable, "-c", PLAIN, *files])
        disco = str(Path(sys.executable).with_name("disco"))
        ours_s, ours_mb = measured([disco, "import", "lm-eval", str(runs), "--out", str(Path(folder) / "x.zarr")])
    print(f"{shots}-shot: {size:.0f} MB of samples, {models} models")
    print(f"  json.loads of every line   {plain_s:6.1f} s  {size / plain_s:6.0f} MB/s  peak {plain_mb:5.0f} MB")
    print(f"  disco import lm-eval       {ours_s:6.1f} s  {size / ours_s:6.0f} MB/s  peak {ours_mb:5.0f} MB")
    print(f"  ratio {ours_s / plain_s:.2f}; wanted: 1 GB under {WANTED_S} s and {WANTED_MB} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--models", type=int, default=5)
    given = parser.parse_args()
    for shots in (5, 0):
        compare(given.megabytes, given.models, shots)


if __name__ == "__main__":
    main()
