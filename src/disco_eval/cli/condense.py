"""disco condense: from source models' answers to a condensation."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DiscoError
from .common import (
    Json,
    Memory,
    Overwrite,
    Scheduler,
    Seed,
    options,
    print_json,
    progress,
    read_names,
    say,
    store_name,
)

if TYPE_CHECKING:
    from ..condensation import Condensation
    from ..responses import Responses


def condense(
    stores: Annotated[
        list[str],
        typer.Argument(
            help="Source models' answers: a store (a folder or URL), an npz or a table. Several benchmarks that the "
            "same models answered are condensed together.",
            metavar="STORE...",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The folder to write the condensation to.")],
    n_anchors: Annotated[
        int | None,
        typer.Option("--anchors", help="How many items to keep: 100, or what --budget pays for, or --error takes."),
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(
            "--error",
            help="Mean error in points that is good enough: keep as few items as reach it, 10 or more, at most "
            "--anchors (by default half of those that count).",
            min=0.01,
            max=99,
        ),
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(
            "--select",
            help="How anchors are chosen: auto (the default), stratified, hybrid, sharp, uniform, pds, jsd, "
            "anchor_conf, anchor_corr, anchor_irt, every_kth, best_for_validation.",
        ),
    ] = None,
    predict: Annotated[
        str | None,
        typer.Option(
            "--predict",
            help="How scores are predicted: auto (the default), gp, forest, knn, linear, ridge, lasso, boosting, mlp2, "
            "mlp3, direct, weighted_sum, pirt, gpirt, ability_irt, lifelong.",
        ),
    ] = None,
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
    mixed: Annotated[
        bool,
        typer.Option(
            "--mixed",
            help="Draw half of the anchors blindly: an unbiased survey for any model, less exact than the default.",
        ),
    ] = False,
    cost: Annotated[
        str | None,
        typer.Option("--cost", help="Column with each item's cost (tokens, seconds): a table's, or a store's 'cost'."),
    ] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", help="Total cost of the anchors that must not be exceeded.", min=0)
    ] = None,
    update: Annotated[
        Path | None,
        typer.Option("--update", help="A condensation whose anchors to keep: learn from more source models."),
    ] = None,
    curve: Annotated[
        bool | None,
        typer.Option("--curve/--no-curve", help="Measure the error with fewer sources; by default unless too large."),
    ] = None,
    relatives: Annotated[
        bool | None,
        typer.Option(
            "--relatives/--no-relatives",
            help="Narrower intervals for relatives of sources; by default unless too large.",
        ),
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

    **disco condense mmlu.zarr --out mmlu-2-points --error 2**

    **disco condense mmlu.zarr --out mmlu-100 --sources old-models.txt --select jsd --select-opt committee_size=100**

    **disco condense arc.csv hellaswag.csv gsm8k.csv --out three-100 --cost tokens --budget 20000**
    """
    from .. import condensing
    from ..artifact import KIND
    from ..audit import JSON
    from ..files import may_write
    from ..report.pages import report
    from ..resources import limited, on_cluster

    may_write(out, JSON, KIND, overwrite)  # before the work, not after it
    with limited(memory):
        responses, called = _read(stores, sources, cost)
    with limited(memory), on_cluster(scheduler), progress() as tell:
        how: dict[str, Any] = {"n_folds": folds, "curve": curve, "relatives": relatives, "rng": seed, "progress": tell}
        if update is not None:
            fixed: dict[str, object] = {"--anchors": n_anchors, "--budget": budget, "--name": name}
            fixed |= {"--error": error}
            fixed |= {"--select": select, "--select-opt": select_opt, "--mixed": mixed or None}
            fixed |= {"--predict": predict, "--predict-opt": predict_opt}
            made = condensing.update(_old(update, fixed), responses, **how)
        else:
            pay = {} if cost is None and budget is None else {"cost_power": 0.5, "budget": budget}
            made = condensing.condense(
                responses,
                responses.n_items if n_anchors is None and budget is not None else n_anchors,
                error=None if error is None else error / 100,
                select=select or "auto",
                predict=predict or "auto",
                select_options={**pay, **options(select_opt)},
                predict_options=options(predict_opt),
                benchmark=name or called,
                mixed=mixed,
                **how,
            )
    given = {"sources": True if sources else None, "cost": cost, "budget": budget, "error": error, "anchors": n_anchors}
    made = replace(made, provenance=made.provenance | {"given": {k: v for k, v in given.items() if v is not None}})
    made.save(out, overwrite=overwrite)
    report(out)
    if as_json:
        print_json(_record(made, out))
    else:
        _print(made, out)


def _read(stores: list[str], sources: Path | None, cost: str | None) -> tuple[Responses, str]:
    """The source models' answers, of one benchmark or of several together, and what to call it."""
    from ..doubts import doubts
    from ..io import open_answers
    from ..io.table import SUFFIXES
    from ..joining import together

    def one(store: str) -> Responses:
        in_table = Path(store).suffix.lower() in SUFFIXES
        if cost not in (None, "cost") and not in_table:
            raise DiscoError(
                f"'{store}' knows costs as 'cost' only: give --cost cost, or a table with a column '{cost}'"
            )
        return open_answers(store, columns={"cost": cost} if cost and in_table else None)

    names = [store_name(store) for store in stores]
    if len(set(names)) < len(names):
        raise DiscoError(f"several benchmarks are called the same: {', '.join(names)}; rename a file")
    parts = {name: one(store) for name, store in zip(names, stores, strict=True)}
    responses = parts[names[0]] if len(parts) == 1 else together(parts)
    _tell_left_out(parts, responses)
    for sentence in chain.from_iterable(map(doubts, parts.values())):
        say(sentence)
    if sources is not None:
        whose = " and ".join(f"'{store}'" for store in stores)
        responses = responses.pick(models=responses.models.positions(read_names(sources), whose))
    return responses, "+".join(names)


