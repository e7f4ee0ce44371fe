"""Checks of answers that come in: shapes, numbers, probabilities, questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .axes import Array, Items
from .errors import AlignmentError, ValidationError, some

SUM_TOLERANCE = 5e-3  # float16 probabilities of many choices sum to 1 no better than this
GRADING = ("metric", "length_normalised")  # what provenance says of how answers became grades and probabilities
_GRADE_ALIKE = {"vlmevalkit": "let the same judge grade all"}  # of tools whose files hold one grade of an answer
_SLAB = 2**18  # numbers checked together, so that their copies stay in a core's cache


def check_probabilities(p: Array, model_ids: Array, items: Items) -> None:
    """Refuse what is not a probability distribution over each item's own choices, (n_models, n_items, n_choices)."""
    n_models, n_items, n_choices = p.shape
    absent = np.arange(n_choices) >= items.n_choices[:, None]
    some_absent = bool(absent.any())
    step = max(1, _SLAB // max(1, n_items * n_choices))
    width = max(1, _SLAB // max(1, n_choices))
    for m in range(0, n_models, step):
        for i in range(0, n_items, width):
            slab = p[m : m + step, i : i + width]
            work = slab.astype(np.float32) if p.dtype == np.float16 else slab
            total = _sums(work)
            fine = bool((np.abs(total - 1) <= SUM_TOLERANCE).all()) and not bool((work < 0).any())
            if not fine or (some_absent and work[:, absent[i : i + width]].any()):
                _refuse(work, model_ids[m : m + step], items.pick(slice(i, i + width)))


def _sums(p: Array) -> Array:
    """Sums over the choices; those of NaN and infinite numbers are that, without a warning."""
    with np.errstate(all="ignore"):
        total: Array = p @ np.ones(p.shape[2], p.dtype)
    return total


def _refuse(p: Array, model_ids: Array, items: Items) -> None:
    """Say what is wrong in a slab where something is."""
    total = _sums(p)
    wrong = ~(np.abs(total - 1) <= SUM_TOLERANCE)  # NaN and inf fail here too
    if wrong.any():
        m, i = np.argwhere(wrong)[0]
        if not np.isfinite(p[m, i]).all():
            bad = p[m, i][~np.isfinite(p[m, i])][0]
            raise ValidationError(
                f"probs of model '{model_ids[m]}', item '{items.ids[i]}' hold {bad}, expected finite numbers; leave "
                "models out that have not answered every item"
            )
        raise ValidationError(
            f"probs of model '{model_ids[m]}', item '{items.ids[i]}' sum to {total[m, i]:.4g}, expected 1 "
            f"({wrong.sum()} such rows nearby). Divide rounded ones by their sum; log-likelihoods are "
            "given as such (a column or array 'loglikelihood(s)', Responses.from_loglikelihoods)."
        )
    if p.min() < 0:
        m, i, c = np.argwhere(p < 0)[0]
        raise ValidationError(
            f"prob of model '{model_ids[m]}', item '{items.ids[i]}', choice {c} is {p[m, i, c]:.4g}, expected >= 0"
        )
    absent = np.arange(p.shape[2]) >= items.n_choices[:, None]
    m, i = np.argwhere((p * absent).any(axis=2))[0]
    raise ValidationError(
        f"probs of model '{model_ids[m]}', item '{items.ids[i]}' give weight to a choice beyond its "
        f"{items.n_choices[i]} choices; an absent choice must have probability 0"
    )


def _as_percent(correct: Array) -> str:
    """What to do about grades from 0 to 100."""
    high = float(correct.max())
    return "; divide percentages by 100" if 20 < high <= 100 and correct.min() >= 0 else ""


def check_grades(correct: Array, model_ids: Array, item_ids: Array) -> None:
    """Refuse grades, (n_models, n_items), outside [0, 1]."""
    wrong = ~((correct >= 0) & (correct <= 1))  # NaN fails both
    if wrong.any():
        m, i = np.argwhere(wrong)[0]
        raise ValidationError(
            f"correct of model '{model_ids[m]}', item '{item_ids[i]}' is {correct[m, i]}, expected a "
            f"number from 0 (wrong) to 1 (right) ({wrong.sum()} such cells)" + _as_percent(correct)
        )


def graded(correct: ArrayLike | None, p: Array, items: Items) -> Array:
    """Grades as given, or 1 where the most probable choice is the item's label."""
    if correct is not None:
        given = real(correct, "correct")
        return given if given.dtype.kind == "f" else given.astype(np.float32)
    if items.label is None:
        raise ValidationError("probabilities need the items' labels, or ``correct``, to know which answers are right")
    if p.shape[1] != len(items):
        raise ValidationError(f"probs holds {p.shape[1]} items, but {len(items)} are named")
    right: Array = p.argmax(axis=2) == items.label
    return right.astype(np.float32)


def real(values: ArrayLike, name: str) -> Array:
    """An array of real numbers; ValidationError where it is of anything else."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValidationError(f"{name} holds {array.dtype}, expected numbers")
    return array


def short(values: Array) -> str:
    """The first few numbers, for a message."""
    first = ", ".join(f"{v:.4g}" for v in values[:4])
    return f"[{first}{', ...' if len(values) > 4 else ''}]"


def match(shape: tuple[int, ...], expected: tuple[int, ...], name: str) -> None:
    """Refuse an array of another shape than (models, items)."""
    if tuple(shape) != expected:
        raise ValidationError(f"{name} of shape {tuple(shape)}, expected {expected} (models, items)")


def check_subtasks(items: Items) -> None:
    """Refuse items of no subtask among ones of some: they would count as a subtask without a name."""
    of_none = items.subtask == ""
    if of_none.any() and not of_none.all():
        raise ValidationError(
            f"{of_none.sum()} of {len(of_none)} items are of no subtask, such as {some(items.ids[of_none])}, but "
            "others are of one: give all items a subtask, or none"
        )


def same_questions(
    ours: Items, theirs: Items, whose: str, *, with_choices: bool = False, called: str = "anchors"
) -> None:
    """Refuse answers to items of the same names but another prompt (digest), label or number of choices."""
    both = (ours.digest != "") & (theirs.digest != "")
    checks = {"prompt (digest)": both & (ours.digest != theirs.digest)}
    if ours.label is not None and theirs.label is not None:
        checks["label"] = ours.label != theirs.label
    if with_choices:
        checks["number of choices"] = ours.n_choices != theirs.n_choices
    for what, differs in checks.items():
        if differs.any():
            raise AlignmentError(
                f"the {what} of {differs.sum()} of {len(ours)} {called} differs between the answers and the "
                f"condensation of {whose}: {some(ours.ids[differs])}. The models must answer the very same questions."
            )


def same_grading(
    new: Mapping[str, Any], old: Mapping[str, Any], whose: str, what: str = "these answers", instead: str = ""
) -> None:
    """Refuse grades of another metric, or probabilities made otherwise, where both sides say how theirs were made.

    What decided a task (``graded``) tells more than what was asked for (``metric``), which may be the default.
    """
    ours, theirs = new.get("graded") or {}, old.get("graded") or {}
    both = sorted(set(ours) & set(theirs))
    for task in both:
        if ours[task] != theirs[task]:
            raise AlignmentError(
                f"{whose} has '{task}' graded by {theirs[task]!r}, {what} by {ours[task]!r}, and scores of both cannot "
                f"be compared; {_GRADE_ALIKE.get(new.get('harness', ''), 'import with the same --metric')}{instead}"
            )
    for name in GRADING:
        if name in new and name in old and new[name] != old[name] and not (name == "metric" and both):
            raise AlignmentError(
                f"{whose} was made with {name} {old[name]!r}, {what} with {new[name]!r}, and scores of both cannot be "
                f"compared; import with the same{instead}"
            )


def check_provenance(provenance: Mapping[str, object]) -> None:
    """Refuse a provenance that JSON cannot hold, before it is to be written."""
    for key, value in provenance.items():
        try:
            json.dumps({key: value})
        except (TypeError, ValueError) as e:
            raise ValidationError(f"provenance holds JSON values, but '{key}' is {value!r:.80} ({e})") from None
