import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from disco_eval import DiscoError, FormatError, Items, Responses, condense, load
from disco_eval.artifact import ARRAYS, CARD, JSON
from disco_eval.files import checksum_of
from tests.conftest import population
from tests.formats.make import in_parts


@pytest.fixture(scope="module")
def condensation():
    return condense(population(), 12, select="jsd", predict="forest", rng=0, benchmark="toy")


@pytest.fixture
def saved(condensation, tmp_path) -> Path:
    condensation.save(tmp_path / "toy-12")
    return tmp_path / "toy-12"


@pytest.mark.parametrize("options", [{}, {"graded": True}, {"ragged": True}])
@pytest.mark.parametrize("predict", ["forest", "knn", "direct", "boosting"])
def test_saved_and_loaded_estimate_the_same_bit_for_bit(tmp_path, options, predict):
    r = population(**options)
    c = condense(r, 12, select="jsd", predict=predict, rng=0, n_folds=2)
    c.save(tmp_path / "c")
    back = load(tmp_path / "c")
    assert back.estimate(r) == c.estimate(r)
    assert back.provenance == json.loads(json.dumps(c.provenance))
    for name in ("ids", "positions", "weights", "criterion"):
        np.testing.assert_array_equal(getattr(back.anchors, name), getattr(c.anchors, name))
    np.testing.assert_array_equal(back.sources.models.ids, c.sources.models.ids)
    assert back.validation.mae == c.validation.mae
    back.save(tmp_path / "again")
    assert (tmp_path / "again" / ARRAYS).read_bytes() == (tmp_path / "c" / ARRAYS).read_bytes()


def test_a_flipped_byte_in_any_file_is_an_error(saved):
    load(saved)
    rng = np.random.default_rng(0)
    for file in sorted(saved.iterdir()):
        data = file.read_bytes()
        for at in rng.choice(len(data), 40, replace=False):
            broken = bytearray(data)
            broken[at] ^= 1 << int(rng.integers(8))
            file.write_bytes(broken)
            with pytest.raises(FormatError):
                load(saved)
        file.write_bytes(data)
    load(saved)


def test_a_truncated_or_missing_file_is_an_error(saved):
    for name in (JSON, ARRAYS):
        data = (saved / name).read_bytes()
        for n in (0, 10, len(data) // 2):
            (saved / name).write_bytes(data[:n])
            with pytest.raises(FormatError, match=name):
                load(saved)
        (saved / name).unlink()
        with pytest.raises(FormatError):
            load(saved)
        (saved / name).write_bytes(data)
    (saved / CARD).unlink()
    load(saved)  # the card is for people


def rewritten(folder: Path, **changes):
    """The description with some fields changed and a checksum that fits, as a hostile author would make it."""
    about = json.loads((folder / JSON).read_text())
    about.update(changes)
    about["checksum"] = checksum_of(about)
    (folder / JSON).write_text(json.dumps(about))


ERRORS = {"direct_mae": 0.1, "grouped_by": "none", "n_folds": 5, "near": 0.3, "cautious": True, "n_more": 0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "a cake"}, "does not describe a condensation"),
        ({"format": 99}, "written by a newer version; update disco-eval .format 99; this version reads 1 to 16"),
        ({"format": "x"}, "in no known"),
        ({"format": True}, "in no known"),
        ({"benchmark": 7}, "benchmark"),
        ({"items": {"ids": ["a"], "subtask": [""], "digest": [""]}}, "shape"),
        ({"items": {"ids": ["a", 3], "subtask": [""], "digest": [""]}}, "ids"),
        ({"score_model": {"name": "os.system", "config": {}}}, "score model 'os.system' is not known"),
        ({"score_model": {"name": "signature", "config": {}}}, "cannot be restored"),
        ({"validation": []}, "validation"),
        ({"validation": {**ERRORS, "near": 0.0}}, "near=0.0, expected a"),
        (
            {"validation": {**ERRORS, "grouped_by": "sign"}},
            "grouped_by='sign', expected one of none, family, base, answers",
        ),
        ({"validation": ERRORS}, "trusts_kin='None'"),
        ({"validation": {**ERRORS, "n_more": -1}}, "n_more=-1, expected a whole number from 0 to"),
        ({"sources": {}}, "sources|released"),
    ],
)
def test_descriptions_are_audited(saved, changes, message):
    rewritten(saved, **changes)
    with pytest.raises(FormatError, match=message):
        load(saved)


def test_anchors_cannot_weigh_more_than_all_items(saved):
    about = json.loads((saved / JSON).read_text())
    least = float(load(saved).items.weight.sum())
    rewritten(saved, total_weight=least)  # all of it would be anchors
    load(saved)
    for total in (0.99 * least, 0.0, -1.0, float("inf")):
        rewritten(saved, total_weight=total)
        with pytest.raises(FormatError, match="total_weight="):
            load(saved)
    rewritten(saved, total_weight=about["total_weight"])
    load(saved)


def test_what_random_items_the_errors_are_held_against_is_audited(saved):
    checked = json.loads((saved / JSON).read_text())["validation"]
    assert checked["direct_items"] == 12
    for n in (0.5, -3.0, float("inf"), "12", 1e13):
        rewritten(saved, validation={**checked, "direct_items": n})
        with pytest.raises(FormatError, match="direct_items="):
            load(saved)
    del checked["direct_items"]
    rewritten(saved, validation=checked)
    assert load(saved).validation.against(12) == "as many random items"


def test_something_else_is_refused(tmp_path):
    with pytest.raises(FormatError, match="is not a condensation"):
        load(tmp_path / "nothing")
    (tmp_path / JSON).write_text("[" * 100_000)
    with pytest.raises(FormatError, match="not readable JSON"):
        load(tmp_path)


