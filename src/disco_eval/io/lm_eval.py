"""What lm-evaluation-harness writes with ``--log_samples``: a folder per model, results, and a samples file per task.

Items are named ``task/doc_id``. Their digest is a hash over the prompts and choices as the model saw them, so runs with
other few-shot examples, templates or task versions are told apart. Probabilities are the softmax of the log-likelihoods
over the item's own choices; tasks without choices give grades only. Prompts are hashed and forgotten, so memory does
not grow with the size of the files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DiscoError, FormatError, some
from ..responses import Responses
from .importing import check_items, join
from .records import Record, Wanted, grade_of, in_layout, lines_of, literal, loglikelihoods_of, metric_of, one_model
from .runs import Run, about_run, find_runs
from .targets import Meant, by_grade, meant_by, settled

Array = NDArray[Any]

PREFERRED = ("acc", "exact_match", "acc_norm")


class _Doc(msgspec.Struct):
    disco_item: str | None = None  # set in frozen-prompt task folders: the item that the prompt belongs to


def read_run(
    run: Run, *, metric: str | None = None, length_normalised: bool = False, items: ArrayLike | None = None
) -> Responses:
    """One model's answers to all items that it was run on.

    Parameters
    ----------
    metric : the per-item metric that says what is right, ``"acc"`` or ``"acc_norm"``; by default ``acc``, else
        ``exact_match``, else the task's first. Of generated answers that several filters read, the file's first
        decides, or the one named behind a comma, as in results: ``"exact_match,flexible-extract"``. Tasks may have
        metrics of their own: ``"arc_*=acc_norm;gsm8k=exact_match,strict-match;acc"``.
    length_normalised : divide each log-likelihood by the length of its choice in characters before the softmax. The
        paper's authors do not, even where the metric is ``acc_norm``.
    items : those that will be used: of other tasks nothing is read, and other items have no part in whether there are
        probabilities.

    Raises FormatError where a row cannot be read or lacks the metric, naming file and line; ValidationError where a
    log-likelihood is NaN.
    """
    with in_layout(run.results, "a run of lm_eval"):
        records: list[Record] = []
        graded: dict[str, str] = {}
        wanted = Wanted(items)
        for task in wanted.tasks(run.samples):
            found, how = _read_task(task, run.samples[task], metric_of(task, metric), length_normalised)
            graded |= dict.fromkeys((r.subtask for r in found), how)
            _whole(found, (run.about.get("n-samples") or {}).get(task), run.samples[task])
            records += found
        provenance = {
            "harness": "lm-eval",
            "metric": metric or "default",
            "graded": graded,
            "length_normalised": length_normalised,
            "models": {run.model: about_run(run)},
        }
        revision = str((run.about.get("config") or {}).get("model_revision") or "")
        return one_model(run.model, wanted.of(records), provenance, revision=revision)


def read_lm_eval(
    paths: Iterable[str | Path],
    *,
    metric: str | None = None,
    length_normalised: bool = False,
    allow_prompt_drift: bool = False,
    items: ArrayLike | None = None,
) -> Responses:
    """Answers of every model in some output folders, in memory; many large runs are better imported to a store.

    All models must have answered the same items with the same prompts. ``items`` keeps only those. Raises what
    `find_runs`, `read_run` and `check_same_items` raise.
    """
    read = partial(read_run, metric=metric, length_normalised=length_normalised, items=items)
    runs = [read(run) for run in find_runs(paths)]
    if items is not None:
        wanted = np.asarray(items, dtype=str)
        runs = [r.pick(items=np.isin(r.items.ids, wanted)) for r in runs]
    for other in runs[1:]:
        check_same_items(runs[0], other, allow_prompt_drift)
    return join([r.align(runs[0].items.ids) for r in runs])


def check_same_items(first: Responses, other: Responses, allow_prompt_drift: bool) -> None:
    """Refuse a second model that answered other items, or the same items with other prompts; see `check_items`."""
    names = [str(r.models.ids[0]) for r in (first, other)]
    partial = [n for n, r in zip(names, (first, other), strict=True) if r.provenance["models"][n]["partial"]]
    note = f". {' and '.join(map(repr, partial))} ran on a subset (--limit or --samples)." if partial else ""
    if set(first.items.subtask) != set(other.items.subtask):
        note += ". To import some of the tasks alone: --tasks"
    check_items(first, other, allow_prompt_drift, lacking=note, differing=f": {_settings(first, other)}")


def _settings(first: Responses, other: Responses) -> str:
    """Which recorded settings differ between two runs, in words."""
    a, b = (r.provenance["models"][str(r.models.ids[0])] for r in (first, other))
    differing = [
        f"{k} {a.get(k)!r} against {b.get(k)!r}"
        for k in a
        if k not in ("date", "partial", "documents", "seconds", "results", "model_args") and a.get(k) != b.get(k)
    ]
    return "; ".join(differing)[:300] or "few-shot examples, template or data differ"


def prompt_of(results: str | Path, item: str, digest: str) -> str | None:
    """The prompt with choices that a logged run asked at an item, where its files are there and its digest fits."""
    file = Path(results)
    task, _, document = item.rpartition("/")
    stamp = file.stem.removeprefix("results")
    decoder = msgspec.json.Decoder(_Logged)
    try:
        for _, line in lines_of(file.parent / f"samples_{task}{stamp}.jsonl"):
            row = decoder.decode(line)
            arguments = _arguments(row.arguments)
            if str(row.doc_id) == document and digest_of(arguments) == digest:
                return prompt_text(arguments)
    except (FormatError, msgspec.MsgspecError):  # gone, moved or cut since; there is nothing to show then
        return None
    return None


def prompt_text(arguments: Sequence[Sequence[Any]]) -> str:
    """An item's requests as one text: the context, then each continuation; several contexts one after the other."""
    contexts = list(dict.fromkeys(str(a[0]) for a in arguments))
    return "\n".join([*contexts, *(str(a[1]) for a in arguments if len(a) > 1)])


