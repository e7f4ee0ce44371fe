"""Kill long commands at random moments, and check that what is on disk is the old state or the new one.

    python -m tests.faults [--kills 20] [--seed 0] [COMMAND ...]

Each command (import, append, overwrite, condense, study, collect) is run once undisturbed; then, as often as asked,
from the same beginning: killed with SIGKILL, its children with it, at a random moment; what is there is checked; and
run again, which must end as if nothing had happened and leave no draft or lock behind.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from disco_eval import load, open_responses, read_predictions
from disco_eval.integrity import check
from disco_eval.io import write_npz
from tests.conftest import population
from tests.io.test_lm_eval import row, write_run

DISCO = str(Path(sys.executable).parent / "disco")
N_MODELS, N_ITEMS = 40, 30
STUB = '''"""Stands in for lm_eval: writes what it writes, slowly."""
import sys, time
from pathlib import Path

def given(option):
    return sys.argv[sys.argv.index(option) + 1]

time.sleep(0.15)
sys.path.insert(0, {tests!r})
from tests.faults import write_model
write_model(Path(given("--output_path")), given("--model_args").partition("pretrained=")[2].partition(",")[0])
'''


@dataclass(frozen=True)
class Command:
    """What to run, in a folder made by ``begin``; ``state`` reads what is there and raises where it makes no sense."""

    begin: Callable[[Path], None]
    words: list[str]
    state: Callable[[Path], Any]
    steps: bool = False  # whether states between the old and the new are right too: models or cells already done


def write_model(folder: Path, name: str) -> None:
    """A run of a model: its answers follow from its name alone."""
    rng = np.random.default_rng(list(name.encode()))
    rows = [row(i, rng.normal(-2, 1, 3).round(3).tolist(), i % 3) for i in range(N_ITEMS)]
    write_run(folder, name, {"t": rows})


def runs(folder: Path) -> None:
    for m in range(N_MODELS):
        write_model(folder / "runs", f"org/m{m:02d}")


def half(folder: Path) -> None:
    runs(folder)
    shutil.copytree(folder / "runs", folder / "first")
    for run in sorted((folder / "first").iterdir())[7:]:
        shutil.rmtree(run)
    subprocess.run(
        [DISCO, "import", "lm-eval", "first", "--out", "s.zarr"], cwd=folder, check=True, capture_output=True
    )


def stored(folder: Path) -> None:
    population(60, 1500).save(folder / "s.zarr")


def old_store(folder: Path) -> None:
    population(30, 400, seed=1).save(folder / "s.zarr")
    write_npz(population(200, 2000), folder / "new.npz")


def old_condensation(folder: Path) -> None:
    stored(folder)
    words = ["--anchors", "10", "--select", "uniform", "--predict", "direct", "--folds", "2"]
    subprocess.run([DISCO, "condense", "s.zarr", "--out", "c", *words], cwd=folder, check=True, capture_output=True)


def names(folder: Path) -> None:
    (folder / "models.txt").write_text("\n".join(f"org/m{m:02d}" for m in range(6)))
    stub = folder / "stub" / "lm_eval"
    stub.mkdir(parents=True)
    (stub / "__init__.py").write_text("")
    (stub / "__main__.py").write_text(STUB.format(tests=str(Path(__file__).parents[1])))


def store_state(folder: Path) -> Any:
    """Names and sums of what each model answered; every chunk is verified on the way."""
    if not (folder / "s.zarr").exists():
        return {}
    whole(folder / "s.zarr")
    r = open_responses(folder / "s.zarr").load()
    return {str(m): (r.correct[k].tobytes(), r.probs[k].tobytes()) for k, m in enumerate(r.models.ids)}


def condensation_state(folder: Path) -> Any:
    whole(folder / "c")
    small = load(folder / "c")
    return small.anchors.ids.tolist(), small.validation.estimate.tolist()


def study_state(folder: Path) -> Any:
    if not (folder / "study" / "predictions.parquet").exists():
        return {}
    return read_predictions(folder / "study").table.drop("seconds").rows()


def whole(path: Path) -> None:
    damage = check(path).damage
    assert not damage, damage


COMMANDS = {
    "import": Command(runs, ["import", "lm-eval", "runs", "--out", "s.zarr"], store_state, steps=True),
    "append": Command(half, ["import", "lm-eval", "runs", "--out", "s.zarr"], store_state, steps=True),
    "overwrite": Command(old_store, ["import", "npz", "new.npz", "--out", "s.zarr", "--overwrite"], store_state),
    "condense": Command(
        old_condensation, ["condense", "s.zarr", "--out", "c", "--anchors", "20", "--overwrite"], condensation_state
    ),
    "study": Command(
        stored,
        ["study", "s.zarr", "--methods", "pds+ridge,uniform+direct,auto+auto", "--runs", "2", "--out", "study"],
        study_state,
    ),
    "collect": Command(
        names, ["collect", "models.txt", "--tasks", "t", "--out", "s.zarr", "--workers", "2"], store_state, steps=True
    ),
}


def start(command: Command, folder: Path) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(filter(None, [str(folder / "stub"), os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        [DISCO, *command.words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def finish(command: Command, folder: Path) -> str:
    process = start(command, folder)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said.decode()[-2000:]
    return said.decode()


def trial(command: Command, begun: Path, done: Any, folder: Path, moment: float) -> tuple[str, str]:
    """Kill it at this moment (s), check, run it again, check. Says in which state it was killed, and what was said."""
    shutil.copytree(begun, folder)
    old = command.state(folder)
    process = start(command, folder)
    time.sleep(moment)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    now = command.state(folder)
    if command.steps:
        assert old.items() <= now.items() <= done.items(), "neither the old state nor one on the way to the new"
    else:
        assert now in (old, done), "neither the old state nor the new"
    said = finish(command, folder)
    assert command.state(folder) == done, "the second run ended elsewhere"
    left = [p for p in folder.rglob("*") if ".partial" in p.name or p.name in (".writing",) or p.name.endswith(".old")]
    assert not left, left
    shutil.rmtree(folder)
    return "old" if now == old else "new" if now == done else "between", said


def torture(name: str, kills: int, seed: int, say: Callable[[str], None] = print) -> dict[str, int]:
    """Kill a command so many times; how often it was found in which state. AssertionError where one is wrong."""
    command = COMMANDS[name]
    rng = np.random.default_rng([seed, *name.encode()])
    found = {"old": 0, "between": 0, "new": 0}
    with tempfile.TemporaryDirectory() as root:
        begun, undisturbed = Path(root) / "begun", Path(root) / "undisturbed"
        begun.mkdir()
        command.begin(begun)
        shutil.copytree(begun, undisturbed)
        began = time.perf_counter()
        finish(command, undisturbed)
        took = time.perf_counter() - began
        done = command.state(undisturbed)
        for k in range(kills):
            moment = float(rng.uniform(0.25, 1.0)) * took  # before that, Python starts
            state, said = trial(command, begun, done, Path(root) / f"t{k}", moment)
            found[state] += 1
            say(
                f"{name}: killed after {moment:.2f} of {took:.2f} s, found {state}; again: {said.strip()[:150] or 'ok'}"
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", help=", ".join(COMMANDS))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name in given.commands or COMMANDS:
        print(f"{name}: {torture(name, given.kills, given.seed)}", flush=True)


if __name__ == "__main__":
    main()
