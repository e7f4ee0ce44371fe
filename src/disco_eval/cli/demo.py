"""disco demo: the whole thing on a real benchmark, with a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import Json, Seed, keep, print_json, print_table, progress

if TYPE_CHECKING:
    from ..studies.demo import Comparison, Demo


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the picture and all files; a former demo is replaced.")
    ] = Path("disco-demo"),
    n_models: Annotated[int, typer.Option("--models", help="How many classifiers to train.")] = 240,
    n_anchors: Annotated[int, typer.Option("--anchors", help="How many items to keep.")] = 100,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Condense a real benchmark and estimate models it has never met.

    Trains a few hundred real scikit-learn classifiers of 20 families on a part of the digits data, takes their answers
    to the other 1,300 digits as the benchmark, holds models out, condenses, estimates, and writes a report, a table,
    a picture, the responses and the condensation.
    """
    from ..files import new_folder
    from ..integrity import CONDENSED, ZOO
    from ..studies.demo import run_demo

    with progress() as tell, new_folder(out, "demo.csv", overwrite=True) as draft:
        found = run_demo(n_models, n_anchors, seed, tell)
        draft.mkdir()
        _write(found, draft)
        keep(draft, "demo", name=out.name, condensation=CONDENSED, responses=ZOO)
    if not as_json:
        _print(found, out)
        return
    (_, mae, rho), *_, (_, direct, _) = found.random.rows()
    print_json(
        {
            "mae_pp": mae,
            "spearman": rho,
            "direct_mae_pp": direct,
            "n_anchors": len(found.condensation.anchors),
            "n_targets": len(found.estimates),
            "out": str(out),
        }
    )


def _write(found: Demo, folder: Path) -> None:
    import csv

    from ..integrity import CONDENSED, ZOO
    from ..report.scatter import scatter

    found.responses.save(folder / ZOO)
    found.condensation.save(folder / CONDENSED)
    for name in ("demo.png", "demo.svg"):
        scatter(
            found.random.truth,
            found.random.estimates,
            folder / name,
            title=f"{len(found.estimates)} models never seen, estimated from {len(found.condensation.anchors)} of "
            f"{found.responses.n_items} items",
            half_width=found.condensation.validation.half_width(0.9),
        )
    found.predictions().save(folder)
    (folder / "sources.txt").write_text("\n".join(found.condensation.sources.models.ids) + "\n", encoding="utf-8")
    with (folder / "demo.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "truth", "estimate", "low", "high"])
        for e, truth in zip(found.estimates, found.random.truth.tolist(), strict=True):
            writer.writerow([e.model, truth, e.score, e.low, e.high])


def _print(found: Demo, out: Path) -> None:
    rows = [
        [
            e.model,
            *(f"{100 * x:.1f}" for x in (t, e.score)),
            f"{100 * e.low:.1f} to {100 * e.high:.1f}",
            f"{100 * (e.score - t):+.1f}",
        ]
        for e, t in sorted(zip(found.estimates, found.random.truth.tolist(), strict=True), key=lambda pair: -pair[1])
    ]
    n_anchors, n_items = len(found.condensation.anchors), found.responses.n_items
    inside = sum(e.low <= t <= e.high for e, t in zip(found.estimates, found.random.truth.tolist(), strict=True))
    print_table(
        f"{len(rows)} models never seen before: score on all {n_items} digits, estimated from {n_anchors} of them",
        ["model", "true %", "estimate", "90 % interval", "error"],
        rows,
    )
    _compare(f"Error on these {len(rows)} models, in points", found.random)
    _compare(f"Error on all {found.responses.n_models} models, each with its whole family held out", found.families)
    print(f"The true score lies in the 90 % interval for {inside} of {len(rows)} models.")
    (_, mae, rho), *_, (_, direct, _) = found.random.rows()
    print(
        f"MAE {mae:.2f} points, Spearman {rho:.3f}, from {n_anchors} of {n_items} items "
        f"({100 * (1 - n_anchors / n_items):.0f} % less work); random items with as many: MAE {direct:.2f} points."
    )
    print(f"Open {out / 'report.html'} in a browser. Your own data: disco import --help")


def _compare(title: str, comparison: Comparison) -> None:
    rows = [[label, f"{mae:.2f}", f"{rho:.3f}"] for label, mae, rho in comparison.rows()]
    print_table(title, ["method", "MAE", "Spearman"], rows)
