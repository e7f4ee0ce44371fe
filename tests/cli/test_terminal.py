"""At a terminal of 80 columns: tables fit, nothing is coloured against NO_COLOR, progress does not reach the output."""

import os
import pty
import re
import subprocess

import numpy as np
import pytest
from rich.cells import cell_len

from disco_eval import Items, Models, Responses, condense
from disco_eval.cli.common import print_table
from disco_eval.io import write_npz
from tests.cli.test_cli import DISCO, disco
from tests.conftest import population

COLOUR = re.compile(r"\x1b\[[0-9;]*(3[0-7]|9[0-7]|38;[0-9;]*)m")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def at_terminal(*args, cwd, **env):
    """What a terminal of 80 columns would receive on standard output."""
    ours, theirs = pty.openpty()
    plain = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    plain |= {"TERM": "xterm-256color", "COLUMNS": "80", **env}
    process = subprocess.Popen(
        [DISCO, *map(str, args)], stdout=theirs, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=cwd, env=plain
    )
    os.close(theirs)
    found = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        found += chunk
    os.close(ours)
    _, error = process.communicate()
    assert process.returncode == 0, error.decode()
    return found.decode()


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    write_npz(population(40, 80), folder / "mine.npz")
    disco("condense", "mine.npz", "--out", "c", "--anchors", 10, "--predict", "ridge", "--select", "jsd", cwd=folder)
    return folder


STUDY = ("study", "mine.npz", "--methods", "best_for_validation+ability_irt,pds+forest", "--anchors", 10, "--runs", 2)
TABLES = [("estimate", "c", "mine.npz"), ("info", "c"), ("info", "mine.npz"), (*STUDY, "--out", "s")]


@pytest.mark.parametrize("args", TABLES, ids=lambda args: "-".join(map(str, args[:2])))
def test_tables_fit_80_columns(work, args):
    text = ESCAPE.sub("", at_terminal(*args, cwd=work)).replace("\r", "")
    rows = [line for line in text.splitlines() if line.startswith(" ")]  # a table's; sentences wrap by themselves
    assert len(rows) > 2
    for line in rows:
        assert cell_len(line) <= 80, line
    assert "…" not in text
    assert "─" in text or args[0] == "info"  # two columns without a head
    assert "| ---" not in text


def test_colour_only_where_it_is_wanted(work):
    assert not COLOUR.search(at_terminal("estimate", "c", "mine.npz", cwd=work, NO_COLOR="1"))
    piped = disco("study", "mine.npz", "--methods", "random+direct", "--anchors", 5, "--out", "p", cwd=work)
    assert "\x1b" not in piped.stdout + piped.stderr
    assert "| Baseline |" in piped.stdout
    assert piped.stderr == ""


def test_long_names_and_flags_take_lines_and_are_not_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"an-organisation/a-model-of-a-long-name-that-differs-at-its-end-only-{k}" for k in range(2)]
    flags = "source-model, outside-range, odd-answers"
    print_table(
        "Scores", ["model", "score", "90 % interval", "flags"], [[n, "1.0", "0.5 to 1.5", flags] for n in names]
    )
    shown = capsys.readouterr().out
    assert all(cell_len(line) <= 80 for line in shown.splitlines())
    first = "".join(line.split("  ")[0].strip() for line in shown.splitlines()[5:])
    assert first == "".join(names)
    assert "\u2026" not in shown


def test_in_a_pipe_a_row_is_a_line(work):
    """So that grep finds a model with its score."""
    name = "an-organisation/" + "a-very-long-name-" * 6
    r = population(40, 80).pick(models=[0])
    write_npz(Responses(Models([name]), r.items, r.correct, r.probs), work / "long.npz")
    plain = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    done = subprocess.run([DISCO, "estimate", "c", "long.npz"], capture_output=True, text=True, cwd=work, env=plain)
    assert [line for line in done.stdout.splitlines() if name in line and " to " in line]


@pytest.mark.parametrize(("columns", "shown"), [(60, "none"), (80, "scores"), (100, "scores"), (160, "intervals")])
def test_subtasks_never_push_the_models_names_out(tmp_path, columns, shown):
    r = population(40, 60)
    subtask = np.array(["ocr", "charts", "spatial", "maths", "general", "hallucination"])[np.arange(60) % 6]
    names = [f"an-organisation/model-{k}-that-has-a-name-of-some-length" for k in range(40)]
    r = Responses(Models(names), Items(r.items.ids, subtask=subtask), r.correct)
    c = condense(r, 20, curve=False, relatives=False, rng=0)
    c.save(tmp_path / "c")
    write_npz(r.pick(models=[0, 1]), tmp_path / "two.npz")
    text = ESCAPE.sub("", at_terminal("estimate", "c", "two.npz", cwd=tmp_path, COLUMNS=str(columns)))
    rows = [line.rstrip() for line in text.replace("\r", "").splitlines() if line.startswith(" ")]
    assert all(cell_len(line) <= columns for line in rows)
    assert "…" not in text
    table = text.partition("By subtask")[2]
    assert [name in re.sub(r"[ \r\n]|\d+\.\d.*", "", table) for name in names[:2]] == [shown != "none"] * 2
    e = c.estimate(r.pick(models=[0]))[0].subtasks[0]
    assert (f"{100 * e.score:.1f}" in table) == (shown != "none")
    assert (f"{100 * e.score:.1f} ({100 * e.low:.0f} to {100 * e.high:.0f})" in table) == (shown == "intervals")
    assert ("Intervals of subtasks take more columns: see the report (--out), or --json." in text) == (
        shown == "scores"
    )
    assert ("Each of 6 subtasks is estimated too" in text) == (shown == "none")
