"""Learning curves: checkpoints watched, and a callback inside a real training loop."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.harness.conftest import DISCO, OFFLINE, run


@pytest.fixture
def checkpoints(toy, tmp_path):
    """Three checkpoints of a training run, out of order, and one that is not complete."""
    for step, source in ((1000, "m09"), (200, "m10"), (30, "m11")):
        shutil.copytree(toy / "models" / source, tmp_path / "training" / f"checkpoint-{step}")
    (tmp_path / "training" / "checkpoint-2000").mkdir()
    return tmp_path / "training"


def looked_at(folder, settle_s=0.0):
    from disco_eval.harness.watch import Watch

    found = Watch(None, folder, folder.parent / "none", settle_s=settle_s).waiting()
    return [p.name for p in found]


@pytest.fixture
def bare(tmp_path):
    """Three folders that look like checkpoints, last changed 15 seconds ago."""
    for step in (5, 20, 100):
        folder = tmp_path / "training" / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        for name in ("config.json", "model.safetensors", "optimizer.pt"):
            (folder / name).write_text("x")
            os.utime(folder / name, (time.time() - 15,) * 2)
    return tmp_path / "training"


def test_a_checkpoint_is_complete_once_nothing_changed_for_a_while(bare):
    assert looked_at(bare) == looked_at(bare, 10.0) == ["checkpoint-5", "checkpoint-20", "checkpoint-100"]
    assert looked_at(bare, 60.0) == []
    (bare / "checkpoint-20" / "inner").mkdir()
    (bare / "checkpoint-20" / "inner" / "state").write_text("x")
    assert looked_at(bare, 10.0) == ["checkpoint-5", "checkpoint-100"]
    (bare / "checkpoint-5" / "config.json").unlink()
    (bare / "checkpoint-100" / "model.safetensors").unlink()
    assert looked_at(bare) == ["checkpoint-20"]


def test_a_checkpoint_without_a_number_comes_after_those_with_one(bare):
    shutil.copytree(bare / "checkpoint-5", bare / "final")
    assert looked_at(bare) == ["checkpoint-5", "checkpoint-20", "checkpoint-100", "final"]


def test_a_file_that_vanishes_while_looking_makes_a_checkpoint_incomplete(bare, monkeypatch):
    """A trainer that takes an old checkpoint away does so between a look at its files and one at their times."""
    original = Path.is_file

    def is_file(self):
        found = original(self)
        if self.name == "optimizer.pt" and self.parent.name == "checkpoint-20":
            self.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "is_file", is_file)
    assert looked_at(bare) == ["checkpoint-5", "checkpoint-100"]


def watch(toy, checkpoints, *more, status=0):
    return run(
        DISCO, "watch", "toy-18", checkpoints, "--tasks-path", "tasks", "--device", "cpu",
        "--model-args", "dtype=float32", "--out", checkpoints.parent / "curve", "--once", *more, cwd=toy, status=status,
    )  # fmt: skip


def table(checkpoints):
    with (checkpoints.parent / "curve" / "checkpoints.csv").open() as file:
        return list(csv.DictReader(file))


def test_each_checkpoint_is_estimated_once(toy, checkpoints):
    record = json.loads(watch(toy, checkpoints, "--json").stdout)
    assert [p["step"] for p in record["points"]] == [30, 200, 1000]
    assert all(p["low"] <= p["score"] <= p["high"] for p in record["points"])
    picture = checkpoints.parent / "curve" / "learning-curve.png"
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    first = table(checkpoints)
    shutil.copytree(toy / "models" / "m08", checkpoints / "checkpoint-3000")
    shutil.copytree(toy / "models" / "m07", checkpoints / "final")
    watch(toy, checkpoints)
    assert table(checkpoints)[:3] == first  # times included: they were not run again
    assert [r["step"] for r in table(checkpoints)] == ["30", "200", "1000", "3000", "3001"]
    full = run(DISCO, "estimate", "toy-18", "toy.zarr", "--json", cwd=toy)
    expected = {e["model"].rpartition("/")[2]: e["score"] for e in json.loads(full.stdout)["estimates"]}
    assert float(table(checkpoints)[0]["score"]) == pytest.approx(expected["m11"], abs=1e-5)


def test_a_checkpoint_that_was_written_again_is_asked_again(toy, checkpoints):
    """Its answers lie there, of other weights or damaged; the table does not have it yet."""
    watch(toy, checkpoints)
    folder = checkpoints.parent / "curve"
    before = table(checkpoints)
    lines = (folder / "checkpoints.csv").read_text().splitlines(keepends=True)
    (folder / "checkpoints.csv").write_text("".join(lines[:2]))
    for file in (toy / "models" / "m08").iterdir():
        shutil.copy(file, checkpoints / "checkpoint-200" / file.name)
    (folder / "answers" / "checkpoint-1000" / "results_anchors.json").write_text('{"model_n')
    watch(toy, checkpoints)
    after = table(checkpoints)
    assert after[1]["score"] != before[1]["score"]
    assert float(after[2]["score"]) == pytest.approx(float(before[2]["score"]), abs=1e-6)


def test_a_curve_keeps_one_level_and_one_condensation(toy, checkpoints):
    watch(toy, checkpoints)
    before = table(checkpoints)
    shutil.copytree(toy / "models" / "m08", checkpoints / "checkpoint-3000")
    for other, what in ((("--level", 0.5), "level"), (("--more", 12), "number of further items")):
        line = watch(toy, checkpoints, *other, status=2).stderr.splitlines()[-1]
        assert f"holds a curve made with another {what}; give another --out" in line
    line = watch(toy, checkpoints, "--level", 95, status=2).stderr.splitlines()[-1]
    assert "level must lie between 0 and 1" in line
    assert table(checkpoints) == before
    about = checkpoints.parent / "curve" / "about.json"
    record = json.loads(about.read_text())
    del record["condensation"]["against"]  # as an older version wrote it
    about.write_text(json.dumps(record))
    watch(toy, checkpoints)
    assert len(table(checkpoints)) == 4
    record["condensation"]["seed"] = 77
    about.write_text(json.dumps(record))
    shutil.copytree(toy / "models" / "m07", checkpoints / "checkpoint-4000")
    assert "made with another condensation" in watch(toy, checkpoints, status=2).stderr
    page = (checkpoints.parent / "curve" / "report.html").read_text()
    assert "estimated from 18 items each" in page


def test_killed_it_goes_on_and_waits_for_more(toy, checkpoints):
    out = checkpoints.parent / "curve"
    command = [
        DISCO,
        "watch",
        "toy-18",
        checkpoints,
        "--tasks-path",
        "tasks",
        "--device",
        "cpu",
        "--model-args",
        "dtype=float32",
    ]
    command += ["--out", out, "--settle", "0", "--interval", "0.2"]
    process = subprocess.Popen(
        list(map(str, command)), cwd=toy, env=OFFLINE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while process.poll() is None and not (out / "checkpoints.csv").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = table(checkpoints)
    assert before
    watch(toy, checkpoints)
    assert len(table(checkpoints)) == 3
    assert [r for r in table(checkpoints) if r in before] == before


def test_a_broken_checkpoint_is_named_and_the_others_are_done(toy, checkpoints):
    (checkpoints / "checkpoint-200" / "model.safetensors").write_bytes(b"\x00" * 64)
    done = watch(toy, checkpoints, status=2)
    assert "1 checkpoints failed: checkpoint-200" in done.stderr
    assert len(table(checkpoints)) == 2


def test_folders_without_checkpoints(toy, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "holds no complete checkpoint" in watch(toy, tmp_path / "empty", status=2).stderr
    assert "is not a folder" in watch(toy, tmp_path / "nothing", status=2).stderr
    (tmp_path / "a,b").mkdir()
    (line,) = watch(toy, tmp_path / "a,b", status=2).stderr.splitlines()
    assert "holds a comma" in line


TRAINING = """
import sys, json, torch
from transformers import GPT2LMHeadModel, PreTrainedTokenizerFast, Trainer, TrainingArguments
from disco_eval.harness import DiscoCallback
toy, out = sys.argv[1:]
model = GPT2LMHeadModel.from_pretrained(f"{toy}/models/m11")
tokenizer = PreTrainedTokenizerFast.from_pretrained(f"{toy}/models/m11")
rows = [tokenizer("the river is blue and the lamp is red")["input_ids"]] * 24
data = [{"input_ids": r, "labels": r} for r in rows]
arguments = TrainingArguments(out, max_steps=6, per_device_train_batch_size=4, save_steps=3, report_to=[], use_cpu=True,
                              logging_steps=2, disable_tqdm=True, learning_rate=1e-2)
