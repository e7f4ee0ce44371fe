"""What lmms-eval writes with ``--log_samples``: a results file per run, and beside it a samples file per task.

The files look like those of lm-evaluation-harness, with the date in front (``20260105_101530_samples_mmstar.jsonl``),
without the documents and without the requests for every choice, so answers are grades. Items are named
``task/doc_id``; their digest is a hash over the question as the model saw it, without pictures.

Most vision tasks log not a number but what their metric is made from later: ``{"score": 1.0, "category": ...}``, or the
prediction beside the right answer. A score is taken as it is. Where there are only prediction and answer, the same text
counts as right, and only if the mean over the task is what the results file says.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from ..errors import AlignmentError, DiscoError, FormatError, ValidationError, some
from ..responses import Responses
from .importing import all_of
from .records import (
    MOST_ARGUMENTS,
    Record,
    Wanted,
    check_metrics,
    deciding,
    grade_of,
    in_layout,
    lines_of,
    metric_of,
    once,
    one_model,
    one_models,
    read_json,
    reported_as,
)

RESULTS = "*_results.json"
TASK, DOCUMENTS = "disco_task", "disco_doc_ids"  # metadata of a task that `harness.lmms` made: whose anchors, and which
PREFERRED = ("acc", "accuracy", "exact_match", "average")
_GRADES = ("score", "correct", "is_correct", "hit", "acc", "accuracy", "exact_match")
_PREDICTED = ("parsed_pred", "pred_answer", "prediction", "pred")
_RIGHT = ("answer", "gt_answer", "ground_truth", "gt", "target")
_OURS = {
    "doc_id", "doc", "doc_hash", "target", "arguments", "input", "input_media", "resps", "filtered_resps",
    "token_counts", "submission",
}  # fmt: skip


@dataclass
class Run:
    """One model's evaluation: what its results files say of each task, and the samples file of each."""

    model: str
    results: Path
    tasks: dict[str, Logged] = field(default_factory=dict)


@dataclass(frozen=True)
class Logged:
    """A task as a run logged it: under which name, the samples file, and what the results file says.

    ``documents`` are those that a task with anchors alone has, by their number in the whole task; None for all.
    """

    name: str
    samples: Path
    about: Mapping[str, Any]
    documents: list[int] | None


def lmms_eval(paths: Sequence[Path], *, metric: str | None = None) -> Iterator[tuple[str, Callable[[], Responses]]]:
    """Readers for output folders of lmms-eval, one per model; several tasks of a model are its subtasks.

    ``metric`` says what is right; by default `acc`, `accuracy`, `exact_match` or `average`, else the task's first that
    every row has. Tasks may have metrics of their own: ``"mmstar=average;mmbench_*=gpt_eval_score;acc"``.

    Raises FormatError for a folder without results, or results without samples, or a metric for a task that is not
    there; AlignmentError where a model has two runs of one task.
    """
    runs = find_runs(paths)
    check_metrics(metric, (task for run in runs for task in run.tasks))
    for run in runs:
        yield run.model, partial(read_run, run, metric=metric)


def read_lmms_eval(
    paths: Iterable[str | Path], *, metric: str | None = None, items: ArrayLike | None = None
) -> Responses:
    """Answers of every model in some output folders, in memory. ``items`` keeps only those.

    Raises what `lmms_eval` and `check_items` raise.
    """
    return all_of([read_run(run, metric=metric, items=items) for run in find_runs(paths)], items)


def find_runs(paths: Iterable[str | Path]) -> list[Run]:
    """Every run in some output folders, however deep; later files of the same model add tasks."""
    runs: dict[str, Run] = {}
    files: list[Path] = []
    for path in paths:
        folder = Path(path)
        found = sorted(folder.rglob(RESULTS)) if folder.is_dir() else []
        if not found:
            raise FormatError(f"'{folder}' holds no {RESULTS} of lmms-eval; give the folder that --output_path wrote")
        files += found
    for file in once(files):
        with in_layout(file, "a results file of lmms-eval"):
            _add(runs, file)
    return list(runs.values())


def _add(runs: dict[str, Run], file: Path) -> None:
    about = read_json(file)
    if not isinstance(about, dict) or "results" not in about:
        raise FormatError(f"'{file}' is not a results file of lmms-eval (no 'results' in it)")
    start = file.name.removesuffix("results.json") + "samples_"
    samples = [f for f in sorted(file.parent.glob("*.jsonl")) if f.name.startswith(start)]
    if not samples:
        raise FormatError(f"'{file}' has no samples files beside it; run lmms-eval with --log_samples")
    model = str(about.get("model_name") or file.parent.name).rstrip("/")
    run = runs.setdefault(model, Run(model, file))
    for sample in samples:
        name = sample.stem.removeprefix(start)
        task, documents = _asked(name, about, str(file))
        if task in run.tasks:
            raise AlignmentError(
                f"'{model}' has two runs of {task}: '{run.tasks[task].samples}' and '{sample}'; keep one"
            )
        before = next(iter(run.tasks.values()), None)
        if before is not None:
            one_models(model, [(run.results, _model_args(before.about)), (file, _model_args(about))])
        run.tasks[task] = Logged(name, sample, about, documents)


