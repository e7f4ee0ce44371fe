"""One population of tiny models, evaluated in full by the real lm_eval, for all tests of this folder."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.schemas import check
from tests.warm import Warm


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items):
    """All tests of this folder go to one worker, which makes their population once."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("harness"))


OFFLINE = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "NO_COLOR": "1", "COLUMNS": "100"}
DISCO = str(Path(sys.executable).parent / "disco")
HEAVY = ("torch", "transformers", "datasets", "lm_eval.evaluator", "lm_eval.models.huggingface", "lm_eval.tasks")

_warm: list[Warm] = []


def run(*command: object, cwd: Path | None = None, status: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
    """A command as a process of its own; those of `disco` and of modules are forks of one that is warm."""
    words = list(map(str, command))
    module = words[2] if words[:2] == [sys.executable, "-m"] else "disco_eval" if words[0] == DISCO else None
    if module:
        if not _warm:
            _warm.append(Warm(OFFLINE, HEAVY))
            atexit.register(_warm[0].close)
        done = _warm[0].run(module, words[1:] if words[0] == DISCO else words[3:], cwd, {**OFFLINE, **env})
    else:
        done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, env={**OFFLINE, **env})
    assert done.returncode == status, done.stdout[-2000:] + done.stderr[-4000:]
    if command[0] == DISCO:
        check(command[1:], done.stdout)
    return done


@pytest.fixture(scope="session")
def toy(tmp_path_factory) -> Path:
    """tasks/, models/m00 to m11, runs/ (a full run of each), chat/ (m11 with its chat template), toy.zarr, toy-18/."""
    pytest.importorskip("lm_eval", reason="needs the extra lm-eval")
    folder = tmp_path_factory.mktemp("toy")
    run(sys.executable, "-m", "tests.harness.kit", folder, cwd=Path(__file__).parents[2])
    run(DISCO, "import", "lm-eval", "runs", "--out", "toy.zarr", cwd=folder)
    (folder / "sources.txt").write_text("\n".join(str(folder / "models" / f"m{k:02d}") for k in range(11)))
    run(
        DISCO, "condense", "toy.zarr", "--out", "toy-18", "--anchors", 18, "--sources", "sources.txt",
        "--select", "jsd", "--select-opt", "stratify=true", "--predict", "ridge", cwd=folder,
    )  # fmt: skip
    return folder
