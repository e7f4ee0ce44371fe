"""The anchors as other tools take them: lm_eval's ``--samples``, Inspect's sample ids, a frozen task folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..condensation import Condensation
from ..errors import DiscoError, some
from ..files import new_folder
from ..io.records import metric_of
from ..responses import Items, Responses
from .prompts import AnchorTask, Settings, anchor_tasks, asked_of

MARKER = "disco-tasks.json"
_GRADED_BY = ("acc", "acc_norm")  # what the frozen tasks log
_DIFFERS = 0.01  # mean difference of grades from which on they are of another grader: near ties may be rounded
LOADER = '''"""Reads the frozen prompts beside this file, wherever lm_eval is started from."""

import json
from pathlib import Path

import datasets


def _load(name):
    rows = (Path(__file__).parent / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return {"test": datasets.Dataset.from_list([json.loads(row) for row in rows])}


def contexts(doc):
    return list(doc["contexts"])


def gold(doc):
    return int(doc["gold"])


def continuation(doc):
    return doc["continuations"][0]
'''


def samples_file(condensation: Condensation, more: int = 0) -> tuple[str, str]:
    """JSON for ``lm_eval --samples`` (sorted ids of every leaf task), and a note on when it is safe."""
    parts = asked_of(condensation, more)
    documents = {task: sorted(ids) for part in parts for task, ids in part.documents.items()}
    text = json.dumps(documents)
    abouts = [about for part in parts for about in (part.recorded.get("models") or {}).values()]
    shots = {t: n for about in abouts for t, n in (about.get("n-shot") or {}).items() if t in documents and n}
    how = f"--tasks {','.join(documents)} --samples FILE"
    note = f"Run it with exactly these leaf tasks, in one process, without --cache_requests: {how}."
    if shots:
        note += (
            f" NOT SAFE for the few-shot tasks {', '.join(sorted(shots))} unless their sampler is first_n: lm_eval "
            "then draws other examples than in a full run. Use 'disco run', or --format task-dir."
        )
    return text, note


def inspect_ids(condensation: Condensation, more: int = 0) -> str:
    """Sample ids for ``inspect eval --sample-id``, comma-separated; ``TASK:ID`` where the anchors are of several tasks.

    Two tasks may have a sample of the same id, and a bare id would run both. Raises DiscoError where names hold commas,
    at which Inspect would cut them, or tasks colons.
    """
    asked = condensation.asked(more)
    tasks = asked.subtask.tolist()
    ids = [item.removeprefix(f"{task}/") for item, task in zip(asked.ids.tolist(), tasks, strict=True)]
    several = len(set(tasks)) > 1
    odd = [i for i in ids if "," in i] + [task for task in tasks if several and set(task) & set(",:")]
    if odd:
        raise DiscoError(f"Inspect parts sample ids at commas and tasks at colons, so it cannot be given {some(odd)}")
    return ",".join(f"{task}:{i}" if several else i for i, task in zip(ids, tasks, strict=True))


def write_task_folder(
    condensation: Condensation, out: str | Path, settings: Settings, lm: Any = None, *, overwrite: bool = False
) -> list[str]:
    """Write the anchors' rendered prompts as a folder of lm_eval tasks, and return the tasks' names.

    The stock command line and any back end can run it (``--include_path``), few-shot examples included; `disco
    estimate` takes what it writes. ``lm`` is needed only where a chat template is applied: templates are the
    model's.

    Raises DiscoError for tasks that generate text, have a grader of their own, or were not graded by which choice is
    the most probable, since the folder's tasks are graded so; use `run_anchors`.
    """
    parts = asked_of(condensation, settings.more)
    if lm is None and any(settings.completed(p.first_source(condensation)).apply_chat_template for p in parts):
        raise DiscoError("these prompts go through a chat template, which is the model's; use 'disco run' instead")
    names, asked = [], condensation.asked(settings.more)
    with new_folder(out, MARKER, overwrite=overwrite) as draft:
        draft.mkdir()
        loaders = [LOADER]
        for one in anchor_tasks(condensation, settings, lm):
            name = f"{one.name}_anchors"
            function = "load_" + "".join(ch if ch.isalnum() else "_" for ch in name)
            loaders.append(f'\n\ndef {function}(**_):\n    return _load("{name}")\n')
            _check_grader(condensation, one)
            (draft / f"{name}.jsonl").write_text(_documents(one, asked, condensation.benchmark), encoding="utf-8")
            (draft / f"{name}.yaml").write_text(_config(one, name, function), encoding="utf-8")
            names.append(name)
        (draft / "prompts.py").write_text("".join(loaders), encoding="utf-8")
        (draft / MARKER).write_text(json.dumps({"benchmark": condensation.benchmark, "tasks": names}) + "\n")
    return names


def _check_grader(condensation: Condensation, one: AnchorTask) -> None:
    """Refuse a task that a frozen one, which knows the right choice alone, would grade otherwise than the sources'."""
    why, about = "", one.recorded
    metric = None if about.get("metric") == "default" else about.get("metric")
    how = (about.get("graded") or {}).get(one.name) or metric_of(one.name, metric)
    if getattr(one.task.config, "process_results", None) is not None:
        why = "has a grader of its own (process_results)"
    elif how not in (None, *_GRADED_BY):
        why = f"was graded by {how!r}, not by {' or '.join(_GRADED_BY)}"
    elif how != "acc_norm" and not about.get("length_normalised") and _by_more(condensation.sources, one.name):
        why = "was graded otherwise than by which choice is the most probable"
    if why:
        raise DiscoError(f"task '{one.name}' {why}, so it cannot be frozen; use 'disco run'")


