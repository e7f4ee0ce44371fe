"""Whatever happens to a process or a disk, what is there is the old state or the new one. In full: tests/faults.py."""

import asyncio
import errno
import resource
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore

import disco_eval as de
from disco_eval import DiscoError, open_responses
from disco_eval.appending import append_models
from disco_eval.files import new_file, new_folder, only_writer, written
from tests.conftest import population
from tests.faults import COMMANDS, DISCO, torture


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "collect"])  # that one is slow
def test_killed_at_a_random_moment(name):
    torture(name, kills=1, seed=1)


def test_a_second_writer_is_refused_and_a_dead_one_forgotten(tmp_path, caplog):
    r = population(20, 30)
    r.pick(models=np.arange(10)).save(tmp_path / "s.zarr")
    more = r.pick(models=np.arange(10, 20))
    script = (
        "import sys, time; from pathlib import Path; from disco_eval.files import only_writer\n"
        "with only_writer(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "s.zarr")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(DiscoError, match=r"another process is writing to .*s\.zarr'; wait for it"):
            append_models(more, tmp_path / "s.zarr")
        other.kill()
    append_models(more, tmp_path / "s.zarr")
    assert "an earlier write was cut off" in caplog.text
    assert open_responses(tmp_path / "s.zarr").n_models == 20


def test_a_draft_of_a_dead_process_is_found_and_one_of_a_living_process_left_alone(tmp_path, caplog):
    with new_folder(tmp_path / "a", "x") as draft:
        draft.mkdir()
        dead = draft.with_name(draft.name.replace(f"-{draft.name.split('-')[-2]}-", "-999999999-"))
        dead.mkdir()
        with new_folder(tmp_path / "b", "x") as other:
            other.mkdir()
        assert draft.exists()
    with new_folder(tmp_path / "a2", "x") as third:
        third.mkdir()
    with pytest.raises(DiscoError, match="exists already"), new_folder(tmp_path / "a", "x"):
        pass
    assert not dead.exists()
    assert "half-written" in caplog.text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "a2", "b"]


def test_a_folder_moved_aside_by_a_killed_process_is_put_back(tmp_path, monkeypatch, caplog):
    """Where two names cannot be exchanged in one step, there is a moment in which the old folder has another name."""
    r = population(12, 20)
    r.save(tmp_path / "s.zarr")
    monkeypatch.setattr("disco_eval.files._exchange", lambda a, b: False)
    monkeypatch.setattr("disco_eval.files.os.getpid", lambda: 999_999_999)
    original, calls = de.files.os.rename, []

    def dying(a, b):
        calls.append(1)
        if len(calls) > 1:
            raise SystemExit
        original(a, b)

    new = population(12, 20, seed=1)
    with monkeypatch.context() as m:
        m.setattr("disco_eval.files.os.rename", dying)
        m.setattr("disco_eval.files.shutil.rmtree", lambda *a, **k: None)
        with pytest.raises(SystemExit):
            new.save(tmp_path / "s.zarr", overwrite=True)
    assert not (tmp_path / "s.zarr").exists()
    np.testing.assert_array_equal(open_responses(tmp_path / "s.zarr").load().probs, r.probs)
    assert "it is back" in caplog.text


@pytest.mark.parametrize(
    "words",
    [
        ("import", "npz", "r.npz", "--out", "new.zarr"),
        ("import", "lm-eval", "runs", "--out", "some.zarr"),
        ("condense", "s.zarr", "--out", "c", "--anchors", "10", "--overwrite"),
        ("study", "s.zarr", "--methods", "uniform+direct,pds+ridge", "--runs", "1", "--out", "study"),
        ("info", "s.zarr", "--disagreement", "sums"),
    ],
)
def test_a_full_disk_is_one_clear_line_and_leaves_what_was_there(tmp_path, words):
    """No file may grow beyond 4 kB: what a full disk does, without filling one."""
    from disco_eval.io import write_npz
    from tests.faults import half

    r = population(30, 400)
    if words[1] == "lm-eval":
        half(tmp_path)
        (tmp_path / "s.zarr").rename(tmp_path / "some.zarr")
    r.save(tmp_path / "s.zarr")
    write_npz(r, tmp_path / "r.npz")
    if words[0] == "condense":
        de.condense(r, 8, select="uniform", predict="direct", rng=0, n_folds=2, curve=False).save(tmp_path / "c")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    done = subprocess.run(
        [DISCO, *words], cwd=tmp_path, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("disco: ")
    assert "could not be written (File too large)" in line
    if words[1] == "lm-eval":
        assert open_responses(tmp_path / "some.zarr").load().n_models == 7
    else:
        after = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file() and "study/parts" not in str(p)}
        assert after == before


