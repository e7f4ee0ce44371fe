"""Logs of Inspect AI (``.eval`` or ``.json``), read with Inspect's own reader: the header first, then sample by sample.

An item is a sample id, qualified by the task. Scores are grades: "C" is 1, "P" 0.5, "I" and "N" 0, numbers as they are;
several epochs of a sample are averaged. Inspect keeps no log-likelihood per choice, so there are no probabilities.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import DiscoError, FormatError, ValidationError, some
from ..responses import Responses
from .records import Record, check_metrics, deciding, grade_of, metric_of, once, one_model, read_json

_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


def inspect(paths: Sequence[Path], *, metric: str | None = None) -> Iterator[tuple[str, Callable[[], Responses]]]:
    """Readers for Inspect's logs, one per model; several tasks of a model are its subtasks.

    ``metric`` names the scorer, the first by default; tasks may have their own: ``"toy=match;includes"``.
    Raises FormatError for a log that cannot be read or did not finish.
    """
    reader = _reader()
    logs: dict[str, list[Path]] = {}
    tasks: set[str] = set()
    found: list[Path] = []
    for path in paths:
        files = sorted(p for p in path.rglob("*") if p.suffix in (".eval", ".json")) if path.is_dir() else [path]
        if not files:
            raise FormatError(f"'{path}' holds no .eval logs of Inspect")
        found += files
    for file in once(found):
        header = _header(reader, file)
        logs.setdefault(str(header.eval.model), []).append(file)
        tasks.add(_task(header))
    check_metrics(metric, tasks)
    for model, files in logs.items():
        yield model, partial(_read, reader, model, files, metric)


def _read(reader: Any, model: str, files: list[Path], metric: str | None) -> Responses:
    records: list[Record] = []
    scorers: dict[str, set[str]] = {}
    for file in files:
        task = _task(_header(reader, file))
        grades: dict[str, list[float]] = {}
        digests: dict[str, str] = {}
        for sample in _samples(reader, file):
            item = f"{task}/{sample.id}"
            scorer, grade = _grade(item, sample.scores or {}, metric_of(task, metric))
            scorers.setdefault(task, set()).add(scorer)
            grades.setdefault(item, []).append(grade)
            digests[item] = hashlib.sha256(f"{sample.input}\x1f{sample.choices}".encode()).hexdigest()[:16]
        records += [Record(item, task, sum(g) / len(g), digests[item]) for item, g in grades.items()]
    graded = {task: deciding(names, metric_of(task, metric)) for task, names in scorers.items()}
    provenance = {"harness": "inspect", "metric": metric or "default", "graded": graded, "models": {model: {}}}
    return one_model(model, records, provenance)


def _task(header: Any) -> str:
    return str(header.eval.task).rpartition("/")[2]


def _samples(reader: Any, file: Path) -> Iterator[Any]:
    try:
        yield from reader.read_eval_log_samples(str(file), all_samples_required=False)
    except DiscoError:
        raise
    except Exception as e:  # as for the header
        raise FormatError(f"'{file}' has samples that Inspect cannot read: {' '.join(str(e).split())[:120]}") from None


def _grade(item: str, scores: dict[str, Any], metric: str | None) -> tuple[str, float]:
    """The scorer that decides, and its grade."""
    name = next((n for n in (metric.split("|") if metric else scores) if n in scores), None)
    if name is None:
        raise ValidationError(f"sample '{item}' has no score '{metric or ''}'; it has {some(list(scores)) or 'none'}")
    value = scores[name].value
    return name, _LETTERS[value] if isinstance(value, str) and value in _LETTERS else grade_of(value)


def _header(reader: Any, file: Path) -> Any:
    if file.suffix == ".json":
        read_json(file)  # refuses absurd depth and size; Inspect's own scan takes quadratic time over the depth
    try:
        header = reader.read_eval_log(str(file), header_only=True)
    except Exception as e:  # Inspect's reader raises zip, JSON, validation and system errors
        raise FormatError(f"'{file}' is not a log of Inspect: {' '.join(str(e).split())[:120]}") from None
    if header.status != "success":
        raise FormatError(f"'{file}' has status '{header.status}'; only finished evaluations are imported")
    return header


def _reader() -> Any:
    try:
        from inspect_ai import log
    except ImportError:
        raise DiscoError("reading Inspect's logs needs inspect_ai: pip install 'disco-eval[inspect]'") from None
    return log
