"""A report as one HTML file: what it consists of, and how that is set. Nothing is fetched, no given text is executed.

Everything shown stands in a `Data`, once: figures draw it, tables list it, and the buttons save it as CSV.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..files import new_file

Value = str | float | int | None

ASSETS = files(__package__) / "assets"
LIBRARIES = ("vega.min.js", "vega-lite.min.js", "vega-embed.min.js")  # licences beside them

COLUMNS = {  # what a column is called, and how many decimals it shows; scores are in percent, errors in points
    "model": ("model", 0),
    "method": ("method", 0),
    "truth": ("true %", 1),
    "estimate": ("estimate %", 1),
    "low": ("low %", 1),
    "high": ("high %", 1),
    "error": ("error", 1),
    "flags": ("flags", 0),
    "nearest": ("most similar sources", 0),
    "mae_pp": ("mean error", 2),
    "mae_sd": ("± sd", 2),
    "spearman": ("rank correlation", 3),
    "spearman_sd": ("± sd", 3),
    "difference": ("difference", 2),
    "low_pp": ("from", 2),
    "high_pp": ("to", 2),
    "covered": ("truth inside %", 1),
    "nominal": ("nominal %", 0),
    "width": ("mean width", 1),
    "rank": ("rank", 0),
    "best_rank": ("best", 0),
    "worst_rank": ("worst", 0),
    "beside_best": ("beside the best", 0),
    "n_models": ("models", 0),
    "n_runs": ("runs", 0),
    "n_anchors": ("anchors", 0),
    "n_items": ("items", 0),
    "item": ("item", 0),
    "subtask": ("subtask", 0),
    "weight": ("weight %", 2),
    "criterion": ("criterion", 3),
    "chance": ("chance %", 1),
    "right": ("sources right %", 1),
    "tells": ("agreement with the score", 2),
    "n_sources": ("sources", 0),
    "se_pp": ("± se", 2),
    "step": ("step", 0),
    "checkpoint": ("checkpoint", 0),
    "seconds": ("seconds", 1),
}
NARROW = ("flags", "family")  # on a narrow screen flags stand under the name, and families are left out


@dataclass(frozen=True)
class Data:
    """A table of what is shown: a name for files, names of columns (see `COLUMNS`), rows."""

    name: str
    columns: tuple[str, ...]
    rows: list[tuple[Value, ...]]


@dataclass(frozen=True)
class Figure:
    """A picture by a Vega-Lite specification without its data; ``alt`` says in words what it shows."""

    name: str
    title: str
    alt: str
    spec: dict[str, Any]
    data: Data
    note: str = ""
    canvas: bool = False  # for many thousand marks
    scroll: bool = False  # may be higher than a screen


@dataclass(frozen=True)
class Table:
    """Rows that sort and filter; ``hide`` leaves columns to the CSV."""

    title: str
    data: Data
    note: str = ""
    hide: tuple[str, ...] = ()

    def head(self) -> list[tuple[str, bool, str]]:
        """What each shown column is called, whether it holds numbers, and which it is where little room changes it."""
        return [(label(c), self._numeric(c), c if c in NARROW else "") for c in self._shown()]

    def body(self) -> list[list[tuple[str, Value, bool, str]]]:
        """Cells as text, as the value to sort by, whether they are numbers, and which column, as in the head."""
        at = [(self.data.columns.index(c), c, number, which) for c, (_, number, which) in self._named()]
        return [[(show(row[i], c), row[i], number, which) for i, c, number, which in at] for row in self.data.rows]

    def _named(self) -> list[tuple[str, tuple[str, bool, str]]]:
        return list(zip(self._shown(), self.head(), strict=True))

    def _shown(self) -> list[str]:
        return [c for c in self.data.columns if c not in self.hide]

    def _numeric(self, column: str) -> bool:
        i = self.data.columns.index(column)
        values = [row[i] for row in self.data.rows if row[i] is not None]
        return bool(values) and not any(isinstance(v, str) for v in values)


@dataclass(frozen=True)
class Fact:
    """One of the answers at the top: a question, a large figure, a line that explains it."""

    question: str
    figure: str
    words: str
    tone: str = ""  # "good", "bad" or "open", of a verdict


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    name: str
    title: str
    words: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Page:
    """A whole report."""

    title: str
    lead: str
    facts: Sequence[Fact]
    sections: Sequence[Section]
    warnings: Sequence[str] = ()
    provenance: Sequence[tuple[str, str]] = ()
    command: str = ""
    made_by: str = ""


def label(column: str) -> str:
    """What a column is called in a table's head."""
    return COLUMNS.get(column, (column.replace("_", " "), 0))[0]


def show(value: Value, column: str) -> str:
    """A cell's text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    digits = COLUMNS.get(column, ("", 0 if isinstance(value, int) else 2))[1]
    signed = "+" if column == "error" else ""
    text = f"{value:{signed},.{digits}f}"
    return text if float(text.replace(",", "")) else text.lstrip("+-")


def render(page: Page) -> str:
    """The page as one HTML file. Its only scripts are our own, and the browser is told to run no other."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["unbroken"] = lambda text: text.replace(" %", "\u00a0%").replace("± ", "±\u00a0")
    scripts = [*_libraries(), _asset("report.js")]
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    policy = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
    figures = [f for s in page.sections for f in s.figures]
    every = {d.name: d for s in page.sections for d in [*(f.data for f in s.figures), *(t.data for t in s.tables)]}
    content = {
        "data": {name: {"columns": d.columns, "rows": _finite(d.rows)} for name, d in every.items()},
        "figures": {f.name: {"spec": f.spec, "data": f.data.name, "canvas": f.canvas} for f in figures},
    }
    return environment.from_string(_asset("report.html.j2")).render(
        page=page, content=_harmless(content), scripts=scripts, style=_asset("report.css"), policy=policy
    )


def write_page(page: Page, path: str | Path) -> Path:
    """Write the page, whole or not at all."""
    text = render(page)
    with new_file(path) as draft:
        draft.write_text(text, encoding="utf-8")
    return Path(path)


@cache
def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


@cache
def _libraries() -> list[str]:
    return [_asset(name).partition("//# sourceMappingURL")[0].strip() for name in LIBRARIES]


def _harmless(content: Any) -> str:
    """JSON that may stand inside a script element whatever its text says."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(rows: list[tuple[Value, ...]]) -> list[list[Value]]:
    return [[None if isinstance(v, float) and not math.isfinite(v) else v for v in row] for row in rows]
