"""disco import: results that exist become a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DiscoError, some
from .common import Json, Overwrite, print_json, progress, say
from .stores import may_write, next_step, say_doubts, write

if TYPE_CHECKING:
    from ..io.importing import Reader
    from ..responses import Responses

app = typer.Typer(
    no_args_is_help=True,
    help="Turn results that exist into a store: npz, table, lm-eval, lmms-eval, vlmevalkit, leaderboard, "
    "lighteval, inspect, helm, opencompass, timm, authors.",
    rich_markup_mode="markdown",
)

Out = Annotated[Path, typer.Option("--out", help="The store to write.")]
Store = Annotated[Path, typer.Option("--out", help="The store to write, or to add models to.")]
Runs = Annotated[list[Path], typer.Argument(help="Files or folders that the tool wrote, any number of models.")]
Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", help="What is right: acc, acc_norm, ..., or TASK=METRIC. Repeatable; TASK may hold *."),
]
Drift = Annotated[
    bool,
    typer.Option(
        "--allow-prompt-drift", help="Mix runs that asked the same items with other prompts, and compare none."
    ),
]
About = Annotated[
    Path | None,
    typer.Option(
        "--about",
        help="Table of what is known of the models that are added: model, and any of family, base, released.",
    ),
]
Half = Annotated[
    bool, typer.Option("--float16", help="Keep probabilities in half the space, exact to about three digits.")
]
Source = Annotated[Path, typer.Argument(help="The file to read.")]
Add = Annotated[bool, typer.Option("--add", help="Add the models to the store that is there; those in it are skipped.")]


@app.command("npz", epilog="Example: **disco import npz mmlu.npz --out mmlu.zarr**")
def npz(
    source: Source,
    out: Out,
    float16: Half = False,
    add: Add = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Read a NumPy archive of named arrays.

    Arrays: models (M), items (N); probs or loglikelihoods (M, N, C) with labels (N), or correct (M, N), or one of the
    first two and correct where the benchmark grades otherwise than by the most probable choice; optional n_choices,
    subtask, weight, digest, cost (N) and released, family, base_model, revision (M).
    """
    from ..io import read_npz

    may_write(out, overwrite, float16, add)
    write(read_npz(source), out, overwrite, as_json, float16, add)


