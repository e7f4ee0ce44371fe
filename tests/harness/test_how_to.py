"""The commands of docs/how-to run, on tiny models and a benchmark of three small tasks."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from disco_eval.store import open_responses
from tests.harness.conftest import DISCO, OFFLINE, run
from tests.test_readme import blocks

SMALLER = {"--anchors 100": "--anchors 18 --predict ridge --select jsd", "disco run": "disco run --tasks-path tasks"}
SMALLER |= {
    "disco watch": "disco watch --tasks-path tasks",
    "--format task-dir": "--format task-dir --tasks-path tasks",
}


@pytest.mark.parametrize("page", ["lm-eval", "checkpoints", "publish", "compare"])
def test_the_commands_run(page, toy, tmp_path):
    for name in ("runs", "tasks", "toy.zarr"):
        (tmp_path / name).symlink_to(toy / name)
    (tmp_path / "mmlu.zarr").symlink_to(toy / "toy.zarr") if page != "lm-eval" else None
    if page == "compare":  # pairs of left-out models are needed, so two large folds
        options = ("--anchors", "18", "--predict", "ridge", "--select", "jsd", "--folds", "2")
        run(DISCO, "condense", "toy.zarr", "--out", "mmlu-100", *options, cwd=tmp_path)
    elif page != "lm-eval":
        (tmp_path / "mmlu-100").symlink_to(toy / "toy-18")
    (tmp_path / "one-model.txt").write_text(f"{open_responses(toy / 'toy.zarr').models.ids[0]}\n")
    shutil.copytree(toy / "models" / "m10", tmp_path / "training" / "checkpoint-10")
    env = {**OFFLINE, "PATH": f"{Path(sys.executable).parent}:{OFFLINE['PATH']}"}
    env |= {"MODEL": str(toy / "models" / "m11"), "QUANTISED": str(toy / "models" / "m11")}
    commands = blocks(f"docs/how-to/{page}.md", "bash")
    assert commands
    for block in commands:
        for long, short in SMALLER.items():
            block = block.replace(long, short)
        done = subprocess.run(["bash", "-euc", block], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, block + done.stderr[-2000:]
