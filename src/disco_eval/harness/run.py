"""Evaluate a model on a condensation's anchors through lm_eval, and nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..condensation import Condensation
from ..errors import DiscoError
from ..files import new_file, sha256
from ..io.lm_eval import digest_of, read_run
from ..io.records import in_layout
from ..io.runs import Run
from ..joining import beside
from ..responses import Responses
from .prompts import AnchorTask, Settings, anchor_tasks, fewshot_seed, lm_eval_module

Progress = Callable[[str, int, int], None]

RESULTS = "results_anchors.json"
_OF_MODEL = (
    ".safetensors",
    ".bin",
    ".gguf",
    ".json",
    ".model",
    ".txt",
)  # files of a model's folder that it is loaded from
BATCH = 32  # documents between two writes: what a killed run loses at most


def pretrained(name: object, more: str = "") -> str:
    """lm_eval's arguments for a model, ``pretrained=NAME`` and more; DiscoError where it would misread them."""
    if "," in str(name):
        raise DiscoError(f"'{name}' holds a comma, at which lm_eval ends an argument; rename it")
    return ",".join(filter(None, (f"pretrained={name}", more)))


@dataclass(frozen=True)
class Asked:
    """What decides a model's answers, beside the prompts: lm_eval's type and arguments, and the weights of a folder."""

    model: str
    model_args: str
    weights: str = ""

    @classmethod
    def of(cls, model: str, model_args: str) -> Asked:
        """``weights`` tells when the files of a local ``pretrained=FOLDER`` were written, and how long they are."""
        folder = Path(name_of(model_args))
        try:
            files = sorted(f for f in folder.iterdir() if f.suffix in _OF_MODEL) if name_of(model_args) else []
            stamps = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files]
        except OSError:  # a name on the hub, or a folder that went away
            stamps = []
        return cls(model, model_args, sha256(repr(stamps).encode())[:16] if stamps else "")

    def __str__(self) -> str:
        return f"{self.model} with {self.model_args}"


def holds(folder: Path, name: str, asked: Asked) -> bool:
    """Whether a folder has the answers, or a part of them, of this very model."""
    try:
        _check_same(folder, name, asked)
    except DiscoError:
        return False
    return True


def name_of(model_args: str) -> str:
    """What ``pretrained=`` says; nothing where it is not given."""
    return dict(part.partition("=")[::2] for part in model_args.split(",")).get("pretrained", "")


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
    asked: Asked | None = None,
    resume: bool = True,
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
    asked : what decides the answers. A folder that holds those of other arguments or weights is refused.
    resume : whether rows of an earlier run in ``out`` are taken up, as far as their prompts are today's; rows of items
        that are not asked now are kept beside.

    Raises
    ------
    AlignmentError
        A prompt differs from the one that the source models answered (checked before the model runs).
    DiscoError
        The anchors are not documents of lm_eval, a task is unknown, or ``out`` holds another model's run.
    """
    folder = Path(out)
    tasks = tasks or list(anchor_tasks(condensation, settings or Settings(), lm))
    kept = {one.name: _there(folder / _samples(one)) if resume else [] for one in tasks}
    others = {one.name: [row for row in kept[one.name] if row["doc_id"] not in one.requests] for one in tasks}
    if resume:
        _check_same(folder, name, asked)
    run = _start(folder, name, condensation, tasks, asked, others)
    total, done = sum(len(one.requests) for one in tasks), 0
    for one in tasks:
        file = run.samples[one.name]
        rows = _finished(kept[one.name], one)
        _rewrite(file, [*others[one.name], *rows])
        finished = {row["doc_id"] for row in rows}
        left = [d for d in one.requests if d not in finished]
        done += len(finished)
        for first in range(0, len(left), BATCH):
            documents = left[first : first + BATCH]
            with file.open("a", encoding="utf-8") as log:
                for row in _answer(one, documents, lm):
                    log.write(json.dumps(row, default=str, ensure_ascii=False) + "\n")
            done += len(documents)
            if progress:
                progress(f"evaluating {name}", done, total)
    gradings: dict[tuple[str, bool], dict[str, Path]] = {}
    for one in tasks:
        decided = (one.recorded.get("graded") or {}).get(one.name) or one.recorded.get("metric", "default")
        how = decided, bool(one.recorded.get("length_normalised"))
        gradings.setdefault(how, {})[one.name] = run.samples[one.name]
    parts = [_read(replace(run, samples=samples), *how) for how, samples in gradings.items()]
    return beside(parts) if len(parts) > 1 else parts[0]


def _read(run: Run, metric: str, length_normalised: bool) -> Responses:
    """The answers to some of the tasks, graded as the source models' were."""
    return read_run(run, metric=None if metric == "default" else metric, length_normalised=length_normalised)


