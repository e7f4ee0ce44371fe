"""From one model's answers, one record an item, to responses: what all readers of harness outputs share."""

from __future__ import annotations

import ast
import codecs
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import AlignmentError, DiscoError, FormatError, ValidationError, some
from ..resources import need
from ..responses import Items, Models, Responses


@contextmanager
def in_layout(file: Path, what: str) -> Iterator[None]:
    """Turn what goes wrong when JSON values are not those of a known layout into one line: FormatError."""
    try:
        yield
    except DiscoError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, SyntaxError) as e:
        why = " ".join(f"{type(e).__name__}: {e}".split())[:120]
        raise FormatError(f"'{file}' is not {what} in the known layout ({why})") from None


def single(values: NDArray[Any]) -> NDArray[np.float32]:
    """Numbers as float32. Those too large for it become infinite without a word, and are refused as no answer."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


@dataclass(frozen=True)
class Record:
    """One model's answer to one item: its grade, and the choices' log-likelihoods where the format holds them."""

    item: str
    subtask: str
    grade: float
    digest: str = ""
    loglikelihoods: Sequence[float] | None = None
    label: int | None = None


def one_model(
    name: str, records: Sequence[Record], provenance: dict[str, Any], *, revision: str = "", in_order: bool = False
) -> Responses:
    """One model's responses; probabilities only where every record has log-likelihoods.

    Items are ordered by task and number unless ``in_order``. Raises AlignmentError for an item that is there twice.
    """
    if not records:
        raise FormatError(f"there are no answers of '{name}'")
    ids = [r.item for r in records]
    if len(set(ids)) != len(ids):
        names, counts = np.unique(ids, return_counts=True)
        raise AlignmentError(f"'{name}' has answers to {len(ids) - len(names)} items twice: {some(names[counts > 1])}")
    ordered = list(records) if in_order else sorted(records, key=lambda r: natural(r.item))
    lls = [r.loglikelihoods for r in ordered]
    labels = [r.label for r in ordered if r.label is not None]
    known = all(ll is not None for ll in lls)
    items = Items(
        [r.item for r in ordered],
        subtask=[r.subtask for r in ordered],
        digest=[r.digest for r in ordered],
        n_choices=[len(ll or ()) for ll in lls] if known else None,
        label=labels if known and len(labels) == len(ordered) else None,
    )
    models = Models([name], revision=[revision])
    grades = np.array([[r.grade for r in ordered]], np.float32)
    if not known:
        without = sorted({r.subtask for r in ordered if r.loglikelihoods is None})
        mixed = {"without_choices": without} if any(ll is not None for ll in lls) else {}
        return Responses(models, items, grades, None, {**provenance, **mixed})
    table = np.full((1, len(ordered), max(len(ll or ()) for ll in lls)), -np.inf)
    for i, ll in enumerate(lls):
        table[0, i, : len(ll or ())] = ll
    made = Responses.from_loglikelihoods(models, items, table, correct=grades)
    return Responses(models, items, made.correct, made.probs, provenance)


class Wanted:
    """The items that will be used, where not all are: tasks that have none of them are not even graded."""

    def __init__(self, items: ArrayLike | None) -> None:
        self._items = None if items is None else set(np.asarray(items, dtype=str).tolist())
        self._tasks = {item.rpartition("/")[0] for item in self._items or ()}

    def tasks(self, tasks: Iterable[str]) -> list[str]:
        """Those that have wanted items, in order; all where none has, so that the items can be told as missing."""
        every = sorted(tasks)
        mine = [t for t in every if t in self._tasks or t.removesuffix("_anchors") in self._tasks]
        return every if self._items is None else mine or every

    def of(self, records: list[Record]) -> list[Record]:
        """The records of wanted items; all where there are none, as above."""
        items = self._items
        return records if items is None else [r for r in records if r.item in items] or records


ALL = Wanted(None)


def natural(item: str) -> tuple[str, int, str]:
    """Order by task, then by number of the document, so ``task/10`` comes after ``task/9``."""
    task, _, number = item.rpartition("/")
    return (task, int(number), "") if number.isdecimal() else (task, -1, number)


_AGREES = 0.001  # how far the mean grade may lie from what a results file says, rounded as that may be


def reported_as(mean: float, said: Iterable[float]) -> bool:
    """Whether a mean grade is one of the numbers that a tool reported, as a share or in percent."""
    return any(abs(v - mean) <= _AGREES or abs(v / 100 - mean) <= _AGREES for v in said)


def grade_of(value: Any) -> float:
    """A grade from 0 to 1 from a number, a truth value or their text; ValidationError where it is none."""
    text = str(value).strip()
    if text in ("True", "true", "False", "false"):
        return float(text.lower() == "true")
    try:
        grade = float(text)
    except ValueError:
        raise ValidationError(f"the grade is {text[:40]!r}, expected a number from 0 to 1") from None
    if not 0 <= grade <= 1:
        raise ValidationError(f"the grade is {grade}, expected 0 to 1; choose another metric")
    return grade


def metric_of(task: str, metrics: str | None) -> str | None:
    """The metric that decides a task, None for the default.

    ``metrics`` is one for all, or several with ``;`` between them, such as ``arc_*=acc_norm;acc``: the first counts
    that is for this task, else the one for all, wherever it stands.
    """
    found = _deciding_entry(task, metrics)
    return None if found is None else found.rpartition("=")[2]


def _deciding_entry(task: str, metrics: str | None) -> str | None:
    """Which of several metrics of `metric_of` is the one of a task: those with a pattern go before those for all."""
    every = [one for one in (metrics or "").split(";") if one]
    return next((one for one in sorted(every, key=lambda one: "=" not in one) if fits(task, one)), None)


def check_store_metric(metrics: str | None, provenance: Mapping[str, Any], store: str) -> None:
    """Refuse a metric other than what decided a store's tasks: models in it already would not be read by it.

    Raises AlignmentError.
    """
    for task, how in (provenance.get("graded") or {}).items():
        asked = metric_of(task, metrics)
        if asked is not None and asked not in (how, how.partition(",")[0]):
            raise AlignmentError(
                f"'{store}' has '{task}' graded by '{how}', --metric asks for '{asked}', and scores of both cannot be "
                "compared; import to another store, or leave out --metric"
            )


def decided(wanted: str | None, have: Collection[str], preferred: Sequence[str]) -> str:
    """Which of the metrics that a row has decides: what is wanted, else the first preferred one, else its first.

    ``"a|b"`` is wanted where rows of one task have either. Raises ValidationError where it is not there.
    """
    default = [*(m for m in preferred if m in have), *have]
    found = next((m for m in (wanted.split("|") if wanted else default) if m in have), None)
    if found is None:
        raise ValidationError(f"there is no metric '{wanted or ''}'; the rows have {some(list(have)) or 'none'}")
    return found


def deciding(metrics: Iterable[str], wanted: str | None) -> str:
    """What decided a task as provenance keeps it and ``--metric`` takes it: one metric, or several of other rows.

    Where several are wanted, that is kept: a part of the task may have rows of one of them alone.
    """
    return wanted if wanted and "|" in wanted else "|".join(sorted(set(metrics)))


def fits(task: str, one: str) -> bool:
    """Whether a metric of `metric_of` is for a task; tasks of anchors alone are called after the whole one."""
    pattern, equals, _ = one.rpartition("=")
    return not equals or any(fnmatchcase(name, pattern) for name in (task, task.removesuffix("_anchors")))


def check_metrics(metrics: str | None, tasks: Iterable[str]) -> None:
    """Refuse metrics of which one is for none of the tasks, or decides none: FormatError."""
    known = sorted(set(tasks))
    deciding = {_deciding_entry(task, metrics) for task in known}
    for one in filter(None, (metrics or "").split(";")):
        if not any(fits(task, one) for task in known):
            raise FormatError(f"no task is called as in '{one}'; there are {some(known)}")
        if one not in deciding:
            raise FormatError(f"--metric '{one}' decides no task: others are given for all of {some(known)}; drop one")


_WHERE_IT_RUNS = (
    "pretrained", "revision", "batch_size", "max_batch_size", "device", "device_map", "device_map_option",
    "parallelize", "max_memory_per_gpu", "max_cpu_memory", "offload_folder", "tensor_parallel_size",
    "data_parallel_size", "gpu_memory_utilization", "trust_remote_code", "num_concurrent", "cache_dir",
)  # fmt: skip
MOST_ARGUMENTS = 2000  # characters of a model's arguments that are kept


def other_arguments(ours: Any, theirs: Any) -> str:
    """In which arguments that decide a model's answers two runs of it differ, in words; nothing where either has none.

    Arguments are a table, its text, or ``"dtype=float32,peft=name"``. The name and where it runs are no such arguments.
    """
    a, b = _arguments(ours), _arguments(theirs)
    if not a or not b:
        return ""
    differing = [name for name in sorted({*a, *b} - set(_WHERE_IT_RUNS)) if a.get(name) != b.get(name)]
    told = [f"{name} {a.get(name, 'not given')} against {b.get(name, 'not given')}" for name in differing]
    return ", ".join(told)[:300]


def _arguments(given: Any) -> dict[str, str]:
    given = literal(given)
    if isinstance(given, dict):
        return {str(name): str(value) for name, value in given.items()}
    pairs = [part.partition("=") for part in str(given or "").split(",") if part]
    return {name.strip(): value.strip() for name, _, value in pairs}


def one_models(model: str, runs: Sequence[tuple[Path, Any]]) -> None:
    """Refuse two runs, each a file with its arguments, that have one model's name but are of two: AlignmentError."""
    (first, ours), (other, theirs) = runs
    if differs := other_arguments(ours, theirs):
        raise AlignmentError(
            f"'{model}' has runs of two models: '{first}' and '{other}' differ in {differs}. Import them one by one to "
            "stores of their own, or give one another model_name in its results file"
        )