def _tell_left_out(parts: dict[str, Responses], joined: Responses) -> None:
    """Say what several benchmarks lose by being put together."""
    if len(parts) > 1:
        own = [f"{name} ({len(r.items.subtasks)})" for name, r in parts.items() if len(r.items.subtasks) > 1]
        lost = f", and subtasks of their own are not estimated: {', '.join(own)}" if own else ""
        say(f"The overall score is the mean over {len(parts)} benchmarks that count the same{lost}")
    everyone = set[str]().union(*(r.models.ids.tolist() for r in parts.values()))
    if (left := len(everyone) - joined.n_models) > 0:
        say(f"{left} of {len(everyone)} models answered some of the benchmarks only and are left out")
    known = [name for name, r in parts.items() if r.probs is not None]
    if known and joined.probs is None:
        say(f"probabilities are known for {', '.join(known)} only, so the grades are what is used of all")


def _old(folder: Path, fixed: dict[str, object]) -> Condensation:
    """The condensation to update; refuses options that it has settled (``fixed``: name to what was given)."""
    from ..artifact import load

    given = [name for name, value in fixed.items() if value is not None]
    if given:
        raise DiscoError(f"--update keeps the anchors and the methods of '{folder}': leave out {' and '.join(given)}")
    return load(folder)


def _record(c: Condensation, out: Path) -> dict[str, Any]:
    from ..report.record import in_points, relatives_mae_pp

    v = c.validation
    return {
        "out": str(out),
        "benchmark": c.benchmark,
        "n_anchors": len(c.anchors),
        "n_sources": c.sources.n_models,
        "mae_pp": 100 * v.mae,
        "mae_se_pp": 100 * v.mae_se,
        "relatives_mae_pp": relatives_mae_pp(c),
        "n_more": v.n_more,
        "more_mae_pp": in_points(v.more_mae),
        "direct_mae_pp": 100 * v.direct_mae,
        "direct_items": len(c.anchors) if v.direct_items is None else v.direct_items,
        "half_width_90_pp": 100 * v.half_width(0.9),
        "grouped_by": v.grouped_by,
        "flags": list(c.source_flags),
        "n_reserve": 0 if c.reserve is None else len(c.reserve),
        "subtasks": [
            {"name": name, "mae_pp": 100 * mae}
            for name, mae in zip(c.subtask_names, c.subtask_mae.tolist(), strict=True)
        ],
        "curve": [{"n_sources": row[0], "mae_pp": 100 * row[1], "se_pp": 100 * row[2]} for row in v.curve.tolist()],
        "by_anchors": [
            {"n_anchors": row[0], "mae_pp": 100 * row[1], "se_pp": 100 * row[2]} for row in v.by_anchors.tolist()
        ],
        "cost": c.provenance.get("cost"),
    }


def _print(c: Condensation, out: Path) -> None:
    from ..flags import FLAGS
    from ..report.parts import amount, with_more, with_relatives
    from ..report.record import summary
    from ..sizing import missed_by
    from ..splits import KEPT_TOGETHER

    v = c.validation
    drawn = ", drawn by what they count for" if c.items.weight.max() > c.items.weight.min() else ""
    print(f"{out}: {len(c.anchors)} of {c.provenance['n_items']} items of '{c.benchmark}'")
    print(
        f"Error on {KEPT_TOGETHER[v.grouped_by]} left out: "
        f"{100 * v.mae:.2f} ± {100 * v.mae_se:.2f} points on average, up to "
        f"{100 * v.half_width(0.9):.1f} for 90 % of models; {v.direct_mae * 100:.2f} on average for "
        f"{v.against(len(c.anchors))}{drawn}.{with_relatives(summary(c))}{with_more(summary(c))}"
    )
    if len(v.by_anchors):
        tried = ", ".join(f"{100 * mae:.2f} with {n:.0f}" for n, mae, _ in v.by_anchors.tolist())
        missed = missed_by(c.provenance.get("error_asked"), v.mae, v.mae_se, len(c.anchors))
        said = f"Tried before, to find how many anchors it takes: {tried}. The error above was measured anew. {missed}"
        print(said.strip())
    if c.subtask_names:
        own = c.subtask_mae
        print(
            f"{len(own)} subtasks are estimated too, each to {100 * own.min():.1f} to {100 * own.max():.1f} points on "
            "average."
        )
    if not len(v.curve):
        print("The error with fewer source models was not measured; --curve measures it, reading the answers again.")
    if v.takes_all_for_strangers:
        print("Intervals are those of models without relatives among the sources; --relatives narrows the others.")
    if len(v.curve) > 1 and v.mae > 0:
        points = ", ".join(f"{100 * mae:.2f} with {n:.0f}" for n, mae, _ in v.curve.tolist())
        gain, clear = v.more_sources()
        more = (
            f"twice as many would save about {100 * gain:.2f} points"
            if clear
            else "what more would save is lost in noise"
        )
        print(f"By number of source models: {points}; {more}.")
    if (cost := c.provenance.get("cost")) is not None:
        share = cost["anchors"] / cost["all"] if cost["all"] else 0.0
        print(f"The anchors cost {amount(cost['anchors'])} of {amount(cost['all'])}, {_percent(share)}.")
    for flag in c.source_flags:
        print(f"{flag}: {FLAGS[flag]}.")
    print(f"Report: {out / 'report.html'}")
    named = quote(str(out))
    print(f"Next: disco anchors {named}, evaluate your model on them, then disco estimate {named} ANSWERS")


def _percent(share: float) -> str:
    """Two digits, or all before the point."""
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"
