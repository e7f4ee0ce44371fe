"""disco compare: a candidate against a baseline on the same anchors, with a verdict for a margin."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import Json, Level, More, keep_new, may_keep, open_parts, print_json, say

if TYPE_CHECKING:
    from ..condensation import Condensation
    from ..responses import Responses


def compare(
    condensation: Annotated[Path, typer.Argument(help="A folder that 'disco condense' wrote.", metavar="DIR")],
    baseline: Annotated[
        Path, typer.Argument(help="Answers of the baseline: a store, an npz, a table or a folder of lm_eval.")
    ],
    candidate: Annotated[Path, typer.Argument(help="Answers of the candidate; may be the same file.")],
    baseline_model: Annotated[
        str | None, typer.Option("--baseline-model", help="Which model of the file, where it holds several.")
    ] = None,
    candidate_model: Annotated[
        str | None, typer.Option("--candidate-model", help="Which model of the file, where it holds several.")
    ] = None,
    baseline_also: Annotated[
        list[Path] | None,
        typer.Option("--baseline-also", help="Another file of the baseline, where benchmarks were condensed together."),
    ] = None,
    candidate_also: Annotated[
        list[Path] | None, typer.Option("--candidate-also", help="The same for the candidate.")
    ] = None,
    margin: Annotated[
        float | None, typer.Option("--margin", help="The drop that is still acceptable, in points, such as 1.0.")
    ] = None,
    more: More = 0,
    level: Level = 0.9,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for a report and its record; a former one is replaced.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two models, such as a quantised one with the original: the difference of full scores, and a verdict.

    With --margin the exit status is 0 if the candidate passes, 3 if it fails and 4 if the anchors do not decide. Then
    answers to more items may: 'disco anchors DIR --more 100' lists them, --more 100 takes them into account.

    Example: **disco compare mmlu-100 original.csv quantised.csv --margin 1.0**
    """
    from ..artifact import load
    from ..comparison import VERDICTS
    from ..comparison import compare as make
    from ..errors import ValidationError
    from ..report.record import estimate_record, summary

    if margin is not None and not 0 < margin < 100:
        raise ValidationError(f"--margin is a drop in points, above 0 and below 100; got {margin:g}")
    may_keep(out, "comparison")
    c = load(condensation)
    pair = (
        _answers(c, [baseline, *(baseline_also or [])], "baseline", baseline_model, more),
        _answers(c, [candidate, *(candidate_also or [])], "candidate", candidate_model, more),
    )
    found = make(c, *pair, level=level, margin=None if margin is None else margin / 100, more=more)
    if out is not None:
        words: dict[str, Any] = {"warnings": found.warnings, "basis": found.basis, "needed": found.needed}
        words |= {"estimates": [estimate_record(c.estimate(one, level, more=more)[0]) for one in pair]}
        keep_new(out, "comparison", condensation=summary(c), comparison=asdict(found), **words)
        say(f"Report: {out / 'report.html'}")
    if as_json:
        print_json({"benchmark": c.benchmark, **asdict(found)})
    else:
        same = found.candidate == found.baseline  # two files may call their models the same
        names = [f"{m} ({f})" if same else m for m, f in ((found.candidate, candidate), (found.baseline, baseline))]
        print(
            f"{names[0]} against {names[1]} on {c.benchmark}: {100 * found.difference:+.2f} points "
            f"({100 * found.low:+.2f} to {100 * found.high:+.2f} at {100 * level:g} %)"
        )
        print(found.basis)
        for line in found.warnings:
            print(line)
        if found.verdict is not None:
            print(
                f"{found.verdict} at a margin of {margin:g} point{'s' if margin != 1 else ''}"
                + (f"; {found.needed}" if found.needed else "")
            )
            if found.needed and c.reserve is not None:
                print(_next(more, more + found.more_items, len(c.reserve)))
    if found.verdict is not None:
        raise typer.Exit(VERDICTS[found.verdict])


def _next(more: int, wanted: int, kept: int) -> str:
    """How to get at the items that would decide: the condensation keeps so many in reserve."""
    from ..numerics.survey import FEWEST

    if more >= kept:
        return f"the condensation keeps no more than {kept} items in reserve: run the whole benchmark"
    k = min(max(wanted, FEWEST), kept)
    what = "them" if wanted <= kept else f"all {kept} that the condensation keeps in reserve (which is likely too few)"
    return f"disco anchors DIR --more {k} lists {what}, disco compare --more {k} takes their answers in"


def _answers(c: Condensation, files: list[Path], side: str, name: str | None, more: int) -> Responses:
    """One side's answers to the anchors and further items, from the file of every benchmark that was condensed."""
    import numpy as np

    from ..errors import AlignmentError, some

    found = [(file, r) for file, r in open_parts(files, c, more) if np.isin(r.items.ids, c.anchors.ids).any()]
    if len(found) != 1:
        raise AlignmentError(
            f"{some(files)}: {'none' if not found else 'more than one'} of them holds the answers to the anchors of "
            f"'{c.benchmark}', such as {some(c.anchors.ids)}; give one file, or one for each of the benchmarks that "
            "were condensed together, named as then if they share names of items"
        )
    file, responses = found[0]
    if name is None and responses.n_models > 1:
        raise AlignmentError(
            f"'{file}' holds {responses.n_models} models, {some(responses.models.ids)}: name the one to compare with "
            f"--{side}-model"
        )
    return responses if name is None else responses.pick(models=responses.models.positions([name], f"'{file}'"))