def test_what_cannot_be_written_or_locked_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    with pytest.raises(DiscoError, match="cannot be made"), new_file(tmp_path / "file" / "below"):
        pass
    with pytest.raises(DiscoError, match=r"written \(No space left on device\)"), new_file(tmp_path / "a"):
        raise OSError(errno.ENOSPC, "No space left on device")
    import fcntl

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(DiscoError, match="cannot be locked"), only_writer(tmp_path):
        pass
    assert sorted(p.name for p in tmp_path.iterdir()) == [".writing", "file"]


@pytest.mark.parametrize("name", ["x.npz", "x.csv", "x.parquet", "x.jsonl", "x.zarr"])
def test_what_cannot_be_read_is_one_clear_line(tmp_path, name):
    """A folder where a file is expected, as unreadable as one without permission."""
    (tmp_path / name).mkdir()
    done = subprocess.run([DISCO, "info", name], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_failed_write_is_over_before_its_folder_is_given_back(tmp_path, monkeypatch):
    """Zarr writes chunks side by side: the others are still under way when one of them fails."""
    original, late = LocalStore.set, []

    async def set_(self, key, value, *more):
        if "probs/c" not in key:
            return await original(self, key, value, *more)
        if not late:
            late.append("failed")
            raise OSError(errno.ENOSPC, "No space left on device")
        await asyncio.sleep(0.3)
        await original(self, key, value, *more)
        late.append(key)

    monkeypatch.setattr(LocalStore, "set", set_)

    def fill():
        with new_folder(tmp_path / "s.zarr", "zarr.json") as draft:
            group = zarr.open_group(str(draft), mode="w", zarr_format=3)
            group.create_array("probs", shape=(8,), chunks=(1,), dtype="f8")[:] = np.ones(8)

    with pytest.raises(DiscoError, match="No space left"):
        fill()
    assert len(late) == 8, "the others were not under way"
    assert list(tmp_path.iterdir()) == []


def on_zarrs_loop(work):
    """A coroutine begun on the loop on which Zarr reads and writes."""
    zarr.open_group({}, mode="w")  # the loop runs from the first use on
    return asyncio.run_coroutine_threadsafe(work, zarr.core.sync.loop[0])


def fail(target):
    with pytest.raises(DiscoError, match="No space left"), written(target):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_what_a_task_under_way_begins_is_waited_for_too(tmp_path):
    ended = []

    async def child():
        await asyncio.sleep(0.2)
        ended.append("child")

    async def parent():
        await asyncio.sleep(0.1)
        parent.child = asyncio.create_task(child())
        raise OSError("this one fails too")

    on_zarrs_loop(parent())
    fail(tmp_path / "s")
    assert ended == ["child"]


def test_two_threads_that_fail_at_once_do_not_wait_for_each_other(tmp_path):
    both = threading.Barrier(2)

    def one(name):
        both.wait()
        fail(tmp_path / name)

    on_zarrs_loop(asyncio.sleep(0)).result()
    for _ in range(50):
        threads = [threading.Thread(target=one, args=(name,), daemon=True) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=20)
            assert not thread.is_alive()


def test_what_stalls_does_not_hold_a_failure_up(tmp_path, monkeypatch):
    monkeypatch.setattr("disco_eval.files._SETTLE_S", 0.2)
    stalled = on_zarrs_loop(asyncio.sleep(60))
    started = time.monotonic()
    fail(tmp_path / "s")
    assert time.monotonic() - started < 10
    stalled.cancel()
