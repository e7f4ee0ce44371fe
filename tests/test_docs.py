"""The documentation: the tutorial runs from top to bottom, the examples draw, the site builds without a warning."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_readme import BLOCK, ROOT

RUN = {  # page: the test that runs its commands, in order
    "README.md": "tests/test_readme.py",
    "docs/tutorial.md": "tests/test_docs.py",
    "docs/how-to/own-benchmark.md": "tests/test_readme.py",
    "docs/how-to/lm-eval.md": "tests/harness/test_how_to.py",
    "docs/how-to/checkpoints.md": "tests/harness/test_how_to.py",
    "docs/how-to/publish.md": "tests/harness/test_how_to.py",
    "docs/how-to/compare.md": "tests/harness/test_how_to.py",
    "docs/how-to/large.md": "tests/test_scale.py",
}
PAGES = sorted(str(p.relative_to(ROOT)) for p in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
pytestmark = pytest.mark.xdist_group("docs")


@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_run_or_says_why_not(page):
    text = (ROOT / page).read_text()
    fences = [m for m in BLOCK.finditer(text) if m["language"] in ("bash", "console", "sh", "shell")]
    assert all(m["language"] == "bash" for m in fences)
    open_ones = [m["code"] for m in fences if not m["mark"]]
    assert not open_ones or page in RUN, (
        f"{page} has commands that no test runs; run them, or mark them <!-- not run: why -->"
    )
    for m in fences:
        assert not m["mark"] or len(re.sub(r"<!-- not run|-->", "", m["mark"]).split()) >= 4, "say why"
    if page in RUN:
        name = Path(page).stem
        assert name in (ROOT / RUN[page]).read_text()


def test_the_tutorial_runs_from_top_to_bottom(tmp_path):
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    said = ""
    text = (ROOT / "docs" / "tutorial.md").read_text()
    for m in BLOCK.finditer(text):
        if m["language"] in ("bash", "python"):
            command = ["bash", "-euc", m["code"]] if m["language"] == "bash" else [sys.executable, "-c", m["code"]]
            done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
            assert done.returncode == 0, m["code"] + done.stderr[-2000:]
            said += done.stdout
    for folder in ("digits-100", "estimates", "compared", "study"):
        assert (tmp_path / folder / "report.html").is_file()
    number = r"(\d+\.\d) estimated, (\d+\.\d) true"
    pairs = [(float(a), float(b)) for a, b in re.findall(number, said)]
    shown = [(float(a), float(b)) for a, b in re.findall(number, text)]
    assert len(pairs) == len(shown) == 2
    for ran, printed in zip(pairs, shown, strict=True):
        assert ran == pytest.approx(printed, abs=3)  # classifiers and sums differ a little from machine to machine
        assert abs(ran[0] - ran[1]) < 5


def test_the_examples_draw_and_the_site_builds_without_a_warning(tmp_path):
    """Strict: a broken link, a missing picture or an unknown name fails."""
    gallery = ROOT / "docs" / "gallery"
    subprocess.run([sys.executable, "examples", str(gallery)], cwd=ROOT, check=True, capture_output=True)
    names = {p.stem for p in (ROOT / "examples").glob("*.py")} - {"__main__", "common"}
    assert {p.stem for p in gallery.glob("*.svg")} >= names
    for name in names:
        picture = (gallery / f"{name}.svg").read_text()
        assert picture.count("<path") + picture.count("<use") > 30, name
    page = (ROOT / "docs" / "examples.md").read_text()
    assert set(re.findall(r"gallery/(\w+)\.svg", page)) == names
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(build, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert 'id="disco_eval.condensing.condense"' in (tmp_path / "site" / "api.html").read_text()
    notes = (tmp_path / "site" / "decisions" / "index.html").read_text()
    assert all(f'href="{note.stem}.html"' in notes for note in (ROOT / "docs" / "decisions").glob("0*.md"))
    shown = (tmp_path / "site" / "examples.html").read_text()
    assert re.sub(r"<[^>]+>", "", shown).count("import sys") >= len(names)  # the code itself, not its file's name
    outside = re.findall(r'(?:src|href)="(https?://[^"]+)"', (tmp_path / "site" / "index.html").read_text())
    assert not [a for a in outside if a.endswith((".js", ".css", ".woff2"))]
