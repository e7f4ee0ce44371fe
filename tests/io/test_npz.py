import io
import zipfile

import numpy as np
import pytest

from disco_eval import DiscoError, FormatError, ValidationError
from disco_eval.io import read_npz, write_npz
from tests.conftest import population


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


BASE = {"models": np.array(["a", "b"]), "items": np.array(["x", "y", "z"])}


@pytest.mark.parametrize("options", [{}, {"graded": True}, {"ragged": True}])
def test_round_trip(tmp_path, options):
    r = population(**options)
    write_npz(r, tmp_path / "r.npz")
    back = read_npz(tmp_path / "r.npz")
    np.testing.assert_array_equal(back.correct, r.correct)
    if r.probs is not None:
        np.testing.assert_array_equal(back.probs, r.probs)
        np.testing.assert_array_equal(back.items.label, r.items.label)
    for name in ("ids", "subtask", "weight", "digest", "n_choices"):
        np.testing.assert_array_equal(getattr(back.items, name), getattr(r.items, name))
    for name in ("ids", "family", "base", "released"):
        np.testing.assert_array_equal(getattr(back.models, name), getattr(r.models, name))


def test_layouts(tmp_path):
    ll = np.log([[[0.2, 0.8]] * 3] * 2)
    r = read_npz(save(tmp_path / "a.npz", **BASE, loglikelihoods=ll, labels=[1, 1, 0]))
    np.testing.assert_allclose(r.probs, np.exp(ll), atol=1e-6)
    assert r.correct.tolist() == [[1, 1, 0]] * 2
    r = read_npz(save(tmp_path / "b.npz", **BASE, correct=[[True, False, True]] * 2, released=["2024-01-01", ""]))
    assert r.correct.tolist() == [[1, 0, 1]] * 2
    assert np.isnat(r.models.released[1])
    r = read_npz(save(tmp_path / "c.npz", **BASE, probs=np.exp(ll), labels=[1, 1, 0], correct=[[0, 0, 0]] * 2))
    assert r.scores().tolist() == [0, 0]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"items": BASE["items"], "correct": np.zeros((2, 3))}, "no array 'models'; it has items, correct"),
        ({**BASE}, "none of probs, loglikelihoods, correct"),
        ({**BASE, "probs": np.full((2, 3, 2), 0.5)}, "labels"),
        (
            {**BASE, "probs": np.full((2, 3, 2), 0.5), "loglikelihoods": np.zeros((2, 3, 2))},
            "both probs and loglikelihoods",
        ),
        ({**BASE, "correct": np.zeros((3, 2))}, r"shape \(3, 2\), expected \(2, 3\)"),
        ({**BASE, "correct": np.full((2, 3), np.nan)}, "model 'a', item 'x' is nan"),
        ({"models": ["a", "a"], "items": BASE["items"], "correct": np.zeros((2, 3))}, "these repeat: a"),
        ({**BASE, "probs": np.full((2, 3, 2), 0.7), "labels": [0, 0, 0]}, "sum to 1.4"),
        ({**BASE, "probs": np.full((2, 3, 2), 0.5), "labels": [0, 2, 0]}, "label of item 'y' is 2"),
        ({**BASE, "correct": np.zeros((2, 3)), "weight": [1, 2]}, "weight has shape"),
    ],
)
def test_bad_archives_say_what_and_where(tmp_path, arrays, message):
    with pytest.raises(DiscoError, match=message):
        read_npz(save(tmp_path / "x.npz", **arrays))


def test_foreign_and_truncated_files(tmp_path):
    path = tmp_path / "x.npz"
    with pytest.raises(FormatError, match="does not exist"):
        read_npz(path)
    path.write_text("hello")
    with pytest.raises(FormatError, match="not a readable NumPy archive"):
        read_npz(path)
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(FormatError, match="single array"):
        read_npz(tmp_path / "one.npy")
    write_npz(population(), path)
    data = path.read_bytes()
    for n in (0, 100, len(data) // 2, len(data) - 30):
        path.write_bytes(data[:n])
        with pytest.raises(FormatError):
            read_npz(path)


def test_flipped_bytes_never_pass_unseen(tmp_path):
    path = tmp_path / "x.npz"
    r = population()
    write_npz(r, path)
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.choice(len(data), 150, replace=False):
        broken = bytearray(data)
        broken[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        try:
            back = read_npz(path)
        except DiscoError:
            continue
        np.testing.assert_array_equal(back.correct, r.correct)  # a flip in zip metadata that means nothing


def test_pickles_are_refused_before_they_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "boom"), "w"))

    raw = io.BytesIO()
    np.save(raw, np.array([Bomb()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("models.npy", raw.getvalue())
    with pytest.raises(FormatError, match="pickled objects"):
        read_npz(tmp_path / "x.npz")
    assert not (tmp_path / "boom").exists()


def test_ids_are_checked(tmp_path):
    with pytest.raises(ValidationError, match="printable"):
        read_npz(save(tmp_path / "x.npz", models=["a", "b\n"], items=BASE["items"], correct=np.zeros((2, 3))))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("weights", "weight"), ("subtasks", "subtask"), ("families", "family"), ("WEIGHT", "weight"),
        ("base", "base_model"), ("bases", "base_model"), ("base_models", "base_model"),
    ],
)  # fmt: skip
def test_a_name_that_is_nearly_one_is_not_passed_over(tmp_path, name, meant):
    grades = np.ones((2, 3))
    arrays = {"models": ["a", "b"], "items": ["x", "y", "z"], "correct": grades, name: ["1", "2", "3"]}
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(FormatError, match=f"an array '{name}', which is not known; did you mean '{meant}'"):
        read_npz(tmp_path / "a.npz")
    right = [1, 1, 1] if meant == "weight" else ["a", "a", "a"][: 2 if meant in ("family", "base_model") else 3]
    np.savez(tmp_path / "b.npz", **arrays, **{meant: right})
    assert read_npz(tmp_path / "b.npz").n_items == 3  # where the right one is there, the other is another thing
    np.savez(tmp_path / "c.npz", **{k: v for k, v in arrays.items() if k != name}, notes=["anything"])
    assert read_npz(tmp_path / "c.npz").n_items == 3
