"""What the work may take: how much memory, and whose processors. Set once for a command, asked for where it matters."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol

from .errors import DiscoError, ValidationError

SMALLEST = 64 * 2**20  # bytes; Python with numpy and zarr takes more than that before any work
MEMORY = "DISCO_MEMORY"  # of the environment: a memory bound for every command
_BLOCK = 64 * 2**20  # what a pass over the models reads at a time, memory permitting
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_BOUND: ContextVar[int | None] = ContextVar("memory", default=None)


# ---- memory ----------------------------------------------------------------------------------------------------


def memory_bound() -> int:
    """Bytes that arrays may take together: what `limited` or the environment set, else a quarter of the machine."""
    return _BOUND.get() or _of_environment() or max(SMALLEST, machine_memory() // 4)


def _of_environment() -> int:
    """What the environment says; 0 where it says nothing."""
    given = os.environ.get(MEMORY)
    try:
        return in_bytes(given) if given else 0
    except ValidationError as e:
        raise ValidationError(f"{MEMORY} in the environment: {e}") from None


@contextmanager
def limited(memory: str | int | None) -> Iterator[int]:
    """Work under a memory bound: bytes, or text such as ``"2GB"`` or ``"500MiB"``; None leaves it as it is."""
    token = _BOUND.set(_BOUND.get() if memory is None else in_bytes(memory))
    try:
        yield memory_bound()
    finally:
        _BOUND.reset(token)


def block_bytes() -> int:
    """How much one step of a pass reads: 64 MiB, or a sixteenth of the bound where that is less."""
    return min(_BLOCK, max(1, memory_bound() // 16))


def need(n_bytes: int, what: str, instead: str) -> None:
    """Refuse work that cannot be done in parts and would not fit: ``what`` it is, and what to do ``instead``."""
    if n_bytes > memory_bound():
        raise ValidationError(
            f"{what} would take {shown(n_bytes)} of memory, more than the bound of {shown(memory_bound())}: {instead}, "
            f"or raise it ({MEMORY} in the environment, --memory where a command has it)"
        )


def in_bytes(size: str | int) -> int:
    """``"2GB"``, ``"500 MiB"``, ``"1.5g"`` or a number of bytes as a number; ValidationError where it is none."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", str(size).lower())
    if not found or found[2] not in _UNITS:
        raise ValidationError(f"'{size}' is no amount of memory; write it as 2GB or 500MB")
    n_bytes = int(float(found[1]) * _UNITS[found[2]])
    if n_bytes < SMALLEST:
        raise ValidationError(f"{shown(n_bytes)} of memory are too little to work with; give at least 100MB")
    return n_bytes


def shown(n_bytes: float) -> str:
    """Bytes for people: ``1.5 GB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 999.5:  # what three digits would round up to the next unit
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"


def machine_memory() -> int:
    """Bytes of memory that this process may use: the machine's, or its control group's limit where that is less."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not on Windows
        total = 8 * 2**30
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(file).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            total = min(total, int(text))
    return total


# ---- who does the work -----------------------------------------------------------------------------------------


class Workers(Protocol):
    """Runs functions, here or elsewhere. What ``submit`` and ``share`` return may be given to ``submit`` again."""

    n_jobs: int

    def share(self, value: Any) -> Any:
        """Something that many tasks get, sent to where they run once."""
        ...

    def submit(self, function: Callable[..., Any], *args: Any) -> Any: ...

    def results(self, tasks: Iterable[tuple[Callable[..., Any], tuple[Any, ...]]]) -> Iterator[tuple[int, Any]]:
        """(number of the call, its result) for many calls, as they are ready."""
        ...

    def result(self, submitted: Any) -> Any: ...


class Here:
    """This process does it, when it is asked to."""

    n_jobs = 1

    def share(self, value: Any) -> Any:
        return value

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    def results(self, tasks: Iterable[tuple[Callable[..., Any], tuple[Any, ...]]]) -> Iterator[tuple[int, Any]]:
        return ((k, function(*args)) for k, (function, args) in enumerate(tasks))

    def result(self, submitted: Any) -> Any:
        return submitted


class Cluster:
    """Workers of a dask cluster do it; a task whose worker dies is done again by another."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.n_jobs = max(1, len(client.scheduler_info(n_workers=-1)["workers"]))

    def share(self, value: Any) -> Any:
        """A task of its own: scattered data would be lost with the worker that holds it, a task is done again."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # answers in memory; stores send their path alone
            return self.client.submit(_itself, value, pure=False)

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.client.submit(_under, memory_bound(), function, *args, pure=False)

    def results(self, tasks: Iterable[tuple[Callable[..., Any], tuple[Any, ...]]]) -> Iterator[tuple[int, Any]]:
        from distributed import as_completed

        number = {self.submit(function, *args): k for k, (function, args) in enumerate(tasks)}
        waiting = as_completed(list(number))
        for future in waiting:
            yield number.pop(future), self.result(future)

    def result(self, submitted: Any) -> Any:
        try:
            return submitted.result()
        except Exception as e:
            if type(e).__name__ in ("KilledWorker", "CancelledError", "FutureCancelledError"):
                raise DiscoError(
                    f"the cluster lost its workers again and again on one task ({' '.join(str(e).split())[:200]}); "
                    "look at their logs: most often they lack memory"
                ) from None
            raise


def _itself(value: Any) -> Any:
    return value


def _under(bound: int, function: Callable[..., Any], *args: Any) -> Any:
    with limited(bound):  # a worker cuts its work as this process would, so the numbers are the same
        return function(*args)


_WORKERS: ContextVar[Workers] = ContextVar("workers")


def workers() -> Workers:
    """Who does the work: this process, unless `on_cluster` says otherwise."""
    return _WORKERS.get(Here())


@contextmanager
def on_cluster(scheduler: str | None) -> Iterator[Workers]:
    """Work on the dask cluster at this address (``tcp://host:8786``); None means here.

    Its workers need disco-eval of the same version, and must see stores under the same path or URL. Raises DiscoError
    where dask is missing or nobody answers.
    """
    if scheduler is None:
        yield workers()
        return
    with dask_client(scheduler) as client:
        token = _WORKERS.set(Cluster(client))
        try:
            yield workers()
        finally:
            _WORKERS.reset(token)


def dask_client(scheduler: str, **options: Any) -> Any:
    """A dask client for the scheduler at this address; DiscoError where dask is missing or nobody answers."""
    try:
        from distributed import Client
    except ImportError:
        raise DiscoError("a cluster needs dask: pip install 'disco-eval[cluster]'") from None
    try:
        return Client(scheduler, **options)  # waits as long as dask's own setting of connections says
    except (OSError, ValueError) as e:
        raise DiscoError(
            f"no dask scheduler answers at '{scheduler}' ({e}); start one, or leave out --scheduler"
        ) from None
