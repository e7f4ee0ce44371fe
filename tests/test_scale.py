"""Work in bounded memory, and by others: the same numbers however the pass is cut and whoever makes it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import disco_eval as de
from disco_eval import AlignmentError, DiscoError, FormatError, Responses, ValidationError, open_responses
from disco_eval.appending import append_models
from disco_eval.resources import SMALLEST, in_bytes, limited, machine_memory, memory_bound, need, shown
from disco_eval.select import passes, sums
from disco_eval.select.disagreement import disagreement
from tests import oracles
from tests.conftest import population


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr("disco_eval.store._CHUNK_BYTES", 2048)
    monkeypatch.setattr("disco_eval.store._SHARD_BYTES", 8192)
    monkeypatch.setattr("disco_eval.resources._BLOCK", 4000)


@pytest.fixture
def stored(tmp_path, small_shards):
    r = population(150, 70)
    r.save(tmp_path / "s.zarr")
    return r, open_responses(tmp_path / "s.zarr")


# ---- memory ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "n"), [("2GB", 2e9), ("500 MB", 5e8), ("1.5g", 1.5e9), ("128MiB", 2**27), (10**9, 1e9), ("1Ti", 2**40)]
)
def test_amounts_of_memory(text, n):
    assert in_bytes(text) == n


@pytest.mark.parametrize("text", ["lots", "-1GB", "", "2 GB of RAM", "1e9", "10kB", "0"])
def test_what_is_no_amount_of_memory_is_refused(text):
    with pytest.raises(ValidationError, match="memory"):
        in_bytes(text)


def test_the_bound_holds_inside_and_is_gone_outside():
    before = memory_bound()
    with limited("1GB"), limited("200MB"), limited(None):
        assert memory_bound() == 2e8
        with pytest.raises(ValidationError, match=r"the table would take 1 GB of memory, more than .* 200 MB: go home"):
            need(10**9, "the table", "go home")
    assert memory_bound() == before
    assert [shown(n) for n in (1.5e9, 999_400, 999_600, 999.6)] == ["1.5 GB", "999 kB", "1 MB", "1 kB"]


def test_the_environment_s_bound_holds_where_no_other_is_given(monkeypatch):
    monkeypatch.setenv("DISCO_MEMORY", "300MB")
    assert memory_bound() == 3e8
    with limited(None):
        assert memory_bound() == 3e8
    with limited("1GB"):
        assert memory_bound() == 1e9
    monkeypatch.setenv("DISCO_MEMORY", "plenty")
    with pytest.raises(ValidationError, match="'plenty' is no amount of memory"):
        memory_bound()
    monkeypatch.delenv("DISCO_MEMORY")
    assert memory_bound() == max(SMALLEST, machine_memory() // 4)


def test_a_store_of_grades_over_the_bound_is_not_loaded(tmp_path, monkeypatch):
    r = population(150, 70, graded=True)
    r.save(tmp_path / "g.zarr")
    lazy = open_responses(tmp_path / "g.zarr")
    taken = 2 * 150 * 70 * lazy.correct.dtype.itemsize
    monkeypatch.setattr("disco_eval.resources.memory_bound", lambda: taken - 1)
    with pytest.raises(ValidationError, match=r"the answers of 150 models to 70 items would take .* .DISCO_MEMORY in"):
        lazy.load()
    np.testing.assert_array_equal(lazy.pick(items=np.arange(69)).correct, r.correct[:, :69])
    monkeypatch.setattr("disco_eval.resources.memory_bound", lambda: taken)
    np.testing.assert_array_equal(lazy.load().correct, r.correct)


def test_what_cannot_work_in_parts_says_so(stored, monkeypatch):
    _, lazy = stored
    monkeypatch.setattr("disco_eval.resources.memory_bound", lambda: 150_000)
    with pytest.raises(ValidationError, match=r"the grades of 150 models on 70 items would take .* choose auto"):
        de.select.sharp(lazy, 10, 0)
    with pytest.raises(ValidationError, match="right choices"):
        de.select.anchor_conf(lazy, 10, 0)
    with pytest.raises(ValidationError, match="--memory"):
        lazy.load()
    monkeypatch.setattr("disco_eval.select.default.LIKENESS", 30)  # 2 MB at any size, but more than all of this
    assert len(de.select.auto(lazy, 1, 0)) == len(de.select.pds(lazy, 1, 0)) == 1


@pytest.mark.parametrize("select", ["auto", "stratified", "uniform", "pds", "jsd"])
def test_a_store_is_condensed_without_ever_being_loaded(stored, select, monkeypatch):
    """Probabilities are taken block by block or for the anchors alone, and the result is that of arrays in memory."""
    r, lazy = stored
    parts_of_it = {} if select == "auto" else {"curve": False, "relatives": False}
    whole = de.condense(r, 10, select=select, rng=0, n_folds=3, **parts_of_it)
    monkeypatch.setattr("disco_eval.condensing.memory_bound", lambda: 400_000)  # half as much again as all of it takes
    largest = []
    from disco_eval.store import StoredArray

    original = StoredArray.take

    def take(self, models, items):
        part = original(self, models, items)
        if part.ndim == 3:
            largest.append(part.size)
        return part

    monkeypatch.setattr(StoredArray, "take", take)
    parts = de.condense(lazy, 10, select=select, rng=0, n_folds=3, **parts_of_it)
    assert max(largest) <= 150 * 10 * 4 < r.probs.size
    np.testing.assert_array_equal(parts.anchors.ids, whole.anchors.ids)
    np.testing.assert_allclose(parts.validation.estimate, whole.validation.estimate, atol=1e-12)


def test_condensing_by_disagreement_reads_the_probabilities_once(stored, monkeypatch):
    _, lazy = stored
    read = []
    original = Responses.block

    def block(self, models, items):
        read.append(self.is_lazy * (models.stop - models.start) * (items.stop - items.start))
        return original(self, models, items)

    monkeypatch.setattr(Responses, "block", block)
    monkeypatch.setattr("disco_eval.condensing.memory_bound", lambda: 400_000)
    de.condense(lazy, 10, select="jsd", predict="direct", rng=0, curve=False)
    assert sum(read) == 150 * 70


def test_a_store_that_fits_easily_is_read_once(stored, monkeypatch):
    from disco_eval.store import StoredArray

    r, lazy = stored
    read, original = [], StoredArray.take

    def take(self, models, items):
        part = original(self, models, items)
        read.append(part.size if part.ndim == 3 else 0)
        return part

    monkeypatch.setattr(StoredArray, "take", take)
    parts = de.condense(lazy, 10, rng=0, n_folds=3)
    assert sum(read) == r.probs.size
    assert parts.estimate(r) == de.condense(r, 10, rng=0, n_folds=3).estimate(r)


# ---- the pass --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("graded", [False, True])
def test_one_pass_equals_the_oracle(tmp_path, small_shards, graded):
    r = population(150, 70, graded=graded, ragged=not graded)
    r.save(tmp_path / "s.zarr")
    outcomes = r.outcomes()
    for responses in (r, open_responses(tmp_path / "s.zarr")):
        pds, jsd = passes.disagreement(responses, "both")
        np.testing.assert_allclose(pds, oracles.pds(outcomes), atol=1e-6)
        np.testing.assert_allclose(jsd, oracles.jsd(outcomes), atol=1e-6)
        np.testing.assert_allclose(responses.scores(), r.scores(), atol=1e-12)


def test_leaving_a_part_out_of_one_pass_equals_a_pass_without_it(stored):
    r, lazy = stored
    part = np.random.default_rng(0).integers(0, 3, 150)
    value = passes.left_out_disagreement(lazy, part, 3, "both")
    for k, members in enumerate([part >= 0, part != 0, part != 1, part != 2]):
        for row, measure in enumerate(("pds", "jsd")):
            alone = disagreement(r.pick(models=members), measure)
            np.testing.assert_allclose(value[k, row], alone, atol=1e-12)


def test_the_bound_on_memory_changes_no_number(stored):
    _, lazy = stored
    wide = passes.disagreement(lazy, "both")
    with pytest.MonkeyPatch.context() as m:
        m.setattr("disco_eval.select.passes.memory_bound", lambda: 8 * 3 * 6 * 4 * 2 * 5)  # five items at a time
        narrow = passes.disagreement(open_responses(lazy.correct._where), "both")
    np.testing.assert_allclose(narrow, wide, atol=1e-13)


def test_half_precision_halves_the_store_and_keeps_three_digits(tmp_path):
    r = population(40, 300)
    r.save(tmp_path / "half.zarr", dtype="float16")
    half = open_responses(tmp_path / "half.zarr")
    assert half.probs.dtype == np.float16
    np.testing.assert_allclose(passes.disagreement(half, "jsd"), passes.disagreement(r, "jsd"), atol=2e-3)
    np.testing.assert_array_equal(half.scores(), r.scores())
    with pytest.raises(ValidationError, match="not as int64"):
        r.save(tmp_path / "x.zarr", dtype=np.int64)


# ---- sums that stay --------------------------------------------------------------------------------------------


def test_kept_sums_grow_with_the_store_and_read_only_what_is_new(tmp_path, small_shards, monkeypatch):
    r = population(60, 50)
    r.pick(models=np.arange(40)).save(tmp_path / "s.zarr")
    first = sums.update(open_responses(tmp_path / "s.zarr"), tmp_path / "sums")
    assert first.n_read == 40
    append_models(r.pick(models=np.arange(40, 60)), tmp_path / "s.zarr")
    read = set()
    original = Responses.block

    def block(self, models, items):
        read.update(self.models.ids[models].tolist())
        return original(self, models, items)

    monkeypatch.setattr(Responses, "block", block)
    second = sums.update(open_responses(tmp_path / "s.zarr"), tmp_path / "sums")
    assert second.n_read == 20
    assert read == set(r.models.ids[40:].tolist())
    again = sums.update(open_responses(tmp_path / "s.zarr"), tmp_path / "sums")
    assert again.n_read == 0
    at_once = passes.disagreement(r, "both")
    for found in (second, again):
        np.testing.assert_allclose([found.pds, found.jsd], at_once, atol=1e-12)


def test_sums_of_something_else_are_refused(tmp_path):
    r = population(30, 50)
    sums.update(r, tmp_path / "sums")
    with pytest.raises(AlignmentError, match="1 models that are not"):
        sums.update(r.pick(models=np.arange(29)), tmp_path / "sums")
    with pytest.raises(AlignmentError, match="other items"):
        sums.update(r.pick(items=np.arange(49)), tmp_path / "sums")
    r.save(tmp_path / "s.zarr")
    with pytest.raises(FormatError, match="no sums"):
        sums.update(r, tmp_path / "s.zarr")
    (file,) = (tmp_path / "sums" / "sum" / "c" / "0").iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)
    with pytest.raises(FormatError, match="damaged"):
        sums.update(r, tmp_path / "sums")


@pytest.mark.parametrize("name", ["max", "sum", "plogp"])
def test_a_lost_file_of_sums_never_reads_as_zeros(tmp_path, name):
    r = population(30, 50)
    sums.update(r.pick(models=np.arange(20)), tmp_path / "sums")
    (file,) = (tmp_path / "sums" / name / "c" / "0").iterdir()
    file.unlink()
    for responses in (r, r.pick(models=np.arange(20))):
        with pytest.raises(FormatError, match=r"kept sums are damaged .a file is missing.; delete"):
            sums.update(responses, tmp_path / "sums")
    with pytest.raises(FormatError, match="kept sums are damaged"):
        sums.read_part(tmp_path / "sums", slice(0, 50))


# ---- elsewhere -------------------------------------------------------------------------------------------------


def test_stores_open_from_urls(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    r = population(40, 60)
    r.save(tmp_path / "s.zarr")
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path / "s.zarr") + "/", "/bucket/s.zarr/", recursive=True)
    there = de.io.open_answers("memory://bucket/s.zarr")
    np.testing.assert_array_equal(there.pick(items=[3, 40]).probs, r.probs[:, [3, 40]])
    np.testing.assert_allclose(passes.disagreement(there, "jsd"), passes.disagreement(r, "jsd"), atol=1e-12)
    with pytest.raises(FormatError, match="not a store"):
        open_responses("memory://bucket/nothing")
    with pytest.raises(DiscoError, match="need: pip install fsspec gcsfs"):
        open_responses("gs://bucket/s.zarr")
    with pytest.raises(DiscoError, match="Protocol not known: nonsense"):
        open_responses("nonsense://bucket/s.zarr")


def test_a_cluster_gives_the_same_numbers_even_when_it_loses_a_worker(tmp_path, small_shards):
    """Two worker processes; one is killed while they condense and study."""
    pytest.importorskip("distributed")
    population(150, 200).save(tmp_path / "s.zarr")
    script = """
