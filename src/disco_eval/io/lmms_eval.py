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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from ..errors import AlignmentError, DiscoError, FormatError, some
from ..responses import Responses
from .importing import check_items, join
from .records import Record, grade_of, in_layout, one_model, read_json

RESULTS = "*_results.json"
PREFERRED = ("acc", "accuracy", "exact_match", "average")
_GRADES = ("score", "correct", "is_correct", "hit", "acc", "accuracy", "exact_match")
_PREDICTED = ("parsed_pred", "pred_answer", "prediction", "pred")
_RIGHT = ("answer", "gt_answer", "ground_truth", "gt", "target")
_OURS = {
    "doc_id", "doc", "doc_hash", "target", "arguments", "input", "input_media", "resps", "filtered_resps",
    "token_counts", "submission",
}  # fmt: skip
_AGREES = 0.001  # how far the mean grade may lie from what the results file says, rounded as that may be


@dataclass
class Run:
    """One model's evaluation: what its results files say of each task, and the samples file of each."""

    model: str
    results: Path
    tasks: dict[str, tuple[Path, Mapping[str, Any]]] = field(default_factory=dict)


def lmms_eval(paths: Sequence[Path], *, metric: str | None = None) -> Iterator[tuple[str, Callable[[], Responses]]]:
    """Readers for output folders of lmms-eval, one per model; several tasks of a model are its subtasks.

    ``metric`` says what is right; by default `acc`, `accuracy`, `exact_match` or `average`, else the task's first that
    every row has. Raises FormatError for a folder without results, or results without samples; AlignmentError where a
    model has two runs of one task.
    """
    for run in find_runs(paths):
        yield run.model, partial(read_run, run, metric=metric)


def read_lmms_eval(
    paths: Iterable[str | Path], *, metric: str | None = None, items: ArrayLike | None = None
) -> Responses:
    """Answers of every model in some output folders, in memory. ``items`` keeps only those.

    Raises what `lmms_eval` and `check_items` raise.
    """
    parts = [read_run(run, metric=metric) for run in find_runs(paths)]
    if items is not None:
        wanted = np.asarray(items, dtype=str)
        parts = [r.pick(items=np.isin(r.items.ids, wanted)) for r in parts]
    for other in parts[1:]:
        check_items(parts[0], other, False)
    return join([r.align(parts[0].items.ids) for r in parts])


def find_runs(paths: Iterable[str | Path]) -> list[Run]:
    """Every run in some output folders, however deep; later files of the same model add tasks."""
    runs: dict[str, Run] = {}
    for path in paths:
        folder = Path(path)
        found = sorted(folder.rglob(RESULTS)) if folder.is_dir() else []
        if not found:
            raise FormatError(f"'{folder}' holds no {RESULTS} of lmms-eval; give the folder that --output_path wrote")
        for file in found:
            with in_layout(file, "a results file of lmms-eval"):
                _add(runs, file)
    return list(runs.values())


def _add(runs: dict[str, Run], file: Path) -> None:
    about = read_json(file)
    if not isinstance(about, dict) or "results" not in about:
        raise FormatError(f"'{file}' is not a results file of lmms-eval (no 'results' in it)")
    start = file.name.removesuffix("results.json") + "samples_"
    samples = {f.stem.removeprefix(start): f for f in sorted(file.parent.glob("*.jsonl")) if f.name.startswith(start)}
    if not samples:
        raise FormatError(f"'{file}' has no samples files beside it; run lmms-eval with --log_samples")
    model = str(about.get("model_name") or file.parent.name).rstrip("/")
    run = runs.setdefault(model, Run(model, file))
    twice = sorted(set(run.tasks) & set(samples))
    if twice:
        raise AlignmentError(
            f"'{model}' has two runs of {some(twice)}: '{run.tasks[twice[0]][0]}' and '{samples[twice[0]]}'; keep one"
        )
    run.tasks |= {task: (sample, about) for task, sample in samples.items()}


def read_run(run: Run, *, metric: str | None = None) -> Responses:
    """One model's answers to all items that it was run on.

    Raises FormatError where a row cannot be read or nothing in it says what is right, naming the file;
    ValidationError where a grade lies outside 0 to 1.
    """
    with in_layout(run.results, "a run of lmms-eval"):
        records, about = [], {}
        for task, (file, results) in sorted(run.tasks.items()):
            records += _read_task(task, file, results, metric)
            about[task] = _about(task, results)
        known = {"date": max(str(a["date"]) for a in about.values()), "tasks": about}
        provenance = {"harness": "lmms-eval", "metric": metric or "default", "models": {run.model: known}}
        return one_model(run.model, records, provenance)


def _about(task: str, results: Mapping[str, Any]) -> dict[str, Any]:
    config = results.get("config") or {}
    return {
        "date": results.get("date"),
        "version": (results.get("versions") or {}).get(task),
        "n-shot": (results.get("n-shot") or {}).get(task),
        "model_args": str(config.get("model_args", ""))[:300],
        "lmms_eval_version": results.get("lmms_eval_version"),
        "partial": _limited(results),
    }


def _limited(results: Mapping[str, Any]) -> bool:
    config = results.get("config") or {}
    return (config.get("limit") or -1) > 0 or bool(config.get("offset"))  # -1 asks for all, as no limit does


