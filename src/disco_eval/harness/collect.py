"""Evaluate many source models in full with lm_eval, one process each, on the workers of a dask cluster."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..errors import DiscoError
from ..files import alone, written
from ..io.records import in_layout
from ..io.runs import find_runs
from ..resources import dask_client
from .run import pretrained

Progress = Callable[[str, int, int], None]

DONE = "done.json"


@dataclass(frozen=True)
class Job:
    """One full evaluation: a model, and everything that lm_eval needs to know."""

    model: str
    folder: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """How a job ended; ``error`` is the end of what lm_eval printed, empty when it went well."""

    model: str
    error: str


@dataclass(frozen=True)
class Plan:
    """What to evaluate: lm_eval's options of the same names.

    ``runs`` is the folder that keeps each model's output, so that what is done is not done again.
    """

    tasks: str
    runs: Path
    model: str = "hf"
    model_args: str = ""
    tasks_path: Path | None = None
    batch_size: str = "8"
    device: str | None = None

    def job(self, name: str) -> Job:
        """The evaluation of one model, named as in ``pretrained=NAME``."""
        folder = self.runs / "".join(c if c.isalnum() or c in "-._" else "_" for c in name)
        args = pretrained(name, self.model_args)
        command = [
            sys.executable,
            "-m",
            "lm_eval",
            "run",
            "--model",
            self.model,
            "--model_args",
            args,
            "--tasks",
            self.tasks,
        ]
        command += ["--batch_size", self.batch_size, "--log_samples", "--output_path", str(folder / "output")]
        command += ["--include_path", str(self.tasks_path)] if self.tasks_path else []
        command += ["--device", self.device] if self.device else []
        return Job(name, str(folder), tuple(command))


def run_job(job: Job) -> Outcome:
    """Evaluate one model in a process of its own; a model that was evaluated before is left alone.

    The mark of completion is written last, so a killed evaluation is begun again, in an empty folder.
    """
    folder = Path(job.folder)
    mark = folder / DONE
    if mark.exists():
        return Outcome(job.model, "")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with (folder / "log.txt").open("w", encoding="utf-8") as log:
        status = subprocess.run(job.command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
    lines = (folder / "log.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if status:
        return Outcome(job.model, (lines[-1] if lines else f"lm_eval ended with status {status}")[:300])
    try:
        find_runs([folder / "output"])
    except DiscoError as e:
        return Outcome(job.model, str(e))
    mark.write_text(json.dumps({"model": job.model, "command": list(job.command)}), encoding="utf-8")
    return Outcome(job.model, "")


def collect(
    models: Sequence[str],
    plan: Plan,
    *,
    scheduler: str | None = None,
    workers: int = 1,
    gpus: float = 0,
    progress: Progress,
) -> Iterator[Outcome]:
    """Evaluate every model, in whatever order they end; one that fails does not stop the others.

    ``scheduler`` is the address of a dask cluster whose workers share the file system; by default ``workers`` local
    processes. ``gpus`` is how much of the workers' resource ``GPU`` each evaluation takes.

    Raises DiscoError where dask is missing, the scheduler does not answer, another process evaluates into the same
    folder, or a model's folder holds the evaluation of another model or of other tasks.
    """
    with written(plan.runs):
        plan.runs.mkdir(parents=True, exist_ok=True)
    with alone(plan.runs):
        yield from _evaluate(models, plan, partial(_client, scheduler, workers, gpus), gpus, progress)


def _evaluate(
    models: Sequence[str], plan: Plan, client_of: Callable[[], Any], gpus: float, progress: Progress
) -> Iterator[Outcome]:
    jobs = [plan.job(name) for name in dict.fromkeys(models)]
    _check_folders(jobs)
    waiting = [job for job in jobs if not (Path(job.folder) / DONE).exists()]
    done = len(jobs) - len(waiting)
    progress("evaluating", done, len(jobs))
    yield from (Outcome(job.model, "") for job in jobs if job not in waiting)
    if not waiting:
        return
    with client_of() as client:
        from distributed import as_completed

        resources = {"GPU": gpus} if gpus else None
        futures = client.map(run_job, waiting, pure=False, resources=resources, retries=0)
        by_key = {future.key: job.model for future, job in zip(futures, waiting, strict=True)}
        for future in as_completed(futures):
            error = future.exception()
            yield Outcome(by_key[future.key], str(error)[:300]) if error is not None else future.result()
            done += 1
            progress("evaluating", done, len(jobs))


def _check_folders(jobs: Sequence[Job]) -> None:
    """Refuse to take another model's evaluation, or one of other tasks, for what is asked."""
    owners: dict[str, Job] = {}
    for job in jobs:
        first = owners.setdefault(job.folder, job)
        mark = Path(job.folder) / DONE
        asked = _asked(job.model, job.command)
        there = _asked(first.model, first.command)
        if mark.exists():
            with in_layout(mark, "the record of an evaluation"):
                record = json.loads(mark.read_bytes())
                there = _asked(record["model"], record["command"])
        if there != asked:
            raise DiscoError(
                f"'{job.folder}' is the folder of {there}, not of {asked}; give another --runs, or rename the model"
            )


def _asked(model: str, command: Sequence[str]) -> str:
    """What decides the answers, in words; the device and the batch size do not."""
    options = dict(pairwise(command))
    files = f" of {options['--include_path']}" if "--include_path" in options else ""
    return f"'{model}' on {options['--tasks']}{files} ({options['--model']} {options['--model_args']})"


def _client(scheduler: str | None, workers: int, gpus: float) -> Any:
    if scheduler is not None:
        return dask_client(scheduler)
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise DiscoError("collecting needs dask: pip install 'disco-eval[cluster]'") from None
    resources = {"GPU": gpus * workers} if gpus else None
    try:
        cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, resources=resources, silence_logs=50
        )
        return Client(cluster)
    except OSError as e:
        raise DiscoError(f"the processes that evaluate could not be started ({e})") from None
