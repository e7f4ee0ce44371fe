"""disco import: results that exist become a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import DiscoError
from .common import Json, Overwrite, print_json, progress

if TYPE_CHECKING:
    from ..responses import Responses

app = typer.Typer(
    no_args_is_help=True,
    help="Turn results that exist into a store: npz, table, lm-eval, authors.",
    rich_markup_mode="markdown",
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


@app.command("lm-eval", epilog="Example: **disco import lm-eval outputs/ --out mmlu.zarr**")
def lm_eval(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders that lm_eval wrote with --output_path and --log_samples.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The store to write, or to add models to.")],
    metric: Annotated[str | None, typer.Option("--metric", help="What counts as right: acc, acc_norm, ... .")] = None,
    length_normalised: Annotated[
        bool,
        typer.Option("--length-normalised", help="Divide log-likelihoods by the choice's length before the softmax."),
    ] = False,
    allow_prompt_drift: Annotated[
        bool, typer.Option("--allow-prompt-drift", help="Mix runs that asked the same items with other prompts.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read outputs of lm-evaluation-harness, any number of models.

    Models already in the store are skipped, so an interrupted import goes on, and new runs are added to an old store.
    """
    from ..io.importing import import_models
    from ..io.lm_eval import check_same_items, find_runs, read_run
    from ..store import open_responses

    found = find_runs(runs)
    readers = [
        (run.model, lambda run=run: read_run(run, metric=metric, length_normalised=length_normalised)) for run in found
    ]
    with progress() as tell:
        done = import_models(
            readers,
            out,
            check=lambda first, other: check_same_items(first, other, allow_prompt_drift),
            allow_prompt_drift=allow_prompt_drift,
            progress=lambda name: tell(f"reading {name}", 0, 0),
        )
    r = open_responses(out)
    if as_json:
        print_json(
            {
                "out": str(out),
                "added": done.added,
                "present": done.present,
                "n_models": r.n_models,
                "n_items": r.n_items,
            }
        )
        return
    there = f", {len(done.present)} were there already" if done.present else ""
    print(f"{out}: {len(done.added)} models added{there}; now {r!r}")
    print(f"Next: disco condense {out} --out {out.stem}-100")


def _write(responses: Responses, out: Path, overwrite: bool, as_json: bool) -> None:
    responses.save(out, overwrite=overwrite)
    if as_json:
        print_json({"out": str(out), "n_models": responses.n_models, "n_items": responses.n_items})
    else:
        print(f"{out}: {responses!r}")
        print(f"Next: disco condense {out} --out {out.stem}-100")
