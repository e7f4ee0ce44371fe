"""Whole or not at all: folders and files are written under a temporary name and renamed when they are complete.

A process that is killed leaves its draft behind, named after itself; the next one that writes to the same place finds
that nobody is at work on it, says so and removes it.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import logging
import os
import platform
import re
import shutil
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .errors import DiscoError

log = logging.getLogger("disco_eval")  # without a handler, warnings go to standard error as plain lines

_DRAFT, _OLD = "partial", "old"
_LOCK = ".writing"
_SETTLE_S = 30.0  # seconds, at most, that a failed write waits for what else Zarr has under way
_SETTLING: set[Any] = set()  # tasks that wait for others


@contextmanager
def new_folder(path: str | Path, marker: str, *, kind: str = "", overwrite: bool = False) -> Iterator[Path]:
    """A folder to fill, which becomes ``path`` when the block ends well and vanishes when it does not.

    With ``overwrite``, an existing folder is replaced, and stays whole until then; but only one that holds ``marker``,
    the file that all folders of its kind hold, with the words ``kind`` in it, so that a mistyped name never destroys
    something else.

    Raises DiscoError where ``path`` exists and may not be replaced, or cannot be written.
    """
    target = Path(path)
    tidy(target)
    may_write(target, marker, kind, overwrite)
    _parent(target)
    draft = _beside(target, _DRAFT)
    try:
        with written(target):
            yield draft
            _swap(draft, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # the old folder, after a swap


@contextmanager
def new_file(path: str | Path) -> Iterator[Path]:
    """A file name to write to, which becomes ``path`` when the block ends well and vanishes when it does not."""
    target = Path(path)
    _parent(target)
    draft = _beside(target, _DRAFT + target.suffix)  # writers that go by the suffix still know the format
    try:
        with written(target):
            yield draft
            os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def written(target: Path) -> Iterator[None]:
    """Turn the system's refusals to write (a full disk, no permission) into one line."""
    try:
        with _settled():
            yield
    except OSError as e:
        if e.errno is None:
            raise
        why = e.strerror or errno.errorcode.get(e.errno, "unknown reason")
        raise DiscoError(f"'{target}' could not be written ({why}); what was there before is as it was") from None


@contextmanager
def _settled() -> Iterator[None]:
    """Go on after a failure only when nothing is being written any more.

    Zarr writes many chunks at once, and where one fails it raises at once and leaves the others to themselves: they
    would still write into a folder that is being removed, or that another process now holds.
    """
    try:
        yield
    except BaseException:
        _settle()
        raise


def _settle() -> None:
    """Wait for what Zarr has under way, `_SETTLE_S` seconds at most: a stalled bucket must not hold a user up."""
    import asyncio

    zarr = sys.modules.get("zarr.core.sync")
    loop = zarr.loop[0] if zarr else None
    if loop is None or not loop.is_running():
        return
    with suppress(RuntimeError):  # no loop runs in this thread, as it should be
        if asyncio.get_running_loop() is loop:
            return
    waiting = asyncio.run_coroutine_threadsafe(_others(_SETTLE_S), loop)
    try:
        waiting.result()
    except BaseException:  # Ctrl-C: the user waits no longer
        waiting.cancel()
        raise


async def _others(seconds: float) -> None:
    """Wait for the other tasks of the loop that runs this one, and those that they start, whatever becomes of them."""
    import asyncio

    loop, me = asyncio.get_running_loop(), asyncio.current_task()
    end = loop.time() + seconds
    _SETTLING.add(me)  # two threads that fail at once do not wait for each other
    try:
        while (others := asyncio.all_tasks() - _SETTLING) and (left := end - loop.time()) > 0:
            done, _ = await asyncio.wait(others, timeout=left)
            for task in done:
                if not task.cancelled():
                    task.exception()  # seen; the first one is on its way to the user
    finally:
        _SETTLING.discard(me)


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Be the only process that changes a folder; the system ends the hold when the process ends, however it does.

    Raises DiscoError where another process holds it.
    """
    with alone(folder) as was_cut_off:
        if was_cut_off:
            for draft in folder.rglob(f"*.{_DRAFT}"):  # of single chunks, by Zarr
                draft.unlink(missing_ok=True)
            log.warning("'%s': an earlier write was cut off; it is as it was before that, and work goes on", folder)
        with written(folder):
            yield


@contextmanager
def alone(folder: Path) -> Iterator[bool]:
    """Hold a folder's lock, and say whether an earlier holder was killed; DiscoError where another process holds it."""
    lock = folder / _LOCK
    handle, was_left = _hold(lock)
    try:
        yield was_left
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)


def tidy(target: Path) -> None:
    """Put back what a killed process had moved aside, and remove the drafts that it left beside ``target``."""
    put_back(target)
    for left in _leavings(target):
        log.warning("'%s': removed what a process that was killed had left half-written", target)
        shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)


def put_back(target: Path) -> None:
    """Give a folder its name back that a killed process had moved aside."""
    if target.exists():
        return
    for left in _leavings(target):
        if left.name.endswith("." + _OLD):
            os.rename(left, target)
            log.warning("'%s' was moved aside by a process that was killed; it is back", target)
            return


