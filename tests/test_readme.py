"""The README and the docs are true: their code runs, their files exist, their tables list what there is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from disco_eval import Items, Responses
from disco_eval.flags import FLAGS
from disco_eval.io import write_npz, write_table
from disco_eval.predict import PREDICTORS
from disco_eval.select import SELECTORS
from tests.conftest import population

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"(?P<mark><!-- not run[^>]*-->\n)?```(?P<language>\w+)\n(?P<code>.*?)```", re.DOTALL)


def blocks(path, language):
    text = (ROOT / path).read_text()
    return [m["code"] for m in BLOCK.finditer(text) if m["language"] == language and not m["mark"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the README takes as given: answers of some models, and a new model's."""
    here = tmp_path_factory.mktemp("readme")
    r = population(60, 120)
    write_npz(r.pick(models=np.arange(59)), here / "answers.npz")
    write_table(r.pick(models=[59]), here / "new-model.csv")
    return here


def test_the_readme_runs_from_top_to_bottom(folder):
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    commands, code = blocks("README.md", "bash"), blocks("README.md", "python")
    assert commands
    assert code
    for block in commands:
        subprocess.run(["bash", "-euc", block], cwd=folder, env=env, check=True, stdout=subprocess.PIPE)
    for block in code:
        subprocess.run([sys.executable, "-c", block], cwd=folder, env=env, check=True, stdout=subprocess.PIPE)
    assert len((folder / "evaluate-these.txt").read_text().split()) == 30


@pytest.mark.parametrize(
    "path", sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md") if p.stem != "tutorial")
)
def test_code_in_the_docs_runs(path, tmp_path):
    for block in blocks(path, "python"):
        subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=True)


def test_condensing_your_own_benchmark_runs(tmp_path):
    """docs/how-to/own-benchmark.md, on a table with the columns that it names."""
    r = population(40, 60, graded=True)
    write_table(r.pick(models=np.arange(39)), tmp_path / "answers.csv")
    write_npz(r.pick(models=[39]), tmp_path / "new-model.npz")
    write_table(r.pick(models=[39]), tmp_path / "more.csv")
    header, _, rest = (tmp_path / "answers.csv").read_text().partition("\n")
    names = {"model": "llm", "item": "question", "score": "acc"}
    (tmp_path / "answers.csv").write_text(",".join(names.get(c, c) for c in header.split(",")) + "\n" + rest)
    priced = Items(r.items.ids, cost=np.random.default_rng(0).integers(50, 500, 60))
    write_table(Responses(r.models, priced, r.correct), tmp_path / "priced.csv")
    renamed = (tmp_path / "priced.csv").read_text().replace("cost", "tokens", 1)
    (tmp_path / "priced.csv").write_text(renamed)
    other = population(40, 60, graded=True, seed=1)
    apart = Responses(r.models, Items([f"other/{i}" for i in range(60)]), other.correct)
    apart.pick(models=np.arange(39)).save(tmp_path / "other.zarr")
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for block in blocks("docs/how-to/own-benchmark.md", "bash"):
        subprocess.run(["bash", "-euc", block], cwd=tmp_path, env=env, check=True, stdout=subprocess.PIPE)
    assert len((tmp_path / "evaluate-these.txt").read_text().split()) == 30
    assert len((tmp_path / "evaluate-these-too.txt").read_text().split()) == 30


def test_links_lead_somewhere():
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            drawn = ROOT / "examples" / f"{Path(link).stem}.py" if link.startswith("gallery/") else None
            if not link.startswith("http"):
                assert (drawn or path.parent / link).exists(), f"{path.name}: {link}"


def test_every_flag_has_a_row():
    table = (ROOT / "docs" / "data.md").read_text()
    for name in FLAGS:
        assert f"`{name}`" in table, name


def test_every_method_has_a_row():
    table = (ROOT / "docs" / "methods.md").read_text()
    for name in [*SELECTORS, *PREDICTORS]:
        assert f"`{name}`" in table, name
