"""What was made of a study's predictions and is no longer true once they change: tables, figures and the report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from .predictions import KEYS

TEX_BEGINS = "% needs booktabs and multirow"
FIGURE_FORMATS = ("svg", "png", "pdf")
_TABLES = re.compile(r"summary\.csv|table-.+-\d+\.(md|tex)")
_FIGURES = re.compile(rf"(scatter|ranks|curves|calibration)-.+\.({'|'.join(FIGURE_FORMATS)})")


def remove_outdated(study: Path) -> None:
    """Remove what the report commands made in a study's folder; each is made again by one of them."""
    remove_tables(study / "tables")
    remove_figures(study / "figures")
    (study / "report.html").unlink(missing_ok=True)


def remove_tables(folder: Path, but: Sequence[Path] = ()) -> None:
    """Remove tables that `write_tables` wrote, known by their names and how they begin, ``but`` those."""
    begins = {".md": "Split: ", ".tex": TEX_BEGINS, ".csv": ",".join(KEYS)}
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        if file in but or not _TABLES.fullmatch(file.name) or not file.is_file():
            continue
        with file.open(encoding="utf-8", errors="replace") as text:
            ours = text.readline().startswith(begins[file.suffix])
        if ours:
            file.unlink()


def remove_figures(folder: Path) -> None:
    """Remove the figures that `write_figures` wrote, known by their names."""
    for file in folder.iterdir() if folder.is_dir() else ():
        if _FIGURES.fullmatch(file.name):
            file.unlink()