def _asked(name: str, about: Mapping[str, Any], file: str) -> tuple[str, list[int] | None]:
    """Whose documents a logged task has, and which where it is one of `harness.lmms`."""
    config = (about.get("configs") or {}).get(name)
    metadata = config.get("metadata") if isinstance(config, dict) else None
    if not isinstance(metadata, dict) or TASK not in metadata:
        return name, None
    task, documents = metadata[TASK], metadata.get(DOCUMENTS)
    known = isinstance(documents, list) and all(type(d) is int and d >= 0 for d in documents)
    if not isinstance(task, str) or not known or len(set(documents or ())) != len(documents or ()):
        raise FormatError(f"'{file}' does not say which documents of '{task}' were asked ({DOCUMENTS} of '{name}')")
    return task, documents


def read_run(run: Run, *, metric: str | None = None, items: ArrayLike | None = None) -> Responses:
    """One model's answers to all items that it was run on; nothing is read of tasks that have none of ``items``.

    Raises FormatError where a row cannot be read or nothing in it says what is right, naming the file;
    ValidationError where a grade lies outside 0 to 1.
    """
    with in_layout(run.results, "a run of lmms-eval"):
        records: list[Record] = []
        about: dict[str, Any] = {}
        graded: dict[str, str] = {}
        kept = Wanted(items)
        for task in kept.tasks(run.tasks):
            logged = run.tasks[task]
            wanted = metric_of(task, metric)
            found, metrics = _read_task(task, logged, wanted)
            records += found
            about[task] = _about(logged) | {"metric": metrics}
            graded[task] = deciding(metrics, wanted)
        known = {"date": max(str(a["date"]) for a in about.values()), "tasks": about}
        provenance = {
            "harness": "lmms-eval",
            "metric": metric or "default",
            "graded": graded,
            "models": {run.model: known},
        }
        return one_model(run.model, kept.of(records), provenance)


def _about(logged: Logged) -> dict[str, Any]:
    results = logged.about
    whole = ((results.get("n-samples") or {}).get(logged.name) or {}).get("original")
    return {
        "date": results.get("date"),
        "version": (results.get("versions") or {}).get(logged.name),
        "n-shot": (results.get("n-shot") or {}).get(logged.name),
        "model_args": str(_model_args(results) or "")[:MOST_ARGUMENTS],
        "lmms_eval_version": results.get("lmms_eval_version"),
        "partial": _limited(results) or logged.documents is not None,
        "documents": whole if logged.documents is None else None,
    }


def _model_args(results: Mapping[str, Any]) -> Any:
    return (results.get("config") or {}).get("model_args")


def _limited(results: Mapping[str, Any]) -> bool:
    config = results.get("config") or {}
    return (config.get("limit") or -1) > 0 or bool(config.get("offset"))  # -1 asks for all, as no limit does


