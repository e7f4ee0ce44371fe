"""The anchors as a folder of lmms-eval's tasks: each is the benchmark's own task, left with the anchors' documents.

lmms-eval has no option for single documents, but a task may include another and process its documents. The log of
such a run tells which documents they were (`metadata`), so that `disco estimate` reads it as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..condensation import Condensation
from ..errors import DiscoError, some
from ..files import new_folder
from ..io.lmms_eval import DOCUMENTS, TASK
from .prompts import asked_of

MARKER = "disco-lmms-tasks.json"
_DEEPEST = 20  # tasks that include each other
_KEEPER = '''"""Leaves the anchors of a benchmark's documents; lmms-eval calls this for the tasks beside this file."""

from lmms_eval.utils import load_yaml_config


def _keep(documents, yaml, split, kept):
    before = load_yaml_config(yaml_path=yaml, mode="full").get("process_docs")
    documents = before(documents) if before else documents
    if documents.split is not None and str(documents.split) != split:  # such as one that examples come from
        return documents
    if max(kept) >= len(documents):
        raise ValueError(f"'{yaml}' has {len(documents)} documents, but the anchors name document {max(kept)}: the "
                         "benchmark is not the one that the source models answered")
    return documents.select(kept)
'''


def write_lmms_tasks(
    condensation: Condensation, out: str | Path, tasks: Path | None = None, *, more: int = 0, overwrite: bool = False
) -> list[str]:
    """Write a folder for lmms-eval's ``--include_path``, a task for each that has anchors, and return their names.

    The tasks include the benchmark's own by their paths, so the folder is for this machine. ``tasks`` is a folder with
    those; by default they come from lmms-eval, which is looked for but not imported.

    Raises DiscoError where the source models were not evaluated by lmms-eval, or a task is not found once, is a class,
    or shows examples, which would be others among the anchors alone.
    """
    parts = asked_of(condensation, more, "lmms-eval")
    asked = {task: list(kept) for part in parts for task, kept in part.documents.items()}
    found = _files_of(asked, _folders(tasks))
    with new_folder(out, MARKER, overwrite=overwrite) as draft:
        draft.mkdir()
        functions, names = [_KEEPER], []
        for k, (task, kept) in enumerate(asked.items()):
            yaml = str(found[task])
            config = _config(found[task])
            split = _evaluated(task, config)
            name, function = f"{task}_anchors", f"keep_{k}"
            functions.append(
                f"\n\ndef {function}(documents):\n"
                f"    return _keep(documents, {yaml!r}, {split!r}, {kept})\n"
            )  # fmt: skip
            about = _metadata(config) | {TASK: task, DOCUMENTS: kept}
            readable = "".join(ch if ch.isalnum() or ch in "-_" else "_" for ch in name)
            (draft / f"{k}-{readable}.yaml").write_text(
                f"include: {json.dumps(yaml)}\ntask: {json.dumps(name)}\n"
                f"process_docs: !function disco_anchors.{function}\nmetadata: {json.dumps(about)}\n",
                encoding="utf-8",
            )
            names.append(name)
        (draft / "disco_anchors.py").write_text("".join(functions), encoding="utf-8")
        (draft / MARKER).write_text(json.dumps({"benchmark": condensation.benchmark, "tasks": names}) + "\n")
    return names


def _folders(tasks: Path | None) -> list[Path]:
    installed = find_spec("lmms_eval")
    folders = [Path(where) / "tasks" for where in (installed and installed.submodule_search_locations) or ()]
    if tasks is not None:
        if not tasks.is_dir():
            raise DiscoError(f"--tasks-path '{tasks}' is no folder; it is what lmms-eval gets as --include_path")
        return [tasks.resolve(), *folders]
    if not folders:
        raise DiscoError("lmms-eval is not installed here; name the folder of its tasks with --tasks-path")
    return folders


def _files_of(names: Mapping[str, Any], folders: list[Path]) -> dict[str, Path]:
    """The file of every task, from the first folder that has one."""
    found: dict[str, Path] = {}
    for folder in folders:
        here: dict[str, list[Path]] = {}
        for file in sorted(folder.rglob("*.yaml")):
            text = file.read_text(encoding="utf-8", errors="replace")
            for _, name in re.findall(
                r"""^task[ \t]*:[ \t]*(["']?)([^"'\n#]+?)\1[ \t]*(?:#.*)?$""", text, re.MULTILINE
            ):
                here.setdefault(name, []).append(file)
        for name in names:
            files = here.get(name, [])
            if len(files) > 1 and name not in found:
                raise DiscoError(f"task '{name}' is in '{files[0]}' and '{files[1]}'; name one folder: --tasks-path")
            if files:
                found.setdefault(name, files[0])
    missing = [name for name in names if name not in found]
    if missing:
        where = " or ".join(f"'{folder}'" for folder in folders)
        raise DiscoError(f"no .yaml in {where} has {some(missing)} as its task; name its folder with --tasks-path")
    return found


def _config(file: Path, depth: int = 0) -> dict[str, Any]:
    """What a task's file says, with what it includes; functions are not looked at."""
    try:
        import yaml
    except ImportError:
        raise DiscoError("reading lmms-eval's tasks needs PyYAML: pip install pyyaml") from None

    loader: Any = type("Loader", (yaml.SafeLoader,), {})
    loader.add_multi_constructor("", lambda *_: None)  # functions, and whatever else has a tag
    try:
        own = yaml.load(file.read_text(encoding="utf-8"), loader)
    except (OSError, ValueError, yaml.YAMLError) as e:
        raise DiscoError(f"'{file}' cannot be read as a task: {' '.join(str(e).split())[:200]}") from None
    if not isinstance(own, dict) or depth > _DEEPEST:
        raise DiscoError(f"'{file}' is no task of lmms-eval, or includes itself")
    included = own.pop("include", None) or []
    merged: dict[str, Any] = {}
    for name in reversed([included] if isinstance(included, str) else included):
        merged |= _config(file.parent / str(name), depth + 1)
    return merged | own


def _evaluated(task: str, config: Mapping[str, Any]) -> str:
    """The split that a task asks; DiscoError where its anchors cannot be asked alone."""
    if "class" in config:
        raise DiscoError(f"task '{task}' is a class of its own, whose documents cannot be chosen here")
    if (config.get("num_fewshot") or 0) > 0:
        raise DiscoError(f"task '{task}' shows examples, which would be others among the anchors alone")
    split = config.get("test_split") or config.get("validation_split")
    if not split:
        raise DiscoError(f"task '{task}' names neither test_split nor validation_split, so it asks nothing")
    return str(split)


def _metadata(config: Mapping[str, Any]) -> dict[str, Any]:
    """What the task hands to its requests; lmms-eval does not look at lists."""
    own = config.get("metadata")
    return {str(k): v for k, v in own.items()} if isinstance(own, dict) else {}
