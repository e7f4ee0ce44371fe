"""Read changed files by the thousand: a reader may refuse them in one line, and nothing else.

    python -m tests.fuzz [--inputs 10000] [--seed 0] [--keep DIR] [READER ...]

Every input is a valid file or folder with one part changed (`tests.fuzz.corpus`, `tests.fuzz.mutate`; the same seed and
number make the same input). A finding is any error that is no DiscoError, a crash, more than 10 s, or more than 2 GB of
memory. Readers run in a process of their own, which is started again where it dies; its findings are kept in DIR.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

SECONDS, MEMORY = 10, 2 * 2**30
QUICK = "/dev/shm" if Path("/dev/shm").is_dir() else None  # files are written and read by the thousand


class TooSlow(BaseException):
    """An input took longer than it may."""


def one(seeds: Path, work: Path, name: str, seed: int, number: int) -> tuple[str, str]:
    """Make input ``number`` and read it: ("ok", ""), ("refused", message), or ("finding", what and where)."""
    from disco_eval.errors import DiscoError
    from tests.fuzz.corpus import READERS
    from tests.fuzz.mutate import mutate

    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(seeds, work)
    with warnings.catch_warnings(action="ignore"):
        mutate(work, np.random.default_rng([seed, number, *name.encode()]))
    signal.alarm(SECONDS)
    try:
        READERS[name][1](work)
        return "ok", ""
    except DiscoError as e:
        if "\n" in str(e).strip() or not str(e).isprintable():
            return "finding", f"a message of several lines or with control characters: {str(e)!r}"[:300]
        return "refused", str(e)
    except (TooSlow, Exception) as e:
        where = [f for f in traceback.extract_tb(e.__traceback__) if "disco_eval" in f.filename]
        place = f"{Path(where[-1].filename).name}:{where[-1].lineno}" if where else "?"
        return "finding", f"{type(e).__name__} at {place}: {' '.join(str(e).split())[:160]}"
    finally:
        signal.alarm(0)


def worker(name: str, seed: int, first: int, inputs: int, folder: Path) -> None:
    """Read inputs one after the other, and say on standard output how each one ended."""
    os.environ |= {"POLARS_MAX_THREADS": "1", "RUST_BACKTRACE": "0"}  # a panic's traces print while we go on
    from tests.fuzz.corpus import READERS

    def stop(*_: object) -> None:
        raise TooSlow

    signal.signal(signal.SIGALRM, stop)
    seeds = folder / "seeds"
    if not seeds.exists():
        seeds.mkdir(parents=True)
        READERS[name][0](seeds)
    READERS[name][1](seeds)  # as it is, it must be read; and everything is imported now
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    for number in range(first, inputs):
        print(number, *one(seeds, folder / "work", name, seed, number), sep="\t", flush=True)


class Watch:
    """Kills a process that has said nothing for a minute: a hang that no signal gets out of."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.again()

    def again(self) -> None:
        self.end()
        self.timer = threading.Timer(60, self.process.kill)
        self.timer.start()

    def end(self) -> None:
        if hasattr(self, "timer"):
            self.timer.cancel()


def fuzz(name: str, inputs: int, seed: int, keep: Path | None = None) -> tuple[Counter[str], dict[str, int]]:
    """How many inputs were read, refused or a finding; and each different finding with the first input that made it."""
    count: Counter[str] = Counter()
    findings: dict[str, int] = {}
    with tempfile.TemporaryDirectory(dir=QUICK) as folder:
        number = 0
        while number < inputs:
            command = [
                sys.executable,
                "-m",
                "tests.fuzz",
                "--worker",
                name,
                str(seed),
                str(number),
                str(inputs),
                folder,
            ]
            errors = Path(folder) / "stderr"
            with errors.open("w") as to, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=to) as process:
                assert process.stdout
                watch = Watch(process)
                for line in process.stdout:
                    watch.again()
                    done, how, what = line.decode().rstrip("\n").split("\t", 2)
                    number = int(done) + 1
                    count[how] += 1
                    if how == "finding":
                        findings.setdefault(what, int(done))
                watch.end()
            said = errors.read_text()
            if said and not process.returncode:  # a reader speaks by its errors alone
                count["finding"] += 1
                findings[f"printed on standard error: {said[-300:]!r}"] = number
            if process.returncode or number < inputs:
                if not count:
                    return count, {f"the valid files cannot be read: {said[-300:]}": 0}
                count["finding"] += 1
                findings[f"the process died ({process.returncode}): {said[-300:]}"] = number
                number += 1
            if keep and findings:
                shutil.copytree(Path(folder) / "work", keep / f"{name}-{number - 1}", dirs_exist_ok=True)
    return count, findings


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        name, seed, first, inputs, folder = sys.argv[2:]
        worker(name, int(seed), int(first), int(inputs), Path(folder))
        return
    from tests.fuzz.corpus import READERS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="*", help=", ".join(READERS))
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    if unknown := [name for name in given.readers if name not in READERS]:
        parser.error(f"no reader is called {', '.join(unknown)}; there are {', '.join(READERS)}")
    bad = 0
    for name in given.readers or READERS:
        count, findings = fuzz(name, given.inputs, given.seed, given.keep)
        bad += len(findings)
        print(
            f"{name:14s} {given.inputs} inputs: {count['ok']} read, {count['refused']} refused, "
            f"{count['finding']} findings"
        )
        for what, number in sorted(findings.items(), key=lambda pair: pair[1]):
            print(f"    input {number}: {what}", flush=True)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