# ---- one samples file ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """A row's item, a hash of what the model was asked, and each metric's grade, and whether it is told as such.

    In place of a grade stands what is wrong with it, which matters only where this metric is the one that counts.
    """

    item: str
    digest: str
    grades: dict[str, tuple[float, bool] | ValidationError]

    def grade(self, metric: str) -> tuple[float, bool]:
        found = self.grades[metric]
        if isinstance(found, ValidationError):
            raise found
        return found


def _read_task(task: str, logged: Logged, metric: str | None) -> tuple[list[Record], list[str]]:
    """A record for every row, and the metrics that they are graded by."""
    file, results = logged.samples, logged.about
    listed = ((results.get("configs") or {}).get(logged.name) or {}).get("metric_list") or []
    names = [str(m["metric"]) for m in listed if m["metric"] not in _OURS]
    rows = [_row(task, logged.documents, line, names, metric, f"'{file}', line {k}") for k, line in lines_of(file)]
    if not rows:
        raise FormatError(f"'{file}' is empty; the run did not finish")
    expected = ((results.get("n-samples") or {}).get(logged.name) or {}).get("original")
    if isinstance(expected, int) and not _limited(results) and len(rows) < expected:
        raise FormatError(
            f"'{file}' has {len(rows)} documents, but the task has {expected}: rows are lost. Run the evaluation again."
        )
    chosen = _chosen(rows, str(file))
    metrics = list(dict.fromkeys(chosen))
    for name in metrics:
        grades = [row.grade(name) for row, own in zip(rows, chosen, strict=True) if own == name]
        if not all(told for _, told in grades):
            reported = (results.get("results") or {}).get(logged.name) or {}
            _as_reported(float(np.mean([grade for grade, _ in grades])), name, reported, str(file))
    return [Record(r.item, task, r.grade(name)[0], r.digest) for r, name in zip(rows, chosen, strict=True)], metrics


def _row(task: str, documents: list[int] | None, line: bytes, names: list[str], metric: str | None, where: str) -> _Row:
    try:
        row = _decoded(line)
        document = row["doc_id"]
        if isinstance(document, bool) or not isinstance(document, (int, str)):
            raise FormatError(f"doc_id is {document!r}, expected a number")
        if documents is not None:
            if document not in range(len(documents)):
                raise FormatError(f"doc_id is {document!r}, but {len(documents)} documents were asked")
            document = documents[int(document)]
        best = [n for n in PREFERRED if n in row][:1]
        asked = metric.split("|") if metric else []
        wanted = asked or best or [n for n in names if n in row] or [n for n in row if n not in _OURS]
        found = {name: _grade(row[name], where) for name in wanted if name in row}
    except (KeyError, TypeError, ValueError, RecursionError) as e:
        if isinstance(e, DiscoError):
            raise type(e)(f"{where}: {e}") from None
        why = f"there is no {e}" if isinstance(e, KeyError) else "the line is cut short or not JSON"
        raise FormatError(f"{where}: {why}. Run the evaluation again.") from None
    if asked and not any(name in row for name in asked):
        raise FormatError(f"{where}: there is no metric '{metric}'; the row has {some(sorted(set(row) - _OURS))}")
    prompt = row.get("input")
    digest = hashlib.sha256(f"{prompt}\x1f{row.get('target')}".encode()).hexdigest()[:16]
    return _Row(
        f"{task}/{document}",
        digest if isinstance(prompt, str) else "",
        {name: grade for name, grade in found.items() if grade is not None},
    )


def _decoded(line: bytes) -> dict[str, Any]:
    """A row; NaN and infinite numbers, which are no JSON, are what Python wrote for a metric that had no value."""
    try:
        row = msgspec.json.decode(line)
    except msgspec.MsgspecError:
        row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError("no object")
    return row


def _grade(value: Any, where: str) -> tuple[float, bool] | ValidationError | None:
    """The grade in what a metric logged, and whether it is told as such; None where nothing says what is right."""
    if isinstance(value, (bool, int, float)):
        return _told(value, where)
    if not isinstance(value, dict):
        return None
    told = next((value[name] for name in _GRADES if isinstance(value.get(name), (bool, int, float))), None)
    if told is not None:
        return _told(told, where)
    predicted = next((value[name] for name in _PREDICTED if name in value), None)
    right = next((value[name] for name in _RIGHT if name in value), None)
    if isinstance(predicted, list) and len(predicted) == 1:
        predicted = predicted[0]
    if not isinstance(right, (str, int)):
        return None
    return float(str(predicted).strip().lower() == str(right).strip().lower()), False


def _told(value: Any, where: str) -> tuple[float, bool] | ValidationError:
    try:
        return grade_of(value), True
    except ValidationError as e:
        return ValidationError(f"{where}: {e}")


def _chosen(rows: list[_Row], file: str) -> list[str]:
    """The metric of every row: one that all have, or, where each has exactly one, that one (MME's two halves)."""
    everywhere = next((name for name in rows[0].grades if all(name in row.grades for row in rows)), None)
    if everywhere is not None:
        return [everywhere] * len(rows)
    if all(len(row.grades) == 1 for row in rows):
        return [next(iter(row.grades)) for row in rows]
    have = sorted({name for row in rows for name in row.grades})
    raise FormatError(
        f"'{file}': no metric grades every document ({some(have) or 'none grades any'}); choose one with --metric, or "
        "give grades as a table (disco import table)"
    )


def _as_reported(mean: float, name: str, reported: Mapping[str, Any], file: str) -> None:
    """Refuse grades that were made from predictions and answers where their mean is not the one in the results."""
    said = [v for k, v in reported.items() if k.partition(",")[0] == name and isinstance(v, (int, float))]
    if not reported_as(mean, said):
        known = " and ".join(f"{v:.4g}" for v in said) or "nothing"
        raise FormatError(
            f"'{file}' holds predictions and answers for '{name}', no grades. {100 * mean:.1f} % of them are the same "
            f"text, but the results file says {known}, so right is something else here. Choose another --metric, or "
            "give grades as a table (disco import table)"
        )