@app.command("table", epilog="Example: **disco import table answers.csv --column item=question --out mine.zarr**")
def table(
    source: Source,
    out: Out,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", help="OURS=THEIRS, where the file calls a column otherwise. Repeatable."),
    ] = None,
    leave_out: Annotated[
        str | None,
        typer.Option("--leave-out", help="models or items: whichever is incomplete, where answers are missing."),
    ] = None,
    float16: Half = False,
    add: Add = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Read a long table (.csv, .tsv, .jsonl, .parquet).

    Columns: model, item and either score (one row per answer, a grade from 0 to 1), or choice, label and prob or
    loglikelihood (one row per choice); optional subtask, weight, digest, cost, family, base, released, revision.
    """
    from ..io import read_table

    pairs = [pair.partition("=") for pair in column or []]
    for pair, (ours, _, theirs) in zip(column or [], pairs, strict=True):
        if not ours or not theirs:
            raise DiscoError(f"--column takes OURS=THEIRS, such as item=question_id, not '{pair}'")
    columns = {ours: theirs for ours, _, theirs in pairs}
    if add and leave_out == "items":
        raise DiscoError("a store holds one set of items, so none can be left out with --add: --leave-out models")
    may_write(out, overwrite, float16, add)
    responses = read_table(source, columns, leave_out=leave_out)
    if all(i.endswith(".0") for i in responses.items.ids.tolist()):
        say(
            f"Items are called {some(responses.items.ids)}: were these whole numbers before a program made them others?"
        )
    for which, names in responses.provenance.get("left_out", {}).items():
        say(f"{which} left out as incomplete ({len(names)}): {some(names)}")
    write(responses, out, overwrite, as_json, float16, add)


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
        write(responses, out / f"{name}.zarr", overwrite, as_json)


@app.command("lm-eval", epilog="Example: **disco import lm-eval outputs/ --out mmlu.zarr**")
def lm_eval(
    runs: Runs,
    out: Store,
    metric: Metrics = None,
    length_normalised: Annotated[
        bool,
        typer.Option("--length-normalised", help="Divide log-likelihoods by the choice's length before the softmax."),
    ] = False,
    allow_prompt_drift: Drift = False,
    about: About = None,
    as_json: Json = False,
    tasks: Annotated[
        list[str] | None, typer.Option("--tasks", help="Only these tasks of the runs; may hold *. Repeatable.")
    ] = None,
) -> None:
    """Read folders that lm_eval wrote with --output_path and --log_samples, any number of models.

    Models already in the store are skipped, so an interrupted import goes on, and new runs are added to an old store.
    Of generated answers that several filters read, --metric METRIC,FILTER chooses the one that counts.
    """
    from ..io.lm_eval import check_same_items, read_run
    from ..io.records import check_metrics
    from ..io.runs import arguments, find_runs, having

    metrics, found = _joined(metric), find_runs(runs)
    if tasks:
        found = having(found, tasks)
    check_metrics(metrics, (task for run in found for task in run.samples))
    readers = [
        (run.model, lambda run=run: read_run(run, metric=metrics, length_normalised=length_normalised)) for run in found
    ]
    _refuse_other_metric(out, metrics)
    _import(readers, out, lambda a, b: check_same_items(a, b, allow_prompt_drift), allow_prompt_drift, about, as_json)
    _tell_variants(out, {run.model: arguments(run.about) for run in found})


@app.command("lmms-eval", epilog="Example: **disco import lmms-eval logs/ --out mmstar.zarr**")
def lmms_eval(
    runs: Runs,
    out: Store,
    metric: Metrics = None,
    allow_prompt_drift: Drift = False,
    about: About = None,
    as_json: Json = False,
) -> None:
    """Read outputs of lmms-eval (vision, video and audio) that were written with --log_samples: grades."""
    from ..io.lmms_eval import lmms_eval as readers

    _refuse_other_metric(out, _joined(metric))
    _several(readers(runs, metric=_joined(metric)), out, allow_prompt_drift, about, as_json)


@app.command("vlmevalkit", epilog="Example: **disco import vlmevalkit outputs/ --out mmstar.zarr**")
def vlmevalkit(
    runs: Runs, out: Store, allow_prompt_drift: Drift = False, about: About = None, as_json: Json = False
) -> None:
    """Read what VLMEvalKit evaluated: right or wrong (.xlsx needs the extra excel)."""
    from ..io.vlmevalkit import vlmevalkit as readers

    _several(readers(runs), out, allow_prompt_drift, about, as_json)


@app.command("lighteval", epilog="Example: **disco import lighteval results/details --out mine.zarr**")
@app.command("leaderboard", epilog="Example: **disco import leaderboard details_org__model --out mine.zarr**")
def details(
    runs: Runs,
    out: Store,
    metric: Metrics = None,
    allow_prompt_drift: Drift = False,
    about: About = None,
    as_json: Json = False,
) -> None:
    """Read parquet details of lighteval or of the Open LLM Leaderboard (v1), or lm-eval's files (v2)."""
    if any(run.is_dir() and next(run.rglob("samples_*.jsonl"), None) for run in runs):
        lm_eval(runs, out, metric, False, allow_prompt_drift, about, as_json)
        return
    from ..io import others

    _refuse_other_metric(out, _joined(metric))
    _several(others.details(runs, metric=_joined(metric)), out, allow_prompt_drift, about, as_json)


@app.command("helm", epilog="Example: **disco import helm benchmark_output/runs/mine --out mine.zarr**")
def helm(
    runs: Runs,
    out: Store,
    metric: Metrics = None,
    allow_prompt_drift: Drift = False,
    about: About = None,
    as_json: Json = False,
) -> None:
    """Read run folders of HELM."""
    from ..io import others

    _refuse_other_metric(out, _joined(metric))
    _several(others.helm(runs, metric=_joined(metric)), out, allow_prompt_drift, about, as_json)


@app.command("inspect", epilog="Example: **disco import inspect logs/ --out mine.zarr**")
def inspect(
    runs: Runs,
    out: Store,
    metric: Metrics = None,
    allow_prompt_drift: Drift = False,
    about: About = None,
    as_json: Json = False,
) -> None:
    """Read logs of Inspect AI: grades (needs the extra inspect)."""
    from ..io.inspect import inspect as readers

    _refuse_other_metric(out, _joined(metric))
    _several(readers(runs, metric=_joined(metric)), out, allow_prompt_drift, about, as_json)


