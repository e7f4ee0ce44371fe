"""Estimates in the formats that hubs and registries of results take, always marked as estimates."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import __version__
from ..condensation import Condensation
from ..errors import DiscoError
from ..estimates import Estimate
from ..joining import recorded_of
from ..predict import Auto

EEE_SCHEMA = "0.2.1"
_LEFT_OUT = "errors of the same procedure on source models left out"
_SAMPLED = "standard error of the anchors as a random sample of the benchmark"


def eval_results(c: Condensation, estimates: Sequence[Estimate], dataset: str, task: str) -> list[dict[str, Any]]:
    """Entries of the hub's ``.eval_results/*.yaml`` of one model.

    The format has no field for uncertainty, so the interval stands in ``notes``. Values are in percent. Raises
    DiscoError for several models: the file lies in the repository of its model and names none.
    """
    if len(estimates) != 1:
        raise DiscoError(
            f"eval-results is a file in one model's repository, but there are estimates of {len(estimates)} models; "
            "give one with --models, or export as model-index or every-eval-ever"
        )
    return [
        {
            "dataset": {"id": dataset, "task_id": task},
            "value": round(100 * e.score, 2),
            "date": _today(),
            "notes": _note(c, e),
        }
        for e in estimates
    ]


def model_index(c: Condensation, estimates: Sequence[Estimate], dataset: str, task: str) -> list[dict[str, Any]]:
    """Entries of the older ``model-index`` of a model card; ``metrics.args`` has interval, in percent, and flags."""
    return [
        {
            "name": e.model,
            "results": [
                {
                    "task": {"type": "text-generation" if _of_text(c) else "other"},
                    "dataset": {"name": c.benchmark, "type": dataset, "config": task},
                    "metrics": [
                        {
                            "type": "accuracy" if np.isin(c.sources.grades(), (0, 1)).all() else "score",
                            "value": round(100 * e.score, 2),
                            "name": f"DISCO estimate from {_n_items(c, e)} items",
                            "args": {
                                "n_anchors": len(c.anchors),
                                **({"n_more": e.more} if e.more else {}),
                                "low": round(100 * e.low, 2),
                                "high": round(100 * e.high, 2),
                                "level": round(100 * e.level, 2),
                                **({"flags": list(e.flags)} if e.flags else {}),
                            },
                        }
                    ],
                }
            ],
        }
        for e in estimates
    ]


def every_eval_ever(c: Condensation, estimates: Sequence[Estimate], dataset: str, task: str) -> list[dict[str, Any]]:
    """Records of the Every Eval Ever schema (0.2.1), one per model, the interval as its uncertainty."""
    now = datetime.datetime.now(datetime.UTC)
    return [
        {
            "schema_version": EEE_SCHEMA,
            "evaluation_id": f"{c.benchmark}/{e.model}/{now.timestamp():.0f}",
            "retrieved_timestamp": f"{now.timestamp():.0f}",
            "source_metadata": {
                "source_name": "disco-eval",
                "source_type": "evaluation_run",
                "source_organization_name": "unknown",
                "evaluator_relationship": "other",
            },
            "eval_library": {"name": "disco-eval", "version": __version__},
            "model_info": {"name": e.model.rpartition("/")[2], "id": e.model},
            "evaluation_results": [_eee_result(c, e, dataset, task)],
        }
        for e in estimates
    ]


def _eee_result(c: Condensation, e: Estimate, dataset: str, task: str) -> dict[str, Any]:
    return {
        "evaluation_name": task,
        "source_data": {"dataset_name": dataset, "source_type": "other"},
        "metric_config": {
            "evaluation_description": _note(c, e),
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
        },
        "score_details": {
            "score": e.score,
            "details": {"flags": " ".join(e.flags), "n_anchors": str(len(c.anchors)), "n_more": str(e.more)},
            "uncertainty": {
                "confidence_interval": {
                    "lower": e.low,
                    "upper": e.high,
                    "confidence_level": e.level,
                    "method": _method(c, e),
                },
                "num_samples": _n_items(c, e),
            },
        },
    }


FORMATS: dict[str, Callable[[Condensation, Sequence[Estimate], str, str], list[dict[str, Any]]]] = {
    "eval-results": eval_results,
    "model-index": model_index,
    "every-eval-ever": every_eval_ever,
}


def _method(c: Condensation, e: Estimate) -> str:
    """What the interval of an estimate rests on; see `CrossValidation.half_widths` and `Condensation.estimate`."""
    if c.leaves_nothing(e.more):
        return "none needed: every item of the benchmark was answered"
    if e.more:
        return _of_more(c, e)
    model = c.score_model
    if not isinstance(model, Auto):
        return _LEFT_OUT
    survey = _SAMPLED if model.has_survey else "error of the ability line"
    if "outside-range" in e.flags and model.has_survey and model.guard:
        return survey
    if {"outside-range", "odd-answers"} & set(e.flags):
        return f"{_LEFT_OUT}, or {survey} where that is wider"
    return f"{_LEFT_OUT}, widened where they tell little of the model"


def _of_more(c: Condensation, e: Estimate) -> str:
    """What an interval rests on where further items were answered; see `disco_eval.more`."""
    overruled = e.more >= len(c.anchors)
    if {"anchors-differ", "odd-answers"} & set(e.flags) and not overruled:
        calm = replace(e, flags=tuple(f for f in e.flags if f not in ("anchors-differ", "odd-answers")))
        reaching = "reaching over what the further items say by themselves"
        return f"{_of_more(c, calm)}, {reaching}{'' if 'anchors-differ' in e.flags else ' as far as anchors lead'}"
    together = f"{_SAMPLED} and of {e.more} further items as one of what the anchors left"
    if c.taught(e.more) is not None and not e.surveyed:
        if "outside-range" in e.flags:
            return together
        return f"{_LEFT_OUT}, with further items too, widened where they tell little of the model"
    if not e.surveyed:
        return f"{_LEFT_OUT}, and standard error of {e.more} further items as a random sample of what the anchors left"
    if {"anchors-differ", "odd-answers"} & set(e.flags) or c.top_up(e.more).first is None:
        error = f"standard error of {e.more} further items as a random sample of what the anchors left"
        return f"{error}, and what the anchors would change" if "anchors-differ" in e.flags else error
    return together


def _n_items(c: Condensation, e: Estimate) -> int:
    """How many items an estimate rests on."""
    return len(c.anchors) + e.more


def _of_text(c: Condensation) -> bool:
    """Whether the sources are language models, as far as one can tell: those that a harness for these ran."""
    recorded = recorded_of(c.provenance.get("responses")).values()
    return any(about.get("harness", "timm") != "timm" for about in recorded)


def _note(c: Condensation, e: Estimate) -> str:
    flags = f"; flags: {', '.join(e.flags)}" if e.flags else ""
    kinds = f" ({len(c.anchors)} anchors and {e.more} further ones)" if e.more else ""
    return (
        f"DISCO estimate from {_n_items(c, e)} of {c.provenance.get('n_items', '?')} items{kinds}, "
        f"{100 * e.level:g} % interval {100 * e.low:.1f} to {100 * e.high:.1f}{flags} (disco-eval {__version__})"
    )


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()
