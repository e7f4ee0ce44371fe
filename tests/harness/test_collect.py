"""Source models evaluated in full on a dask cluster, with failures and interruptions."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from disco_eval import DiscoError, open_responses
from disco_eval.files import alone
from disco_eval.harness.collect import DONE, Plan, collect
from tests.harness.conftest import DISCO, OFFLINE, run

pytest.importorskip("distributed", reason="needs the extra cluster")


def command(toy, models, out, *more):
    (out.parent / "models.txt").write_text("\n".join(map(str, models)) + "\n")
    return [
        DISCO, "collect", out.parent / "models.txt", "--tasks", "toy", "--out", out, "--tasks-path", toy / "tasks",
        "--model-args", "dtype=float32", "--device", "cpu", "--workers", 2, *more,
    ]  # fmt: skip


def test_models_are_evaluated_and_a_failing_one_is_named(toy, tmp_path):
    models = [toy / "models" / "m00", toy / "nothing", toy / "models" / "m01"]
    done = run(*command(toy, models, tmp_path / "s.zarr", "--json"), cwd=tmp_path, status=2)
    record = json.loads(done.stdout)
    assert sorted(record["added"]) == sorted(map(str, (models[0], models[2])))
    assert list(record["failed"]) == [str(models[1])]
    assert "1 of 3 models failed" in done.stderr.splitlines()[-1]
    full = open_responses(toy / "toy.zarr")
    mine = open_responses(tmp_path / "s.zarr")
    rows = full.models.positions(mine.models.ids)
    np.testing.assert_allclose(mine.load().probs, full.pick(models=rows).load().align(mine.items.ids).probs, atol=1e-4)
    started = time.perf_counter()
    again = run(*command(toy, [models[0], models[2]], tmp_path / "s.zarr", "--json"), cwd=tmp_path)
    assert json.loads(again.stdout)["added"] == []
    assert time.perf_counter() - started < 10  # nothing was evaluated again


def test_a_killed_collection_goes_on(toy, tmp_path):
    models = [toy / "models" / f"m{k:02d}" for k in range(2)]
    words = command(toy, models, tmp_path / "s.zarr", "--workers", 1)
    process = subprocess.Popen(
        list(map(str, words)),
        cwd=tmp_path,
        env=OFFLINE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    marks = tmp_path / "s.zarr.runs"
    while process.poll() is None and not list(marks.glob("*/done.json")):
        time.sleep(0.05)
    subprocess.run(["kill", "-9", "--", f"-{process.pid}"], check=False)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    finished = {p: p.stat().st_mtime_ns for p in marks.glob("*/done.json")}
    assert len(finished) == 1
    run(*command(toy, models, tmp_path / "s.zarr"), cwd=tmp_path)
    assert open_responses(tmp_path / "s.zarr").n_models == 2
    assert all(p.stat().st_mtime_ns == t for p, t in finished.items())


def test_an_existing_cluster_with_a_resource_per_task(toy, tmp_path):
    cluster = subprocess.Popen(
        [sys.executable, "-c", (
            "from distributed import LocalCluster\n"
            "if __name__ == '__main__':\n"
            "    c = LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None, resources={'GPU': 1})\n"
            "    print(c.scheduler_address, flush=True)\n"
            "    input()\n"
        )],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=OFFLINE, cwd=tmp_path,
    )  # fmt: skip
    try:
        address = cluster.stdout.readline().strip()
        words = command(toy, [toy / "models" / "m02"], tmp_path / "s.zarr", "--scheduler", address, "--gpus", 1)
        run(*words, cwd=tmp_path)
    finally:
        cluster.communicate("\n", timeout=30)
    assert open_responses(tmp_path / "s.zarr").n_models == 1


def test_a_scheduler_that_does_not_answer_is_one_line(toy, tmp_path):
    words = command(toy, [toy / "models" / "m02"], tmp_path / "s.zarr", "--scheduler", "tcp://127.0.0.1:1")
    done = run(*words, cwd=tmp_path, status=2, DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="1s")
    assert "no dask scheduler answers" in done.stderr.splitlines()[-1]


def test_another_evaluation_is_not_taken_for_the_one_asked(tmp_path):
    plan = Plan("t", tmp_path, batch_size="4")
    with pytest.raises(DiscoError, match=r"a_b' is the folder of 'a/b' on t .*not of 'a_b' on t"):
        list(collect(["a/b", "a_b"], plan, progress=lambda *_: None))
    job = plan.job("a/b")
    Path(job.folder).mkdir()
    (Path(job.folder) / DONE).write_text(json.dumps({"model": "a/b", "command": job.command}))
    files = Plan("t", tmp_path, tasks_path=tmp_path / "tasks")
    for other in (Plan("t2", tmp_path), Plan("t", tmp_path, model_args="dtype=float32"), files):
        with pytest.raises(DiscoError, match="give another --runs"):
            list(collect(["a/b"], other, progress=lambda *_: None))
    same = Plan("t", tmp_path, batch_size="8", device="cpu")
    assert [o.model for o in collect(["a/b", "a/b"], same, progress=lambda *_: None)] == ["a/b"]


def test_two_collections_into_one_folder_do_not_meet(tmp_path):
    with alone(tmp_path), pytest.raises(DiscoError, match="another process is writing to"):
        list(collect(["a"], Plan("t", tmp_path), progress=lambda *_: None))


def test_names_that_lm_eval_would_cut_are_refused(tmp_path):
    with pytest.raises(DiscoError, match="'runs/a,b' holds a comma"):
        list(collect(["runs/a,b"], Plan("t", tmp_path), progress=lambda *_: None))
