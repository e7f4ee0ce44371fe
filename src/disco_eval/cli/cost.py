"""disco cost: what the anchors save, and after how many evaluations they have paid for themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import DiscoError
from .common import Json, print_json, print_table


def cost(
    full: Annotated[float | None, typer.Option("--full", help="Cost of one full evaluation, in any unit.")] = None,
    anchors: Annotated[float | None, typer.Option("--anchors", help="Cost of one evaluation on the anchors.")] = None,
    offline: Annotated[float | None, typer.Option("--offline", help="Cost of everything that is done once.")] = None,
    sources: Annotated[
        int | None, typer.Option("--sources", help="Source models: the offline cost is so many full evaluations.")
    ] = None,
    full_results: Annotated[
        Path | None,
        typer.Option("--full-results", help="lm-eval's output of full evaluations: seconds are read there."),
    ] = None,
    anchor_results: Annotated[
        Path | None, typer.Option("--anchor-results", help="lm-eval's output of evaluations on the anchors.")
    ] = None,
    study: Annotated[Path | None, typer.Option("--study", help="A study's folder: show what methods took.")] = None,
    unit: Annotated[str, typer.Option("--unit", help="What to call the unit; lm-eval's times are seconds.")] = "",
    paper: Annotated[bool, typer.Option("--paper", help="The paper's own figures.")] = False,
    as_json: Json = False,
) -> None:
    """Say what evaluating on the anchors saves per model, the cost done once, and the break-even count.

    Examples:

    **disco cost --full 8.53 --anchors 0.07 --offline 3284 --unit GPU-hours**

    **disco cost --full-results full/ --anchor-results anchors/ --sources 40**
    """
    from ..studies.cost import Cost, lm_eval_seconds, measured, study_seconds
    from ..studies.cost import paper as published

    if paper:
        hours, seconds = published()
        found: list[tuple[str, Cost]] = [("GPU-hours (paper)", hours), ("GPU-seconds (paper)", seconds)]
    elif study is not None and full is None and full_results is None:
        found = []
    else:
        whole = lm_eval_seconds(full_results) if full_results else ([] if full is None else [full])
        part = lm_eval_seconds(anchor_results) if anchor_results else ([] if anchors is None else [anchors])
        if not whole or not part:
            raise DiscoError("give --full and --anchors, or --full-results and --anchor-results, or --paper")
        timed = bool(full_results or anchor_results)
        found = [(unit or ("seconds" if timed else "units"), measured(whole, part, offline, sources))]
    times = study_seconds(study) if study is not None else None
    if as_json:
        records = [_record(name, c) for name, c in found]
        print_json({"costs": records, "study": [] if times is None else times.to_dicts()})
        return
    for name, c in found:
        for line in _lines(name, c):
            print(line)
    if times is not None:
        rows = [[str(v) if i < 4 else f"{v:.3f}" for i, v in enumerate(r)] for r in times.rows()]
        print_table("seconds per run", ["benchmark", "method", "anchors", "sources", "choose", "fit"], rows, left=2)
        print(
            "What several methods share (anchors, a fit of item response theory) stands with the first that needed it."
        )


def _record(unit: str, c: object) -> dict[str, object]:
    names = ("full", "full_sd", "anchors", "anchors_sd", "offline", "saved", "saved_share", "break_even")
    return {"unit": unit, **{name: getattr(c, name) for name in names}}


def _lines(unit: str, c: object) -> list[str]:
    r = _record(unit, c)
    spread = {name: f" ± {r[name]:.3g}" if r[name] else "" for name in ("full_sd", "anchors_sd")}  # one has none
    share = 100 * float(str(r["saved_share"]))
    lines = [
        f"full evaluation {r['full']:.6g}{spread['full_sd']} {unit}, "
        f"on the anchors {r['anchors']:.6g}{spread['anchors_sd']}",
        f"saved per model: {r['saved']:.6g} {unit}, {share:.1f} %; done once: {r['offline']:.6g} {unit}",
    ]
    even = r["break_even"]
    lines.append(f"break-even: {even} evaluations" if even is not None else "break-even: never, the anchors cost more")
    return lines
