"""Tables on disk that carry a checksum of what they hold: Parquet itself notices few flipped bits."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import polars as pl

from ..errors import FormatError
from ..files import new_file
from ..io.frames import read_frame, without_panics

_KEY = "disco-eval"


def write_sealed(table: pl.DataFrame, file: Path) -> None:
    """Write a table as Parquet, whole or not at all, with a checksum of its content in the file's metadata."""
    content = io.BytesIO()  # a full disk is then the system's error, not one of the writer's many
    table.write_parquet(content, metadata={_KEY: checksum(table)})
    with new_file(file) as draft:
        draft.write_bytes(content.getvalue())


def read_sealed(file: Path) -> pl.DataFrame:
    """The table that `write_sealed` wrote; FormatError where it cannot be read or is another."""
    table = read_frame(file, ".parquet")
    found = seal_of(file)
    if found is not None and found != checksum(table):
        raise FormatError(f"'{file}' is damaged: its checksum does not fit. Delete it, and make it again.")
    return table


def seal_of(file: Path) -> str | None:
    """The checksum that a Parquet file says it has; None where it was written by others."""
    try:
        with without_panics():
            return pl.read_parquet_metadata(file).get(_KEY)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as e:  # polars' panics are no Exception
        raise FormatError(f"'{file}' cannot be read as a table: {' '.join(str(e).split())[:160]}") from None


def is_whole(file: Path) -> bool:
    """Whether there is such a table and it is as it was written."""
    try:
        return file.is_file() and seal_of(file) is not None and len(read_sealed(file)) > 0
    except FormatError:
        return False


def checksum(table: pl.DataFrame) -> str:
    """A digest of names, types and values of a table, the same whatever wrote it."""
    digest = hashlib.sha256(repr(list(table.schema.items())).encode())
    for column in table.iter_columns():
        digest.update(column.is_null().to_numpy().tobytes())
        if column.dtype == pl.String:
            digest.update("\x1f".join(column.fill_null("").to_list()).encode())
        else:
            digest.update(column.fill_null(0).to_numpy().tobytes())
    return digest.hexdigest()
