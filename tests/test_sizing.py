"""As many anchors as a wanted error takes."""

import json
from dataclasses import replace

import numpy as np
import pytest

from disco_eval import Responses, ValidationError, condense, load
from disco_eval.card import card
from disco_eval.io import write_npz
from disco_eval.report.condensed import condensation_page
from disco_eval.sizing import enough_anchors, missed_by
from tests.cli.test_cli import disco
from tests.conftest import population


def falling(power, scale=0.2):
    """The error falls by a power of the number of anchors; what was measured is noted."""
    asked = []

    def measure(n):
        asked.append(n)
        return scale * n**-power, 0.001

    return measure, asked


@pytest.mark.parametrize("power", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("error", [0.03, 0.012])
def test_the_number_is_the_one_at_which_the_error_is_reached(power, error):
    measure, asked = falling(power)
    n, tried = enough_anchors(error, 10**9, measure)
    assert 0.2 * n**-power <= error < 0.2 * (n - 1) ** -power or n == 10
    assert asked == [10 * 2**k for k in range(len(asked))] == tried[:, 0].tolist()
    assert (tried[:-1, 1] > error).all()
    assert tried[-1, 1] <= error
    assert (tried[:, 2] == 0.001).all()


def test_the_least_is_ten_and_the_most_is_tried_too():
    measure, asked = falling(0.5)
    assert enough_anchors(0.5, 1000, measure)[0] == 10
    assert enough_anchors(0.5, 7, measure)[0] == 7
    del asked[:]
    assert enough_anchors(0.2 * 50**-0.5, 50, measure)[0] == 50
    assert asked == [10, 20, 40, 50]


def test_an_error_of_nothing_is_no_trouble():
    """All items are anchors: the error is 0, of which there is no power; with 21 of 40 it would hardly be a fifth."""
    assert enough_anchors(0.01, 40, lambda n: (0.0 if n == 40 else 0.05, 0.0))[0] == 40


def test_what_is_out_of_reach_is_refused_with_what_was_found():
    measure, _ = falling(0.5)
    line = r"asked for, but .* 6\.32 with 10, 4\.47 with 20, 3\.65 with 30 anchors: allow more"
    with pytest.raises(ValidationError, match=line):
        enough_anchors(0.03, 30, measure)


def test_an_error_above_what_was_asked_for_is_told():
    assert (
        missed_by(None, 0.03, 0.001, 50) == missed_by(0.03, 0.03, 0.001, 50) == missed_by(0.03, 0.029, 0.001, 50) == ""
    )
    said = missed_by(0.03, 0.033, 0.004, 100)
    assert said.startswith("The error is 0.30 points above what was asked for, no more than it varies by chance; ")
    assert said.endswith(" --anchors 122 is safer.")
    assert ", more than it varies by chance; --anchors 144 is" in missed_by(0.03, 0.036, 0.004, 100)


def test_a_condensation_has_as_many_anchors_as_the_error_takes(tmp_path):
    r = population(60, 600, graded=True)
    told = []
    small = condense(r, error=0.025, rng=3, curve=False, progress=lambda *step: told.append(step))
    tried = small.validation.by_anchors
    assert len(tried) >= 2
    assert tried[-2, 0] < len(small.anchors) <= tried[-1, 0]
    assert tried[-2, 1] > 0.025 >= tried[-1, 1]
    assert small.validation.mae < 1.3 * 0.025
    assert small.provenance["error_asked"] == 0.025
    assert ("trying 10 anchors", 0, 5) in told
    assert ("trying 20 anchors", 5, 5) in told
    small.save(tmp_path / "c")
    again = load(tmp_path / "c")
    np.testing.assert_array_equal(again.validation.by_anchors, tried)
    plain = condense(r, len(small.anchors), rng=3, curve=False)  # the command that a report tells
    assert again.anchors.ids.tolist() == plain.anchors.ids.tolist()
    assert again.validation.mae == plain.validation.mae
    assert len(plain.validation.by_anchors) == 0


def test_new_models_are_estimated_about_as_well_as_was_asked():
    r = population(120, 600, graded=True)
    errors = []
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(120)
        small = condense(r.pick(models=order[:90]), error=0.025, rng=seed, curve=False, relatives=False)
        new = r.pick(models=order[90:])
        found = small.estimate(new.pick(items=small.anchors.positions))
        errors += [abs(e.score - t) for e, t in zip(found, new.scores(), strict=True)]
    assert np.mean(errors) == pytest.approx(0.025, rel=0.2)


def test_items_that_count_for_nothing_are_never_asked_for():
    r = population(40, 200, graded=True)
    weight = np.where(np.arange(200) < 60, r.items.weight, 0.0)
    r = Responses(r.models, r.items.having(weight=weight), r.correct)
    with pytest.raises(ValidationError, match="with 30 anchors: allow more"):
        condense(r, error=1e-9, rng=0, curve=False)
    assert len(condense(r, 150, error=1e-9, rng=0, curve=False).anchors) == 60  # with all of them nothing is estimated


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"error": 2}, "error must lie above 0 and below 1"),
        ({"error": float("nan")}, "error must be a finite number"),
        ({"error": "2"}, "error must be a number"),
        ({"error": True}, "error must be a number"),
        ({"error": 0.02, "select_options": {"budget": 9.0}}, "give one of them"),
        ({"error": 0.0001, "n_anchors": 20}, "with 10, .* with 20 anchors: allow more"),
        ({"error": 0.02, "n_anchors": "20"}, "n_anchors must be a whole number"),
        (
            {"error": 0.02, "select": "pds", "select_options": {"committee_size": 99}},
            "committee of 99 was asked for, but there are 40 source models$",
        ),
        ({"error": 0.02, "progress": 3}, "progress must be a function"),
    ],
)
def test_what_makes_no_sense_is_refused(given, line):
    with pytest.raises(ValidationError, match=line):
        condense(population(40, 200, graded=True), rng=0, curve=False, **given)


