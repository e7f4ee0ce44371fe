"""Outputs of other tools, one model a folder or file: lighteval and the Open LLM Leaderboard, HELM, OpenCompass, timm.

Each reader takes what the format really holds: probabilities where there is a log-likelihood per choice, else grades.

| tool | files | answers |
|---|---|---|
| leaderboard v1, lighteval up to 0.10 | ``details_*.parquet`` with ``predictions``, ``choices``, ``gold_index``, ``metrics`` | log-likelihoods |
| lighteval 0.13 | ``details_*.parquet`` with ``doc``, ``model_response``, ``metric`` | log-likelihoods where every choice has one |
| HELM 0.5 | ``run_spec.json``, ``scenario_state.json``, ``per_instance_stats.json`` | log-likelihoods of multiple_choice_separate, else exact_match |
| OpenCompass | ``MODEL/DATASET.json`` under ``predictions`` | right or wrong (its perplexities are per token, so no probabilities) |
| timm | parquet of ``filename`` and ``prob``, and a file of labels | probabilities |
"""  # noqa: E501

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..errors import AlignmentError, DiscoError, FormatError, ValidationError, some
from ..responses import Items, Models, Responses
from .frames import read_frame
from .records import (
    Record,
    check_metrics,
    decided,
    deciding,
    folders_with,
    grade_of,
    in_layout,
    literal,
    loglikelihoods_of,
    metric_of,
    once,
    one_model,
    read_json,
    reported_as,
    single,
)

_PROBABLE = "the most probable choice"  # what decides where choices are compared and no metric is read
_SAME_TEXT = "prediction is gold"

Reader = Callable[[], Responses]
Named = Iterator[tuple[str, Reader]]


def details(paths: Sequence[Path], *, metric: str | None = None) -> Named:
    """Readers for lighteval's and the leaderboard's parquet details, one per model.

    A model is named by the folder ``details_ORG__MODEL`` (leaderboard) or by the folders between ``details`` and the
    date (lighteval).
    """
    found: dict[str, list[Path]] = {}
    for folder in folders_with(paths, "details_*.parquet", "lighteval or the leaderboard"):
        found.setdefault(_details_name(folder), []).extend(sorted(folder.glob("details_*.parquet")))
    check_metrics(metric, (_details_task(file) for files in found.values() for file in files))
    for name, files in found.items():
        yield name, partial(_read_details, name, files, metric)


def _details_name(folder: Path) -> str:
    for part in reversed(folder.parts):
        if part.startswith("details_"):
            return part.removeprefix("details_").replace("__", "/")
    parts = list(folder.parts)
    if "details" in parts:
        inner = parts[len(parts) - parts[::-1].index("details") :]
        return "/".join(inner[:-1]) or folder.name  # the last folder is the date
    return folder.name


def _details_task(file: Path) -> str:
    task = file.stem.removeprefix("details_").rpartition("_")[0] or file.stem
    return task.split("|")[1].replace(":", "_") if task.count("|") >= 1 else task


def _read_details(name: str, files: list[Path], metric: str | None) -> Responses:
    with in_layout(files[0], "details of lighteval or the leaderboard"):
        records: list[Record] = []
        graded: dict[str, set[str]] = {}
        for file in files:
            task = _details_task(file)
            wanted = metric_of(task, metric)
            frame = read_frame(file, ".parquet")
            new = "model_response" in frame.columns
            for k, row in enumerate(frame.iter_rows(named=True)):
                try:
                    read = _lighteval_row(task, row, wanted) if new else _leaderboard_row(task, k, row, wanted)
                    records.append(read[0])
                    graded.setdefault(task, set()).add(read[1])
                except (KeyError, TypeError, ValueError, IndexError) as e:
                    raise FormatError(f"'{file}', row {k}: {str(e)[:160]}") from None
        by = {task: deciding(names, metric_of(task, metric)) for task, names in graded.items()}
        return one_model(name, records, _provenance("lighteval", name, metric or "default", by))


def _provenance(harness: str, name: str, metric: str, graded: Mapping[str, str]) -> dict[str, Any]:
    return {"harness": harness, "metric": metric, "graded": dict(graded), "models": {name: {}}}