def loglikelihoods_of(values: Sequence[Any]) -> list[float]:
    """Log-likelihoods from numbers or their text; NaN is refused, minus infinity is probability 0."""
    numbers = [float(v) for v in values]
    if any(np.isnan(v) for v in numbers):
        raise ValidationError("a log-likelihood is NaN; the model overflowed, run it in another precision")
    return numbers


_JSON_TIMES = 8  # what a file's values take in memory against the file


def literal(value: Any) -> Any:
    """A value that some writers turned into the text of a Python literal; never evaluated as code."""
    if not isinstance(value, str) or len(value) > 10_000_000:
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


def read_json(file: Path) -> Any:
    """JSON of a file; FormatError where it is not, or too large to be taken apart in memory."""
    try:
        need(_JSON_TIMES * file.stat().st_size, f"'{file}' in parts", "split it")
        return json.loads(file.read_bytes())
    except ValidationError:
        raise
    except (OSError, ValueError, RecursionError) as e:
        raise FormatError(f"'{file}' is not readable JSON ({str(e)[:100]})") from None


def lines_of(file: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not empty, numbered from 1, without the mark that some editors put before a text."""
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                if text.strip():
                    yield number, text
    except OSError as e:
        raise FormatError(f"'{file}' cannot be read: {e.strerror}") from None


def once(files: Iterable[Path]) -> list[Path]:
    """Every file once, where arguments of a command overlap; links to one file under other names are several."""
    return list({file.parent.resolve() / file.name: file for file in files}.values())


def folders_with(paths: Sequence[Path], pattern: str, what: str) -> list[Path]:
    """Folders, at any depth, that hold a file of the pattern; FormatError where a path has none."""
    found: list[Path] = []
    for path in paths:
        here = sorted({f.parent for f in path.rglob(pattern)}) if path.is_dir() else []
        if not here:
            raise FormatError(f"'{path}' holds no {pattern}; give the folder that {what} wrote")
        found += here
    return once(found)
