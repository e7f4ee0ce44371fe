"""disco compare: a candidate against a baseline on the same anchors, with a verdict for a margin."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .common import Json, Level, keep_new, print_json


def compare(
    condensation: Annotated[Path, typer.Argument(help="A folder that 'disco condense' wrote.", metavar="DIR")],
    baseline: Annotated[Path, typer.Argument(help="Answers of the baseline: a store, an npz or a table.")],
    candidate: Annotated[Path, typer.Argument(help="Answers of the candidate; may be the same file.")],
    baseline_model: Annotated[
        str | None, typer.Option("--baseline-model", help="Which model of the file, where it holds several.")
    ] = None,
    candidate_model: Annotated[
        str | None, typer.Option("--candidate-model", help="Which model of the file, where it holds several.")
    ] = None,
    margin: Annotated[
        float | None, typer.Option("--margin", help="The drop that is still acceptable, in points, such as 1.0.")
    ] = None,
    level: Level = 0.9,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for a report and its record; a former one is replaced.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two models, such as a quantised one with the original: the difference of full scores, and a verdict.

    With --margin the exit status is 0 if the candidate passes, 3 if it fails and 4 if the anchors do not decide.

    Example: **disco compare mmlu-100 original.csv quantised.csv --margin 1.0**
    """
    from ..artifact import load
    from ..comparison import UNLIKE, VERDICTS
    from ..comparison import compare as make
    from ..errors import ValidationError
    from ..io import open_answers
    from ..report.record import summary
    from ..responses import Responses

    if margin is not None and not 0 < margin < 100:
        raise ValidationError(f"--margin is a drop in points, above 0 and below 100; got {margin:g}")
    c = load(condensation)

    def one(file: Path, name: str | None) -> Responses:
        responses = open_answers(file, items=c.anchors.ids)
        return responses if name is None else responses.pick(models=responses.models.positions([name], f"'{file}'"))

    found = make(
        c,
        one(baseline, baseline_model),
        one(candidate, candidate_model),
        level=level,
        margin=None if margin is None else margin / 100,
    )
    if out is not None:
        keep_new(out, "comparison", condensation=summary(c), comparison=asdict(found))
    if as_json:
        print_json({"benchmark": c.benchmark, **asdict(found)})
    else:
        print(
            f"{found.candidate} against {found.baseline} on {c.benchmark}: {100 * found.difference:+.2f} points "
            f"({100 * found.low:+.2f} to {100 * found.high:+.2f} at {100 * level:g} %)"
        )
        print(
            f"Calibrated on {found.n_pairs} pairs of source models at distance {found.pair_distance:.2f}; "
            f"these two are at {found.distance:.2f}."
        )
        if found.unlike:
            print(UNLIKE)
        if found.verdict is not None:
            more = f"; {found.needed}" if found.needed else ""
            print(f"{found.verdict} at a margin of {margin:g} points{more}")
    if found.verdict is not None:
        raise typer.Exit(VERDICTS[found.verdict])
