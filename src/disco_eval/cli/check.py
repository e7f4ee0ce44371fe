"""disco check: whether files are as they were written."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import Json, print_json, progress


def check(
    path: Annotated[
        str, typer.Argument(help="A store (a folder or URL), a condensation, or a study's or demo's folder.")
    ],
    as_json: Json = False,
) -> None:
    """Read everything, compare it with its checksums, and name what is damaged.

    Exit status 0 if all is as it was written, 2 if anything is not.

    Examples: **disco check mmlu.zarr**, **disco check mmlu-100**
    """
    from ..errors import DiscoError
    from ..integrity import check as look

    with progress() as tell:
        seen = 0

        def count(_: str) -> None:
            nonlocal seen
            seen += 1
            tell("checking", seen, 0)

        found = look(path, count)
    if as_json:
        print_json(
            {"path": path, "kind": found.kind, "parts": found.parts, "damage": found.damage, "notes": found.notes}
        )
    else:
        for line in found.damage:
            print(f"damaged: {line}")
        for line in found.notes:
            print(f"note: {line}")
    if found.damage:
        raise DiscoError(f"{len(found.damage)} of {found.parts} parts of '{path}', a {found.kind}, are damaged")
    if not as_json:
        print(f"{path}: a {found.kind}, {found.parts} parts, all as they were written")
