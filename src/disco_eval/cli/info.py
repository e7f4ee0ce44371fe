"""disco info: what a store or a condensation holds, or which command wrote a folder."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..files import is_url
from .common import Json, Memory, print_json, print_table

if TYPE_CHECKING:
    from ..condensation import Condensation
    from ..responses import Responses


def info(
    path: Annotated[
        str,
        typer.Argument(help="A store (a folder or URL), a condensation, an npz, a table, or what a command wrote."),
    ],
    disagreement: Annotated[
        Path | None,
        typer.Option(
            "--disagreement",
            help="Measure how much the models disagree on every item too, and keep the sums in this folder: models "
            "that are added to the store later cost a pass over themselves alone.",
        ),
    ] = None,
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Say what a store of responses or a condensation holds, or which command wrote a folder.

    Example: **disco info imagenet.zarr --disagreement imagenet.sums --memory 1GB**
    """
    from ..artifact import load
    from ..audit import JSON
    from ..io import open_answers
    from ..resources import limited
    from ..studies.run import refuse_cut_off

    with limited(memory):
        if (Path(path) / JSON).is_file():
            record = _condensation(load(path))
        elif found := _written(path):
            record = found
        else:
            refuse_cut_off(Path(path))
            responses = open_answers(path)
            record = _responses(responses)
            if disagreement is not None:
                record |= _disagreement(responses, disagreement)
    if as_json:
        print_json(record)
    else:
        rows = {"condensation": _condensed_words, "responses": _response_words}.get(str(record["kind"]), _words)(record)
        print_table(path, ["", ""], [[name, text] for name, text in rows.items()], left=2)


def _written(path: str) -> dict[str, Any]:
    """Which command wrote a folder that holds no answers of its own, and how to see them; nothing for any other."""
    from ..errors import FormatError
    from ..io import open_answers
    from ..report.record import read

    about = None if is_url(path) else read(path)
    if about is None:
        return {}
    try:
        open_answers(path)  # a run's folder holds the answers beside what they gave
    except FormatError:
        names = ("kind", "command", "created", "disco_eval")
        return {**{name: str(about.get(name, "")) for name in names}, "to_see_it": f"disco report {quote(path)}"}
    return {}


def _responses(r: Responses) -> dict[str, Any]:
    from ..doubts import limited

    scores = r.scores()
    return {
        "kind": "responses",
        "n_models": r.n_models,
        "n_items": r.n_items,
        "answers": "grades" if r.probs is None else f"probabilities of up to {r.max_choices} choices",
        "subtasks": len(r.items.subtasks) if r.items.subtasks != [""] else 0,
        "largest_subtasks": _largest(r),
        "items_count": _counting(r),
        "scores": {"lowest": float(scores.min()), "mean": float(scores.mean()), "highest": float(scores.max())},
        **({"limited": part} if (part := limited(r.provenance)) else {}),
        "families": len({f for f in r.models.family.tolist() if f}),
        "models_with_date": int((r.models.released == r.models.released).sum()),
    }


def _largest(r: Responses, most: int = 8) -> dict[str, int]:
    """The subtasks with the most items, and how many these are."""
    import numpy as np

    names, counts = np.unique(r.items.subtask, return_counts=True)
    first = np.lexsort((names, -counts))[:most]
    return {} if names.tolist() == [""] else {str(names[k]): int(counts[k]) for k in first}


def _counting(r: Responses) -> str:
    """What items count for in the score, in words."""
    import numpy as np

    weight = r.items.weight
    if np.ptp(weight) <= 1e-9 * weight.max():
        return "all alike"
    of_subtasks = np.array([weight[r.items.subtask == name].sum() for name in r.items.subtasks])
    if len(of_subtasks) > 1 and np.ptp(of_subtasks) <= 1e-6 * of_subtasks.max():
        return "subtasks all alike"
    return f"up to {weight.max() / weight.mean():.3g} times the mean"


