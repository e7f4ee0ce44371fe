"""disco run: evaluate a model on the anchors alone, then estimate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .common import Json, Level, More, keep, progress, say


def run(
    condensation: Annotated[Path, typer.Argument(help="A condensation made from lm_eval's outputs.", metavar="DIR")],
    model_args: Annotated[str, typer.Option("--model-args", help="As for lm_eval: pretrained=NAME,dtype=float32")],
    model: Annotated[str, typer.Option("--model", help="A model type of lm_eval: hf, vllm, ...")] = "hf",
    tasks_path: Annotated[
        Path | None, typer.Option("--tasks-path", help="Folder of task files (lm_eval's --include_path).")
    ] = None,
    batch_size: Annotated[str | None, typer.Option("--batch-size", help="A number, or auto.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:1, ...")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the answers; an interrupted run goes on there.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="What to call the model; pretrained=... by default.")
    ] = None,
    chat: Annotated[
        bool | None,
        typer.Option("--apply-chat-template/--no-chat-template", help="As the source models' runs by default."),
    ] = None,
    system: Annotated[str | None, typer.Option("--system-instruction", help="As for lm_eval.")] = None,
    source_run: Annotated[
        Path | None, typer.Option("--source-run", help="A source model's run, to show both prompts where they differ.")
    ] = None,
    more: More = 0,
    level: Level = 0.9,
    as_json: Json = False,
) -> None:
    """Evaluate a model on the anchors through lm_eval and estimate its full score.

    Prompts are built as in a full run and checked against those that the source models answered.

    Example: **disco run mmlu-100 --model-args pretrained=my/model,dtype=bfloat16 --device cuda**
    """
    from ..artifact import load
    from ..harness.prompts import Settings, anchor_tasks, check_tasks
    from ..harness.run import Asked, load_model, name_of, run_anchors
    from ..numerics.intervals import check_level
    from ..report.record import estimates_record, summary
    from .estimate import show

    c = load(condensation)
    check_level(level)
    c.asked(more)  # refused here, before anything runs
    called = name or name_of(model_args) or model
    rest = [] if name else [part for part in model_args.split(",") if part.strip() != f"pretrained={called}"]
    folder = out or Path(f"{condensation.name}-{''.join(k if k.isalnum() else '_' for k in '-'.join([called, *rest]))}")
    asked = Asked.of(model, model_args)
    settings = Settings(tasks_path, chat, None, system, source_run, more)
    manager = check_tasks(c, settings)
    lm = load_model(model, model_args, batch_size, device)
    with progress() as tell:
        tasks = list(anchor_tasks(c, settings, lm, manager))
        answers = run_anchors(c, lm, folder, name=called, tasks=tasks, asked=asked, progress=tell)
    estimates = c.estimate(answers, level, more=more)
    found = estimates_record(c, estimates, level)
    say(f"Report: {keep(folder, 'estimates', condensation=summary(c), **found)}")
    show(c, estimates, level, as_json)