@app.command(
    "opencompass", epilog="Example: **disco import opencompass outputs/default/20260101_000000 --out mine.zarr**"
)
def opencompass(
    runs: Runs, out: Store, allow_prompt_drift: Drift = False, about: About = None, as_json: Json = False
) -> None:
    """Read predictions of OpenCompass: right or wrong (its perplexities are per token, so no probabilities)."""
    from ..io import others
    from ..store import open_responses

    _several(others.opencompass(runs), out, allow_prompt_drift, about, as_json)
    abouts = open_responses(out).provenance.get("models") or {}
    if blind := [name for name, one in abouts.items() if not one.get("as_reported")]:
        say(
            f"Answers of {len(blind)} models are graded as right where the prediction is the gold text, with no "
            f"results beside them to compare with: {some(blind)}. Where the tool looks for a letter or a number in "
            "an answer, that is too strict"
        )


@app.command("timm", epilog="Example: **disco import timm *.parquet --labels val.csv --out imagenet.zarr**")
def timm(
    runs: Runs,
    out: Store,
    labels: Annotated[Path, typer.Option("--labels", help="CSV with columns filename, label (the class's number).")],
    float16: Half = False,
    about: About = None,
    as_json: Json = False,
) -> None:
    """Read parquet files of timm's inference.py --topk 0 --output-type prob --results-format parquet, one a model."""
    from ..io import others

    _several(others.timm(runs, labels), out, False, about, as_json, float16)


def _joined(metrics: list[str] | None) -> str | None:
    return ";".join(metrics or ()) or None


def _refuse_other_metric(out: Path, metrics: str | None) -> None:
    from ..io.records import check_store_metric
    from ..store import open_responses

    if metrics and out.exists():
        check_store_metric(metrics, open_responses(out).provenance, str(out))


def _tell_variants(out: Path, given: dict[str, Any]) -> None:
    """Say which models of the store have other arguments than the runs of their names: those were not taken."""
    from ..io.records import other_arguments
    from ..store import open_responses

    there = open_responses(out).provenance.get("models") or {}
    for name, args in given.items():
        if differs := other_arguments((there.get(name) or {}).get("model_args"), args):
            say(
                f"'{name}' was in '{out}' already, from a run that differs in {differs}; the new answers are not "
                "taken. To have both, give one another model_name in its results file"
            )


def _several(
    readers: Iterable[tuple[str, Reader]],
    out: Path,
    allow_prompt_drift: bool,
    about: Path | None,
    as_json: bool,
    float16: bool = False,
) -> None:
    from ..io.importing import check_items

    check = partial(check_items, allow_prompt_drift=allow_prompt_drift)
    _import(readers, out, check, allow_prompt_drift, about, as_json, float16)


def _import(
    readers: Iterable[tuple[str, Reader]],
    out: Path,
    check: Callable[[Responses, Responses], None],
    allow_prompt_drift: bool,
    about: Path | None,
    as_json: bool,
    float16: bool = False,
) -> None:
    from ..io.importing import import_models, read_about
    from ..store import open_responses

    known = {} if about is None else read_about(about)
    with progress() as tell:
        done = import_models(
            readers,
            out,
            check=check,
            allow_prompt_drift=allow_prompt_drift,
            dtype="float16" if float16 else None,
            progress=lambda name: tell(f"reading {name}", 0, 0),
            about=known,
        )
    r = open_responses(out)
    if about is not None and (silent := [name for name in done.added if name not in known]):
        absent = sorted(set(known) - {*done.added, *done.present})  # the same under another name, maybe
        others = f"; it tells of {len(absent)} that did not come: {some(absent)}" if absent else ""
        say(f"'{about}' says nothing of {len(silent)} of {len(done.added)} models: {some(silent)}{others}")
    if about is not None and (late := [name for name in done.present if name in known]):
        say(f"What '{about}' says of models that are in the store already is not taken ({len(late)}): {some(late)}")
    if as_json:
        counts = {"n_models": r.n_models, "n_items": r.n_items}
        print_json({"out": str(out), "added": done.added, "present": done.present, **counts})
        return
    say_doubts(r)
    if r.probs is not None and r.items.label is None:
        say("Which choice is right is not told for every item, so it counts for none; grades and probabilities do.")
    there = f", {len(done.present)} were there already" if done.present else ""
    print(f"{out}: {len(done.added)} models added{there}; now {r!r}")
    print(next_step(out, r))