def _by_more(sources: Responses, task: str) -> bool:
    """Whether the source models' grades are others than their most probable choices give."""
    mine = [k for k, item in enumerate(sources.items.ids.tolist()) if item.rpartition("/")[0] == task]
    if sources.probs is None or sources.items.label is None or not mine:
        return False
    right = np.asarray(sources.probs)[:, mine].argmax(axis=2) == sources.items.label[mine]
    return bool(np.abs(right - sources.grades()[:, mine]).mean() > _DIFFERS)


def _documents(one: AnchorTask, asked_items: Items, benchmark: str) -> str:
    labels = asked_items.label
    if labels is None:
        raise DiscoError(f"the right choices of '{benchmark}' are not all known, so its tasks cannot be frozen")
    rows = []
    for document, requests in one.requests.items():
        if len(requests) < 2 or any(r.request_type != "loglikelihood" for r in requests):
            raise DiscoError(f"task '{one.name}' does not compare choices, so it cannot be frozen; use 'disco run'")
        position = one.anchor[document]
        asked = sorted(requests, key=lambda r: r.idx)[: int(asked_items.n_choices[position])]
        delimiter = _delimiter(one)
        row = {
            "disco_item": str(asked_items.ids[position]),
            "contexts": [r.args[0] for r in asked],
            "continuations": [str(r.args[1]).removeprefix(delimiter) for r in asked],
            "gold": int(labels[position]),
        }
        rows.append(json.dumps(row, ensure_ascii=False) + "\n")
    return "".join(rows)


def _config(one: AnchorTask, name: str, function: str) -> str:
    """The task's YAML: choices in the continuation, or, where the contexts differ, in the context (as WinoGrande)."""
    several = any(len({r.args[0] for r in requests}) > 1 for requests in one.requests.values())
    ask = (
        "doc_to_text: !function prompts.gold\ndoc_to_choice: !function prompts.contexts\n"
        "doc_to_target: !function prompts.continuation\n"
        if several
        else 'doc_to_text: "{{contexts[0]}}"\ndoc_to_choice: "{{continuations}}"\ndoc_to_target: gold\n'
    )
    metrics = "".join(
        f"  - metric: {m}\n    aggregation: mean\n    higher_is_better: true\n" for m in ("acc", "acc_norm")
    )
    return (
        f"task: {name}\ncustom_dataset: !function prompts.{function}\ntest_split: test\n"
        f"output_type: multiple_choice\n{ask}target_delimiter: {json.dumps(_delimiter(one))}\nnum_fewshot: 0\n"
        f"metric_list:\n{metrics}metadata:\n  version: 1.0\n"
    )


def _delimiter(one: AnchorTask) -> str:
    return str(one.task.config.target_delimiter or "")
