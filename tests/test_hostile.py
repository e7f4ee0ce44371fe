"""Files that people download: they cannot run anything, leave their folder, or exhaust memory, and a short fuzz."""

import json
import pickle
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import zarr

import disco_eval as de
from disco_eval import DiscoError, FormatError, ValidationError, open_responses
from disco_eval.io import read_authors, read_npz, read_table
from disco_eval.io.records import read_json
from disco_eval.resources import limited
from disco_eval.select import sums
from disco_eval.store import codecs, seal
from tests.conftest import population
from tests.fuzz.__main__ import fuzz
from tests.fuzz.corpus import READERS

# inspect's own reader takes long to start; it is part of the full run
SHORT = sorted(set(READERS) - {"inspect"})


@pytest.mark.parametrize("part", range(3))
def test_changed_files_are_read_or_refused(part):
    """The first inputs of ``python -m tests.fuzz``; the full run takes 10,000 for each reader."""
    for name in SHORT[part::3]:
        count, findings = fuzz(name, 30, seed=0)
        assert findings == {}, name
        assert count["ok"] + count["refused"] == 30


@pytest.fixture
def little_memory():
    with limited("100MB"):
        yield


# ---- archives --------------------------------------------------------------------------------------------------


def bomb(path: Path, declared: int | None = None) -> None:
    """An archive whose array of 2 GB of zeros takes 2 MB; ``declared`` bytes is what its directory says it has."""
    header = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118)
    header += b"{'descr': '|i1', 'fortran_order': False, 'shape': (2000000000,), }".ljust(117) + b"\n"
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = bytes(10**7)
    packed = pack.compress(header) + b"".join(pack.compress(block) for _ in range(200)) + pack.flush()
    size = len(header) + 2 * 10**9 if declared is None else declared
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 8, 0, 33, 0, len(packed), size, 10, 0) + b"models.npy"
    central = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 8, 0, 33, 0, len(packed), size, 10, *[0] * 6)[:42]
    central += struct.pack("<I", 0) + b"models.npy"
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(central), len(local) + len(packed), 0)
    path.write_bytes(local + packed + central + end)


def peak_of(code: str, *args: object) -> tuple[str, float]:
    """What a piece of code says on its last line, and its peak memory in GB."""
    script = (
        f"import sys\n{code}\nimport re\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", script, *map(str, args)], capture_output=True, text=True, check=True)
    *_, said, peak = done.stdout.splitlines()
    return said, int(peak) / 1e6