class _Logged(msgspec.Struct):
    doc_id: int
    arguments: Any = None


# ---- one samples file ------------------------------------------------------------------------------------------


def _read_task(task: str, file: Path, metric: str | None, length_normalised: bool) -> tuple[list[Record], str]:
    """The answers to a task, and what graded them: a metric, and the filter behind a comma where there is one."""
    chosen, records = "", list[Record]()
    meant: list[Meant | None] = []
    kind: type[msgspec.Struct] | None = None
    name, _, filtered = (metric or "").partition(",")
    wanted_filter, mutual, filters = filtered, False, set[str]()
    for number, line in lines_of(file):
        try:
            if kind is None:
                chosen, first, mutual = _first_row(line, name)
                wanted_filter = filtered or first
                kind = _row_type(chosen)
            row = _decoded(line, kind)
            if row.doc_id < 0:
                raise FormatError(f"doc_id is {row.doc_id}; lm_eval logs wrong rows for negative --samples")
            if row.filter != wanted_filter:  # the same document under another filter
                filters.add(row.filter)
                continue
            record, target = _record(task, row, mutual, length_normalised)
            records.append(record)
            meant.append(target)
        except (msgspec.MsgspecError, KeyError, TypeError, IndexError, ValueError, RecursionError) as e:
            if isinstance(e, DiscoError):
                raise type(e)(f"'{file}', line {number}: {e}") from None
            why = _unreadable(line) if isinstance(e, msgspec.DecodeError) else str(e)
            raise FormatError(f"'{file}', line {number}: {why[:160]}. Run the evaluation again.") from None
    if kind is None:
        raise FormatError(f"'{file}' is empty; the run did not finish")
    if not records:
        raise FormatError(
            f"'{file}': no row is of the filter '{filtered}' (--metric METRIC,FILTER); {some(sorted(filters))} are"
        )
    how = chosen if wanted_filter == "none" else f"{chosen},{wanted_filter}"
    return settled(records, meant), how


def _whole(records: list[Record], counts: Any, file: Path) -> None:
    """Refuse a file that lost rows at its end: the results say how many documents were answered."""
    expected = counts.get("effective") if isinstance(counts, dict) else None
    twice = len({r.item for r in records}) < len(records)  # refused later, by name
    if isinstance(expected, int) and len(records) < expected and not twice:
        raise FormatError(
            f"'{file}' has {len(records)} documents, but the run answered {expected}: rows are "
            "lost. Run the evaluation again."
        )


def _decoded(line: bytes, kind: Any) -> Any:
    """A row; NaN, which is no JSON, is what Python wrote for a metric without a value, and matters if that decides."""
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.DecodeError:
        if b"NaN" not in line and b"Infinity" not in line:
            raise
        with contextlib.suppress(ValueError):
            return msgspec.convert(json.loads(line), kind)
        raise


