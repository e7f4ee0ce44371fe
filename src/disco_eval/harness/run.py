"""Evaluate a model on a condensation's anchors through lm_eval, and nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..condensation import Condensation
from ..errors import DiscoError
from ..files import new_file
from ..io.lm_eval import Run, digest_of, read_run
from ..io.records import in_layout
from ..responses import Responses
from .prompts import AnchorTask, Settings, anchor_tasks, lm_eval_module

Progress = Callable[[str, int, int], None]

RESULTS = "results_anchors.json"
BATCH = 32  # documents between two writes: what a killed run loses at most


def pretrained(name: object, more: str = "") -> str:
    """lm_eval's arguments for a model, ``pretrained=NAME`` and more; DiscoError where it would misread them."""
    if "," in str(name):
        raise DiscoError(f"'{name}' holds a comma, at which lm_eval ends an argument; rename it")
    return ",".join(filter(None, (f"pretrained={name}", more)))


def load_model(model: str, model_args: str, batch_size: int | str | None = None, device: str | None = None) -> Any:
    """A model of any type that lm_eval knows (``hf``, ``vllm``, ...), with its own arguments.

    ``device`` is for lm_eval; for models of transformers the machine's accelerator by default, else its processor.
    """
    lm_eval_module()
    from lm_eval.api.registry import get_model

    if device is None and model.startswith("hf"):
        device = _best_device()
    options = {"batch_size": batch_size or 1, "max_batch_size": None, "device": device}
    try:
        return get_model(model).create_from_arg_string(model_args, options)
    except Exception as e:  # models are third-party code of many kinds, which raise errors of any kind
        why = " ".join(f"{type(e).__name__}: {e}".split())[:300]
        raise DiscoError(f"lm_eval cannot load the model '{model}' with '{model_args}': {why}") from None


def _best_device() -> str | None:
    """lm_eval itself asks for CUDA even where there is none."""
    try:
        import torch
    except ImportError:
        return None  # the model's own loading says what is missing
    return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"


def run_anchors(
    condensation: Condensation,
    lm: Any,
    out: str | Path,
    *,
    name: str,
    settings: Settings | None = None,
    tasks: list[AnchorTask] | None = None,
    progress: Progress | None = None,
) -> Responses:
    """A model's answers to the anchors, with the very prompts of a full run.

    Parameters
    ----------
    condensation : made from outputs of lm_eval.
    lm : a model of lm_eval, from `load_model` or made otherwise.
    out : folder for the model's rows, in lm_eval's own layout. A run that was interrupted goes on there.
    name : what to call the model. Another name in the same folder is refused.
    settings : how prompts are made; as the sources' runs by default.
    tasks : the anchors' requests where they were built before (`anchor_tasks`), for the same model family again.

    Raises
    ------
    AlignmentError
        A prompt differs from the one that the source models answered (checked before the model runs).
    DiscoError
        The anchors are not documents of lm_eval, a task is unknown, or ``out`` holds another model's run.
    """
    folder = Path(out)
    tasks = tasks or list(anchor_tasks(condensation, settings or Settings(), lm))
    run = _start(folder, name, condensation, tasks)
    total, done = sum(len(one.requests) for one in tasks), 0
    for one in tasks:
        file = run.samples[one.name]
        rows = _finished(file, one)
        _rewrite(file, rows)
        left = [d for d in one.requests if d not in {row["doc_id"] for row in rows}]
        done += len(rows)
        for first in range(0, len(left), BATCH):
            documents = left[first : first + BATCH]
            with file.open("a", encoding="utf-8") as log:
                for row in _answer(one, documents, lm):
                    log.write(json.dumps(row, default=str, ensure_ascii=False) + "\n")
            done += len(documents)
            if progress:
                progress(f"evaluating {name}", done, total)
    metric = (condensation.provenance.get("responses") or {}).get("metric", "default")
    scaled = bool((condensation.provenance.get("responses") or {}).get("length_normalised"))
    return read_run(run, metric=None if metric == "default" else metric, length_normalised=scaled)