import os, signal, sys, threading, time
import numpy as np
import disco_eval as de
from disco_eval.resources import on_cluster
from distributed import Client, LocalCluster

def both(r):
    small = de.condense(r, 12, select="jsd", predict="ridge", rng=0)
    table = de.study(["pds+ridge", "uniform+direct", "auto+auto"], r, "iid", [8, 12], runs=2, rng=0)
    return small, table.table.drop("seconds")

def kill(client, pid):
    while not any(client.processing().values()):
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)

if __name__ == "__main__":
    r = de.open_responses(sys.argv[1])
    here, table = both(r)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        with Client(cluster) as client, on_cluster(cluster.scheduler_address):
            pid = next(iter(client.run(os.getpid).values()))
            threading.Thread(target=kill, args=(client, pid), daemon=True).start()
            there, table_there = both(r)
            assert pid not in client.run(os.getpid).values()
    np.testing.assert_array_equal(here.anchors.ids, there.anchors.ids)
    np.testing.assert_array_equal(here.anchors.criterion, there.anchors.criterion)
    np.testing.assert_allclose(here.validation.estimate, there.validation.estimate, rtol=0, atol=1e-12)
    for name in table.columns:
        a, b = table[name].to_numpy(), table_there[name].to_numpy()
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
        else:
            assert (a == b).all()
    print("the same")
"""
    file = tmp_path / "both.py"
    file.write_text(script)
    done = subprocess.run(
        [sys.executable, str(file), str(tmp_path / "s.zarr")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip().endswith("the same"), done.stderr[-3000:]


def test_nobody_at_the_address(tmp_path):
    pytest.importorskip("distributed")
    from disco_eval.resources import on_cluster

    with pytest.raises(DiscoError, match="no dask scheduler answers at 'nowhere'"), on_cluster("nowhere"):
        pass


def test_the_commands_of_the_page_run(tmp_path):
    """Those of docs/how-to/large.md, on a small benchmark."""
    from disco_eval.io import write_npz
    from tests.test_readme import blocks

    write_npz(population(30, 60), tmp_path / "imagenet.npz")
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for block in blocks("docs/how-to/large.md", "bash"):
        subprocess.run(["bash", "-euc", block], cwd=tmp_path, env=env, check=True, capture_output=True)
    assert open_responses(tmp_path / "imagenet.zarr").probs.dtype == np.float16
