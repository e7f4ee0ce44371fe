"""disco study: compare methods on responses that are known in full."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from ..errors import DiscoError
from .common import Json, Memory, Overwrite, Scheduler, Seed, keep, print_json, print_study, progress, say, store_name


def study(
    stores: Annotated[
        list[str],
        typer.Argument(help="Full answers, one benchmark each: stores (folders or URLs), npz files or tables."),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", help="The study's folder; one that was stopped, or now asks for more, goes on there."),
    ],
    methods: Annotated[
        str,
        typer.Option(
            "--methods",
            help="Preset (table1, beyond, vision, compression, model_split, stratification, n_sources, reduction, "
            "prediction, bootstrap, performance, calibration, rank_quality, committee) or names such as "
            "pds+forest,random+direct,default. default is all of 'disco condense', with intervals; auto+auto its "
            "selection and prediction alone, without.",
        ),
    ] = "table1",
    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            help="iid, random, chronological, bootstrap, family, base, first10, top10, top30; several with commas. "
            "A preset's own by default, else iid.",
        ),
    ] = None,
    anchors: Annotated[
        str | None,
        typer.Option("--anchors", help="Numbers of anchors, such as 10,30,60,100. A preset's own, else 100."),
    ] = None,
    runs: Annotated[
        int,
        typer.Option(
            "--runs",
            help="How often everything random is drawn anew: anchors, fits, and the targets of the splits "
            "random, bootstrap, family and base. The other splits have the same targets in every run.",
            min=1,
        ),
    ] = 5,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes side by side; the result is the same.", min=1)] = 1,
    committee: Annotated[
        int | None, typer.Option("--committee", help="Source models asked for disagreement in presets; all by default.")
    ] = None,
    metabench: Annotated[
        str, typer.Option("--metabench", help="Metabench's anchors for each one of the others', by benchmark.")
    ] = "1.5,hellaswag=4.5,winogrande=2",
    cutoff: Annotated[
        str | None, typer.Option("--cutoff", help="First day of the targets in chronological splits: 2024-01-13.")
    ] = None,
    times: Annotated[
        bool, typer.Option("--times", help="Fill the column 'seconds'; times differ between runs.")
    ] = False,
    memory: Memory = None,
    scheduler: Scheduler = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Compare methods, splits and numbers of anchors over several runs; write one long table.

    Examples:

    **disco study mmlu.zarr --methods table1 --split iid,family --out study**

    **disco study mmlu.zarr --methods pds+forest,random+direct --anchors 10,30,60,100 --jobs 2 --out curve**
    """
    import numpy as np

    from ..io import open_answers
    from ..report.tables import spread_words
    from ..resources import limited, on_cluster
    from ..studies.plans import split_plans
    from ..studies.presets import metabench_times, request
    from ..studies.run import study as run

    names = [store_name(store) for store in stores]
    if len(set(names)) != len(names):
        raise DiscoError(f"two stores have the same name, and so would their benchmarks: {', '.join(names)}")
    with limited(memory):
        responses = {name: open_answers(store) for name, store in zip(names, stores, strict=True)}
    asked = request(methods, responses, split, anchors, committee=committee, metabench=metabench_times(metabench))
    if asked.note:
        say(f"Note: {asked.note}")
    for name, r in responses.items():
        for plan in split_plans(asked.splits, cutoff):
            note = plan.draw(r, np.random.default_rng(seed)).note
            if note:
                say(f"Note: {name}, {plan.name}: {note}")
    with limited(memory), on_cluster(scheduler), progress() as tell:
        predictions = run(
            asked.methods, responses, asked.splits, asked.n_anchors, runs, seed,
            out=out, jobs=jobs, cutoff=cutoff, times=times, overwrite=overwrite, progress=tell,
        )  # fmt: skip
    keep(out, "study", title=out.name)
    if as_json:
        print_json({"out": str(out), "summary": predictions.summary().to_dicts()})
        return
    print(f"{out}: {spread_words(predictions) or 'one run'}\n")
    print_study(predictions)
    named = quote(str(out))
    print(f"Report: {out / 'report.html'}. Next: disco report tables {named}; disco report figures {named}")