# ---- one samples file ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """A row's item, a hash of what the model was asked, and each metric's grade, and whether it is told as such."""

    item: str
    digest: str
    grades: dict[str, tuple[float, bool]]


def _read_task(task: str, file: Path, results: Mapping[str, Any], metric: str | None) -> list[Record]:
    listed = ((results.get("configs") or {}).get(task) or {}).get("metric_list") or []
    names = [str(m["metric"]) for m in listed if m["metric"] not in _OURS]
    rows = [_row(task, line, names, metric, f"'{file}', line {k}") for k, line in _lines(file)]
    if not rows:
        raise FormatError(f"'{file}' is empty; the run did not finish")
    expected = ((results.get("n-samples") or {}).get(task) or {}).get("original")
    if isinstance(expected, int) and not _limited(results) and len(rows) < expected:
        raise FormatError(
            f"'{file}' has {len(rows)} documents, but the task has {expected}: rows are lost. Run the evaluation again."
        )
    chosen = _chosen(rows, metric, str(file))
    for name in dict.fromkeys(chosen):
        grades = [row.grades[name] for row, own in zip(rows, chosen, strict=True) if own == name]
        if not all(told for _, told in grades):
            reported = (results.get("results") or {}).get(task) or {}
            _as_reported(float(np.mean([grade for grade, _ in grades])), name, reported, str(file))
    return [Record(r.item, task, r.grades[name][0], r.digest) for r, name in zip(rows, chosen, strict=True)]


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with file.open("rb") as lines:
            yield from ((k, line) for k, line in enumerate(lines, 1) if line.strip())
    except OSError as e:
        raise FormatError(f"'{file}' cannot be read: {e.strerror}") from None


def _row(task: str, line: bytes, names: list[str], metric: str | None, where: str) -> _Row:
    try:
        row = msgspec.json.decode(line)
        document = row["doc_id"]
        if isinstance(document, bool) or not isinstance(document, (int, str)):
            raise FormatError(f"doc_id is {document!r}, expected a number")
        best = [n for n in PREFERRED if n in row][:1]
        wanted = [metric] if metric else best or [n for n in names if n in row] or [n for n in row if n not in _OURS]
        found = {name: _grade(row[name]) for name in wanted if name in row}
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, RecursionError) as e:
        if isinstance(e, DiscoError):
            raise type(e)(f"{where}: {e}") from None
        why = "the line is cut short or not JSON" if isinstance(e, msgspec.MsgspecError) else f"there is no {e}"
        raise FormatError(f"{where}: {why}. Run the evaluation again.") from None
    if metric and metric not in row:
        raise FormatError(f"{where}: there is no metric '{metric}'; the row has {some(sorted(set(row) - _OURS))}")
    asked = row.get("input")
    digest = hashlib.sha256(f"{asked}\x1f{row.get('target')}".encode()).hexdigest()[:16]
    return _Row(
        f"{task}/{document}",
        digest if isinstance(asked, str) else "",
        {name: grade for name, grade in found.items() if grade is not None},
    )


def _grade(value: Any) -> tuple[float, bool] | None:
    """The grade in what a metric logged, and whether it is told as such; None where nothing says what is right."""
    if isinstance(value, (bool, int, float)):
        return grade_of(value), True
    if not isinstance(value, dict):
        return None
    told = next((value[name] for name in _GRADES if isinstance(value.get(name), (bool, int, float))), None)
    if told is not None:
        return grade_of(told), True
    predicted = next((value[name] for name in _PREDICTED if name in value), None)
    right = next((value[name] for name in _RIGHT if name in value), None)
    if isinstance(predicted, list) and len(predicted) == 1:
        predicted = predicted[0]
    if not isinstance(right, (str, int)):
        return None
    return float(str(predicted).strip().lower() == str(right).strip().lower()), False


def _chosen(rows: list[_Row], metric: str | None, file: str) -> list[str]:
    """The metric of every row: one that all have, or, where each has exactly one, that one (MME's two halves)."""
    everywhere = next((name for name in rows[0].grades if all(name in row.grades for row in rows)), None)
    if everywhere is not None:
        return [everywhere] * len(rows)
    if not metric and all(len(row.grades) == 1 for row in rows):
        return [next(iter(row.grades)) for row in rows]
    have = sorted({name for row in rows for name in row.grades})
    raise FormatError(
        f"'{file}': no metric grades every document ({some(have) or 'none grades any'}); choose one with --metric, or "
        "give grades as a table (disco import table)"
    )


def _as_reported(mean: float, name: str, reported: Mapping[str, Any], file: str) -> None:
    """Refuse grades that were made from predictions and answers where their mean is not the one in the results."""
    said = [v for k, v in reported.items() if k.partition(",")[0] == name and isinstance(v, (int, float))]
    if not any(abs(v - mean) <= _AGREES or abs(v / 100 - mean) <= _AGREES for v in said):
        known = " and ".join(f"{v:.4g}" for v in said) or "nothing"
        raise FormatError(
            f"'{file}' holds predictions and answers for '{name}', no grades. {100 * mean:.1f} % of them are the same "
            f"text, but the results file says {known}, so right is something else here. Choose another --metric, or "
            "give grades as a table (disco import table)"
        )
