"""``about.json``: what a command found and how it was called, kept beside its files, so that a report can be remade."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import __version__
from ..condensation import Condensation
from ..errors import FormatError
from ..estimates import Estimate
from ..files import new_file

FILE = "about.json"
KINDS = ("demo", "study", "watch", "estimates", "comparison")


def keep(folder: str | Path, kind: str, command: str, **found: Any) -> None:
    """Write the record of a command: its kind (see `KINDS`), how it was called, and what it found as JSON values."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    record = {"kind": kind, "disco_eval": __version__, "created": now, "command": command, **found}
    with new_file(Path(folder) / FILE) as draft:
        draft.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(folder: str | Path) -> dict[str, Any] | None:
    """A folder's record, or None where it has none. Raises FormatError where it is not one of ours."""
    file = Path(folder) / FILE
    if not file.is_file():
        return None
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError) as e:
        raise FormatError(f"'{file}' is not readable JSON ({e}); run the command that wrote it again") from None
    if not isinstance(record, dict) or record.get("kind") not in KINDS:
        raise FormatError(f"'{file}' is not a record of {', '.join(KINDS)}; run the command that wrote it again")
    return record


def estimate_record(e: Estimate) -> dict[str, Any]:
    """One estimate as ``disco estimate --json`` prints it."""
    interval = {"score": e.score, "low": e.low, "high": e.high}
    record = {"model": e.model, **interval, "flags": list(e.flags), "nearest": list(e.nearest), "more": e.more}
    record |= {"surveyed": e.surveyed}
    record |= {"rank": asdict(e.rank)} if e.rank is not None else {}
    return record | ({"subtasks": [asdict(s) for s in e.subtasks]} if e.subtasks else {})


def estimates_record(c: Condensation, estimates: Sequence[Estimate], level: float) -> dict[str, Any]:
    """What ``disco estimate --json`` and ``disco run --json`` print."""
    record = {"benchmark": c.benchmark, "level": level, "estimates": [estimate_record(e) for e in estimates]}
    wanted = more_wanted(c, estimates)
    return record | ({"more_items": c.reserve.items.ids[:wanted].tolist()} if wanted and c.reserve else {})


def more_wanted(c: Condensation, estimates: Sequence[Estimate]) -> int:
    """How many more items to ask for: as many as there are anchors, where a flagged model had fewer; else 0."""
    enough = 0 if c.reserve is None else min(len(c.anchors), len(c.reserve))
    return enough if any(set(e.flags) - {"source-model"} and e.more < enough for e in estimates) else 0


def in_points(share: float | None) -> float | None:
    """A share of 1 in points; None stays."""
    return None if share is None else 100 * share


def relatives_mae_pp(c: Condensation) -> float | None:
    """Mean absolute error, in points, on sources whose relatives stayed among the sources; None where not measured."""
    relatives = c.validation.relatives
    return None if relatives is None else in_points(relatives.mae)


def summary(c: Condensation) -> dict[str, Any]:
    """What a report says of the condensation that it rests on."""
    v = c.validation
    return {
        "benchmark": c.benchmark,
        "n_anchors": len(c.anchors),
        "n_items": c.provenance.get("n_items"),
        "n_sources": c.sources.n_models,
        "mae_pp": 100 * v.mae,
        "mae_se_pp": 100 * v.mae_se,
        "relatives_mae_pp": relatives_mae_pp(c),
        "n_more": v.n_more,
        "more_mae_pp": in_points(v.more_mae),
        "direct_mae_pp": 100 * v.direct_mae,
        "against": v.against(len(c.anchors)),
        "half_width_90_pp": 100 * v.half_width(0.9),
        "grouped_by": v.grouped_by,
        "select": c.provenance.get("select"),
        "predict": c.provenance.get("predict"),
        "seed": c.provenance.get("seed"),
        "cost": c.provenance.get("cost"),
        "created": c.provenance.get("created"),
    }
