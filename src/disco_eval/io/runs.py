"""Which runs of lm-evaluation-harness are in some folders: what each results file says, and its samples files."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ..errors import AlignmentError, FormatError, some
from .records import MOST_ARGUMENTS, in_layout, once, one_models, read_json

_KEPT = (
    "lm_eval_version",
    "transformers_version",
    "chat_template_sha",
    "system_instruction_sha",
    "fewshot_as_multiturn",
)


@dataclass
class Run:
    """One model's evaluation: its results file and the samples file of each leaf task."""

    model: str
    results: Path
    about: dict[str, Any]
    samples: dict[str, Path] = field(default_factory=dict)


def find_runs(paths: Iterable[str | Path]) -> list[Run]:
    """Every run in some output folders, however deep; later files of the same model add tasks.

    Raises FormatError for a folder without results, or results without samples; AlignmentError where a model has two
    runs of one task.
    """
    runs: dict[str, Run] = {}
    files: list[Path] = []
    for path in paths:
        folder = Path(path)
        found = sorted(folder.rglob("results*.json")) if folder.is_dir() else []
        if not found:
            other = folder.is_dir() and next(folder.rglob("*_results.json"), None)
            raise FormatError(
                f"'{folder}' holds no results_*.json of lm_eval; give the folder that --output_path wrote"
                + (f" ('{other.name}' looks like lmms-eval's: disco import lmms-eval)" if other else "")
            )
        files += [file for file in found if _is_results(file)] or found  # others' files may be called so too
    for file in once(files):
        _add(runs, file)
    return list(runs.values())


def having(runs: list[Run], tasks: list[str]) -> list[Run]:
    """The runs with those of their tasks that are called as wanted; FormatError where none is."""
    known = sorted({task for run in runs for task in run.samples})
    unknown = [one for one in tasks if not any(fnmatchcase(task, one) for task in known)]
    if unknown:
        raise FormatError(f"no task is called as in {some(unknown)}; there are {some(known)}")
    for run in runs:
        run.samples = {t: f for t, f in run.samples.items() if any(fnmatchcase(t, one) for one in tasks)}
    return [run for run in runs if run.samples]


def _is_results(file: Path) -> bool:
    about = read_json(file)
    return isinstance(about, dict) and "results" in about


def _add(runs: dict[str, Run], file: Path) -> None:
    with in_layout(file, "a results file of lm_eval"):
        about = read_json(file)
        if not isinstance(about, dict) or "results" not in about:
            raise FormatError(f"'{file}' is not a results file of lm_eval (no 'results' in it)")
        model = _model_name(about, file)
        stamp = file.stem.removeprefix("results")
        samples = {
            f.stem.removeprefix("samples_").removesuffix(stamp): f for f in file.parent.glob(f"samples_*{stamp}.jsonl")
        }
        packed = next(file.parent.glob(f"samples_*{stamp}.jsonl.*"), None)
        if not samples and packed is not None:
            raise FormatError(f"'{packed}' is packed; unpack it and its like (gunzip), then give the folder again")
        if not samples:
            raise FormatError(f"'{file}' has no samples files beside it; run lm_eval with --log_samples")
        run = runs.setdefault(model, Run(model, file, about))
        one_models(model, [(run.results, arguments(run.about)), (file, arguments(about))])
        twice = sorted(set(run.samples) & set(samples))
        if twice:
            raise AlignmentError(
                f"'{model}' has two runs of {some(twice)}: '{run.samples[twice[0]]}' and '{samples[twice[0]]}'; "
                "keep one"
            )
        run.samples |= samples
        for name in ("versions", "n-shot", "n-samples", "configs"):
            if run.about is not about and isinstance(about.get(name), dict):
                run.about.setdefault(name, {}).update(about[name])


def about_run(run: Run) -> dict[str, Any]:
    about, config = run.about, run.about.get("config") or {}
    date = about.get("date")
    counts = about.get("n-samples") or {}
    own = {task: counts[task] for task in run.samples if isinstance(counts.get(task), dict)}
    cut = {t: c.get("original") for t, c in own.items() if c.get("effective") != c.get("original")}
    return {
        "date": ""
        if not isinstance(date, (int, float))
        else datetime.datetime.fromtimestamp(date, datetime.UTC).isoformat(),
        "versions": {t: (about.get("versions") or {}).get(t) for t in sorted(run.samples)},
        "n-shot": {t: (about.get("n-shot") or {}).get(t) for t in sorted(run.samples)},
        "model_args": str(config.get("model_args", ""))[:MOST_ARGUMENTS],
        "seed": config.get("fewshot_seed"),
        "partial": bool(cut),
        **({"documents": cut} if cut else {}),
        "seconds": _seconds(about),
        "results": str(run.results.resolve()),
        **{name: about.get(name) for name in _KEPT},
    }


def arguments(about: dict[str, Any]) -> Any:
    """The model's arguments as a results file has them: a table or a text, or None."""
    return (about.get("config") or {}).get("model_args")


def _seconds(about: dict[str, Any]) -> float | None:
    try:
        return float(about["total_evaluation_time_seconds"])
    except (KeyError, TypeError, ValueError):
        return None


def _model_name(about: dict[str, Any], file: Path) -> str:
    args = (about.get("config") or {}).get("model_args")
    given = about.get("model_name") or (args.get("pretrained") if isinstance(args, dict) else None) or file.parent.name
    name, revision = str(given).rstrip("/"), str((about.get("config") or {}).get("model_revision") or "main")
    return name if revision == "main" else f"{name}@{revision}"  # checkpoints are revisions of one name
