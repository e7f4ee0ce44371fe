"""Many models into one store: resumable, a few models at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, DTypeLike

from ..appending import append_models
from ..checks import same_grading
from ..errors import AlignmentError, FormatError, ValidationError, some
from ..resources import memory_bound
from ..responses import Items, Models, Responses
from ..store import open_responses
from .frames import read_frame

ABOUT = ("family", "base", "released")  # what can be told of a model
BATCH = 16  # models written together: those that share a chunk

Reader = Callable[[], Responses]


@dataclass(frozen=True)
class Imported:
    """What an import did: models added now, and models that were there already."""

    added: list[str]
    present: list[str]


def import_models(
    readers: Iterable[tuple[str, Reader]],
    store: Path,
    *,
    check: Callable[[Responses, Responses], None],
    allow_prompt_drift: bool = False,
    dtype: DTypeLike | None = None,
    progress: Callable[[str], None] | None = None,
    about: Mapping[str, Mapping[str, str]] | None = None,
) -> Imported:
    """Write models, read one after the other, to a store; those already in it are skipped.

    A store that does not exist is made; an interrupted import goes on where it stopped when it is called again.
    ``check(first, other)`` refuses a model whose items do not fit those of the first. ``dtype`` is the type in which a
    new store keeps probabilities. ``about`` says what is known of models, from `read_about`.
    """
    present = set(open_responses(store).models.ids.tolist()) if store.exists() else set()
    first: Responses | None = None
    batch: list[Responses] = []
    added: list[str] = []
    skipped: list[str] = []
    for name, read in readers:
        if name in present:
            skipped.append(name)
            continue
        one = _told(read(), about or {})
        first = first if first is not None else one
        check(first, one)
        _same_kind(first, one)
        batch.append(_sharing(one.align(first.items.ids), first.items))
        added.append(name)
        if progress:
            progress(name)
        if len(batch) >= _together(one):
            _write(batch, store, allow_prompt_drift, dtype)
            batch = []
    if batch:
        _write(batch, store, allow_prompt_drift, dtype)
    return Imported(added, skipped)


def read_about(file: Path) -> dict[str, dict[str, str]]:
    """What a table says of models, by name: ``family``, ``base`` and ``released``, as far as it has these columns.

    Raises FormatError where it cannot be read, lacks ``model`` or all of the others, or names a model twice.
    """
    if file.suffix.lower() not in (".csv", ".tsv", ".jsonl", ".parquet"):
        raise FormatError(f"'{file}' is no table that can be read: give a .csv, .tsv, .jsonl or .parquet")
    options: dict[str, Any] = {".csv": {"infer_schema": False}, ".tsv": {"infer_schema": False, "separator": "\t"}}
    frame = read_frame(file, **options.get(file.suffix.lower(), {}))
    columns = [name for name in ABOUT if name in frame.columns]
    if "model" not in frame.columns or not columns:
        raise FormatError(
            f"'{file}' needs a column model and one of {', '.join(ABOUT)}; it has {some(frame.columns, 12)}"
        )
    nested = [name for name in ("model", *columns) if frame[name].dtype.is_nested()]
    if nested:
        raise FormatError(f"'{file}': {some(nested)} must hold one text each, but holds lists")
    rows = frame.select(pl.col("model", *columns).cast(pl.String).fill_null("").str.strip_chars()).to_dicts()
    if nameless := sum(not row["model"] for row in rows):
        raise FormatError(f"'{file}' has {nameless} rows without a model; name the model, or leave the row out")
    found = {row["model"]: {name: row[name] for name in columns} for row in rows}
    if len(found) < len(rows):
        names = [row["model"] for row in rows]
        twice = [name for name in found if names.count(name) > 1]
        raise FormatError(f"'{file}' has several rows of {some(twice)}; keep one of each model")
    for model, about in found.items():
        try:
            Models([model], **{name: [value] for name, value in about.items()})
        except ValidationError as e:
            raise FormatError(f"'{file}', model '{model}': {e}") from None
    return found


def _told(one: Responses, about: Mapping[str, Mapping[str, str]]) -> Responses:
    """The same answers, with what is known of their models; what the answers themselves say stays where nothing is."""
    if not any(name in about for name in one.models.ids.tolist()):
        return one
    own = {name: getattr(one.models, name).astype(str).tolist() for name in ABOUT}
    own["released"] = ["" if date == "NaT" else date for date in own["released"]]
    names = one.models.ids.tolist()
    known = {k: [about.get(n, {}).get(k) or v for n, v in zip(names, own[k], strict=True)] for k in ABOUT}
    models = Models(one.models.ids, revision=one.models.revision, **known)
    return Responses(models, one.items, one.correct, one.probs, one.provenance)


def check_items(
    first: Responses, other: Responses, allow_prompt_drift: bool, *, lacking: str = "", differing: str = ""
) -> None:
    """Refuse a second model that was graded otherwise, or answered other items, other prompts or right choices.

    ``lacking`` and ``differing`` say why that may be, where more is known than the answers.
    """
    a, b = str(first.models.ids[0]), str(other.models.ids[0])
    same_grading(other.provenance, first.provenance, f"'{a}'", f"'{b}'")
    for who, ours, theirs in ((b, first, other), (a, other, first)):
        lacks = np.setdiff1d(ours.items.ids, theirs.items.ids)
        if len(lacks):
            raise AlignmentError(f"'{who}' has no answers to {len(lacks)} items, such as {some(lacks)}{lacking}")
    aligned = other.align(first.items.ids)
    differs = (first.items.digest != aligned.items.digest) & (first.items.digest != "") & (aligned.items.digest != "")
    if differs.any() and not allow_prompt_drift:
        raise AlignmentError(
            f"'{b}' answered {differs.sum()} of {len(differs)} items with other prompts than '{a}', such as "
            f"{some(first.items.ids[differs])}{differing}. To mix them all the same: --allow-prompt-drift"
        )
    label, other_label = first.items.label, aligned.items.label
    unknown = label is None or other_label is None
    wrong = np.zeros(0, dtype=bool) if unknown else np.asarray(label != other_label)
    if wrong.any() and not allow_prompt_drift:
        raise AlignmentError(
            f"{wrong.sum()} of {len(wrong)} items have another right choice for '{b}' than for '{a}', such as "
            f"{some(first.items.ids[wrong])}{differing}. To mix them all the same: --allow-prompt-drift"
        )


def _same_kind(first: Responses, other: Responses) -> None:
    """Refuse a model with grades beside ones with probabilities: all would be left with grades."""
    if (first.probs is None) != (other.probs is None):
        graded, known = (first, other) if first.probs is None else (other, first)
        raise AlignmentError(
            f"'{graded.models.ids[0]}' has grades only, '{known.models.ids[0]}' probabilities: a store holds one kind; "
            "import them to stores of their own"
        )


def _together(one: Responses) -> int:
    """How many models like this one are held in memory and written together."""
    size = 4 * one.n_items * (1 if one.probs is None else 1 + one.max_choices)
    return int(min(BATCH, max(1, memory_bound() // 4 // size)))


def _write(batch: list[Responses], store: Path, allow_prompt_drift: bool, dtype: DTypeLike | None) -> None:
    together = join(batch)
    if allow_prompt_drift:  # which prompt would be kept depends on who came first; unknown ones are not compared
        items = together.items.having(digest=None)
        together = Responses(together.models, items, together.correct, together.probs, together.provenance)
    if store.exists():
        append_models(together, store)
    else:
        together.save(store, dtype=dtype)


def _sharing(one: Responses, items: Items) -> Responses:
    """The same answers with the first model's items instead of equal ones of its own: memory for many long ids."""
    ours, theirs = one.items.columns(), items.columns()
    same = all(np.array_equal(np.array(ours[k]), np.array(theirs[k])) for k in ours)
    return Responses(one.models, items, one.correct, one.probs, one.provenance) if same else one


