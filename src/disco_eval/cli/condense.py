"""disco condense: from source models' answers to a condensation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .common import Json, Memory, Overwrite, Scheduler, Seed, options, print_json, progress, read_names, store_name


def condense(
    store: Annotated[str, typer.Argument(help="Source models' answers: a store (a folder or URL), an npz or a table.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to write the condensation to.")],
    n_anchors: Annotated[int, typer.Option("--anchors", help="How many items to keep.")] = 100,
    select: Annotated[
        str,
        typer.Option(
            "--select",
            help="How anchors are chosen: auto, stratified, hybrid, sharp, uniform, pds, jsd, anchor_conf, "
            "anchor_corr, anchor_irt, every_kth, best_for_validation.",
        ),
    ] = "auto",
    predict: Annotated[
        str,
        typer.Option(
            "--predict",
            help="How scores are predicted: auto, gp, forest, knn, linear, ridge, lasso, boosting, mlp2, mlp3, direct, "
            "weighted_sum, pirt, gpirt, ability_irt, lifelong.",
        ),
    ] = "auto",
    sources: Annotated[
        Path | None, typer.Option("--sources", help="File of the models to learn from, one id a line; all by default.")
    ] = None,
    select_opt: Annotated[
        list[str] | None,
        typer.Option("--select-opt", help="Option of the selection: committee_size=100, stratify=true, lowest=true."),
    ] = None,
    predict_opt: Annotated[
        list[str] | None,
        typer.Option("--predict-opt", help="Option of the prediction: parts=probs,correct, n_components=32, k=3."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="What to call the benchmark; the store's name by default.")
    ] = None,
    folds: Annotated[int, typer.Option("--folds", help="Parts of the cross-validation.", min=2)] = 5,
    memory: Memory = None,
    scheduler: Scheduler = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Condense a benchmark to a few anchor items and say what error to expect.

    Examples:

    **disco condense mmlu.zarr --out mmlu-100**

    **disco condense mmlu.zarr --out mmlu-100 --sources old-models.txt --select jsd --select-opt committee_size=100**
    """
    from ..calibration import FLAGS
    from ..condensing import condense as make
    from ..errors import DiscoError
    from ..io import open_answers
    from ..report.pages import report
    from ..resources import limited, on_cluster

    if out.exists() and not overwrite:  # before the work, not after it
        raise DiscoError(f"'{out}' exists already; choose another name, or overwrite it with --overwrite")
    responses = open_answers(store)
    if sources is not None:
        responses = responses.pick(models=responses.models.positions(read_names(sources), f"'{store}'"))
    with limited(memory), on_cluster(scheduler), progress() as tell:
        condensation = make(
            responses,
            n_anchors,
            select=select,
            predict=predict,
            select_options=options(select_opt),
            predict_options=options(predict_opt),
            benchmark=name or store_name(store),
            n_folds=folds,
            rng=seed,
            progress=tell,
        )
    condensation.save(out, overwrite=overwrite)
    report(out)
    v = condensation.validation
    if as_json:
        print_json(
            {
                "out": str(out),
                "benchmark": condensation.benchmark,
                "n_anchors": len(condensation.anchors),
                "n_sources": condensation.sources.n_models,
                "mae_pp": 100 * v.mae,
                "direct_mae_pp": 100 * v.direct_mae,
                "half_width_90_pp": 100 * v.half_width(0.9),
                "grouped_by": v.grouped_by,
                "flags": list(condensation.source_flags),
            }
        )
        return
    kept = {"family": "whole families", "base": "whole base models", "none": "models"}[v.grouped_by]
    print(f"{out}: {len(condensation.anchors)} of {responses.n_items} items of '{condensation.benchmark}'")
    print(
        f"Error on {kept} left out: {100 * v.mae:.2f} points on average, up to {100 * v.half_width(0.9):.1f} for 90 % "
        f"of models; {v.direct_mae * 100:.2f} on average for as many random items."
    )
    for flag in condensation.source_flags:
        print(f"{flag}: {FLAGS[flag]}.")
    print(f"Report: {out / 'report.html'}")
    print(f"Next: disco anchors {out}, evaluate your model on them, then disco estimate {out} ANSWERS")
