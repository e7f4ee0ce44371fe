"""The anchors' requests, built exactly as a full run of lm_eval builds them.

``lm_eval --samples`` is not enough: with the default few-shot sampler the prompts change when only some documents are
asked for, a group name or a missing task runs everything, and unsorted ids are logged wrongly. Here every request of a
task is built in the full run's order, and only then are the anchors' kept; their digests must be those of the sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from ..condensation import Condensation
from ..errors import AlignmentError, DiscoError, some
from ..io.lm_eval import digest_of, prompt_of, prompt_text
from ..io.runs import find_runs
from ..joining import recorded_of
from ..responses import Items

FEWSHOT_SEED = 1234  # lm_eval's own default
_CALLED = {"lm-eval": "lm_eval"}
CONTEXT = 24  # characters shown before the place where two prompts part, and a quarter of all that is shown


@dataclass(frozen=True)
class Settings:
    """How prompts are made, as lm_eval's options of the same names. None: as the source models' runs recorded it.

    ``tasks_path`` is a folder of task files beside lm_eval's own (``--include_path``). ``source_run`` is a folder with
    a source model's logged run, read only to show the old prompt where a new one differs. ``more`` items of the
    condensation's reserve are asked beside the anchors.
    """

    tasks_path: str | Path | None = None
    apply_chat_template: bool | None = None
    fewshot_as_multiturn: bool | None = None
    system_instruction: str | None = None
    source_run: str | Path | None = None
    more: int = 0

    def completed(self, about: Mapping[str, Any]) -> Settings:
        """The same, with what is not given taken from what is recorded of a source model's run."""
        chat = self.apply_chat_template
        turns = self.fewshot_as_multiturn
        return replace(
            self,
            apply_chat_template=bool(about.get("chat_template_sha")) if chat is None else chat,
            fewshot_as_multiturn=bool(about.get("fewshot_as_multiturn")) if turns is None else turns,
        )


@dataclass(frozen=True)
class Part:
    """What is asked of a benchmark: its documents, and what is recorded of its source models' answers.

    ``documents``: task -> document -> position among the items asked, in order.
    """

    recorded: dict[str, Any]
    documents: dict[str, dict[int, int]]

    def first_source(self, condensation: Condensation) -> dict[str, Any]:
        """What the first source model's run recorded of its settings; prompts were equal in all by digest."""
        models = self.recorded.get("models") or {}
        known = [models[name] for name in condensation.sources.models.ids.tolist() if name in models]
        return dict(known[0]) if known else {}


@dataclass(frozen=True)
class AnchorTask:
    """A leaf task and the anchors in it: their requests by document, and their positions among the anchors.

    ``recorded`` is what is known of how the source models answered its benchmark.
    """

    name: str
    task: Any
    requests: dict[int, list[Any]]
    anchor: dict[int, int]
    n_documents: int
    recorded: dict[str, Any]


def lm_eval_module() -> Any:
    """lm_eval, or one line on how to get it."""
    try:
        import lm_eval
    except ImportError:
        raise DiscoError("running models needs lm_eval: pip install 'disco-eval[lm-eval]'") from None
    return lm_eval


def anchor_tasks(condensation: Condensation, settings: Settings, lm: Any, manager: Any = None) -> Iterator[AnchorTask]:
    """Every leaf task with anchors, its requests built in full and cut to the anchors, checked by digest.

    ``manager`` is lm_eval's index of tasks where there is one already (`check_tasks`).

    Raises DiscoError where the anchors are not documents of lm_eval or a task is not found; AlignmentError where a
    prompt differs from the one the source models answered.
    """
    lm_eval_module()
    asked, parts = condensation.asked(settings.more), asked_of(condensation, settings.more)
    manager = manager or _manager(settings.tasks_path, {name for part in parts for name in part.documents})
    for part in parts:
        about = part.first_source(condensation)
        how = settings.completed(about)
        for name, documents in part.documents.items():
            task = manager.load([name])["tasks"][name]
            _configure(task, (about.get("n-shot") or {}).get(name), fewshot_seed(about))
            _build(task, how, lm)
            requests: dict[int, list[Any]] = {document: [] for document in documents}
            for request in task.instances:
                if request.doc_id in requests:
                    requests[request.doc_id].append(request)
            one = AnchorTask(name, task, requests, documents, len(task.eval_docs), part.recorded)
            _check_digests(part, one, asked, about, settings.source_run)
            yield one


def check_tasks(condensation: Condensation, settings: Settings) -> Any:
    """Refuse what lm_eval cannot ask a model, before one is loaded; raises DiscoError as `anchor_tasks` does.

    Returns lm_eval's index of tasks, for `anchor_tasks`.
    """
    lm_eval_module()
    parts = asked_of(condensation, settings.more)
    return _manager(settings.tasks_path, {name for part in parts for name in part.documents})


def _manager(tasks_path: str | Path | None, wanted: set[str]) -> Any:
    """lm_eval's index of tasks: of the user's folder where all are there, since its own ten thousand take seconds."""
    from lm_eval.tasks import TaskManager

    path = None if tasks_path is None else str(tasks_path)
    if path is not None:
        own = TaskManager(include_path=path, include_defaults=False)
        if wanted <= set(own.all_tasks):
            return own
    manager = TaskManager(include_path=path)
    unknown = sorted(wanted - set(manager.all_tasks))
    if unknown:
        raise DiscoError(f"lm_eval knows no task {some(unknown)}; name the folder of its YAML file with --tasks-path")
    return manager


