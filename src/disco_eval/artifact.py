"""A condensation on disk: ``condensation.json``, ``arrays.safetensors`` and a ``README.md`` card.

``FORMAT`` is the number of the layout. Since 2 there are the anchors' chances and how sure the score model was, 3 the
items in reserve, subtasks, the learning curve, 5 the numbers of the guard (4 dropped a backtest) and the chance of a
guess, 6 the sources left out alone and how sure the survey must be to sound the alarm, 7 where intervals start to
widen, how odd strong models may look and what the anchors cannot tell, 8 whether relatives' widen later, 9, 10 and 11
what the label's probabilities, sources that remembered, and perfect answers say of leaked anchors, 12 how much of each
subtask the anchors are, 13 how many items that leaves, 14 what sources left out with further items erred by, and the
right choices' probabilities of items in reserve, 15 whether intervals reach beyond the sources' scores, 16 how many
sources do not say where these end, and which have relatives. To change the layout: raise it by one, keep `load` able to
read older numbers (`disco_eval.older`), add a folder to ``tests/formats``, and say so in the changelog.

Reading is parse, then audit, then build: checksums first, then every field and array is checked against what it must
be, and only classes listed in `disco_eval.predict.SCORE_MODELS` are built. Nothing is unpickled or executed.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .audit import JSON, between, field, of_shape, validation
from .card import card
from .condensation import Condensation
from .errors import DiscoError, FormatError
from .files import checksum_of, new_folder, sha256
from .hub import download, is_repo
from .older import as_written_now, count_items_left
from .predict import restore
from .predict.base import need
from .predict.subtasks import SubtaskModel
from .recipe import assess
from .resources import need as need_memory
from .responses import Items, Models, Responses
from .select import Anchors
from .select.reserve import Reserve

Array = NDArray[Any]
T = TypeVar("T")

FORMAT = 16
READS = tuple(range(1, FORMAT + 1))
_WIDENING = ("near", "cautious", "trusts_kin", "reaches", "lone")  # how intervals of unusual models are told
VALIDATION = ("mae", "direct_mae", "direct_items", "grouped_by", "n_folds", "n_more", *_WIDENING)
KIND = "disco-eval condensation"
ARRAYS, CARD = "arrays.safetensors", "README.md"
ITEM_ARRAYS = ("weight", "n_choices", "label", "cost")
_LARGEST_JSON = 256 * 2**20


def write_condensation(condensation: Condensation, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a condensation to a folder, whole or not at all.

    Raises DiscoError where ``path`` exists and may not be replaced.
    """
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(array) for name, array in _arrays(condensation).items()}
    about = _about(condensation)
    with new_folder(path, JSON, kind=KIND, overwrite=overwrite) as draft:
        draft.mkdir()
        (draft / ARRAYS).write_bytes(save(arrays))
        (draft / CARD).write_text(card(condensation, Path(path).name), encoding="utf-8")
        about["files"] = {name: sha256((draft / name).read_bytes()) for name in (ARRAYS, CARD)}
        about["checksum"] = checksum_of(about)
        (draft / JSON).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load(path: str | Path, *, revision: str | None = None) -> Condensation:
    """Read a condensation that `Condensation.save` wrote, from a folder or, as ``USER/NAME``, from the hub.

    A folder of that name comes first. ``revision`` is a branch, tag or commit on the hub.

    Raises FormatError where the folder is not a condensation, is damaged, or was written by a newer version.
    """
    folder = download(str(path), revision=revision) if is_repo(path) else Path(path)
    about = parse(folder)
    try:
        made = _build(about, _verified(folder, about))
        _try_out(made)
        return made
    except FormatError:
        raise
    except (DiscoError, KeyError, TypeError, ValueError, IndexError) as e:
        raise FormatError(f"'{folder}' does not hold a condensation that makes sense: {e}") from None


def _try_out(c: Condensation) -> None:
    """One source model assessed: arrays that fit one by one but not together are found here, not by the first user."""
    one = c.sources.pick(models=[0])
    with np.errstate(all="ignore"):
        found = assess(c.score_model, one)
        values = [found.score, found.scale]
        if c.subtasks is not None:
            parts = c.subtasks.parts(len(c.reserve or ()))[: len(c.items)]  # of the reserve too
            values.append(c.subtasks.model.predict(one, np.clip(found.score, 0.0, 1.0), parts))
    if not all(np.isfinite(v).all() for v in values):
        raise FormatError("the saved score model gives no finite score for its own source models")


# ---- parse -----------------------------------------------------------------------------------------------------


