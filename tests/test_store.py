import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

from disco_eval import AlignmentError, DiscoError, FormatError, Items, Responses, open_responses
from disco_eval.appending import append_models, same_items
from disco_eval.files import only_writer
from disco_eval.store import chunking, codecs, seal
from tests.conftest import population


@pytest.mark.parametrize("options", [{}, {"graded": True}, {"ragged": True}])
def test_round_trip(tmp_path, options):
    r = population(20, 50, **options)
    r.save(tmp_path / "s.zarr")
    back = open_responses(tmp_path / "s.zarr")
    assert back.is_lazy
    for axis, fields in {
        "models": ("ids", "family", "base", "revision"),
        "items": ("ids", "subtask", "digest"),
    }.items():
        for field in fields:
            np.testing.assert_array_equal(getattr(getattr(back, axis), field), getattr(getattr(r, axis), field))
    for field in ("weight", "n_choices", "label"):
        np.testing.assert_array_equal(getattr(back.items, field), getattr(r.items, field))
    np.testing.assert_array_equal(back.models.released, r.models.released)
    loaded = back.load()
    assert not loaded.is_lazy
    np.testing.assert_array_equal(loaded.correct, r.correct)
    if r.probs is not None:
        np.testing.assert_array_equal(loaded.probs, r.probs)
    np.testing.assert_allclose(back.scores(), r.scores(), atol=1e-15)
    np.testing.assert_allclose(back.subtask_scores(), r.subtask_scores(), atol=1e-12)


def test_lazy_and_loaded_pick_the_same(tmp_path):
    r = population(20, 50)
    r.save(tmp_path / "s.zarr")
    back = open_responses(tmp_path / "s.zarr")
    rows, columns = [17, 3, 4, 5], [40, 2, 3, 11]
    part = back.pick(models=rows)
    assert part.is_lazy
    np.testing.assert_array_equal(part.pick(items=columns).probs, r.pick(models=rows, items=columns).probs)
    np.testing.assert_array_equal(part.pick(models=[1, 0]).load().probs, r.probs[[3, 17]])


def test_gathering_anchors_reads_only_their_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("disco_eval.store._CHUNK_BYTES", 2048)
    monkeypatch.setattr("disco_eval.store._SHARD_BYTES", 8192)
    r = population(32, 400)
    r.save(tmp_path / "s.zarr")
    read = []
    from zarr.storage import LocalStore

    original = LocalStore.get

    async def get(self, key, prototype, byte_range=None):
        value = await original(self, key, prototype, byte_range)
        if key.startswith("probs/c"):
            read.append(0 if value is None else len(value))
        return value

    monkeypatch.setattr(LocalStore, "get", get)
    part = open_responses(tmp_path / "s.zarr").pick(items=[7, 311])
    np.testing.assert_array_equal(part.probs, r.probs[:, [7, 311]])
    assert 0 < sum(read) < r.probs.nbytes / 5


def test_opening_reads_no_answers(tmp_path, monkeypatch):
    from disco_eval import store

    population().save(tmp_path / "s.zarr")

    def refuse(self, models, items):
        raise AssertionError("answers were read")

    monkeypatch.setattr(store.StoredArray, "take", refuse)
    back = open_responses(tmp_path / "s.zarr")
    assert back.pick(models=[1, 2]).n_models == 2


def test_other_readers_see_named_dimensions(tmp_path):
    population().save(tmp_path / "s.zarr")
    group = zarr.open_group(tmp_path / "s.zarr", mode="r")
    assert group["probs"].metadata.dimension_names == ("model", "item", "choice")
    assert group["correct"].metadata.dimension_names == ("model", "item")
    assert group.attrs["format"] == 1


