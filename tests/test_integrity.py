"""What `disco check` finds: every flipped byte and every lost file, by name, or nothing because nothing changed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import disco_eval as de
from disco_eval import DiscoError, FormatError, Responses, open_responses
from disco_eval.integrity import CONDENSED, ZOO, check
from disco_eval.select import sums
from disco_eval.studies.predictions import FILE as PREDICTIONS
from tests.conftest import population
from tests.schemas import check as matches


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """One of each kind of folder, and what reading all of it gives."""
    folder = tmp_path_factory.mktemp("kinds")
    r = population(40, 60)
    with pytest.MonkeyPatch.context() as m:
        m.setattr("disco_eval.store._CHUNK_BYTES", 2048)
        m.setattr("disco_eval.store._SHARD_BYTES", 8192)
        r.save(folder / "store")
    de.condense(r, 8, select="uniform", predict="ridge", rng=0, n_folds=2, curve=False).save(folder / "condensation")
    de.study(["uniform+direct"], r, "iid", [8], runs=2, rng=0, out=folder / "study")
    sums.update(r, folder / "sums")
    return folder


def content(kind: str, path: Path) -> list:
    """Everything that users get from a folder, as comparable values."""
    if kind == "store":
        r = open_responses(path).load()
        columns = [r.models.ids, r.models.family, r.models.base, r.models.released.astype(str), r.models.revision]
        columns += [r.items.ids, r.items.subtask, r.items.digest, r.items.weight, r.items.n_choices, r.items.label]
        return [c.tolist() for c in (*columns, r.correct, r.probs)]
    if kind == "condensation":
        small = de.load(path)
        return [small.anchors.ids.tolist(), [str(e) for e in small.estimate(small.sources)]]
    if kind == "study":
        return [de.read_predictions(path).table.to_dicts()]
    found = sums.update(population(40, 60), path)
    return [found.pds.tolist(), found.jsd.tolist()]


@pytest.mark.parametrize("kind", ["store", "condensation", "study", "sums"])
def test_what_is_whole_is_whole(kinds, kind):
    found = check(kinds / kind)
    assert found.kind.startswith(kind)
    assert (found.damage, found.notes) == ([], [])
    assert found.parts >= {"store": 10, "condensation": 4, "study": 6, "sums": 1}[kind]


@pytest.mark.parametrize("kind", ["store", "condensation", "study", "sums"])
def test_a_flipped_byte_in_any_file_is_found_or_harmless(kinds, kind):
    """Several bytes of every file: `check` names the damage, or reading gives exactly what it gave."""
    rng = np.random.default_rng(0)
    before, n_found = content(kind, kinds / kind), 0
    for file in sorted(p for p in (kinds / kind).rglob("*") if p.is_file()):
        data = file.read_bytes()
        for at in rng.choice(len(data), min(len(data), 2), replace=False).tolist():
            broken = bytearray(data)
            broken[at] ^= 1 << int(rng.integers(8))
            file.write_bytes(broken)
            try:
                if check(kinds / kind).damage:
                    n_found += 1
                    continue
            except FormatError:  # it is no longer seen what this was
                n_found += 1
                continue
            finally:
                if kind == "sums":
                    file.write_bytes(data)
            assert content(kind, kinds / kind) == before, f"{file}, byte {at}"
        file.write_bytes(data)
    assert n_found >= 5
    assert check(kinds / kind).damage == []


@pytest.mark.parametrize("kind", ["store", "condensation", "study", "sums"])
def test_a_lost_file_is_found(kinds, kind):
    before = content(kind, kinds / kind)
    files = sorted(p for p in (kinds / kind).rglob("*") if p.is_file())
    for file in files:
        if file.name == "README.md" or file.parent.name == "parts":
            continue  # a condensation loads without its card; a study's parts may be deleted
        data = file.read_bytes()
        file.unlink()
        try:
            found = check(kinds / kind).damage
        except FormatError as e:
            found = [str(e)]
        assert found, file
        file.write_bytes(data)
    assert content(kind, kinds / kind) == before


def test_damage_is_named_with_models_items_and_file(kinds):
    (file,) = (kinds / "store" / "probs" / "c" / "1" / "2").iterdir()
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    r = open_responses(kinds / "store")
    (line,) = check(kinds / "store").damage
    file.write_bytes(data)
    height, width = r.probs.shard
    assert line.startswith(f"probs, models '{r.models.ids[height]}' to ")
    assert f"items '{r.items.ids[2 * width]}' to " in line
    assert "(file probs/c/1/2/0)" in line


def test_a_lost_file_of_grades_never_reads_as_wrong_answers(tmp_path):
    r = population(20, 30, graded=True)
    zeros = Responses.from_correct(r.models, r.items, np.zeros((20, 30)))
    zeros.save(tmp_path / "s.zarr")
    np.testing.assert_array_equal(open_responses(tmp_path / "s.zarr").load().correct, 0)
    next(p for p in (tmp_path / "s.zarr" / "correct" / "c").rglob("*") if p.is_file()).unlink()
    with pytest.raises(FormatError, match="a file of its array 'correct' is lost"):
        open_responses(tmp_path / "s.zarr").scores()


def test_a_damaged_part_of_a_study_is_made_again(tmp_path):
    r = population(40, 60)

    def run():
        return de.study(["uniform+direct", "pds+ridge"], r, "iid", [8], runs=2, rng=0, out=tmp_path / "s")

    first = run().table
    for part in (tmp_path / "s" / "parts").iterdir():
        data = bytearray(part.read_bytes())
        data[len(data) // 3] ^= 1
        part.write_bytes(data)
    assert run().table.drop("seconds").equals(first.drop("seconds"))
    assert check(tmp_path / "s").damage == []


def test_the_command(kinds):
    disco = Path(sys.executable).parent / "disco"
    done = subprocess.run([disco, "check", kinds / "store", "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["damage"] == []
    matches(("check", "--json"), done.stdout)
    file = kinds / "condensation" / "README.md"
    text = file.read_text()
    file.write_text(text + "!")
    done = subprocess.run([disco, "check", kinds / "condensation"], capture_output=True, text=True, check=False)
    file.write_text(text)
    assert done.returncode == 2
    assert done.stdout.startswith("damaged: ")
    assert "README.md" in done.stdout
    assert done.stderr.startswith("disco: 1 of 4 parts of ")
    with pytest.raises(DiscoError, match="is no store, condensation, study"):
        check(kinds)


def test_a_study_that_was_cut_off_is_not_called_lost(tmp_path):
    (tmp_path / "parts").mkdir()
    with pytest.raises(FormatError, match="cut off; the same 'disco study' again goes on"):
        check(tmp_path)


def test_a_demo_is_whole_until_one_of_its_parts_is_not(kinds, tmp_path):
    demo = tmp_path / "demo"
    shutil.copytree(kinds / "store", demo / ZOO)
    shutil.copytree(kinds / "condensation", demo / CONDENSED)
    shutil.copy(kinds / "study" / PREDICTIONS, demo)
    found = check(demo)
    assert (found.kind, found.damage) == ("demo", [])
    shutil.rmtree(demo / ZOO)
    (demo / PREDICTIONS).write_bytes(b"")
    assert len(check(demo).damage) == 2


def test_nothing_is_written_to_a_folder_that_looks_like_a_bucket(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for out in ("s3://bucket/mine.zarr", Path("s3://bucket/mine.zarr")):
        with pytest.raises(DiscoError, match="URLs are only read"):
            population(12, 20).save(out)
        with pytest.raises(DiscoError, match="URLs are only read"):
            de.study(["uniform+direct"], population(12, 20), "iid", [8], runs=1, rng=0, out=out)
    assert list(tmp_path.iterdir()) == []