def _unreadable(line: bytes) -> str:
    bare = next((word for word in (b"NaN", b"Infinity") if b": " + word in line or b": -" + word in line), b"").decode()
    whole = line.rstrip().endswith(b"}")
    return f"a value is {bare}, which is no number" if bare and whole else "the line is cut short or not JSON"


def _first_row(line: bytes, metric: str) -> tuple[str, str, bool]:
    """The metric that decides, the row's filter, whose rows are taken by default, and whether choices stand twice."""
    row = _decoded(line, dict[str, Any])
    have = row.get("metrics") or [m for m in PREFERRED if m in row]
    chosen = metric or next((m for m in PREFERRED if m in have), have[0] if have else "")
    if chosen not in row:
        raise FormatError(f"there is no metric '{chosen}'; the rows have {some(have)}")
    return chosen, str(row.get("filter", "none")), "acc_mutual_info" in have


def _row_type(metric: str) -> type[msgspec.Struct]:
    """Only these fields are decoded; the others, documents above all, are skipped by the parser."""
    return msgspec.defstruct(
        "Row",
        [
            ("doc_id", int),
            ("grade", Any, msgspec.field(name=metric)),
            *((("acc", Any, None),) if metric != "acc" else ()),
            ("doc", _Doc | None, None),
            ("target", Any, None),
            ("arguments", Any, None),
            ("filtered_resps", Any, None),
            ("filter", str, "none"),
        ],
    )


def _record(task: str, row: Any, mutual: bool, length_normalised: bool) -> tuple[Record, Meant | None]:
    arguments = _arguments(row.arguments)
    item = row.doc.disco_item if row.doc is not None and row.doc.disco_item else f"{task}/{row.doc_id}"
    digest = digest_of(arguments)
    resps = _answers(row.filtered_resps, len(arguments))
    ll, grade, label, meant = _loglikelihoods(resps, mutual), grade_of(row.grade), None, None
    acc = getattr(row, "acc", grade)  # what it says of the most probable choice, whatever else counts
    acc = float(acc) if isinstance(acc, (int, float)) else None
    if ll is not None:
        if arguments and len(arguments) != len(resps):
            raise FormatError(f"document {row.doc_id} has {len(resps)} answers to {len(arguments)} requests")
        arguments = arguments[: len(ll)]
        choices = [_choice(a).strip() for a in arguments]
        if len(set(choices)) == len(choices):
            meant = meant_by(str(row.target).strip(), choices, ll, acc)
        else:
            label = by_grade(ll, acc)
        if length_normalised:
            ll = [x / max(1, len(_choice(a))) for x, a in zip(ll, arguments, strict=True)]
    return Record(item, item.rpartition("/")[0], grade, digest, ll, label), meant


def digest_of(arguments: Iterable[Sequence[Any]]) -> str:
    """A hash over the prompt and continuation of every request of an item: what the model saw, and nothing else."""
    digest = hashlib.sha256()
    for argument in arguments:
        digest.update("\x1f".join(map(str, argument[:2])).encode() + b"\x1e")
    return digest.hexdigest()[:16]


def _arguments(given: Any) -> list[list[Any]]:
    """(context, continuation) of every request: ``{"gen_args_0": {"arg_0": ...}}``, or lists in older files."""
    if isinstance(given, dict):
        keys = sorted(given, key=lambda k: int(k.rpartition("_")[2]))
        return [[given[k][a] for a in sorted(given[k])] for k in keys]
    return [list(pair) for pair in given or []]


def _answers(resps: Any, n_requests: int) -> Any:
    """The answers to several requests as lists, where a writer turned them, or all of them, into text."""
    if n_requests < 2:
        return resps
    parts = literal(resps)
    return [list(r) if isinstance(r := literal(part), tuple) else r for part in parts] if parts else parts


def _loglikelihoods(resps: Any, mutual: bool) -> list[float] | None:
    """The log-likelihood of every choice, or None for generated answers.

    ``acc_mutual_info`` asks for every choice twice, with and without the context; the first half are the choices.
    """
    if not isinstance(resps, list) or len(resps) < 2 or not all(isinstance(r, list) and len(r) == 2 for r in resps):
        return None
    return loglikelihoods_of([r[0] for r in (resps[: len(resps) // 2] if mutual else resps)])


def _choice(argument: Sequence[Any]) -> str:
    """The choice's own text: the continuation without the delimiter that lm_eval puts before it."""
    return str(argument[1]).removeprefix(" ")
