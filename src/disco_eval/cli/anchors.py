"""disco anchors: which items to evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import DiscoError, unknown
from .common import print_json

FORMATS = ("ids", "csv", "json")


def anchors(
    condensation: Annotated[Path, typer.Argument(help="A folder that 'disco condense' wrote.", metavar="DIR")],
    form: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")] = "ids",
) -> None:
    """Print the anchors: the items on which a model must be evaluated to be estimated.

    ids: one a line. csv: id, subtask, weight, criterion. json: the same as records.
    """
    from ..artifact import load

    if form not in FORMATS:
        raise DiscoError(unknown("format", form, FORMATS))
    c = load(condensation)
    if form == "ids":
        print("\n".join(c.anchors.ids.tolist()))
        return
    known = c.anchors.criterion == c.anchors.criterion  # NaN where chance chose
    criterion = [v if k else None for v, k in zip(c.anchors.criterion.tolist(), known, strict=True)]
    columns = (c.anchors.ids.tolist(), c.items.subtask.tolist(), c.anchors.weights.tolist(), criterion)
    names = ("id", "subtask", "weight", "criterion")
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    if form == "json":
        print_json({"benchmark": c.benchmark, "method": c.anchors.method, "anchors": rows})
        return
    import csv
    import sys

    writer = csv.DictWriter(sys.stdout, names)
    writer.writeheader()
    writer.writerows(rows)