def _samples(one: AnchorTask) -> str:
    return f"samples_{one.name}_anchors.jsonl"


def _start(
    folder: Path,
    name: str,
    condensation: Condensation,
    tasks: list[AnchorTask],
    asked: Asked | None,
    others: dict[str, list[dict[str, Any]]],
) -> Run:
    """The results file, written before anything runs, so that a second run knows whose rows are there.

    ``others`` are the rows of each task that are kept beside those of the items to answer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / RESULTS
    seeds = {fewshot_seed(one.recorded) for one in tasks}  # benchmarks condensed together have their own
    count = {one.name: len({*one.requests, *(row["doc_id"] for row in others[one.name])}) for one in tasks}
    about: dict[str, Any] = {
        "results": {},
        "model_name": name,
        "n-shot": {one.name: one.task.get_config("num_fewshot") for one in tasks},
        "versions": {one.name: one.task.VERSION for one in tasks},
        "n-samples": {one.name: {"original": one.n_documents, "effective": count[one.name]} for one in tasks},
        "config": {"fewshot_seed": seeds.pop() if len(seeds) == 1 else None},
        "date": time.time(),
        "lm_eval_version": lm_eval_module().__version__,
        "disco_eval": {
            "benchmark": condensation.benchmark,
            "n_anchors": len(condensation.anchors),
            **({"asked": asdict(asked)} if asked else {}),
        },
    }
    with new_file(file) as draft:
        draft.write_text(json.dumps(about, indent=1, default=str), encoding="utf-8")
    return Run(name, file, about, {one.name: folder / _samples(one) for one in tasks})


def _check_same(folder: Path, name: str, asked: Asked | None) -> None:
    """Refuse a folder that holds the answers of another model, or of the same with other arguments or weights."""
    file = folder / RESULTS
    if not file.exists():
        return
    with in_layout(file, "the record of a run (delete it to go on)"):
        before = json.loads(file.read_bytes())
        whose, how = before["model_name"], before["disco_eval"].get("asked")
    if whose != name:
        raise DiscoError(f"'{folder}' holds the run of '{whose}', not of '{name}'; choose another --out")
    if asked is None or how == asdict(asked):
        return
    there = "a run that does not say with which arguments"
    if how is not None:
        there = f"the run of {how.get('model')} with {how.get('model_args')}"
    if how is not None and {**how, "weights": asked.weights} == asdict(asked):
        there = f"the run of other weights of '{name}'"
    raise DiscoError(f"'{folder}' holds {there}, not of {asked}; choose another --out, or delete it")


def _there(file: Path) -> list[dict[str, Any]]:
    """The rows of an earlier run."""
    if not file.exists():
        return []
    rows = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
            _ = row["doc_id"], row["filter"], row["arguments"].values()
        except (ValueError, TypeError, LookupError, AttributeError):
            continue  # cut short when the run was killed, or no row of ours
        rows.append(row)
    return rows


def _finished(there: list[dict[str, Any]], one: AnchorTask) -> list[dict[str, Any]]:
    """Those of the rows that are whole and answer today's prompts."""
    rows = []
    for row in there:
        requests = one.requests.get(row["doc_id"])
        try:
            arguments = [[pair["arg_0"], pair["arg_1"]] for pair in row["arguments"].values()]
        except (TypeError, LookupError):
            continue
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