def is_url(path: str | Path) -> bool:
    """Whether a store's name is a URL such as ``s3://bucket/mmlu.zarr``, and no path."""
    return "://" in str(path)


def only_local(path: str | Path) -> None:
    """Refuse to write to a URL: as a path it would be a folder on this machine with the scheme for its name."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(path)):  # a Path has lost one of the two strokes
        raise DiscoError(
            f"'{path}' is a URL, and URLs are only read; "
            "write to a folder here, then copy it there with the bucket's own tool"
        )


def reachable(url: str) -> None:
    """Refuse a URL whose package is missing."""
    scheme = url.partition("://")[0]
    packages = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "http": "aiohttp", "https": "aiohttp", "abfs": "adlfs"}
    try:
        from fsspec.core import url_to_fs

        url_to_fs(url)
    except (ImportError, ValueError) as e:
        package = f"fsspec {packages.get(scheme, '')}".rstrip()
        why = " ".join(str(e).split())[:200]
        raise DiscoError(
            f"'{url}' cannot be opened: {why}. Stores behind {scheme}:// need: pip install {package}"
        ) from None


def drafts(folder: str | Path) -> list[Path]:
    """What killed processes left half-written in a folder, or beside it."""
    inside = [Path(e.path) for e in os.scandir(folder) if _draft_of_the_dead(e.name)] if Path(folder).is_dir() else []
    return [*inside, *_leavings(Path(folder))]


def tidy_inside(folder: Path) -> None:
    """Remove the drafts that killed processes left in a folder."""
    for left in drafts(folder):
        if left.parent == folder and not left.is_dir():
            left.unlink(missing_ok=True)
            log.warning("'%s': removed %s, which a process that was killed had left half-written", folder, left.name)


def _draft_of_the_dead(name: str) -> bool:
    mine, _, rest = name.rpartition(f".{_node()}-")
    pid = rest.partition("-")[0]
    return bool(mine) and f".{_DRAFT}" in rest and pid.isdigit() and not _alive(int(pid))


def _leavings(target: Path) -> list[Path]:
    """Drafts and moved folders of ``target`` whose process, on this machine, is gone."""
    mine = f".{target.name}.{_node()}-"
    found = []
    with suppress(OSError):
        for entry in os.scandir(target.parent):
            pid = entry.name.removeprefix(mine).partition("-")[0]
            if entry.name.startswith(mine) and pid.isdigit() and not _alive(int(pid)):
                found.append(Path(entry.path))
    return sorted(found, key=lambda p: not p.name.endswith("." + _OLD))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _node() -> str:
    return "".join(c if c.isalnum() else "_" for c in platform.node())[:32]


def _parent(target: Path) -> None:
    only_local(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise DiscoError(f"'{target.parent}' cannot be made: {e.strerror}; choose another place") from None


def _hold(lock: Path) -> tuple[int, bool]:
    """An open, locked file, and whether a process that is gone had left it there."""
    try:
        import fcntl
    except ImportError:  # Windows: the file alone is the lock, and a killed process leaves it
        with suppress(FileExistsError):
            return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL), False
        raise DiscoError(f"another process is writing to '{lock.parent}'; if none is, delete {lock}") from None
    while True:
        found = lock.exists()
        with written(lock.parent):
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.stat(lock)):
                return handle, found
        except BlockingIOError:
            os.close(handle)
            raise DiscoError(f"another process is writing to '{lock.parent}'; wait for it") from None
        except FileNotFoundError:
            pass
        except OSError as e:
            os.close(handle)
            raise DiscoError(f"'{lock}' cannot be locked ({e.strerror}); write to another file system") from None
        os.close(handle)  # its holder finished and removed it in between


def may_write(target: Path, marker: str, kind: str, overwrite: bool) -> None:
    """What `new_folder` checks, for work that had better not be done in vain. Raises DiscoError as it does."""
    if not target.exists():
        return
    if not overwrite:
        how = "--overwrite, in Python overwrite=True"
        raise DiscoError(f"'{target}' exists already; choose another name, or replace it ({how})")
    mark = target / marker
    if not mark.is_file() or kind.encode() not in mark.read_bytes():
        what = f"it holds no {marker} as this command writes it"
        raise DiscoError(f"'{target}' exists and is something else ({what}): not overwritten; choose another name")


def _beside(target: Path, ending: str) -> Path:
    return target.with_name(f".{target.name}.{_node()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.{ending}")


def _swap(draft: Path, target: Path) -> None:
    if not target.exists():
        os.rename(draft, target)
    elif not _exchange(draft, target):
        old = _beside(target, _OLD)
        os.rename(target, old)
        try:
            os.rename(draft, target)
        except BaseException:
            os.rename(old, target)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _exchange(a: Path, b: Path) -> bool:
    """Swap two names in one step, so that at no moment one of them is missing; False where the system cannot."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(rename(here, os.fsencode(a), here, os.fsencode(b), exchange) == 0)


# ---- checksums -------------------------------------------------------------------------------------------------


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def checksum_of(about: Mapping[str, Any]) -> str:
    """A checksum of a description, less the ``checksum`` that it carries itself."""
    return sha256(json.dumps({k: v for k, v in about.items() if k != "checksum"}, sort_keys=True).encode())
