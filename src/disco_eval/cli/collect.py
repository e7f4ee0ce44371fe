"""disco collect: evaluate source models in full, and make a store of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .common import Json, print_json, progress, read_names, say


def collect(
    models: Annotated[Path, typer.Argument(help="File of the models to evaluate, one name or path a line.")],
    tasks: Annotated[str, typer.Option("--tasks", help="Group or tasks of lm_eval.")],
    out: Annotated[Path, typer.Option("--out", help="The store to write, or to add models to.")],
    model: Annotated[str, typer.Option("--model", help="A model type of lm_eval.")] = "hf",
    model_args: Annotated[str, typer.Option("--model-args", help="Added to pretrained=NAME.")] = "",
    tasks_path: Annotated[Path | None, typer.Option("--tasks-path", help="Folder of task files.")] = None,
    batch_size: Annotated[str, typer.Option("--batch-size", help="A number, or auto.")] = "8",
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:1, ...")] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="Address of a dask cluster; local by default.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", help="Local processes at a time.", min=1)] = 1,
    gpus: Annotated[float, typer.Option("--gpus", help="Of the workers' resource GPU, per evaluation.", min=0)] = 0,
    runs: Annotated[
        Path | None, typer.Option("--runs", help="Folder for lm_eval's outputs; OUT.runs by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Evaluate many models in full with lm_eval, one process each, and import what they answered.

    What is done is not done again; a model that fails is named and does not stop the others. Example:

    **disco collect models.txt --tasks mmlu --out mmlu.zarr --scheduler tcp://head:8786 --gpus 1**
    """
    from ..errors import DiscoError
    from ..harness.collect import Plan
    from ..harness.collect import collect as evaluate
    from ..io.importing import import_models
    from ..io.lm_eval import check_same_items, read_run
    from ..io.runs import find_runs

    plan = Plan(tasks, runs or Path(f"{out}.runs"), model, model_args, tasks_path, batch_size, device)
    names = list(dict.fromkeys(read_names(models)))
    failed: dict[str, str] = {}
    with progress() as tell:
        outcomes = evaluate(names, plan, scheduler=scheduler, workers=workers, gpus=gpus, progress=tell)
        for k, outcome in enumerate(outcomes, 1):
            if outcome.error:
                failed[outcome.model] = outcome.error
            say(f"{k} of {len(names)}, {outcome.model}: {outcome.error or 'done'}")
    good = [name for name in names if name not in failed]
    found = find_runs([Path(plan.job(name).folder) / "output" for name in good]) if good else []
    readers = [(run.model, lambda run=run: read_run(run)) for run in found]
    done = import_models(readers, out, check=lambda a, b: check_same_items(a, b, False)) if found else None
    if as_json:
        added, present = (done.added, done.present) if done else ([], [])
        print_json({"out": str(out), "added": added, "present": present, "failed": failed})
    elif done:
        print(f"{out}: {len(done.added)} models added, {len(done.present)} were there already")
    if failed:
        raise DiscoError(
            f"{len(failed)} of {len(names)} models failed: {', '.join(failed)}; their log.txt is in {plan.runs}"
        )
