"""A process that has imported large libraries once and forks for every command, so that commands do not pay again.

Each command is a process of its own, as on the command line, with its own folder, environment and output.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path


class Warm:
    """Runs ``python -m MODULE ARGUMENTS`` in forks of one process that has imported ``libraries``.

    These must start no threads when they are imported: a fork has none of them.
    """

    def __init__(self, env: dict[str, str], libraries: Sequence[str]) -> None:
        command = [sys.executable, "-m", __spec__.name, *libraries]
        root = Path(__file__).parents[1]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, cwd=root
        )

    def run(
        self, module: str, arguments: list[str], cwd: Path | None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            files = [str(Path(folder) / name) for name in ("out", "err")]
            job = {"module": module, "arguments": arguments, "cwd": str(cwd or Path.cwd()), "files": files}
            job |= {} if env is None else {"env": dict(env)}
            with contextlib.suppress(BrokenPipeError):  # it is gone, as the missing answer says too
                self._server.stdin.write(json.dumps(job) + "\n")
                self._server.stdin.flush()
            status = self._server.stdout.readline()
            if not status:
                raise RuntimeError(f"the warm process ended with status {self._server.wait()}")
            said = [Path(file).read_text() for file in files]
        return subprocess.CompletedProcess([module, *arguments], int(status), *said)

    def close(self) -> None:
        self._server.communicate("")


def serve() -> None:
    """One job a line on standard input, one exit status a line on standard output."""
    with contextlib.redirect_stdout(sys.stderr):
        for name in sys.argv[1:]:
            __import__(name)
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            _work(job)
        _, ended = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(ended), flush=True)


def _work(job: dict[str, object]) -> None:
    """The command itself; never returns."""
    status = 1
    try:
        for descriptor, file in zip((1, 2), job["files"], strict=True):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.argv = [job["module"], *job["arguments"]]
        sys.path.remove(os.getcwd())  # of this process; nothing of disco's may be found only because of it
        os.chdir(job["cwd"])
        if "env" in job:
            os.environ.clear()
            os.environ.update(job["env"])
        if job["module"] != "disco_eval":
            sys.path.insert(0, job["cwd"])  # as python -m does
        runpy.run_module(job["module"], run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else int(e.code is not None)
        if isinstance(e.code, str):
            print(e.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()
