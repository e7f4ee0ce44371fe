"""What is allowed, but looks like a mistake in the answers that came in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import some
from .responses import Responses

ENOUGH = 100  # answers, from which on a share of them says something
SAMPLE = (5, 2000)  # models and items that are looked at
NUMBERS = 2**22  # probabilities that these may be, at most
FAR_BELOW = 0.8  # of what guessing would get
PARTLY = 0.1  # of the sources' grades, from which on they are taken for graded in parts
UNRELATED = 0.1  # correlation of grades with whether the label is the most probable choice


def doubts(responses: Responses) -> list[str]:
    """Sentences about what looks like a mistake: runs of a part of their tasks, labels and choices that hardly fit.

    Reads a few models' answers to the first 2,000 items.
    """
    found = _misfits(responses)
    if part := limited(responses.provenance):
        found = [f"{part}: this part of the benchmark is what scores will be of", *found]
    if without := responses.provenance.get("without_choices"):
        told = f"Probabilities of choices are left out, since {some(without)} has none of them: import such tasks apart"
        found = [told, *found]
    return found


def limited(provenance: Mapping[str, Any]) -> str:
    """Which models' runs were of a part of their tasks' documents, in words; nothing where all were whole."""
    abouts = {name: about for name, about in (provenance.get("models") or {}).items() if isinstance(about, Mapping)}
    whole: dict[str, Any] = {}
    names = []
    for name, about in abouts.items():
        if about.get("partial"):
            whole |= about.get("documents") or {}
        of_tasks = about.get("tasks") or {}
        cut = {task: one.get("documents") for task, one in of_tasks.items() if one.get("partial")}
        whole |= cut
        if about.get("partial") or cut:
            names.append(name)
    if not names:
        return ""
    counts = [f"'{task}' has {n} documents" for task, n in sorted(whole.items()) if n]
    which = f" ({'; '.join(counts[:3])}{'; ...' if len(counts) > 3 else ''})" if counts else ""
    return f"{len(names)} of {len(abouts)} models ran on a part of their tasks (--limit, --samples, anchors){which}"


def _misfits(responses: Responses) -> list[str]:
    if responses.probs is None or responses.items.label is None:
        return []
    models = np.unique(np.linspace(0, responses.n_models - 1, SAMPLE[0]).round().astype(np.int64))
    most = min(SAMPLE[1], NUMBERS // (SAMPLE[0] * responses.max_choices))
    first = np.arange(min(responses.n_items, most))  # neighbours, which a store keeps together
    few = responses.pick(models=models, items=first[responses.items.n_choices[first] > 1])
    if few.n_models * few.n_items < ENOUGH:
        return []
    found = [_below_guessing(few), _unrelated(few)]
    return [sentence for sentence in found if sentence]


def _below_guessing(r: Responses) -> str:
    """Models that all do worse than guessing: as when labels or choices are in another order."""
    guessing, best = float((1 / r.items.n_choices).mean()), float(r.grades().mean(axis=1).max())
    noise = np.sqrt(guessing * (1 - guessing) / r.n_items)
    if best >= min(FAR_BELOW * guessing, guessing - 3 * noise):
        return ""
    return (
        f"All of {r.n_models} models looked at get fewer right ({100 * best:.1f} % at best) than guessing would "
        f"({100 * guessing:.1f} %): are the labels, or the choices, in another order?"
    )


def _unrelated(r: Responses) -> str:
    """Grades that have nothing to do with which choice is the most probable."""
    right = r.grades() > 0.5
    chosen, label = np.zeros_like(right), r.items.label
    assert label is not None
    for models, items, probs in r.blocks():
        chosen[models, items] = probs.argmax(axis=2) == label[items]
    if chosen.std() == 0 or right.std() == 0:
        return ""
    related = float(np.corrcoef(chosen.ravel(), right.ravel())[0, 1])
    if related >= UNRELATED:
        return ""
    return (
        "Answers graded right have the label as the most probable choice hardly more often than those graded wrong "
        f"(correlation {related:.2f}): do labels, choices and grades belong together?"
    )


def coarser(sources: Responses, answers: Responses) -> str:
    """What to say where models' grades are right or wrong alone, and the sources' on the same anchors are not.

    As when sources answered several times and their grades are means, and these models answered once.
    """
    usual = _partly(sources)
    if usual.mean() < PARTLY or np.quantile(usual, 0.05) == 0:
        return ""
    mean = answers.grades().mean(axis=1)
    plain = answers.models.ids[(_partly(answers) == 0) & (mean > 1e-6) & (mean < 1 - 1e-6)]
    if not len(plain):
        return ""
    return (
        f"Answers of {some(plain)} are right or wrong alone, the sources' are graded in parts: where sources answered "
        "several times and these once, intervals are too narrow"
    )


def _partly(r: Responses) -> NDArray[Any]:
    """Which share of every model's grades is neither 0 nor 1, (n_models,)."""
    grades = r.grades()
    return np.asarray(((grades > 1e-6) & (grades < 1 - 1e-6)).mean(axis=1))