def parse(folder: Path) -> dict[str, Any]:
    """The description of a condensation after checking its checksum; see `load`."""
    file = folder / JSON
    if not file.is_file():
        raise FormatError(f"'{folder}' is not a condensation (no {JSON} in it). Make one with 'disco condense'.")
    if file.stat().st_size > _LARGEST_JSON:
        raise FormatError(f"'{file}' has {file.stat().st_size} bytes, more than any condensation; it is not read")
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError) as e:
        raise FormatError(f"'{file}' is not readable JSON ({e}); the file is damaged, get it again") from None
    if not isinstance(about, dict) or about.get("kind") != KIND:
        raise FormatError(f"'{file}' does not describe a condensation. Make one with 'disco condense'.")
    number = about.get("format")
    if number not in READS or isinstance(number, bool):
        what = "by a newer version; update disco-eval" if isinstance(number, int) and number > FORMAT else "in no known"
        raise FormatError(
            f"'{folder}' was written {what} (format {number!r}; this version reads {READS[0]} to {READS[-1]})"
        )
    if about.get("checksum") != checksum_of(about):
        raise FormatError(f"'{file}' is damaged or was edited: its checksum does not fit. Get it again.")
    return about


def damaged(folder: Path, about: dict[str, Any]) -> list[str | None]:
    """For each file that a condensation's description names, None or what is wrong with it."""
    found: list[str | None] = []
    for read in (_check_card, _arrays_data):
        try:
            read(folder, about)
            found.append(None)
        except FormatError as e:
            found.append(str(e))
    return found


def _verified(folder: Path, about: dict[str, Any]) -> dict[str, Array]:
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    _check_card(folder, about)
    data = _arrays_data(folder, about)
    try:
        return dict(from_bytes(data))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as e:
        raise FormatError(f"'{folder / ARRAYS}' is not a safetensors file: {e}") from None


def _check_card(folder: Path, about: dict[str, Any]) -> None:
    file = folder / CARD
    if file.is_file() and sha256(file.read_bytes()) != field(about, "files", dict).get(CARD):
        raise FormatError(
            f"'{file}' is damaged or was edited: its checksum does not fit. If the edit is yours, keep your "
            f"notes in another file and delete {CARD}; the condensation loads without it."
        )


def _arrays_data(folder: Path, about: dict[str, Any]) -> bytes:
    file = folder / ARRAYS
    try:
        need_memory(
            file.stat().st_size, f"'{file}'", "it is larger than any condensation of about 100 items; get it again"
        )
        data = file.read_bytes()
    except OSError as e:
        raise FormatError(f"'{file}' cannot be read ({e.strerror}); get the condensation again") from None
    if sha256(data) != field(about, "files", dict).get(ARRAYS):
        raise FormatError(f"'{file}' is damaged: its checksum does not fit. Get the condensation again.")
    return data


# ---- audit and build -------------------------------------------------------------------------------------------


def _build(about: dict[str, Any], arrays: dict[str, Array]) -> Condensation:
    items = _items(field(about, "items", dict), arrays)
    models = _models(field(about, "sources", dict))
    n, k = len(models), len(items)
    correct = need(arrays, "sources.correct", (n, k))
    probs = need(arrays, "sources.probs", (n, k, None)) if "sources.probs" in arrays else None
    method = field(field(about, "anchors", dict), "method", str)
    about = as_written_now(about, arrays, n, k)
    subtasks = tuple(field(about, "subtasks", list))
    reserve = _reserve(field(about, "reserve", dict), arrays, n, k) if "reserve" in about else None
    if about["format"] < 13:
        count_items_left(about["format"], arrays, subtasks, items, correct, reserve)
    criterion, chance = (of_shape(arrays, f"anchors.{name}", (k,)) for name in ("criterion", "chance"))  # may be NaN
    anchors = Anchors(
        items.ids,
        need(arrays, "anchors.positions", (k,), "i"),
        need(arrays, "anchors.weights", (k,)),
        method,
        criterion,
        chance,
    )
    saved, checked = field(about, "score_model", dict), validation(about, arrays, n, len(subtasks))
    sources = Responses(models, items, correct, probs)
    return Condensation(
        benchmark=field(about, "benchmark", str),
        anchors=anchors,
        sources=sources,
        source_scores=need(arrays, "sources.scores", (n,)),
        score_model=restore(
            field(saved, "name", str), field(saved, "config", dict), _named(arrays, "model"), items.ids
        ),
        validation=checked.believed(reserve, sources),  # an early format 14 asked all that was left
        provenance=field(about, "provenance", dict),
        reserve=reserve,
        total_weight=_total_weight(about, items),
        subtask_names=subtasks,
        subtask_model=SubtaskModel.restore(_named(arrays, "subtasks"), len(subtasks)) if subtasks else None,
    )


def _named(arrays: dict[str, Array], part: str) -> dict[str, Array]:
    """The arrays of a part, by their names in it."""
    return {name.removeprefix(f"{part}."): array for name, array in arrays.items() if name.startswith(f"{part}.")}