def _leaderboard_row(task: str, k: int, row: Mapping[str, Any], metric: str | None) -> tuple[Record, str]:
    choices, predictions = literal(row["choices"]), literal(row["predictions"])
    ll = None
    if isinstance(predictions, (list, tuple)) and len(predictions) == len(choices) > 1:
        values = [p[0] if isinstance(p, (list, tuple)) else p for p in predictions]
        ll = loglikelihoods_of(values) if all(isinstance(v, (int, float)) for v in values) else None
    prompt = row.get("full_prompt") or row.get("example") or ""
    gold = literal(row.get("gold_index"))
    how, grade = _metric(literal(row["metrics"]), metric)
    return Record(f"{task}/{k}", task, grade, _digest(prompt, choices), ll, _label(gold, ll)), how


def _lighteval_row(task: str, row: Mapping[str, Any], metric: str | None) -> tuple[Record, str]:
    """Rows are shuffled, so the document's own id names the item."""
    doc, response = literal(row["doc"]), literal(row["model_response"])
    choices = literal(doc["choices"])
    logprobs = literal(response.get("logprobs"))
    whole = isinstance(logprobs, (list, tuple)) and len(logprobs) == len(choices) > 1
    ll = loglikelihoods_of(logprobs) if whole else None
    how, grade = _metric(literal(row["metric"]), metric)
    digest = _digest(doc.get("query", ""), choices)
    return Record(f"{task}/{doc['id']}", task, grade, digest, ll, _label(literal(doc.get("gold_index")), ll)), how


def _metric(metrics: Mapping[str, Any], wanted: str | None) -> tuple[str, float]:
    """The metric that decides a row, and its grade."""
    have = {k: v for k, v in metrics.items() if v is not None}
    name = decided(wanted, have, ("acc", "acc_norm", "exact_match"))
    return name, grade_of(have[name])


def _label(gold: Any, ll: Sequence[float] | None) -> int | None:
    """The right choice, where there is one: several right choices are no label."""
    if isinstance(gold, (list, tuple)):
        gold = gold[0] if len(gold) == 1 else None
    if ll is None or gold is None or isinstance(gold, bool) or not str(gold).lstrip("-").isdecimal():
        return None
    return int(gold) if 0 <= int(gold) < len(ll) else None


