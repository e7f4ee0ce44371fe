"""The authors' pickle: read right, and nothing in it is ever run."""

import os
import pickle

import numpy as np
import pytest

from disco_eval import DiscoError, FormatError, ValidationError, open_responses
from disco_eval.cli import app
from disco_eval.io import read_authors


def layout(seed=0, protocol_arrays=np.float64):
    """A small file of the authors' layout: newest models first, items x models, padded to 31 choices with -inf."""
    rng = np.random.default_rng(seed)
    models = [f"org/model-{k}" for k in range(12)]
    sizes = {
        "harness_hendrycksTest_anatomy_5": (7, 4), "harness_hendrycksTest_virology_5": (5, 4),
        "harness_hellaswag_10": (9, 4), "harness_winogrande_5": (6, 2), "harness_arc_challenge_25": (8, 5),
    }  # fmt: skip
    data = {}
    for name, (n, c) in sizes.items():
        x = np.full((n, 12, 31), -np.inf, protocol_arrays)
        x[:, :, :c] = rng.normal(size=(n, 12, c))
        if "arc" in name:
            x[::2, :, 4] = -np.inf  # half of its items have four choices
        data[name] = {"correctness": (x.argmax(-1) == 1).astype(float), "predictions": x}
    return {"models": models, "data": data}


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_one_store_for_each_benchmark(tmp_path, protocol):
    content = layout()
    (tmp_path / "m.pickle").write_bytes(pickle.dumps(content, protocol))
    found = read_authors(tmp_path / "m.pickle")
    assert list(found) == ["mmlu", "hellaswag", "winogrande", "arc"]
    mmlu, arc = found["mmlu"], found["arc"]
    assert mmlu.models.ids.tolist() == content["models"]
    assert mmlu.probs.shape == (12, 12, 4)
    np.testing.assert_allclose(mmlu.items.weight, [1 / 7] * 7 + [1 / 5] * 5)
    parts = [content["data"][k]["correctness"].mean(axis=0) for k in mmlu.items.subtasks]
    np.testing.assert_allclose(mmlu.scores(), np.mean(parts, axis=0))
    x = content["data"]["harness_hendrycksTest_virology_5"]["predictions"][2, 3, :4]
    np.testing.assert_allclose(mmlu.probs[3, 9], np.exp(x) / np.exp(x).sum(), rtol=1e-5)
    assert found["winogrande"].max_choices == 2
    assert arc.items.n_choices.tolist() == [4, 5] * 4
    assert (arc.probs[:, ::2, 4] == 0).all()
    same = read_authors(tmp_path / "m.pickle", weights="items")["mmlu"]
    assert same.items.weight.tolist() == [1] * 12
    with pytest.raises(ValidationError, match="not 'none'"):
        read_authors(tmp_path / "m.pickle", weights="none")


class Evil:
    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    ("function", "name"),
    [(os.system, "system"), (eval, "eval"), (exec, "exec"), (getattr, "getattr"), (open, "open"), (np.load, "load")],
)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_a_crafted_pickle_is_refused_before_anything_runs(tmp_path, function, name, protocol):
    trap = tmp_path / "trap"
    content = layout()
    arguments = {"system": (f"touch {trap}",), "open": (str(trap), "w")}.get(name, (f"open({str(trap)!r}, 'w')",))
    content["data"]["x"] = Evil(function, *arguments)
    (tmp_path / "m.pickle").write_bytes(pickle.dumps(content, protocol))
    with pytest.raises(FormatError, match="which is not data"):
        read_authors(tmp_path / "m.pickle")
    assert not trap.exists()


def test_objects_inside_arrays_are_refused(tmp_path):
    content = layout()
    content["data"]["harness_hellaswag_10"]["correctness"] = np.array([Evil(os.system, "true")], dtype=object)
    (tmp_path / "m.pickle").write_bytes(pickle.dumps(content))
    with pytest.raises(FormatError):
        read_authors(tmp_path / "m.pickle")
    content["data"]["harness_hellaswag_10"]["correctness"] = np.array([[1, 2]], dtype=object)
    (tmp_path / "m.pickle").write_bytes(pickle.dumps(content))
    with pytest.raises(FormatError, match="numbers and text alone"):
        read_authors(tmp_path / "m.pickle")


def one_subtask(correctness, predictions):
    return {"models": ["a"], "data": {"x": {"correctness": correctness, "predictions": predictions}}}


def test_other_and_damaged_files_are_refused(tmp_path):
    file = tmp_path / "m.pickle"
    whole = pickle.dumps(layout())
    for content in (b"", b"nonsense", whole[: len(whole) // 2]):
        file.write_bytes(content)
        with pytest.raises(FormatError, match="damaged"):
            read_authors(file)
    for content, message in (
        ([1], "needs 'models' and 'data'"),
        ({"models": ["a"], "data": {}}, "no dict of subtasks"),
        ({"models": ["a"], "data": {"x": {"correctness": 1}}}, "lacks 'correctness' or 'predictions'"),
        (one_subtask(np.ones((2, 3)), np.ones((2, 3, 4))), "expected"),
        (one_subtask(np.ones((2, 1)), np.full((2, 1, 3), -np.inf)), "no log-likelihood at all"),
    ):  # fmt: skip
        file.write_bytes(pickle.dumps(content))
        with pytest.raises(FormatError, match=message):
            read_authors(file)
    with pytest.raises(FormatError, match="cannot be read"):
        read_authors(tmp_path / "absent.pickle")


def test_the_command_writes_one_store_each_and_a_study_reads_them(tmp_path, capsys):
    (tmp_path / "m.pickle").write_bytes(pickle.dumps(layout()))
    app(["import", "authors", str(tmp_path / "m.pickle"), "--out", str(tmp_path / "s")], standalone_mode=False)
    assert sorted(p.name for p in (tmp_path / "s").iterdir()) == [
        "arc.zarr", "hellaswag.zarr", "mmlu.zarr", "winogrande.zarr",
    ]  # fmt: skip
    assert open_responses(tmp_path / "s" / "mmlu.zarr").n_items == 12
    with pytest.raises(DiscoError, match="exists already; choose another name"):  # it has no --add
        app(["import", "authors", str(tmp_path / "m.pickle"), "--out", str(tmp_path / "s")], standalone_mode=False)
    stores = [str(tmp_path / "s" / f"{n}.zarr") for n in ("mmlu", "arc")]
    out = ["--out", str(tmp_path / "o"), "--anchors", "4", "--runs", "2", "--split", "first10"]
    app(["study", *stores, "--methods", "pds+knn,random+direct", *out], standalone_mode=False)
    app(["report", "tables", str(tmp_path / "o")], standalone_mode=False)
    assert "mmlu MAE | mmlu rank | arc MAE | arc rank" in capsys.readouterr().out


def test_big_endian_arrays_are_read_right(tmp_path):
    import io
    import pickle

    from disco_eval.io.plain import _Plain

    array = np.arange(3, dtype=">f8")
    got = _Plain(io.BytesIO(pickle.dumps({"x": array}, protocol=2))).load()
    assert got["x"].tolist() == [0.0, 1.0, 2.0]