def test_the_command_says_what_was_tried_and_draws_it(tmp_path):
    write_npz(population(60, 300, graded=True), tmp_path / "a.npz")
    command = ("condense", "a.npz", "--no-curve", "--error", "3")
    out = disco(*command, "--out", "c", cwd=tmp_path).stdout
    assert "Tried before, to find how many anchors it takes: " in out
    found = json.loads(disco(*command, "--out", "d", "--json", cwd=tmp_path).stdout)
    assert [row["n_anchors"] for row in found["by_anchors"]][:2] == [10, 20]
    assert found["by_anchors"][-1]["mae_pp"] <= 3
    assert ("points above what was asked for" in out) == (found["mae_pp"] > 3.005)
    page = (tmp_path / "c" / "report.html").read_text(encoding="utf-8")
    assert "How many anchors does it take?" in page
    assert f"{found['n_anchors']} anchors were kept to reach 3.00 points" in page
    line = disco(*command, "--update", "c", "--out", "e", cwd=tmp_path, status=2).stderr
    assert "leave out --error" in line
    line = disco(*command, "--budget", "9", "--out", "e", cwd=tmp_path, status=2).stderr
    assert "an error and a budget both say how many anchors to keep" in line


def test_report_and_card_say_that_the_error_was_missed_and_show_what_was_kept(tmp_path):
    small = condense(population(60, 600, graded=True), error=0.03, rng=3, curve=False)
    v, said = small.validation, "points above what was asked for"
    for asked, missed in ((v.mae + 0.01, False), (v.mae / 1.5, True)):
        small = replace(small, provenance={**small.provenance, "error_asked": asked})
        assert (said in card(small, "c")) == missed
        page = condensation_page(small, "c")
        assert any(said in line for line in page.warnings) == missed
        (figure,) = (f for s in page.sections for f in s.figures if f.name == "anchors-curve")
        assert figure.data.rows[-1] == ("kept", len(small.anchors), 100 * v.mae, 100 * v.mae_se)
        assert json.dumps({"asked": 100 * asked}) in json.dumps(figure.spec)
