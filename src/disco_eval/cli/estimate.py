"""disco estimate: from answers on the anchors to full-benchmark scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import Json, Level, More, fits, keep_new, may_keep, open_parts, print_json, print_table, read_names, say

MOST_COLUMNS = 6  # subtasks, up to which a table of several models has a column for each

if TYPE_CHECKING:
    from ..condensation import Condensation
    from ..estimates import Estimate


def estimate(
    condensation: Annotated[Path, typer.Argument(help="A folder that 'disco condense' wrote.", metavar="DIR")],
    answers: Annotated[
        list[Path],
        typer.Argument(
            help="Answers to at least the anchors: stores, npz files, tables, or folders that lm_eval wrote."
        ),
    ],
    models: Annotated[
        Path | None, typer.Option("--models", help="File of the models to estimate, one id a line; all by default.")
    ] = None,
    more: More = 0,
    level: Level = 0.9,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for a report and its record; a former one is replaced.")
    ] = None,
    export: Annotated[
        str | None,
        typer.Option("--export", help="Print for others instead: eval-results, model-index, every-eval-ever."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="For --export: the benchmark's name on the hub.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Estimate models' scores on the whole benchmark from their answers on the anchors.

    Answers to other items are ignored. --more 100 takes 100 more into account, which 'disco anchors DIR --more 100'
    lists: closer estimates, and of a model that is alarmed one that holds though it is unlike the sources.

    Example: **disco estimate mmlu-100 answers.csv --level 0.95**
    """
    from ..artifact import load
    from ..doubts import coarser
    from ..errors import AlignmentError, some
    from ..report.record import estimates_record, summary

    may_keep(out, "estimates")
    c = load(condensation)
    wanted = None if models is None else read_names(models)
    estimates: dict[str, Estimate] = {}
    for file, responses in open_parts(answers, c, more):
        if wanted is not None:
            here = [name for name in wanted if name in set(responses.models.ids.tolist())]
            responses = responses.pick(models=responses.models.positions(here))
        if responses.n_models:
            if not c.leaves_nothing(more) and (doubt := coarser(c.sources, c.answers(responses))):
                say(doubt)
            for e in c.estimate(responses, level, more=more):
                if e.model in estimates:
                    raise AlignmentError(
                        f"'{e.model}' has answers in several files, '{file}' among them; give one of them"
                    )
                estimates[e.model] = e
    missing = [name for name in wanted or [] if name not in estimates]
    if missing:
        n = len(c.asked(more))
        raise AlignmentError(f"{some(answers)}: no answers, or not to all {n} items asked, from {some(missing)}")
    shown = list(estimates.values()) if wanted is None else [estimates[name] for name in wanted]
    exported = None if export is None else _exported(c, shown, export, dataset or c.benchmark)
    if out is not None:
        keep_new(out, "estimates", condensation=summary(c), **estimates_record(c, shown, level))
        say(f"Report: {out / 'report.html'}")
    if exported is not None:
        print_json(exported)
    else:
        show(c, shown, level, as_json)


def _exported(c: Condensation, estimates: list[Estimate], form: str, dataset: str) -> list[dict[str, Any]]:
    """JSON for registries of results; JSON is YAML too, so it serves as ``.eval_results/NAME.yaml``."""
    from ..errors import DiscoError, unknown
    from ..harness.exports import FORMATS

    if form not in FORMATS:
        raise DiscoError(unknown("export format", form, list(FORMATS)))
    return FORMATS[form](c, estimates, dataset, c.benchmark)


def show(c: Condensation, estimates: list[Estimate], level: float, as_json: bool) -> None:
    """Print estimates as a table, or as the documented JSON."""
    if as_json:
        from ..report.record import estimates_record

        print_json(estimates_record(c, estimates, level))
    else:
        _print(c, estimates, level)


def _print(c: Condensation, estimates: list[Estimate], level: float) -> None:
    from ..flags import FLAGS, OF_SOURCES, is_alarmed
    from ..report.record import more_wanted

    own = {e.model: [f for f in e.flags if f not in OF_SOURCES] for e in estimates}
    most = max((e.rank.of for e in estimates if e.rank), default=0)
    rows = [
        [
            e.model,
            f"{100 * e.score:.1f}",
            f"{100 * e.low:.1f} to {100 * e.high:.1f}",
            f"{e.rank}" + (f" of {e.rank.of}" if e.rank and e.rank.of < most else ""),
            ", ".join(own[e.model]),
        ]
        for e in estimates
    ]
    columns = [
        "model",
        "score",
        f"{100 * level:g} % interval",
        f"rank of {most}",
        "flags",
    ]
    if not any(own.values()):
        rows, columns = [row[:-1] for row in rows], columns[:-1]
    print_table(f"Estimated scores on {c.benchmark}, in percent", columns, rows)
    if len(estimates) == 1 and estimates[0].subtasks:
        _print_subtasks(estimates[0])
    elif 0 < len(c.subtask_names) <= MOST_COLUMNS:
        _print_each(estimates)
    elif c.subtask_names:
        print(f"Each of {len(c.subtask_names)} subtasks is estimated too: see the report (--out), or --json.")
    for flag in dict.fromkeys(f for e in estimates for f in e.flags):
        print(f"{flag}: {FLAGS[flag]}.")
    k = max((e.more for e in estimates), default=0)
    if c.leaves_nothing(k):
        print("All items of the benchmark were answered: nothing is estimated.")
    elif k > 0:
        print(f"These scores rest on {k} more items too, drawn by chance.{_of_survey(estimates)}")
    if (k := more_wanted(c, estimates)) > 0:
        alarmed = any(is_alarmed(e.flags) for e in estimates)
        gives = "an estimate that holds for models unlike the sources" if alarmed else "closer estimates"
        asked = min(e.more for e in estimates)
        what = f"{k - asked} more items, {k} in all," if asked else f"{k} more items"
        print(f"{what} would give {gives}; disco anchors DIR --more {k} lists them")


def _of_survey(estimates: list[Estimate]) -> str:
    """Which models' scores are a survey's, in words."""
    from ..errors import some

    names = [e.model for e in estimates if e.surveyed]
    if not names:
        return ""
    return (
        f" Of {some(names)} the score is a survey's: it goes by how the items were drawn, not by what source models "
        "teach of such a model."
    )


def _print_each(estimates: list[Estimate]) -> None:
    """Several models' estimates of a few subtasks, or of benchmarks that were condensed together."""
    columns = ["model", *(s.name for s in estimates[0].subtasks)]
    whole = [
        [e.model, *(f"{100 * s.score:.1f} ({100 * s.low:.0f} to {100 * s.high:.0f})" for s in e.subtasks)]
        for e in estimates
    ]
    scores = [[e.model, *(f"{100 * s.score:.1f}" for s in e.subtasks)] for e in estimates]
    if fits(columns, whole):
        print_table("By subtask", columns, whole)
    elif fits(columns, scores):
        print_table("By subtask", columns, scores)
        print("Intervals of subtasks take more columns: see the report (--out), or --json.")
    else:
        print(f"Each of {len(columns) - 1} subtasks is estimated too: see the report (--out), or --json.")


def _print_subtasks(e: Estimate) -> None:
    rows = [
        [s.name, f"{100 * s.score:.1f}", f"{100 * s.low:.1f} to {100 * s.high:.1f}", str(s.n_anchors)]
        for s in e.subtasks
    ]
    print_table("By subtask", ["subtask", "score", "interval", "answered"], rows)
