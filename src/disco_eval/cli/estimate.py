"""disco estimate: from answers on the anchors to full-benchmark scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import Json, Level, keep_new, print_json, print_table, read_names

if TYPE_CHECKING:
    from ..condensation import Condensation, Estimate


def estimate(
    condensation: Annotated[Path, typer.Argument(help="A folder that 'disco condense' wrote.", metavar="DIR")],
    answers: Annotated[
        list[Path], typer.Argument(help="Answers to at least the anchors: stores, npz files or tables.")
    ],
    models: Annotated[
        Path | None, typer.Option("--models", help="File of the models to estimate, one id a line; all by default.")
    ] = None,
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

    Answers to other items are ignored. Example: **disco estimate mmlu-100 answers.csv --level 0.95**
    """
    from ..artifact import load
    from ..errors import AlignmentError, some
    from ..io import open_answers
    from ..report.record import estimates_record, summary

    c = load(condensation)
    wanted = None if models is None else read_names(models)
    estimates: dict[str, Estimate] = {}
    for file in answers:
        responses = open_answers(file, items=c.anchors.ids)
        if wanted is not None:
            here = [name for name in wanted if name in set(responses.models.ids.tolist())]
            responses = responses.pick(models=responses.models.positions(here))
        if responses.n_models:
            for e in c.estimate(responses, level):
                if e.model in estimates:
                    raise AlignmentError(
                        f"'{e.model}' has answers in several files, '{file}' among them; give one of them"
                    )
                estimates[e.model] = e
    missing = [name for name in wanted or [] if name not in estimates]
    if missing:
        raise AlignmentError(f"{len(missing)} models have no answers in {some(answers)}: {some(missing)}")
    shown = list(estimates.values()) if wanted is None else [estimates[name] for name in wanted]
    if out is not None:
        keep_new(out, "estimates", condensation=summary(c), **estimates_record(c.benchmark, shown, level))
    if export is not None:
        _export(c, shown, export, dataset or c.benchmark)
    else:
        show(c.benchmark, shown, level, as_json)


def _export(c: Condensation, estimates: list[Estimate], form: str, dataset: str) -> None:
    """JSON for registries of results; JSON is YAML too, so it serves as ``.eval_results/NAME.yaml``."""
    from ..errors import DiscoError, unknown
    from ..harness.exports import FORMATS

    if form not in FORMATS:
        raise DiscoError(unknown("export format", form, list(FORMATS)))
    print_json(FORMATS[form](c, estimates, dataset, c.benchmark))


def show(benchmark: str, estimates: list[Estimate], level: float, as_json: bool) -> None:
    """Print estimates as a table, or as the documented JSON."""
    if as_json:
        from ..report.record import estimates_record

        print_json(estimates_record(benchmark, estimates, level))
    else:
        _print(benchmark, estimates, level)


def _print(benchmark: str, estimates: list[Estimate], level: float) -> None:
    from ..calibration import FLAGS, OF_SOURCES

    own = {e.model: [f for f in e.flags if f not in OF_SOURCES] for e in estimates}
    rows = [
        [e.model, f"{100 * e.score:.1f}", f"{100 * e.low:.1f} to {100 * e.high:.1f}", ", ".join(own[e.model])]
        for e in estimates
    ]
    columns = ["model", "score", f"{100 * level:g} % interval", "flags"]
    if not any(own.values()):
        rows, columns = [row[:3] for row in rows], columns[:3]
    print_table(f"Estimated scores on {benchmark}, in percent", columns, rows)
    for flag in dict.fromkeys(f for e in estimates for f in e.flags):
        print(f"{flag}: {FLAGS[flag]}.")
