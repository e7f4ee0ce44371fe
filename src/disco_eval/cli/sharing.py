"""disco push and disco pull: condensations on the hub."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from .common import say

Token = Annotated[str | None, typer.Option("--token", help="Access token; the one you logged in with by default.")]


def push(
    condensation: Annotated[Path, typer.Argument(help="A folder that 'disco condense' wrote.", metavar="DIR")],
    repo: Annotated[str, typer.Argument(help="USER/NAME on the hub.")],
    private: Annotated[bool, typer.Option("--private", help="Make the repository private.")] = False,
    token: Token = None,
) -> None:
    """Share a condensation on the Hugging Face hub: JSON, arrays and the card; no code.

    Example: **disco push mmlu-100 me/mmlu-100**
    """
    from ..artifact import load
    from ..hub import upload

    c = load(condensation)  # nothing damaged is shared
    with tempfile.TemporaryDirectory() as folder:
        shared = Path(folder) / repo.rpartition("/")[2]
        c.without_local_paths().save(shared)
        print(upload(shared, repo, private=private, token=token))


def pull(
    repo: Annotated[str, typer.Argument(help="USER/NAME on the hub.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder to write; NAME by default.")] = None,
    revision: Annotated[str | None, typer.Option("--revision", help="Branch, tag or commit.")] = None,
    token: Token = None,
) -> None:
    """Fetch a condensation from the Hugging Face hub and check it.

    Example: **disco pull me/mmlu-100**
    """
    from ..artifact import load
    from ..errors import DiscoError
    from ..hub import download

    target = out or Path(repo.rpartition("/")[2])
    if target.exists():
        raise DiscoError(f"'{target}' exists already; choose another --out")
    c = load(download(repo, revision=revision, token=token))
    c.save(target)
    say(f"{target}: {c!r}")