def _disagreement(r: Responses, kept: Path) -> dict[str, Any]:
    import numpy as np

    from ..select.sums import update

    found = update(r, kept)
    return {
        "models_read_now": found.n_read,
        "pds": {"mean": float(found.pds.mean()), "highest": float(found.pds.max())},
        "jsd": {"mean": float(found.jsd.mean()), "highest": float(found.jsd.max())},
        "most_disputed": r.items.ids[np.argsort(-found.jsd, kind="stable")[:3]].tolist(),
    }


def _condensation(c: Condensation) -> dict[str, Any]:
    from ..joining import recorded_of
    from ..report.record import in_points, relatives_mae_pp

    return {
        "kind": "condensation",
        "benchmark": c.benchmark,
        "n_anchors": len(c.anchors),
        "n_items": c.provenance.get("n_items"),
        "benchmarks": [name for name in recorded_of(c.provenance.get("responses")) if name],
        "subtasks": len(c.subtask_names),
        "n_sources": c.sources.n_models,
        "mae_pp": 100 * c.validation.mae,
        "relatives_mae_pp": relatives_mae_pp(c),
        "n_more": c.validation.n_more,
        "more_mae_pp": in_points(c.validation.more_mae),
        "direct_mae_pp": 100 * c.validation.direct_mae,
        "direct_items": c.validation.direct_items,
        "half_width_90_pp": 100 * c.validation.half_width(0.9),
        "folds": {"n": c.validation.n_folds, "grouped_by": c.validation.grouped_by},
        "select": c.provenance.get("select"),
        "mixed": bool(c.provenance.get("mixed")),
        "predict": c.provenance.get("predict"),
        "seed": c.provenance.get("seed"),
        "created": c.provenance.get("created"),
        "disco_eval": c.provenance.get("disco_eval"),
    }


def _words(record: dict[str, Any]) -> dict[str, str]:
    """A record as rows for people, one for each field."""
    return {name.replace("_", " "): _show(value) for name, value in record.items()}


def _response_words(record: dict[str, Any]) -> dict[str, str]:
    scores, n, dated = record["scores"], record["n_models"], record["models_with_date"]
    in_percent = {"scores": ", ".join(f"{name} {100 * score:.1f} %" for name, score in scores.items())}
    known = {"families": str(record["families"] or "unknown"), "models with date": f"{dated} of {n}"}
    rows = {**_words(record), **in_percent, **known}
    if not record["subtasks"]:
        rows["subtasks"] = "none"
        del rows["largest subtasks"]
    return rows


def _condensed_words(record: dict[str, Any]) -> dict[str, str]:
    from ..recipe import described
    from ..splits import KEPT_TOGETHER

    folds, n, direct = record["folds"], record["n_anchors"], record["direct_items"]
    kept = KEPT_TOGETHER[folds["grouped_by"]]
    several = record["benchmarks"]
    rows = {
        "kind": record["kind"],
        "benchmark": f"{record['benchmark']}, {_show(record['n_items'])} items",
        **({"benchmarks": f"{', '.join(several)}: each counts the same"} if several else {}),
        **({"subtasks": f"{record['subtasks']:,}"} if record["subtasks"] and not several else {}),
        "anchors": f"{n:,}, {'half' if record['mixed'] else 'all'} by {described(record['select'])}"
        + (", half by chance" if record["mixed"] else ""),
        "source models": f"{record['n_sources']:,}",
        "prediction": described(record["predict"]),
        "error": f"{record['mae_pp']:.2f} points on {kept} left out in {folds['n']} folds",
        "90 % of them": f"within {record['half_width_90_pp']:.2f} points",
        "random items": f"{record['direct_mae_pp']:.2f} points with {n if direct is None else direct:.0f}",
    }
    if record["relatives_mae_pp"] is not None:
        rows["of relatives"] = f"{record['relatives_mae_pp']:.2f} points where sources are kin of the model"
    if record["more_mae_pp"] is not None:
        rows["further items"] = f"{record['more_mae_pp']:.2f} points with {record['n_more']:,} (--more)"
    made = f"{_show(record['created'])} by disco-eval {_show(record['disco_eval'])}, seed {record['seed']}"
    return {**rows, "made": made}


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {_show(v)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