def _start(folder: Path, name: str, condensation: Condensation, tasks: list[AnchorTask]) -> Run:
    """The results file, written before anything runs, so that a second run knows whose rows are there."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / RESULTS
    about: dict[str, Any] = {
        "results": {},
        "model_name": name,
        "n-shot": {one.name: one.task.get_config("num_fewshot") for one in tasks},
        "versions": {one.name: one.task.VERSION for one in tasks},
        "n-samples": {one.name: {"original": one.n_documents, "effective": len(one.requests)} for one in tasks},
        "config": {"fewshot_seed": 1234},
        "date": time.time(),
        "lm_eval_version": lm_eval_module().__version__,
        "disco_eval": {"benchmark": condensation.benchmark, "n_anchors": len(condensation.anchors)},
    }
    if file.exists():
        with in_layout(file, "the record of a run (delete it to go on)"):
            before = json.loads(file.read_bytes())["model_name"]
        if before != name:
            raise DiscoError(f"'{folder}' holds the run of '{before}', not of '{name}'; choose another --out")
    with new_file(file) as draft:
        draft.write_text(json.dumps(about, indent=1, default=str), encoding="utf-8")
    return Run(name, file, about, {one.name: folder / f"samples_{one.name}_anchors.jsonl" for one in tasks})


def _finished(file: Path, one: AnchorTask) -> list[dict[str, Any]]:
    """Rows of an earlier run that are whole and answer today's prompts."""
    if not file.exists():
        return []
    rows = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
            requests = one.requests.get(row["doc_id"])
            arguments = [[pair["arg_0"], pair["arg_1"]] for pair in row["arguments"].values()]
        except (ValueError, TypeError, LookupError, AttributeError):
            continue  # cut short when the run was killed, or no row of ours
        if requests and digest_of(arguments) == digest_of([list(r.args) for r in requests]):
            rows.append(row)
    filters = {row["filter"] for row in rows}
    whole = {d for d in {row["doc_id"] for row in rows} if {r["filter"] for r in rows if r["doc_id"] == d} == filters}
    return [row for row in rows if row["doc_id"] in whole]


def _rewrite(file: Path, rows: list[dict[str, Any]]) -> None:
    with new_file(file) as draft:
        draft.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def _answer(one: AnchorTask, documents: list[int], lm: Any) -> list[dict[str, Any]]:
    """Run some documents' requests and grade them as lm_eval does; one row per document and filter."""
    requests = [r for d in documents for r in one.requests[d]]
    kinds: dict[str, list[Any]] = {}
    for request in requests:
        request.resps, request.filtered_resps = [], {}
        kinds.setdefault(request.request_type, []).extend([request] * (request.repeats or 1))
    for kind, asked in kinds.items():
        try:
            answers = getattr(lm, kind)(asked)
        except (RuntimeError, ValueError, OSError) as e:  # out of memory, a server that is gone, a device that failed
            why = " ".join(f"{type(e).__name__}: {e}".split())[:300]
            raise DiscoError(
                f"the model failed on '{one.name}' ({why}); what it has answered is kept, run again"
            ) from e
        for request, answer in zip(asked, answers, strict=True):
            request.resps.append(answer)
    one.task._instances = requests
    one.task.apply_filters()
    return [_row(one, d, filter_name) for filter_name in requests[0].filtered_resps for d in documents]


def _row(one: AnchorTask, document: int, filter_name: str) -> dict[str, Any]:
    requests = sorted(one.requests[document], key=lambda r: r.idx)
    doc = requests[0].doc
    filtered = [r.filtered_resps[filter_name] for r in requests]
    metrics = one.task.process_results(doc, filtered)
    arguments = {f"gen_args_{k}": {f"arg_{i}": a for i, a in enumerate(r.args)} for k, r in enumerate(requests)}
    return {
        "doc_id": document,
        "target": str(one.task.doc_to_target(doc)),
        "arguments": arguments,
        "resps": [[_text(x) for x in r.resps] for r in requests],
        "filtered_resps": [_text(x) for x in filtered],
        "filter": filter_name,
        "metrics": list(metrics),
        **metrics,
    }


def _text(answer: Any) -> Any:
    """Log-likelihoods as text, as lm_eval logs them, so that infinities survive JSON."""
    return [str(x) for x in answer] if isinstance(answer, (tuple, list)) else answer
