"""Valid files of every format that the package reads, made here, and how each is read: what fuzzing begins with."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import disco_eval as de
from disco_eval import io, open_responses, read_predictions
from disco_eval.harness.maseval import MasevalDisco, read_maseval
from disco_eval.io import others
from disco_eval.io.lm_eval import read_lm_eval
from disco_eval.io.lmms_eval import read_lmms_eval
from disco_eval.io.vlmevalkit import vlmevalkit as readers_of_sheets
from disco_eval.numerics.forest import Trees
from disco_eval.select import sums
from tests.conftest import population
from tests.formats.make import in_parts
from tests.io.test_lm_eval import row, write_run

Read = Callable[[Path], Any]
LLS = [[-1.0, -2.0, -3.0], [-4.0, -1.0]]


def small(**options: Any) -> de.Responses:
    return population(6, 5, 3, **options)


def npz(folder: Path) -> None:
    io.write_npz(small(ragged=True), folder / "x.npz")
    io.write_npz(small(graded=True), folder / "y.npz")


def tables(suffix: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        io.write_table(small(), folder / f"x{suffix}")
        io.write_table(small(graded=True), folder / f"y{suffix}")

    return make


def authors(folder: Path) -> None:
    rng = np.random.default_rng(0)
    data = {
        name: {"correctness": rng.integers(0, 2, (3, 4)).astype(float), "predictions": rng.normal(size=(3, 4, 5))}
        for name in ("harness_hendrycksTest_a_5", "harness_arc_25")
    }
    for protocol in (0, 2, 4, 5):
        content = {"models": [f"m{k}" for k in range(4)], "data": data}
        (folder / f"{protocol}.pickle").write_bytes(pickle.dumps(content, protocol))


def lm_eval(folder: Path) -> None:
    for name in ("org/a", "b"):
        write_run(folder, name, {"t": [row(i, [-1.0, -2.0 - i, -3.0], i % 3) for i in range(3)]})


def details(folder: Path) -> None:
    old = [
        {"predictions": x, "choices": list("abc")[: len(x)], "gold_index": 0, "metrics": {"acc": 1.0}, "example": "Q"}
        for x in LLS
    ]
    new = [
        {
            "doc": {"id": str(i), "query": "Q", "choices": list("abc")[: len(x)], "gold_index": [0]},
            "model_response": {"logprobs": x},
            "metric": {"acc": 1.0},
        }
        for i, x in enumerate(LLS)
    ]
    text = [{k: str(v) for k, v in r.items()} for r in old]
    for name, rows in (("old", old), ("new", new), ("text", text)):
        where = folder / f"details_org__{name}"
        where.mkdir()
        pl.DataFrame(rows).write_parquet(where / "details_harness|arc:challenge|25_2024-01-01.parquet")


def helm(folder: Path) -> None:
    def write(name: str, method: str, **files: Any) -> None:
        (folder / name).mkdir()
        spec = {"name": f"{name}:x,model=m", "adapter_spec": {"model": f"org/{name}", "method": method}}
        for file, content in {"run_spec": spec, **files}.items():
            (folder / name / f"{file}.json").write_text(json.dumps(content))

    references = [{"output": {"text": t}, "tags": ["correct"] * (t == "a")} for t in "ab"]
    asked = [
        {
            "instance": {"id": "id1", "input": {"text": "Q"}, "references": references},
            "reference_index": k, "request_mode": "original", "train_trial_index": 0,
            "result": {"completions": [{"logprob": -1.0 - k}]},
        }
        for k in range(2)
    ]  # fmt: skip
    write("choices", "multiple_choice_separate_original", scenario_state={"request_states": asked})
    stats = [{"name": {"name": "exact_match"}, "mean": 1.0, "count": 1}]
    write("grades", "generation", per_instance_stats=[{"instance_id": "id1", "train_trial_index": 0, "stats": stats}])


def opencompass(folder: Path) -> None:
    where = folder / "predictions" / "model"
    where.mkdir(parents=True)
    rows = {str(k): {"prediction": "A", "gold": "AB"[k % 2], "origin_prompt": "Q"} for k in range(3)}
    (where / "data.json").write_text(json.dumps(rows))


def lmms_eval(folder: Path) -> None:
    metrics = {
        "seed": ("seed_all", [{"pred": "A", "answer": "AB"[k]} for k in range(2)], 50.0),
        "star": ("average", [{"score": float(k)} for k in range(2)], 0.5),
    }
    configs = {task: {"metric_list": [{"metric": name}]} for task, (name, _, _) in metrics.items()}
    reported = {task: {f"{name},none": mean} for task, (name, _, mean) in metrics.items()}
    about = {"model_name": "org/m", "results": reported, "configs": configs, "config": {"limit": None}}
    (folder / "20260101_101530_results.json").write_text(json.dumps(about))
    for task, (name, values, _) in metrics.items():
        rows = [{"doc_id": k, "target": "A", "input": "Q", name: value} for k, value in enumerate(values)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"20260101_101530_samples_{task}.jsonl").write_text(text)


def vlmevalkit(folder: Path) -> None:
    (folder / "m").mkdir()
    sheet = pl.DataFrame({"index": [0, 1], "question": ["Q", "R"], "A": ["a", "b"], "hit": [1, 0]})
    sheet.write_excel(folder / "m" / "m_Star_exact_matching_result.xlsx")
    sheet.write_csv(folder / "m" / "m_Yes_auxmatch.tsv", separator="\t")


def timm(folder: Path) -> None:
    names = [f"{k}.jpg" for k in range(4)]
    (folder / "labels.csv").write_text("filename,label\n" + "".join(f"{n},{k % 3}\n" for k, n in enumerate(names)))
    p = np.random.default_rng(0).dirichlet(np.ones(3), 4)
    pl.DataFrame({"filename": names, "prob": p.tolist()}).write_parquet(folder / "m.parquet")


def inspect(folder: Path) -> None:
    header: dict[str, Any] = {"task": "t", "model": "org/m", "created": "2026-01-01T00:00:00+00:00", "config": {}}
    header["dataset"] = {"sample_ids": [0, 1], "samples": 2}
    scores = {"match": {"value": "C", "answer": "x"}}
    samples = [
        {"id": k, "epoch": 1, "input": "Q", "target": "a", "messages": [], "output": {}, "scores": scores}
        for k in range(2)
    ]
    log = {
        "version": 2,
        "status": "success",
        "eval": header,
        "plan": {},
        "results": {},
        "stats": {},
        "samples": samples,
    }
    (folder / "log.json").write_text(json.dumps(log))


def store(folder: Path) -> None:
    small(ragged=True).save(folder / "s.zarr")


def condensation(folder: Path) -> None:
    de.condense(population(24, 20, 3), 8, rng=0, n_folds=2, curve=False).save(folder / "auto")
    perfect = {"predict_options": {"perfect": True}}
    de.condense(in_parts(), 8, rng=0, n_folds=2, curve=False, **perfect).save(folder / "parts")
    options = {"select": "uniform", "predict": "forest", "predict_options": {"n_trees": 3, "n_components": 2}}
    de.condense(population(12, 20, 3), 4, rng=0, n_folds=2, curve=False, **options).save(folder / "forest")


def predictions(folder: Path) -> None:
    de.study(["uniform+direct"], population(12, 10), "iid", [4], runs=1, rng=0, out=folder / "study")
    read_predictions(folder / "study").table.write_csv(folder / "table.csv")


def kept_sums(folder: Path) -> None:
    sums.update(small(), folder / "sums")


def maseval(folder: Path) -> None:
    trees = Trees(
        counts=np.array([3]), left=np.array([1, -1, -1]), right=np.array([2, -1, -1]), feature=np.array([0, -2, -2]),
        threshold=np.array([0.5, -2.0, -2.0]), value=np.array([0.5, 0.2, 0.8]),
    )  # fmt: skip
    MasevalDisco(np.array([3, 5]), np.zeros(6), np.ones((1, 6)), trees, 3, {}, {"pad_to_size": 3}).save(folder / "m")


def read_store(folder: Path) -> None:
    r = open_responses(folder / "s.zarr")
    r.scores()
    r.load()


def read_condensations(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        made = de.load(path)
        made.estimate(made.sources)
        repr(made)


def read_study(folder: Path) -> None:
    read_predictions(folder / "study").summary()
    read_predictions(folder / "table.csv").summary()


def read_all(named: Any) -> None:
    for _, read in named:
        read()


def each(pattern: str, read: Read) -> Read:
    def all_of(folder: Path) -> None:
        for file in sorted(folder.glob(pattern)):
            read(file)

    return all_of


def read_inspect(folder: Path) -> None:
    from disco_eval.io.inspect import inspect as readers

    read_all(readers([folder / "log.json"]))


READERS: dict[str, tuple[Callable[[Path], None], Read]] = {
    "npz": (npz, each("*.npz", io.read_npz)),
    "csv": (tables(".csv"), each("*.csv", io.read_table)),
    "jsonl": (tables(".jsonl"), each("*.jsonl", io.read_table)),
    "parquet": (tables(".parquet"), each("*.parquet", io.read_table)),
    "authors": (authors, each("*.pickle", io.read_authors)),
    "lm-eval": (lm_eval, lambda folder: read_lm_eval([folder])),
    "lmms-eval": (lmms_eval, lambda folder: read_lmms_eval([folder])),
    "vlmevalkit": (vlmevalkit, lambda folder: read_all(readers_of_sheets([folder]))),
    "details": (details, lambda folder: read_all(others.details([folder]))),
    "helm": (helm, lambda folder: read_all(others.helm([folder]))),
    "opencompass": (opencompass, lambda folder: read_all(others.opencompass([folder]))),
    "timm": (timm, lambda folder: read_all(others.timm([folder / "m.parquet"], folder / "labels.csv"))),
    "inspect": (inspect, read_inspect),
    "store": (store, read_store),
    "condensation": (condensation, read_condensations),
    "predictions": (predictions, read_study),
    "sums": (kept_sums, lambda folder: sums.update(small(), folder / "sums")),
    "maseval": (maseval, lambda folder: read_maseval(folder / "m").predict(np.zeros((1, 2, 3)))),
}