TRIED = """
from disco_eval import DiscoError
from disco_eval.resources import limited
try:
    with limited("200MB"):
        READ(sys.argv[1])
    print("read")
except DiscoError as e:
    print(e)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads its memory from /proc, which is Linux's")
@pytest.mark.parametrize("declared", [None, 1000])
def test_a_zip_bomb_is_refused_before_it_goes_off(tmp_path, declared):
    bomb(tmp_path / "x.npz", declared)
    code = "from disco_eval.io import read_npz as READ" + TRIED
    said, peak = peak_of(code, tmp_path / "x.npz")
    assert ("more than the bound" if declared is None else "not a readable NumPy archive") in said
    assert peak < 0.3


def test_headers_that_promise_what_is_not_there(tmp_path, little_memory):
    def archive(shape: str, kind: str = "<f8") -> Path:
        head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as out:
            out.writestr("models.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head + bytes(80))
        return tmp_path / "x.npz"

    for shape, kind in (("(10**12,)", "<f8"), ("(1000000000000,)", "<f8"), ("(10**9,)", "<U0"), ("(-10,)", "<f8")):
        with pytest.raises(FormatError, match="not a readable NumPy archive"):
            read_npz(archive(shape, kind))
    with pytest.raises(FormatError, match="pickled objects"):
        read_npz(archive("(10,)", "|O"))


# ---- pickles ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"]r\xff\xff\xff\x7f.",  # a place in the memo that would need 32 GB
        b"\x80\x04\x8e" + struct.pack("<Q", 2**40) + b"x.",  # a terabyte of bytes
        b"\x80\x04\x95" + struct.pack("<Q", 2**40) + b"x.",  # a frame as long
        b"\x80\x04}" + b")" + b"\x94\x86".join([b"h\x00" * 0 + b"2"] * 60) + b"Ns.",  # a tuple of 2^60 parts as a key
        b"(" * 10**6 + b".",
        b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"1.",
        b"I" + b"9" * 10**6 + b"\n.",
    ],
)
def test_pickles_that_would_exhaust_memory_or_time(tmp_path, content):
    (tmp_path / "x.pickle").write_bytes(content)
    with pytest.raises(FormatError, match=r"damaged|too often|needs 'models'"):
        read_authors(tmp_path / "x.pickle")


def test_a_tuple_that_holds_itself_a_thousand_times_over(tmp_path):
    """Forty doublings fit into 80 bytes; to hash or show what they mean would take years."""
    nested = (
        b"\x80\x04" + b"N\x85\x94" + b"".join(b"h" + bytes([k]) + b"h" + bytes([k]) + b"\x86\x94" for k in range(60))
    )
    (tmp_path / "x.pickle").write_bytes(nested + b".")
    with pytest.raises(FormatError, match="hold each other too often"):
        read_authors(tmp_path / "x.pickle")


def test_the_state_of_a_type_is_not_taken_on_trust(tmp_path):
    """A pickle could tell numpy that plain numbers are pointers to objects."""

    class Evil:
        def __reduce__(self):
            state = (3, "<", None, None, None, 8, 8, 63)
            return np.dtype, ("f8", False, True), state

    (tmp_path / "x.pickle").write_bytes(pickle.dumps({"models": [], "data": Evil()}))
    with pytest.raises(FormatError, match="a type that no plain array has"):
        read_authors(tmp_path / "x.pickle")


# ---- JSON ------------------------------------------------------------------------------------------------------


def test_deep_and_large_json(tmp_path, little_memory):
    file = tmp_path / "x.json"
    for text in ("[" * 10**6, '{"a":' * 10**6, "9" * 10**5, '"\\ud800', "[" * 10**6 + "]" * 10**6):
        file.write_text(text)
        with pytest.raises(FormatError, match="not readable JSON"):
            read_json(file)
    file.write_bytes(b"[" + b"1," * 10**7 + b"1]")
    with pytest.raises(ValidationError, match="more than the bound"):
        read_json(file)


# ---- tables ----------------------------------------------------------------------------------------------------


def test_a_table_of_a_thousand_million_equal_rows(tmp_path, little_memory):
    import polars as pl

    frame = pl.DataFrame({"model": ["m"], "item": ["i"], "score": [1.0]})
    many = pl.concat([frame] * 1000).select(pl.all().repeat_by(10_000).explode())
    many.write_parquet(tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 10**6
    with pytest.raises(ValidationError, match="more than the bound"):
        read_table(tmp_path / "x.parquet")


# ---- stores and condensations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("item", 10**11, "more than the bound"),
        ("probs", (10**6, 10**6, 10), "more than the bound"),
        ("item", (5, 5), "damaged"),
    ],
)
def test_a_store_whose_arrays_promise_terabytes(tmp_path, name, shape, message):
    """Sealed as an attacker would: every checksum fits."""
    population(6, 5).save(tmp_path / "s.zarr")
    group = zarr.open_group(tmp_path / "s.zarr", mode="r+")
    dtype = str if name == "item" else "f4"
    chunks = shape if name == "probs" else None
    group.create_array(
        name, shape=shape, dtype=dtype, chunks=chunks or "auto", overwrite=True, compressors=codecs(), fill_value=None
    )
    with pytest.MonkeyPatch.context() as m:
        m.setattr("disco_eval.store._content", lambda *_: "")
        seal(group, 6, {})
    with pytest.raises(DiscoError, match=message):
        open_responses(tmp_path / "s.zarr")


def test_a_million_pieces_or_pieces_of_nothing_are_refused(tmp_path):
    """Every piece costs a task and some kilobytes while it is read; one of size 0 would be cut for ever."""
    population(6, 5).save(tmp_path / "s.zarr")
    sums.update(open_responses(tmp_path / "s.zarr"), tmp_path / "sums")
    for folder, name in (("s.zarr", "item"), ("sums", "model")):
        group = zarr.open_group(tmp_path / folder, mode="r+")
        group.create_array(name, shape=10**6, dtype=str, chunks=1, overwrite=True, compressors=codecs())
    with pytest.MonkeyPatch.context() as m:
        m.setattr("disco_eval.store._content", lambda *_: "")
        seal(zarr.open_group(tmp_path / "s.zarr", mode="r+"), 6, {})
    with pytest.raises(DiscoError, match="1000000 small pieces"):
        open_responses(tmp_path / "s.zarr")
    with pytest.raises(DiscoError, match="1000000 small pieces"):
        sums.update(population(6, 5), tmp_path / "sums")
    about = tmp_path / "sums" / "max" / "zarr.json"
    text = json.loads(about.read_text())
    text["chunk_grid"]["configuration"]["chunk_shape"][0] = 0
    about.write_text(json.dumps(text))
    with pytest.raises(DiscoError, match="holds no sums"):
        sums.update(population(6, 5), tmp_path / "sums")


def test_packing_that_hides_any_size_is_refused(tmp_path):
    population(6, 5).save(tmp_path / "s.zarr")
    group = zarr.open_group(tmp_path / "s.zarr", mode="r+")
    array = group.create_array("subtask", shape=5, dtype=str, overwrite=True)  # Zarr's own default is zstd
    array[:] = np.array(["x"] * 5, dtype=object)
    seal(group, 6, {})
    with pytest.raises(FormatError, match="'subtask' is packed by zstd"):
        open_responses(tmp_path / "s.zarr")


@pytest.mark.parametrize(
    "name", ["../../escape", "/etc/passwd", "a/../../b", "..", "<script>alert(1)</script>", "{{7*7}}"]
)
def test_names_cannot_lead_out_of_a_folder(tmp_path, name):
    """A benchmark, its items and models may be called anything: what is made of them stays in the given folder."""
    r = population(24, 12)
    odd = de.Items(
        [f"{name}/{i}" for i in range(12)], subtask=[name] * 12, n_choices=r.items.n_choices, label=r.items.label
    )
    models = de.Models([f"{name}{m}" for m in r.models.ids.tolist()])
    r = de.Responses.from_probs(models, odd, r.probs)
    here = tmp_path / "a" / "b" / "c"
    small = de.condense(r, 4, select="uniform", predict="direct", benchmark=name, rng=0, n_folds=2, curve=False)
    small.save(here / "small")
    study = de.study(["uniform+direct"], {name: r}, "iid", [4], runs=1, rng=0, out=here / "study")
    from disco_eval.report.figures import write_figures
    from disco_eval.report.tables import write_tables

    write_tables(study, here / "report")
    write_figures(study, here / "study", here / "report")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["b"]
    assert [p.name for p in (tmp_path / "a" / "b").iterdir()] == ["c"]
    assert sorted(p.name for p in here.iterdir()) == ["report", "small", "study"]


def test_control_characters_never_reach_the_terminal(tmp_path):
    error = FormatError("model '\x1b[2J\x07' of\nfile \u202e")
    assert str(error) == r"model '\x1b[2J\x07' of file \u202e"
    with pytest.raises(ValidationError, match="printable"):
        de.Models(["a\x1b[2J"])
    (tmp_path / "x.csv").write_text("model,item,score,\x1b[31m\nm,i,2\n")
    with pytest.raises(DiscoError) as caught:
        read_table(tmp_path / "x.csv")
    assert str(caught.value).isprintable()


def test_a_condensation_cannot_name_a_class_of_its_own(tmp_path):
    from tests.fuzz.mutate import _seal_condensations

    made = de.condense(population(24, 12), 4, select="uniform", predict="direct", rng=0, n_folds=2, curve=False)
    made.save(tmp_path / "c")
    about = json.loads((tmp_path / "c" / "condensation.json").read_text())
    for name in ("os.system", "disco_eval.predict.direct.Direct", "__import__", ""):
        about["score_model"]["name"] = name
        (tmp_path / "c" / "condensation.json").write_text(json.dumps(about))
        _seal_condensations(tmp_path)
        with pytest.raises(FormatError, match="score model"):
            de.load(tmp_path / "c")


def test_arrays_that_do_not_fit_together_are_refused_when_loaded(tmp_path):
    """Found by the fuzz: each array is of a kind that its check allows, and yet no score can be made of them."""
    from safetensors.numpy import load_file, save_file

    from tests.fuzz.mutate import _seal_condensations

    made = de.condense(population(24, 12), 4, select="pds", predict="forest", rng=0, n_folds=2, curve=False)
    made.save(tmp_path / "c")
    file = tmp_path / "c" / "arrays.safetensors"
    arrays = load_file(file)
    name = max((n for n in arrays if n.startswith("model.") and arrays[n].ndim == 2), key=lambda n: arrays[n].size)
    save_file({**arrays, name: np.ascontiguousarray(arrays[name][:, :0])}, file)
    _seal_condensations(tmp_path)
    with pytest.raises(FormatError):
        de.load(tmp_path / "c")


@pytest.mark.parametrize("predict", ["forest", "boosting"])
def test_trees_of_longer_signatures_are_refused_when_loaded(tmp_path, predict):
    """Found by the fuzz: trees that look at a number no signature has, on a way that the first source does not go."""
    from safetensors.numpy import load_file, save_file

    from tests.fuzz.mutate import _seal_condensations

    de.condense(population(24, 12), 4, select="pds", predict=predict, rng=0, n_folds=2, curve=False).save(
        tmp_path / "c"
    )
    file = tmp_path / "c" / "arrays.safetensors"
    arrays = load_file(file)
    (name,) = (n for n in arrays if n.endswith("n_features"))
    save_file({**arrays, name: arrays[name] + 1}, file)
    _seal_condensations(tmp_path)
    with pytest.raises(FormatError, match="numbers of a signature"):
        de.load(tmp_path / "c")
