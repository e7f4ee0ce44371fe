"""Whole or not at all: folders and files are written under a temporary name and renamed when they are complete."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import DiscoError


@contextmanager
def new_folder(path: str | Path, marker: str, *, kind: str = "", overwrite: bool = False) -> Iterator[Path]:
    """A folder to fill, which becomes ``path`` when the block ends well and vanishes when it does not.

    With ``overwrite``, an existing folder is replaced, and stays whole until then; but only one that holds ``marker``,
    the file that all folders of its kind hold, with the words ``kind`` in it, so that a mistyped name never destroys
    something else.

    Raises DiscoError where ``path`` exists and may not be replaced, or cannot be written.
    """
    target = Path(path)
    _may_write(target, marker, kind, overwrite)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise DiscoError(f"'{target.parent}' cannot be made: {e.strerror}; choose another place") from None
    draft = _beside(target, "partial")
    try:
        yield draft
        _swap(draft, target)
    except OSError as e:
        shutil.rmtree(draft, ignore_errors=True)
        if e.errno is None:
            raise
        raise DiscoError(f"'{target}' could not be written ({e.strerror}); nothing was left behind") from None
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


@contextmanager
def new_file(path: str | Path) -> Iterator[Path]:
    """A file name to write to, which becomes ``path`` when the block ends well and vanishes when it does not."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise DiscoError(f"'{target.parent}' cannot be made: {e.strerror}; choose another place") from None
    draft = _beside(target, "partial" + target.suffix)  # writers that go by the suffix still know the format
    try:
        yield draft
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def _may_write(target: Path, marker: str, kind: str, overwrite: bool) -> None:
    if not target.exists():
        return
    if not overwrite:
        raise DiscoError(f"'{target}' exists already; choose another name, or overwrite it with --overwrite")
    mark = target / marker
    if not mark.is_file() or kind.encode() not in mark.read_bytes():
        what = f"no {marker} of {kind or 'ours'} in it"
        raise DiscoError(f"'{target}' exists and is something else ({what}), so it is not overwritten")


def _beside(target: Path, ending: str) -> Path:
    return target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.{ending}")


def _swap(draft: Path, target: Path) -> None:
    if not target.exists():
        os.rename(draft, target)
        return
    old = _beside(target, "old")
    os.rename(target, old)
    try:
        os.rename(draft, target)
    except BaseException:
        os.rename(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)