def test_saving_never_overwrites_unasked(condensation, saved):
    with pytest.raises(DiscoError, match="exists already"):
        condensation.save(saved)
    condensation.save(saved, overwrite=True)
    (saved.parent / "mine").mkdir()
    with pytest.raises(DiscoError, match="something else"):
        condensation.save(saved.parent / "mine", overwrite=True)
    assert sorted(p.name for p in saved.parent.iterdir()) == ["mine", "toy-12"]


def test_the_card_says_what_it_is_how_it_was_made_and_what_error_to_expect(condensation, saved):
    card = (saved / CARD).read_text()
    v = condensation.validation
    for text in (
        "# toy, condensed to 12 items",
        "all 60",
        "| anchors | 12, by jsd |",
        "| prediction | forest",
        f"**{100 * v.mae:.2f} points**",
        "24, scores",
    ):
        assert text in card, text
    assert f"| 90 % | {100 * v.half_width(0.9):.1f} points |" in card


def within_what_is_possible(c, answers, saved):
    """Saved (score, low, high) by model, the ends cut off where the answers rule out more, as since format 13."""
    if c.reserve is None:
        return saved
    shares = c.reserve.shares[: len(c.items)]
    earned = dict(zip(answers.models.ids.tolist(), answers.align(c.items.ids).grades() @ shares, strict=True))
    return {
        name: [score, max(low, earned[name] - 1e-9), min(high, earned[name] + 1 - shares.sum() + 1e-9)]
        for name, (score, low, high) in saved.items()
    }


def test_formats_of_every_release_still_load():
    """tests/formats holds one condensation per format, with the estimates and intervals that it gave."""
    folders = sorted((Path(__file__).parent / "formats").glob("condensation-*"))
    assert folders
    for folder in folders:
        for name, answers in (("toy", population()), ("parts", in_parts())):  # parts from format 11 on
            if (folder / name).exists():
                c, numbers = load(folder / name), "estimates" if name == "toy" else "parts"
                saved = json.loads((folder / f"{numbers}.json").read_text())
                expected = within_what_is_possible(c, answers, saved)
                for e in c.estimate(answers):
                    assert [e.score, e.low, e.high] == pytest.approx(expected[e.model], abs=1e-12)


def of_every_format() -> list[Path]:
    return sorted(file.parent for file in (Path(__file__).parent / "formats").glob("*/*/condensation.json"))


@pytest.mark.parametrize("folder", of_every_format(), ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_formats_of_every_release_are_saved_again_without_loss(tmp_path, folder):
    c = load(folder)
    c.save(tmp_path / "c")
    back = load(tmp_path / "c")
    assert back.estimate(c.sources) == c.estimate(c.sources)
    back.save(tmp_path / "again")
    assert (tmp_path / "again" / ARRAYS).read_bytes() == (tmp_path / "c" / ARRAYS).read_bytes()


def test_what_an_early_13_wrote_of_older_ones_loads(tmp_path):
    """It knew nothing of what subtasks of sources left out alone came to, and wrote that without columns."""
    c = load(Path(__file__).parent / "formats" / "condensation-12" / "toy")
    nothing = np.zeros((c.sources.n_models, 0))
    relatives = replace(c.validation.relatives, subtask_error=nothing, subtask_left=nothing)
    replace(c, validation=replace(c.validation, relatives=relatives)).save(tmp_path / "c")
    assert load(tmp_path / "c").estimate(c.sources) == c.estimate(c.sources)


@pytest.mark.parametrize("predict", ["auto", "gp", "ridge", "knn"])
@pytest.mark.parametrize("graded", [True, False])
def test_many_models_come_back_bit_for_bit(tmp_path, predict, graded):
    r = population(200, 150, graded=graded)
    c = condense(r.pick(models=np.arange(160)), 40, select="auto", predict=predict, rng=0, n_folds=2)
    c.save(tmp_path / "c")
    assert load(tmp_path / "c").estimate(r) == c.estimate(r)


def test_further_items_say_the_same_bit_for_bit_after_loading(tmp_path):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        of, skill = rng.integers(3, size=117), rng.normal(0, 1, (42, 3))
        level = 1 / (1 + np.exp(rng.normal(0, 1.3, 117) - rng.normal(0, 1, (42, 1)) - skill[:, of]))
        grades = np.clip(level + rng.normal(0, 0.1, level.shape), 0, 1)
        items = Items([f"i{j:03d}" for j in range(117)], subtask=[f"s{k}" for k in of], weight=1 / np.bincount(of)[of])
        r = Responses.from_correct([f"m{i:02d}" for i in range(42)], items, grades)
        c = condense(r.pick(models=np.arange(36)), 39, rng=0, n_folds=2, curve=False)
        c.save(tmp_path / f"{seed}")
        for more in (0, 4, 20):
            assert load(tmp_path / f"{seed}").estimate(r, more=more) == c.estimate(r, more=more)


def test_options_that_numpy_counted_are_saved_as_plain_numbers(tmp_path):
    made = {"predict": "knn", "select": "pds", "n_folds": 2, "curve": False}
    counted = {
        "select_options": {"committee_size": np.int64(8)},
        "predict_options": {"k": np.int64(3), "parts": "correct"},
    }
    c = condense(population(), 12, rng=np.int64(3), **counted, **made)
    c.save(tmp_path / "c")
    back = load(tmp_path / "c")
    plain = {"select_options": {"committee_size": 8}, "predict_options": {"k": 3, "parts": ["correct"]}}
    same = condense(population(), 12, rng=3, **plain, **made)
    assert back.provenance["seed"] == 3
    assert back.estimate(population()) == same.estimate(population())