def all_of(parts: Sequence[Responses], items: ArrayLike | None = None) -> Responses:
    """One model's answers after the other's as one, in memory; of ``items`` only, where they are given.

    Raises what `check_items` raises.
    """
    if items is not None:
        wanted = np.asarray(items, dtype=str)
        parts = [r.pick(items=np.isin(r.items.ids, wanted)) for r in parts]
    for other in parts[1:]:
        check_items(parts[0], other, False)
    return join([r.align(parts[0].items.ids) for r in parts])


def join(parts: list[Responses]) -> Responses:
    """Several models' answers to the same items, in the same order, as one; grades only where any has grades only.

    Items are the first's; a digest on which the parts differ (allowed prompt drift) becomes unknown, and labels are
    those of the first that knows them.
    """
    first = parts[0]
    same = np.all([p.items.digest == first.items.digest for p in parts], axis=0)
    label = next((p.items.label for p in parts if p.items.label is not None), None)
    items = first.items.having(digest=np.where(same, first.items.digest, ""), label=label)
    columns = ("released", "family", "base", "revision")
    models = Models(
        np.concatenate([p.models.ids for p in parts]),
        **{k: np.concatenate([getattr(p.models, k) for p in parts]) for k in columns},
    )
    correct = np.concatenate([np.asarray(p.correct) for p in parts])
    _same_choices(parts)
    probs = None if any(p.probs is None for p in parts) else np.concatenate([np.asarray(p.probs) for p in parts])
    provenance = {**first.provenance}
    about = {name: value for p in parts for name, value in p.provenance.get("models", {}).items()}
    return Responses(models, items, correct, probs, {**provenance, "models": about} if about else provenance)


def _same_choices(parts: list[Responses]) -> None:
    """Refuse probabilities of models that chose among other choices."""
    first = parts[0]
    for other in parts[1:]:
        differs = first.items.n_choices != other.items.n_choices
        if first.probs is not None and other.probs is not None and differs.any():
            raise AlignmentError(
                f"'{other.models.ids[0]}' chose among another number of choices than '{first.models.ids[0]}' in "
                f"{differs.sum()} of {len(differs)} items, such as {some(first.items.ids[differs])}"
            )