def _digest(prompt: Any, choices: Any) -> str:
    text = "\x1f".join([str(prompt), *map(str, choices)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# ---- HELM ------------------------------------------------------------------------------------------------------


def helm(paths: Sequence[Path], *, metric: str | None = None) -> Named:
    """Readers for HELM's run folders, one per model; several scenarios of a model are its subtasks."""
    found: dict[str, list[Path]] = {}
    tasks: set[str] = set()
    for folder in folders_with(paths, "run_spec.json", "helm-run"):
        spec = read_json(folder / "run_spec.json")
        try:
            found.setdefault(str(spec["adapter_spec"]["model"]), []).append(folder)
            tasks.add(_helm_task(spec, folder))
        except (KeyError, TypeError, AttributeError):
            raise FormatError(f"'{folder / 'run_spec.json'}' names no model (adapter_spec.model)") from None
    check_metrics(metric, tasks)
    for name, folders in found.items():
        yield name, partial(_read_helm, name, folders, metric)


def _helm_task(spec: Mapping[str, Any], folder: Path) -> str:
    """A run's name but for its model: ``boolq:model=org_m0,data_augmentation=canonical`` has it in between."""
    name, colon, options = str(spec.get("name", folder.name)).partition(":")
    others = [one for one in options.split(",") if one and not one.startswith("model=")]
    return (name + colon + ",".join(others)).rstrip(":").replace("/", "_")


def _read_helm(name: str, folders: list[Path], metric: str | None) -> Responses:
    with in_layout(folders[0], "a run of HELM"):
        records: list[Record] = []
        graded: dict[str, str] = {}
        for folder in folders:
            spec = read_json(folder / "run_spec.json")
            task = _helm_task(spec, folder)
            method = str(spec["adapter_spec"].get("method", ""))
            try:
                if method.startswith("multiple_choice_separate"):
                    records += _helm_choices(task, read_json(folder / "scenario_state.json"))
                    graded[task] = _PROBABLE
                else:
                    graded[task] = metric_of(task, metric) or "exact_match"
                    records += _helm_grades(task, read_json(folder / "per_instance_stats.json"), graded[task])
            except (KeyError, TypeError, IndexError) as e:
                raise FormatError(f"'{folder}' is not a run of HELM in the known layout: {e} is missing") from None
        return one_model(name, records, _provenance("helm", name, metric or "exact_match", graded))


def _helm_choices(task: str, state: Mapping[str, Any]) -> Iterator[Record]:
    """One request per choice; calibrated methods ask each twice, and the calibration requests are passed over."""
    asked: dict[str, dict[int, float]] = {}
    instances: dict[str, Any] = {}
    for one in state["request_states"]:
        if one.get("request_mode") == "calibration" or one.get("train_trial_index", 0) != 0:
            continue
        if one["instance"].get("perturbation"):
            continue
        item = str(one["instance"]["id"])
        instances[item] = one["instance"]
        asked.setdefault(item, {})[int(one["reference_index"])] = float(one["result"]["completions"][0]["logprob"])
    for item, by_choice in asked.items():
        references = instances[item]["references"]
        if sorted(by_choice) != list(range(len(references))):
            raise ValidationError(
                f"instance '{item}' of '{task}' has answers to {len(by_choice)} of {len(references)} choices"
            )
        ll = loglikelihoods_of([by_choice[k] for k in range(len(references))])
        right = [k for k, r in enumerate(references) if "correct" in r.get("tags", [])]
        grade = float(int(np.argmax(ll)) in right)
        texts = [r["output"]["text"] for r in references]
        digest = _digest(instances[item]["input"]["text"], texts)
        yield Record(f"{task}/{item}", task, grade, digest, ll, right[0] if len(right) == 1 else None)


def _helm_grades(task: str, stats: Sequence[Mapping[str, Any]], metric: str) -> Iterator[Record]:
    for one in stats:
        if one.get("train_trial_index", 0) != 0 or one.get("perturbation"):
            continue
        means = {
            s["name"]["name"]: s["mean"] for s in one["stats"] if s.get("count") and not s["name"].get("perturbation")
        }
        if metric not in means:
            raise ValidationError(
                f"instance '{one['instance_id']}' of '{task}' has no '{metric}'; it has {some(means)}"
            )
        yield Record(f"{task}/{one['instance_id']}", task, grade_of(means[metric]))


# ---- OpenCompass -----------------------------------------------------------------------------------------------


def opencompass(paths: Sequence[Path]) -> Named:
    """Readers for OpenCompass's ``predictions/MODEL/DATASET.json``, one per model: right or wrong.

    Its perplexities are averages per token, not log-likelihoods of choices, so no probabilities are made of them. Right
    is a prediction that is the gold text, and only where that gives what ``results/MODEL/DATASET.json`` says, as far as
    there is one: answers that the tool looks for a letter or a number in are graded otherwise.
    """
    found: dict[str, list[Path]] = {}
    every: list[Path] = []
    for path in paths:
        files = (
            sorted(f for f in path.rglob("*.json") if f.parent.parent.name == "predictions") if path.is_dir() else []
        )
        if not files:
            raise FormatError(
                f"'{path}' holds no predictions/MODEL/DATASET.json; give the folder that OpenCompass wrote"
            )
        every += files
    for file in once(every):
        found.setdefault(file.parent.name, []).append(file)
    for name, files in found.items():
        yield name, partial(_read_opencompass, name, files)


def _read_opencompass(name: str, files: list[Path]) -> Responses:
    with in_layout(files[0], "predictions of OpenCompass"):
        records: list[Record] = []
        checked = []
        for file in files:
            before, rows = len(records), read_json(file)
            if not isinstance(rows, dict):
                raise FormatError(f"'{file}' is not a table of predictions by number")
            for number, row in rows.items():
                if not isinstance(row, dict) or "prediction" not in row or "gold" not in row:
                    raise FormatError(
                        f"'{file}', entry {number}: it has no prediction and gold, so nothing says what is right"
                    )
                right = str(row["prediction"]).strip() == str(row["gold"]).strip()
                records.append(
                    Record(f"{file.stem}/{number}", file.stem, float(right), _digest(row.get("origin_prompt", ""), []))
                )
            checked.append(_as_reported(file, [r.grade for r in records[before:]]))
        graded = dict.fromkeys((file.stem for file in files), _SAME_TEXT)
        provenance = _provenance("opencompass", name, _SAME_TEXT, graded)
        return one_model(name, records, {**provenance, "models": {name: {"as_reported": all(checked)}}})


def _as_reported(file: Path, grades: list[float]) -> bool:
    """Whether the results beside predictions give the mean of their grades; FormatError where they give another."""
    beside = file.parents[2] / "results" / file.parent.name / file.name
    results = read_json(beside) if beside.is_file() else {}
    said = {k: v for k, v in results.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
    if not said or not grades:
        return False
    mean = float(np.mean(grades))
    if not reported_as(mean, said.values()):
        known = ", ".join(f"{k} {v:.4g}" for k, v in list(said.items())[:3])
        raise FormatError(
            f"'{file}': {100 * mean:.1f} % of the predictions are the gold text, but '{beside}' says {known}, so right "
            "is something else here. Give grades as a table (disco import table)"
        )
    return True


# ---- timm ------------------------------------------------------------------------------------------------------


def timm(paths: Sequence[Path], labels: Path) -> Named:
    """Readers for timm's ``inference.py --topk 0 --output-type prob --results-format parquet``, one file a model.

    ``labels`` is a CSV with columns filename and label (the class's number); items keep its order.
    """
    names, numbers = _timm_labels(labels)
    named: dict[str, Path] = {}
    for path in once(paths):
        if not path.is_file():
            raise FormatError(f"'{path}' is not a file; give the parquet files, one for each model")
        if named.setdefault(path.stem, path) != path:
            raise AlignmentError(
                f"'{named[path.stem]}' and '{path}' would both be '{path.stem}', since models are named by their "
                "files; rename one"
            )
        yield path.stem, partial(_read_timm, path, names, numbers)


def _timm_labels(file: Path) -> tuple[list[str], list[int]]:
    frame = read_frame(file, ".csv")
    try:
        names, numbers = frame["filename"].cast(pl.String).to_list(), frame["label"].cast(pl.Int64).to_list()
    except (pl.exceptions.PolarsError, OSError) as e:
        raise FormatError(
            f"'{file}' is not a CSV with columns filename and label: {str(e).splitlines()[0][:120]}"
        ) from None
    if None in names or None in numbers:
        raise FormatError(f"'{file}' has empty cells")
    return names, numbers


def _read_timm(path: Path, names: list[str], numbers: list[int]) -> Responses:
    with in_layout(path, "an output of timm"):
        frame = read_frame(path, ".parquet")
        index = next((c for c in ("filename", "__index_level_0__") if c in frame.columns), None)
        if index is None:
            raise FormatError(f"'{path}' has no column filename; it has {some(frame.columns, 6)}")
        separate = sorted(
            (c for c in frame.columns if c.startswith("prob_")), key=lambda c: int(c.removeprefix("prob_"))
        )
        if "prob" not in frame.columns and not separate:
            kind = (
                "logits; run with --output-type prob"
                if any(c.startswith("logit") for c in frame.columns)
                else "no probabilities"
            )
            raise FormatError(f"'{path}' holds {kind} (columns: {some(frame.columns, 6)})")
        own = frame[index].cast(pl.String).to_list()
        missing = sorted(set(names) - set(own))
        if missing:
            raise AlignmentError(f"'{path}' has no answer to {len(missing)} labelled files: {some(missing)}")
        table = frame.select(separate).to_numpy() if separate else np.array(frame["prob"].to_list(), dtype=np.float64)
        if table.ndim != 2 or table.shape[1] < 2:
            raise DiscoError(f"'{path}' holds only the top class's probability; run inference.py with --topk 0")
        where = {n: k for k, n in enumerate(own)}
        probs = single(table[[where[n] for n in names]][None])
        items = Items(names, n_choices=np.full(len(names), probs.shape[2]), label=numbers)
        made = Responses.from_probs(Models([path.stem]), items, probs)
        return Responses(made.models, items, made.correct, made.probs, {"harness": "timm", "models": {path.stem: {}}})
