"""disco report: one HTML file on what a command found; tables and figures of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .common import Json, print_json, print_study


class _OrFolder(TyperGroup):
    """A group whose first word may be a folder: then the page is meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            args = ["page", *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_OrFolder,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="One HTML file on what a command found, **disco report DIR [--out FILE]**: a condensation, what demo, study, "
    "run, watch, estimate or compare wrote. Tables and figures of a study too.",
    epilog="Example: **disco report disco-demo**",
)

Study = Annotated[Path, typer.Argument(help="A study's folder, or a long table of its layout (.parquet, .csv).")]
Out = Annotated[Path | None, typer.Option("--out", help="Where the files go; DIR/tables or DIR/figures by default.")]


@app.command("page")
def page(
    folder: Annotated[Path, typer.Argument(help="What a command wrote, or a study's table.", metavar="DIR")],
    out: Annotated[Path | None, typer.Option("--out", help="The file; DIR/report.html by default.")] = None,
    as_json: Json = False,
) -> None:
    """Write the report of a folder: one HTML file that needs no network. The word page may be left out."""
    from ..report.pages import report

    file = report(folder, out)
    if as_json:
        print_json({"files": [str(file)]})
    else:
        print(file)


@app.command("tables", epilog="Example: **disco report tables study**")
def tables(study: Study, out: Out = None, as_json: Json = False) -> None:
    """Write a study's tables as markdown and LaTeX in the paper's layout, and all numbers as CSV."""
    from ..report.tables import spread_words, write_tables
    from ..studies import read_predictions

    predictions = read_predictions(study)
    written = write_tables(predictions, out or _beside(study, "tables"))
    if as_json:
        print_json({"files": [str(f) for f in written], "summary": predictions.summary().to_dicts()})
        return
    print(f"{study}: {spread_words(predictions) or 'one run'}\n")
    print_study(predictions)
    print(f"Written: {', '.join(str(f) for f in written)}")


@app.command("figures", epilog="Example: **disco report figures study --format pdf**")
def figures(
    study: Study,
    out: Out = None,
    kind: Annotated[str, typer.Option("--format", help="svg, png or pdf.")] = "svg",
    width: Annotated[
        str, typer.Option("--width", help="column (3.35 inches) or page (7): drawn for that size, text of 7 points.")
    ] = "page",
    as_json: Json = False,
) -> None:
    """Draw a study's figures: scatter of scores, of ranks, curves over anchors, calibration."""
    from ..report.figures import write_figures
    from ..studies import read_predictions

    folder = study if study.is_dir() else study.parent
    written = write_figures(read_predictions(study), folder, out or _beside(study, "figures"), kind, width)
    if as_json:
        print_json({"files": [str(f) for f in written]})
        return
    for file in written:
        print(file)


def _beside(study: Path, name: str) -> Path:
    return (study if study.is_dir() else study.parent) / name
