"""Logs written by Inspect AI itself, with its own mock model."""

import os
import subprocess
import sys

import pytest

from disco_eval import DiscoError, FormatError
from disco_eval.io.inspect import inspect
from tests.cli.test_cli import disco, refused

pytest.importorskip("inspect_ai", reason="needs the extra inspect")

SCRIPT = """
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes, match
folder, name, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
samples = [Sample(id=i + 1, input=f"Say {i}", target=str(i)) for i in range(4)]
outputs = [ModelOutput.from_content("mockllm/model", str(k % 4 if k % 3 else 99)) for k in range(4 * epochs)]
for output in outputs:  # without it, tokens are counted with a vocabulary from the network
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
scorers = [match(location="exact")] if len(sys.argv) < 5 else [includes()]
task = Task(dataset=samples, scorer=scorers, name="toy")
model = get_model("mockllm/" + name, custom_outputs=outputs)
(log,) = eval(task, model=model, log_dir=folder, epochs=epochs, display="none", max_connections=1, max_samples=1)
print("GRADES", [next(iter(s.scores.values())).value for s in log.samples], log.status)
"""


def write(folder, name="a", epochs=1, *scorer):
    env = {**os.environ, "INSPECT_DISPLAY": "none"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), name, str(epochs), *scorer],
        capture_output=True,
        text=True,
        env=env,
        cwd=folder.parent,
    )
    assert done.returncode == 0, done.stderr
    (line,) = [x for x in done.stdout.splitlines() if x.startswith("GRADES")]
    assert line.endswith("success")
    return [1.0 if c == "C" else 0.0 for c in line if c in "CI"][: 4 * epochs]


def test_grades_are_those_that_inspect_gave(tmp_path):
    expected = write(tmp_path / "logs")
    ((name, read),) = inspect([tmp_path / "logs"])
    r = read()
    assert name == "mockllm/a"
    assert r.items.ids.tolist() == ["toy/1", "toy/2", "toy/3", "toy/4"]
    assert r.probs is None
    assert r.correct.tolist() == [expected]
    assert 0 < sum(expected) < 4
    with pytest.raises(DiscoError, match=r"has no score 'f1'; it has match"):
        next(iter(inspect([tmp_path / "logs"], metric="f1")))[1]()


def test_models_scored_by_different_scorers_are_not_mixed(tmp_path):
    write(tmp_path / "logs", "a")
    write(tmp_path / "logs", "b", 1, "includes")
    graded = [read().provenance["graded"] for _, read in inspect([tmp_path / "logs"])]
    assert graded == [{"toy": "match"}, {"toy": "includes"}]
    line = refused("import", "inspect", "logs", "--out", "s.zarr", cwd=tmp_path)
    assert "'mockllm/a' has 'toy' graded by 'match', 'mockllm/b' by 'includes'" in line


def test_epochs_are_averaged(tmp_path):
    write(tmp_path / "logs", epochs=3)
    ((_, read),) = inspect([tmp_path / "logs", tmp_path / "logs" / ".." / "logs"])
    assert set((3 * read().correct).round(6).ravel().tolist()) <= {0.0, 1.0, 2.0, 3.0}


def test_on_the_command_line(tmp_path):
    for name in "ab":
        write(tmp_path / "logs", name)
    assert "2 models added" in disco("import", "inspect", "logs", "--out", "s.zarr", cwd=tmp_path).stdout
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "x.eval").write_bytes(b"PK\x03\x04 not a log")
    assert "is not a log of Inspect" in refused("import", "inspect", "bad", "--out", "t.zarr", cwd=tmp_path)


def test_a_cut_log_is_refused(tmp_path):
    write(tmp_path / "logs")
    (file,) = (tmp_path / "logs").glob("*.eval")
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(FormatError, match="is not a log of Inspect"):
        list(inspect([tmp_path / "logs"]))
