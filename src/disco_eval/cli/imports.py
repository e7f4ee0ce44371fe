"""disco import: results that exist become a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import DiscoError
from .common import Json, Overwrite, print_json

if TYPE_CHECKING:
    from ..responses import Responses

app = typer.Typer(
    no_args_is_help=True, help="Turn results that exist into a store: npz, table, authors.", rich_markup_mode="markdown"
)

Out = Annotated[Path, typer.Option("--out", help="The store to write.")]
Source = Annotated[Path, typer.Argument(help="The file to read.")]


@app.command("npz", epilog="Example: **disco import npz mmlu.npz --out mmlu.zarr**")
def npz(source: Source, out: Out, overwrite: Overwrite = False, as_json: Json = False) -> None:
    """Read a NumPy archive of named arrays.

    Arrays: models (M), items (N); one of probs (M, N, C), loglikelihoods (M, N, C), correct (M, N); labels (N) with the
    first two; optional n_choices, subtask, weight, digest, cost (N) and released, family, base_model, revision (M).
    """
    from ..io import read_npz

    _write(read_npz(source), out, overwrite, as_json)


@app.command("table", epilog="Example: **disco import table answers.csv --column item=question --out mine.zarr**")
def table(
    source: Source,
    out: Out,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", help="OURS=THEIRS, where the file calls a column otherwise. Repeatable."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Read a long table (.csv, .tsv, .jsonl, .parquet).

    Columns: model, item and either score (one row per answer, a grade from 0 to 1), or choice, label and prob or
    loglikelihood (one row per choice); optional subtask, weight, digest, cost, family, base, released, revision.
    """
    from ..io import read_table

    names = [pair.partition("=") for pair in column or []]
    for pair, (ours, _, theirs) in zip(column or [], names, strict=True):
        if not ours or not theirs:
            raise DiscoError(f"--column takes OURS=THEIRS, such as item=question_id, not '{pair}'")
    _write(read_table(source, {ours: theirs for ours, _, theirs in names}), out, overwrite, as_json)


@app.command("authors", epilog="Example: **disco import authors model_outputs.pickle --out stores**")
def authors(
    source: Source,
    out: Annotated[Path, typer.Option("--out", help="The folder to write one store per benchmark to.")],
    weights: Annotated[
        str, typer.Option("--weights", help="subtasks (score = mean of subtasks' means) or items (all count the same).")
    ] = "subtasks",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Read the DISCO authors' 3 GB pickle of MMLU, HellaSwag, WinoGrande and ARC; code in it is refused, never run."""
    from ..io import read_authors

    for name, responses in read_authors(source, weights).items():
        _write(responses, out / f"{name}.zarr", overwrite, as_json)


def _write(responses: Responses, out: Path, overwrite: bool, as_json: bool) -> None:
    responses.save(out, overwrite=overwrite)
    if as_json:
        print_json({"out": str(out), "n_models": responses.n_models, "n_items": responses.n_items})
    else:
        print(f"{out}: {responses!r}")
        print(f"Next: disco condense {out} --out {out.stem}-100")