def _reserve(about: dict[str, Any], arrays: dict[str, Array], n_sources: int, n_anchors: int) -> Reserve:
    own = _named(arrays, "reserve")
    items = _items(about, own | {f"items.{name}": own[name] for name in ITEM_ARRAYS if name in own})
    k = len(items)
    chance = need(own, "chance", (k,))
    if k and not (chance.min() > 0 and chance.max() <= 1):
        raise FormatError("the chances of the items in reserve must be above 0 and at most 1")
    return Reserve(
        items,
        chance,
        need(own, "shares", (n_anchors + k,)),
        need(own, "grades", (n_sources, k)),
        field(about, "n_items", int),
        _label_probs(need(own, "label_probs", (n_sources, k))) if "label_probs" in own else None,
    )


def _label_probs(saved: Array) -> Array:
    if saved.size and not (saved.min() >= 0 and saved.max() <= 1 + 1e-3):
        raise FormatError("the saved probabilities of the items in reserve must lie between 0 and 1")
    return saved


def _items(about: dict[str, Any], arrays: dict[str, Array]) -> Items:
    ids = field(about, "ids", list)
    k = len(ids)
    label = need(arrays, "items.label", (k,), "i") if "items.label" in arrays else None
    cost = need(arrays, "items.cost", (k,)) if "items.cost" in arrays else None
    return Items(
        ids,
        subtask=field(about, "subtask", list),
        digest=field(about, "digest", list),
        weight=need(arrays, "items.weight", (k,)),
        n_choices=need(arrays, "items.n_choices", (k,), "i"),
        label=label,
        cost=cost,
    )


def _total_weight(about: dict[str, Any], items: Items) -> float | None:
    if "total_weight" not in about:  # in none written before, and not in all of format 13
        return None
    least = float(items.weight.sum())
    return between(about, "total_weight", least * (1 - 1e-9), np.finfo(float).max)


def _models(about: dict[str, Any]) -> Models:
    named = {name: field(about, name, list) for name in ("released", "family", "base", "revision")}
    return Models(field(about, "ids", list), **named)


# ---- write -----------------------------------------------------------------------------------------------------


def _about(c: Condensation) -> dict[str, Any]:
    models = c.sources.models
    about = {
        "kind": KIND,
        "format": FORMAT,
        "benchmark": c.benchmark,
        "anchors": {"n": len(c.anchors), "method": c.anchors.method},
        "items": _item_names(c.items),
        "score_model": {"name": c.score_model.name, "config": c.score_model.config()},
        "validation": {name: value for name in VALIDATION if (value := getattr(c.validation, name)) is not None},
        "sources": {
            "ids": models.ids.tolist(),
            "released": np.where(np.isnat(models.released), "", models.released.astype(str)).tolist(),
            "family": models.family.tolist(),
            "base": models.base.tolist(),
            "revision": models.revision.tolist(),
        },
        "subtasks": list(c.subtask_names),
        "provenance": c.provenance,
    }
    if c.total_weight is not None:
        about["total_weight"] = c.total_weight
    if c.reserve is not None:
        about["reserve"] = {**_item_names(c.reserve.items), "n_items": c.reserve.n_items}
    return about


def _item_names(items: Items) -> dict[str, list[str]]:
    return {name: getattr(items, name).tolist() for name in ("ids", "subtask", "digest")}


def _item_arrays(items: Items, prefix: str) -> dict[str, Array]:
    return {f"{prefix}{name}": array for name in ITEM_ARRAYS if (array := getattr(items, name)) is not None}


def _arrays(c: Condensation) -> dict[str, Array]:
    checked = ["estimate", "scale", "apart", "leak", "fold", "subtask_error", "subtask_left", "curve", "nearest"]
    checked += ["more_error", "more_scale"]
    arrays = _item_arrays(c.items, "items.") | {
        **{f"anchors.{name}": getattr(c.anchors, name) for name in ("positions", "weights", "criterion", "chance")},
        **{f"validation.{name}": getattr(c.validation, name) for name in checked},
        "sources.correct": np.asarray(c.sources.correct),
        "sources.scores": c.source_scores,
    }
    if c.sources.probs is not None:
        arrays["sources.probs"] = np.asarray(c.sources.probs)
    if len(c.validation.by_anchors):
        arrays["validation.by_anchors"] = c.validation.by_anchors
    if (known := c.validation.relatives) is not None:
        arrays |= {f"relatives.{f.name}": getattr(known, f.name) for f in fields(known)}
    if c.reserve is not None:
        arrays |= _item_arrays(c.reserve.items, "reserve.")
        arrays |= {f"reserve.{name}": getattr(c.reserve, name) for name in ("chance", "shares", "grades")}
        if c.reserve.label_probs is not None:
            arrays["reserve.label_probs"] = c.reserve.label_probs
    if c.subtask_model is not None:
        arrays |= {f"subtasks.{name}": array for name, array in c.subtask_model.state().items()}
    return arrays | {f"model.{name}": array for name, array in c.score_model.state().items()}