def test_never_overwrites_unasked_nor_something_else(tmp_path):
    r = population()
    r.save(tmp_path / "s.zarr")
    with pytest.raises(DiscoError, match="exists already"):
        r.save(tmp_path / "s.zarr")
    population(seed=1).save(tmp_path / "s.zarr", overwrite=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(DiscoError, match="something else"):
        r.save(tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "thesis.tex").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine", "s.zarr"]


def test_a_failed_write_leaves_the_old_store(tmp_path, monkeypatch):
    r = population()
    r.save(tmp_path / "s.zarr")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("disco_eval.store._answers", fail)
    with pytest.raises(DiscoError, match="No space left"):
        population(seed=1).save(tmp_path / "s.zarr", overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["s.zarr"]
    np.testing.assert_array_equal(open_responses(tmp_path / "s.zarr").load().probs, r.probs)


def test_a_flipped_byte_of_the_answers_is_found(tmp_path):
    population(64, 300).save(tmp_path / "s.zarr")
    for array in ("correct", "probs"):
        (file,) = [p for p in (tmp_path / "s.zarr" / array).rglob("*") if p.is_file() and p.name != "zarr.json"]
        data = bytearray(file.read_bytes())
        data[len(data) // 3] ^= 0x10
        file.write_bytes(data)
        with pytest.raises(FormatError, match="damaged"):
            open_responses(tmp_path / "s.zarr").load()
        data[len(data) // 3] ^= 0x10
        file.write_bytes(data)
    open_responses(tmp_path / "s.zarr").load()


def test_foreign_and_future_stores_are_refused(tmp_path):
    with pytest.raises(FormatError, match="does not exist"):
        open_responses(tmp_path / "nothing")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FormatError, match="not a store"):
        open_responses(tmp_path / "folder")
    zarr.open_group(tmp_path / "foreign.zarr", mode="w")
    with pytest.raises(FormatError, match="not a store of responses"):
        open_responses(tmp_path / "foreign.zarr")
    population().save(tmp_path / "s.zarr")
    about = tmp_path / "s.zarr" / "zarr.json"
    record = json.loads(about.read_text())
    record["attributes"]["format"] = 99
    about.write_text(json.dumps(record))
    with pytest.raises(FormatError, match="format 99, this version reads 1"):
        open_responses(tmp_path / "s.zarr")


def test_values_written_by_others_are_checked_when_read(tmp_path):
    population().save(tmp_path / "s.zarr")
    group = zarr.open_group(tmp_path / "s.zarr", mode="r+")
    group["probs"][0, 0] = [2.0, 0, 0, 0]
    with pytest.raises(DiscoError, match="sum to 2"):
        open_responses(tmp_path / "s.zarr").load()


@pytest.mark.parametrize("shape", [(1, 1), (424, 14042), (400, 50_000, 1000), (5000, 1000), (60, 1300, 10)])
def test_chunks_tile_shards_and_stay_small(shape):
    chunks, shards = chunking(shape, 2)
    assert all(s % c == 0 for c, s in zip(chunks, shards, strict=True))
    assert np.prod(chunks) * 2 <= 2**19
    assert np.prod(shards) * 2 <= 2**25


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads its memory from /proc, which is Linux's")
def test_opening_a_large_store_takes_no_memory(tmp_path):
    """A store of 10 GB that was never filled opens, and an anchor is read, under a limit of 400 MB of data."""
    path = tmp_path / "large.zarr"
    r = population(2, 3)
    r.save(path)
    n_models, n_items = 250, 10_000
    group = zarr.open_group(path, mode="r+")
    for name, n in {"model": n_models, "item": n_items}.items():
        text = ("family", "base", "released", "revision") if name == "model" else ("subtask", "digest")
        for column in (name, *text):
            values = [f"{name}{i}" for i in range(n)] if column == name else [""] * n
            group.create_array(column, shape=n, dtype=str, overwrite=True, compressors=codecs())[:] = np.array(
                values, dtype=object
            )
    for column, value in {"weight": 1.0, "n_choices": 1000, "label": 0}.items():
        group.create_array(column, data=np.full(n_items, value), overwrite=True, compressors=codecs())
    full = {"correct": (n_models, n_items), "probs": (n_models, n_items, 1000)}
    for name, shape in full.items():
        chunks, shards = chunking(shape, 4)
        group.create_array(
            name,
            shape=shape,
            dtype="f4",
            chunks=chunks,
            shards=shards,
            compressors=codecs(4),
            fill_value=0.001 if name == "probs" else 1.0,
            overwrite=True,
        )
    seal(group, n_models, {})
    script = (
        "import re, disco_eval as de, numpy as np\n"
        "from disco_eval.store import open_responses\n"
        f"r = open_responses({str(path)!r}); assert r.probs.shape == (250, 10000, 1000)\n"
        "assert r.pick(models=range(20), items=[5]).probs.shape == (20, 1, 1000)\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"  # ru_maxrss would be the parent's
    )
    peak = int(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
    assert peak < 400_000  # kilobytes; Python with numpy and zarr is about 100,000


def test_save_of_a_lazy_part(tmp_path):
    r = population(20, 50)
    r.save(tmp_path / "a.zarr")
    open_responses(tmp_path / "a.zarr").pick(models=[5, 1]).save(tmp_path / "b.zarr")
    np.testing.assert_array_equal(open_responses(tmp_path / "b.zarr").load().probs, r.probs[[5, 1]])


def test_blocks_tile_the_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("disco_eval.resources._BLOCK", 4000)
    monkeypatch.setattr("disco_eval.store._CHUNK_BYTES", 2048)
    monkeypatch.setattr("disco_eval.store._SHARD_BYTES", 8192)
    r = population(32, 100)
    r.save(tmp_path / "s.zarr")
    for source in (r, open_responses(tmp_path / "s.zarr"), Responses.from_correct(r.models, r.items, r.correct)):
        seen = np.zeros((32, 100), int)
        for rows, columns, block in source.blocks():
            seen[rows, columns] += 1
            np.testing.assert_array_equal(block, source.load().outcomes()[rows, columns])
        assert (seen == 1).all()


def test_appending_models_equals_writing_them_together(tmp_path):
    r = population(40, 50)
    r.pick(models=np.arange(13)).save(tmp_path / "s.zarr")
    append_models(r.pick(models=np.arange(13, 14)), tmp_path / "s.zarr")
    shuffled = np.random.default_rng(0).permutation(50)
    append_models(r.pick(models=np.arange(14, 40), items=shuffled), tmp_path / "s.zarr")
    back = open_responses(tmp_path / "s.zarr")
    np.testing.assert_array_equal(back.models.ids, r.models.ids)
    np.testing.assert_array_equal(back.models.family, r.models.family)
    np.testing.assert_array_equal(back.models.released, r.models.released)
    np.testing.assert_array_equal(back.load().probs, r.probs)
    np.testing.assert_array_equal(back.load().correct, r.correct)


def test_a_killed_append_leaves_the_store_as_it_was_and_can_be_repeated(tmp_path, monkeypatch):
    r = population(20, 50)
    r.pick(models=np.arange(12)).save(tmp_path / "s.zarr")
    more = r.pick(models=np.arange(12, 20))
    for step in range(1, 12):
        calls = []
        original = zarr.Array.__setitem__

        def dying(self, at, value, calls=calls, step=step, original=original):
            calls.append(1)
            if len(calls) == step:
                raise KeyboardInterrupt
            original(self, at, value)

        with monkeypatch.context() as m:
            m.setattr(zarr.Array, "__setitem__", dying)
            try:
                append_models(more, tmp_path / "s.zarr")
                break
            except KeyboardInterrupt:
                pass
        back = open_responses(tmp_path / "s.zarr").load()
        np.testing.assert_array_equal(back.models.ids, r.models.ids[:12])
        np.testing.assert_array_equal(back.probs, r.probs[:12])
    assert step > 6
    np.testing.assert_array_equal(open_responses(tmp_path / "s.zarr").load().probs, r.probs)


def test_what_does_not_fit_is_not_appended(tmp_path):
    r = population(20, 50)
    r.pick(models=np.arange(12)).save(tmp_path / "s.zarr")
    more = r.pick(models=np.arange(12, 20))
    with pytest.raises(AlignmentError, match="12 models are in"):
        append_models(r, tmp_path / "s.zarr")
    with pytest.raises(AlignmentError, match="1 of 50 items are not in the responses"):
        append_models(more.pick(items=np.arange(49)), tmp_path / "s.zarr")
    there = open_responses(tmp_path / "s.zarr")
    columns = {"n_choices": more.items.n_choices, "label": more.items.label}
    for what, changed in (
        (
            "2 items have another right choice",
            {"label": np.where(np.arange(50) < 2, (more.items.label + 1) % 4, more.items.label)},
        ),
        ("50 items have another subtask", {"subtask": ["x"] * 50}),
        ("items have another weight", {"weight": np.arange(1, 51)}),
    ):
        items = Items(more.items.ids, **{**columns, **changed})
        with pytest.raises(AlignmentError, match=what):
            same_items(Responses.from_probs(more.models, items, more.probs), there, "s.zarr")
    same_items(Responses.from_probs(more.models, Items(more.items.ids, **columns), more.probs), there, "s.zarr")
    other = Items(more.items.ids, digest=["x"] * 50, n_choices=more.items.n_choices, label=more.items.label)
    with pytest.raises(AlignmentError, match="50 items have another prompt"):
        append_models(Responses(more.models, other, more.correct, more.probs), tmp_path / "s.zarr")
    with pytest.raises(AlignmentError, match="cannot be mixed"):
        append_models(Responses.from_correct(more.models, more.items, more.correct), tmp_path / "s.zarr")
    with only_writer(tmp_path / "s.zarr"), pytest.raises(DiscoError, match="another process is writing"):
        append_models(more, tmp_path / "s.zarr")
    assert open_responses(tmp_path / "s.zarr").n_models == 12


@pytest.mark.parametrize("n_models", [-1, 10**12, "many", None, 1.5])
def test_a_wrong_count_of_models_is_refused(tmp_path, n_models):
    population().save(tmp_path / "s.zarr")
    zarr.open_group(tmp_path / "s.zarr", mode="r+").attrs["n_models"] = n_models
    with pytest.raises(FormatError, match="damaged"):
        open_responses(tmp_path / "s.zarr")


def test_models_here_and_there_are_read_right(tmp_path, monkeypatch):
    """Several stretches of models (shards), models out of order, all items or neighbouring ones."""
    monkeypatch.setattr("disco_eval.store._SHARD_BYTES", 2**14)
    monkeypatch.setattr("disco_eval.store._CHUNK_BYTES", 2**12)
    r = population(70, 50)
    r.save(tmp_path / "s.zarr")
    stored = open_responses(tmp_path / "s.zarr")
    assert stored.probs._array.shards[0] < 70
    models = np.random.default_rng(0).permutation(70)[:30]
    for items in (slice(None), slice(10, 20)):
        part = stored.probs.take(models, items)
        np.testing.assert_array_equal(part, r.probs[models][:, items])
    np.testing.assert_array_equal(stored.pick(models=models).scores(), r.pick(models=models).scores())


def test_a_flipped_bit_in_any_description_is_found(tmp_path):
    """In the store's own and in each array's: it opens with the same data, or not at all."""
    r = population(12, 20)
    r.save(tmp_path / "s.zarr")
    rng = np.random.default_rng(0)
    files = sorted((tmp_path / "s.zarr").rglob("zarr.json"))
    assert len(files) > 10
    refused = 0
    for file in files:
        data = file.read_bytes()
        for at in rng.choice(len(data), 25, replace=False):
            broken = bytearray(data)
            broken[at] ^= 1 << int(rng.integers(8))
            file.write_bytes(broken)
            try:
                back = open_responses(tmp_path / "s.zarr").load()
            except DiscoError:
                refused += 1
                continue
            np.testing.assert_array_equal(back.probs, r.probs)
            np.testing.assert_array_equal(back.models.ids, r.models.ids)
            np.testing.assert_array_equal(back.items.label, r.items.label)
            np.testing.assert_array_equal(back.items.weight, r.items.weight)
        file.write_bytes(data)
    assert refused > 15 * len(files)
    open_responses(tmp_path / "s.zarr").load()


def test_a_foreign_zarr_group_is_never_overwritten(tmp_path):
    zarr.open_group(tmp_path / "mine.zarr", mode="w").create_array("x", data=np.arange(3))
    with pytest.raises(DiscoError, match="something else"):
        population().save(tmp_path / "mine.zarr", overwrite=True)
    assert zarr.open_group(tmp_path / "mine.zarr", mode="r")["x"][:].tolist() == [0, 1, 2]