def asked_of(condensation: Condensation, more: int = 0, harness: str = "lm-eval") -> list[Part]:
    """The items asked, by benchmark where several were condensed together, as documents of a harness's tasks.

    Raises DiscoError where a benchmark's source models were not evaluated by this harness, an item is no document of a
    task, or two benchmarks ask the same task.
    """
    asked = condensation.asked(more)
    recorded = recorded_of(condensation.provenance.get("responses"))
    parts: list[Part] = []
    for name, about in recorded.items():
        at = [k for k, benchmark in enumerate(asked.subtask.tolist()) if not name or benchmark == name]
        if at and about.get("harness") != harness:
            whose = f"'{name}' in '{condensation.benchmark}'" if name else f"'{condensation.benchmark}'"
            raise DiscoError(
                f"{whose} was not made from outputs of {_CALLED.get(harness, harness)}, so its prompts cannot be "
                "built here; evaluate the items that 'disco anchors' lists yourself, then use 'disco estimate'"
            )
        documents: dict[str, dict[int, int]] = {}
        for k in at:
            task, _, number = str(asked.ids[k]).rpartition("/")
            if not task or not number.isdecimal():
                raise DiscoError(f"anchor '{asked.ids[k]}' is not named task/number, so it is no document of a task")
            elsewhere = any(task in part.documents for part in parts)
            if elsewhere or (name and task.startswith(f"{name}/")):  # named so since two benchmarks share items
                raise DiscoError(
                    f"'{condensation.benchmark}' asks one task in several benchmarks ('{asked.ids[k]}'), which one run "
                    "cannot; condense them one by one"
                )
            documents.setdefault(task, {})[int(number)] = k
        if at:
            parts.append(Part(about, {task: dict(sorted(documents[task].items())) for task in sorted(documents)}))
    return parts


def fewshot_seed(recorded: Mapping[str, Any]) -> int:
    """The seed that the source models' examples were drawn with; lm_eval's own where none was recorded."""
    seed = recorded.get("seed")
    return seed if isinstance(seed, int) else FEWSHOT_SEED


def _configure(task: Any, n_shot: Any, seed: int) -> None:
    if isinstance(n_shot, int):
        task.set_config(key="num_fewshot", value=n_shot)
    elif task.get_config("num_fewshot") is None:
        task.set_config(key="num_fewshot", value=0)
    task.set_fewshot_seed(seed=seed)


def _build(task: Any, settings: Settings, lm: Any) -> None:
    """All requests of the task, as one process of a full run builds them, without the shared request cache."""
    chat = bool(settings.apply_chat_template)
    task.build_all_requests(
        limit=None,
        rank=0,
        world_size=1,
        cache_requests=False,
        system_instruction=settings.system_instruction,
        apply_chat_template=chat,
        fewshot_as_multiturn=bool(settings.fewshot_as_multiturn),
        chat_template=getattr(lm, "apply_chat_template", None) if chat else None,
        tokenizer_name=getattr(lm, "tokenizer_name", "") if chat else "",
    )


def _check_digests(
    part: Part, one: AnchorTask, asked_items: Items, about: Mapping[str, Any], source_run: str | Path | None
) -> None:
    known = asked_items.digest
    for document, requests in one.requests.items():
        if not requests:
            raise AlignmentError(
                f"task '{one.name}' has {one.n_documents} documents and none with number {document}: it is another "
                "version than the one the source models answered"
            )
        expected, asked = known[one.anchor[document]], [list(r.args) for r in requests]
        if expected and expected != digest_of(asked):
            item = f"{one.name}/{document}"
            raise AlignmentError(
                f"the prompt of '{item}' is not the one that the source models answered. "
                f"{_difference(_source_prompt(part, item, expected, source_run), prompt_text(asked))} "
                f"{_recorded(about, one)} Use the same task files, few-shot setting, template and version."
            )


def _source_prompt(part: Part, item: str, digest: str, source_run: str | Path | None) -> str | None:
    """The prompt that the sources answered, from the files of a run that are still there; only its hash was kept."""
    if source_run is not None:
        files = [run.results for run in find_runs([source_run])]
    else:
        abouts = (part.recorded.get("models") or {}).values()
        files = [Path(str(about["results"])) for about in abouts if about.get("results")]
    there = (file for file in files if file.is_file())
    return next((text for file in there if (text := prompt_of(file, item, digest)) is not None), None)


def _difference(then: str | None, now: str) -> str:
    """Where two prompts part, and both from there on; the new one alone where the old one is not at hand."""
    if then is None:
        return (
            f"Now ({len(now)} characters): {_excerpt(now, 0)}. The old prompt's text is not at hand; give a source "
            "model's run with --source-run to see both."
        )
    same = takewhile(lambda pair: pair[0] == pair[1], zip(then, now, strict=False))
    at = sum(1 for _ in same)
    start = max(0, at - CONTEXT)
    return (
        f"They part at character {at}: then {_excerpt(then, start)} ({len(then)} characters), "
        f"now {_excerpt(now, start)} ({len(now)} characters)."
    )


def _excerpt(text: str, start: int) -> str:
    cut = text[start : start + 4 * CONTEXT]
    return f"{'...' if start else ''}{cut!r}{'...' if start + len(cut) < len(text) else ''}"


def _recorded(then: Mapping[str, Any], one: AnchorTask) -> str:
    """The settings of both, in words."""
    template = "a" if then.get("chat_template_sha") else "no"
    known = {k: v for k in ("n-shot", "versions") if (v := (then.get(k) or {}).get(one.name)) is not None}
    return (
        f"Settings then: {known}, {template} chat template, lm_eval {then.get('lm_eval_version')}; now: "
        f"{one.task.get_config('num_fewshot')}-shot, version {one.task.VERSION}."
    )