trainer = Trainer(model, arguments, train_dataset=data, processing_class=tokenizer)
every = int(sys.argv[3]) if sys.argv[3:] else None
callback = DiscoCallback(f"{toy}/toy-18", trainer, tasks_path=f"{toy}/tasks", every=every)
trainer.add_callback(callback)
trainer.train()
assert model.training
print("RESULT", json.dumps([r for r in trainer.state.log_history if "disco/score" in r]))
"""


@pytest.mark.parametrize("every", [None, 2])
def test_the_callback_logs_estimates_in_a_real_training_loop(toy, tmp_path, every):
    script = TRAINING.replace("sys.argv[1:]", "sys.argv[1:3]")
    done = run(sys.executable, "-c", script, toy, tmp_path / "out", *([every] if every else []), cwd=tmp_path)
    (line,) = [x for x in done.stdout.splitlines() if x.startswith("RESULT")]
    logged = json.loads(line.removeprefix("RESULT"))
    assert [r["step"] for r in logged] == ([2, 4, 6] if every else [3, 6])
    assert all(0 <= r["disco/low"] <= r["disco/score"] <= r["disco/high"] <= 1 for r in logged)
    assert (tmp_path / "out" / "disco" / "step-6" / "results_anchors.json").exists()
    if every:  # another model trained into the same folder: nothing of the first run stands for it
        other = script.replace('models/m11")\ntok', 'models/m05")\ntok')
        assert other != script
        into = [
            run(sys.executable, "-c", other, toy, tmp_path / folder, every, cwd=tmp_path).stdout
            for folder in ("out", "new")
        ]
        found = [next(x for x in text.splitlines() if x.startswith("RESULT")) for text in into]
        scores = [[r["disco/score"] for r in json.loads(x.removeprefix("RESULT"))] for x in (*found, line)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-6)
        assert scores[0] != pytest.approx(scores[2], abs=1e-6)
    if not every:
        saved = tmp_path / "out" / "checkpoint-6"
        again = run(
            DISCO, "run", "toy-18", "--model-args", f"pretrained={saved},dtype=float32", "--tasks-path", "tasks",
            "--device", "cpu", "--out", tmp_path / "again", "--json", cwd=toy,
        )  # fmt: skip
        score = json.loads(again.stdout)["estimates"][0]["score"]
        assert logged[-1]["disco/score"] == pytest.approx(score, abs=1e-4)
