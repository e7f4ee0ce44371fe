import json
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from disco_eval import AlignmentError, DiscoError, Items, Models, Responses, ValidationError, condense, difference
from disco_eval.artifact import load
from disco_eval.cli.compare import _next
from disco_eval.comparison import Comparison, _more_items, compare
from disco_eval.difference import Asked, Difference, by_anchors, with_more
from disco_eval.io import write_npz
from disco_eval.pairs import calibrate
from tests.cli.test_cli import disco
from tests.conftest import population


@pytest.fixture(scope="module")
def small():
    return condense(population(40, 120), 40, rng=0, n_folds=4, benchmark="toy")


def renamed(r, i, name, correct=None):
    one = r.pick(models=[i])
    return Responses(Models([name]), one.items, one.correct if correct is None else correct, one.probs)


def test_equal_answers_differ_by_nothing(small):
    r = population(40, 120)
    found = compare(small, r.pick(models=[3]), renamed(r, 3, "copy"), margin=0.2)
    assert found.difference == 0
    assert found.distance == pytest.approx(0, abs=1e-6)
    assert found.low == pytest.approx(-found.high)
    assert found.low < 0 < found.high


def test_one_model_given_twice_is_told(small):
    c, r = small, population(40, 120)
    found = compare(c, renamed(r, 0, "a"), renamed(r, 0, "b"), margin=0.5)
    assert found.warnings[0] == "Their answers to the anchors are all the same: is it one model, given twice?"
    assert not any("given twice" in line for line in compare(c, r.pick(models=[0]), r.pick(models=[1])).warnings)


def test_swapping_the_two_changes_the_sign(small):
    r = population(40, 120)
    a, b = (compare(small, r.pick(models=[i]), r.pick(models=[j])) for i, j in ((1, 2), (2, 1)))
    assert a.difference == pytest.approx(-b.difference)
    assert (a.low, a.high) == pytest.approx((-b.high, -b.low))


def test_verdicts_follow_the_interval(small):
    r = population(40, 120)
    order = np.argsort(r.scores())
    best, worst = r.pick(models=[int(order[-1])]), r.pick(models=[int(order[0])])
    up, down = compare(small, worst, best, margin=0.01), compare(small, best, worst, margin=0.01)
    for found in (up, down):
        expected = "passes" if found.low > -0.01 else "fails" if found.high < -0.01 else "undecided"
        assert found.verdict == expected
        assert (found.more_items > 0) == (found.verdict == "undecided")
    assert up.difference > 0
    assert compare(small, best, worst, margin=0.99).verdict == "passes"


def test_intervals_hold_left_out_pairs():
    """True differences of unseen models lie inside the 90 % interval; the bound is three standard errors below.

    Pairs of one draw of anchors share its luck, so several draws are needed. The models lie inside the sources' range:
    above it no calibration on sources holds, and about 80 % of the pairs are covered.
    """
    inside = []
    for seed in range(4):
        r = population(120, 300, seed=seed)
        held = np.arange(1, 120, 3)
        c = condense(r.pick(models=np.setdiff1d(np.arange(120), held)), 40, rng=seed, n_folds=4)
        for i, j in zip(held[:-1:2], held[1::2], strict=True):
            found = compare(c, r.pick(models=[i]), r.pick(models=[j]))
            inside.append(found.low <= r.scores()[j] - r.scores()[i] <= found.high)
    assert len(inside) == 80
    assert np.mean(inside) >= 0.9 - 3 * np.sqrt(0.09 / len(inside))


def test_bad_requests_are_refused(small):
    r = population(40, 120)
    with pytest.raises(ValidationError, match="baseline must be one model, but 2"):
        compare(small, r.pick(models=[0, 1]), r.pick(models=[2]))
    with pytest.raises(ValidationError, match="margin"):
        compare(small, r.pick(models=[0]), r.pick(models=[1]), margin=2.0)
    few = condense(population(10, 40), 8, rng=0, n_folds=10)
    r = population(10, 40)
    with pytest.raises(DiscoError, match="pairs of left-out source models"):
        compare(few, r.pick(models=[0]), r.pick(models=[1]))


def test_the_command_speaks_and_exits_by_the_verdict(small, tmp_path):
    small.save(tmp_path / "c")
    write_npz(population(40, 120), tmp_path / "r.npz")
    names = population(40, 120).models.ids
    args = ("compare", "c", "r.npz", "r.npz", "--baseline-model", names[0], "--candidate-model", names[1])
    out = disco(*args, "--margin", 95, "--json", cwd=tmp_path)
    record = json.loads(out.stdout)
    assert record["verdict"] == "passes"
    assert record["low"] <= record["difference"] <= record["high"]
    undecided = disco(*args, "--margin", 0.01, cwd=tmp_path, status=None)
    assert undecided.returncode in (0, 3, 4)
    assert f"{names[1]} against {names[0]} on toy" in undecided.stdout
    args = ("compare", "c", "r.npz", "r.npz", "--baseline-model", names[0], "--candidate-model", names[0])
    assert f"{names[0]} (r.npz) against {names[0]} (r.npz) on toy" in disco(*args, cwd=tmp_path).stdout


def test_where_no_pair_is_alike_the_survey_says_how_sure_one_can_be(tmp_path):
    """All sources solve the benchmark, so all pairs differ by nothing; a broken model differs by half of it."""
    items = [f"i{j}" for j in range(300)]
    solved = np.ones((40, 300))
    solved[np.arange(40), np.arange(40)] = 0
    c = condense(Responses.from_correct([f"m{i}" for i in range(40)], items, solved), 60, rng=0, curve=False)
    good = Responses.from_correct(["good"], items, np.ones((1, 300)))
    for lost in (0.15, 0.5):
        right = (np.random.default_rng(3).random((1, 300)) >= lost).astype(float)
        broken = Responses.from_correct(["broken"], items, right)
        found = compare(c, good, broken, margin=0.02)
        assert found.unlike
        assert found.verdict == "fails"
        assert found.low <= float(broken.scores()[0]) - 1 <= found.high
        assert found.high - found.low > 0.05
    c.save(tmp_path / "c")
    write_npz(good, tmp_path / "a.npz")
    write_npz(broken, tmp_path / "b.npz")
    said = disco("compare", "c", "a.npz", "b.npz", "--out", "report", cwd=tmp_path).stdout
    line = "The candidate is outside the sources' range: difference and interval rest on what the anchors say"
    assert line in said
    assert line in unescape((tmp_path / "report" / "report.html").read_text())
    refusal = disco("compare", "c", "a.npz", "b.npz", "--margin", "-1", cwd=tmp_path, status=2).stderr
    assert "--margin is a drop in points" in refusal


def one_that_has_seen(every: int):
    """A condensation, a model below the middle of its sources, and the same with every so-manieth anchor right."""
    r = population(160, 400, graded=True, seed=3)
    source = np.arange(160) % 2 == 0
    c = condense(r.pick(models=source), 40, rng=0, curve=False)
    k = int(np.argsort(r.pick(models=~source).scores())[20])
    honest = np.array(r.pick(models=~source).correct[[k]])
    right = honest.copy()
    right[:, r.items.positions(c.anchors.ids)[::every]] = 1
    return c, *(Responses.from_correct([n], r.items, x) for n, x in (("honest", honest), ("leaked", right)))


def test_a_candidate_that_may_have_seen_the_anchors_does_not_pass_unnoticed(tmp_path):
    c, honest, leaked = one_that_has_seen(2)
    found = compare(c, honest, leaked, margin=0.02)
    assert found.verdict == "passes"
    assert found.baseline_flags == ()
    assert "odd-answers" in found.candidate_flags
    assert any(line.startswith("The candidate is flagged odd-answers: ") for line in found.warnings)
    c.save(tmp_path / "c")
    write_npz(honest, tmp_path / "a.npz")
    write_npz(leaked, tmp_path / "b.npz")
    said = disco("compare", "c", "a.npz", "b.npz", "--margin", 2, "--out", "report", cwd=tmp_path)
    for text in (said.stdout, (tmp_path / "report" / "report.html").read_text()):
        assert "The candidate is flagged odd-answers" in text


def test_older_formats_compare_by_pairs_alone_and_do_not_say_otherwise():
    r = population()
    order = np.argsort(r.scores())
    worst, best = (renamed(r, i, f"new-{i}") for i in order[[0, -1]])  # sources are never outside their own range
    formats = Path(__file__).parent / "formats"
    new, old = (load(formats / f"condensation-{k}" / "toy") for k in (7, 6))
    assert compare(new, worst, best).unlike
    found = compare(old, worst, best)
    assert not found.unlike
    assert any("flagged outside-range" in line for line in found.warnings)


def test_flat_probabilities_are_not_taken_for_likeness():
    """Half of the sources hardly prefer any choice: near each other in probabilities, far in what they get right."""
    r = population(80, 300, seed=2)
    flat = np.arange(80) % 2 == 1
    probs = np.asarray(r.probs).copy()
    probs[flat] = 0.25 + 0.02 * (probs[flat] - 0.25)
    mixed = Responses.from_probs(r.models, r.items, probs)
    c = condense(mixed.pick(models=np.arange(80) != 40), 60, rng=0, n_folds=4, curve=False)
    original = mixed.pick(models=[40])
    noise = 1 + 0.02 * np.random.default_rng(0).standard_normal(np.shape(original.probs))
    quantised = np.asarray(original.probs) * noise
    variant = Responses.from_probs(["variant"], r.items, quantised / quantised.sum(axis=2, keepdims=True))
    found = compare(c, original, variant, margin=0.04)
    assert found.verdict == "passes"
    assert found.low <= float(variant.scores()[0] - original.scores()[0]) <= found.high
    strangers = compare(c, original, mixed.pick(models=[44]))
    assert found.high - found.low < 0.6 * (strangers.high - strangers.low)


def test_further_items_decide_and_all_of_them_leave_no_doubt(tmp_path):
    r = population(60, 300, graded=True, seed=1)
    known = r.pick(models=np.arange(60) % 6 != 0)
    c = condense(known, 60, rng=0, n_folds=4, curve=False)
    new = [r.pick(models=[k]) for k in range(0, 60, 6)]
    pairs = [(a, b, float(b.scores()[0] - a.scores()[0])) for a in new for b in new if a is not b]
    widths, errors, held = [], [], []
    for more in (0, 60, 180):
        found = [compare(c, a, b, margin=0.05, more=more) for a, b, _ in pairs]
        widths.append(np.mean([f.high - f.low for f in found]))
        errors.append(np.mean([abs(f.difference - t) for f, (*_, t) in zip(found, pairs, strict=True)]))
        held.append(np.mean([f.low <= t <= f.high for f, (*_, t) in zip(found, pairs, strict=True)]))
        assert {f.more for f in found} == {more}
    assert widths[0] > widths[1] > widths[2]
    assert errors[2] < errors[0]
    assert min(held[1:]) >= held[0] - 0.02  # ten models, one draw of anchors: no coverage to measure, none to lose
    for a, b, true in pairs[:5]:
        found = compare(c, a, b, margin=0.05, more=240)
        assert [found.low, found.difference, found.high] == pytest.approx([true] * 3)
        assert not found.unlike
        assert found.verdict != "undecided"
    undecided = next((a, b) for a, b, _ in pairs if 0 < compare(c, a, b, margin=0.05).more_items <= 100)
    for name, side in zip("ab", undecided, strict=True):
        write_npz(side, tmp_path / f"{name}.npz")
    c.save(tmp_path / "c")
    said = disco("compare", "c", "a.npz", "b.npz", "--margin", 5, cwd=tmp_path, status=4).stdout
    k = max(compare(c, *undecided, margin=0.05).more_items, 4)
    assert f"disco anchors DIR --more {k} lists them, disco compare --more {k} takes their answers in" in said
    for more, said in ((180, "With 180 further items."), (240, "All items were asked: the difference is what it is.")):
        args = ("a.npz", "b.npz", "--margin", 5, "--more", more, "--out", "report")
        assert said in disco("compare", "c", *args, cwd=tmp_path, status=None).stdout
        assert said in (tmp_path / "report" / "report.html").read_text()
    few = undecided[0].align(c.asked(20).ids)
    with pytest.raises(AlignmentError, match="no answer for 20 of the 40 more items"):
        compare(c, few, undecided[1], more=40)


@pytest.mark.parametrize("more", [0, 40, 150])
def test_the_level_sets_the_width_and_nothing_else(more):
    r = population(60, 300, graded=True, seed=1)
    c = condense(r.pick(models=np.arange(60) % 6 != 0), 40, rng=0, n_folds=4, curve=False)
    for k in range(0, 54, 6):
        at = [compare(c, r.pick(models=[k]), r.pick(models=[k + 6]), level=q, more=more) for q in (0.5, 0.8, 0.9, 0.99)]
        assert len({found.difference for found in at}) == 1
        assert (np.diff([found.low for found in at]) < 0).all()
        assert (np.diff([found.high for found in at]) > 0).all()


def test_where_anchors_are_suspect_the_further_items_compare():
    c, honest, leaked = one_that_has_seen(1)
    before, found = compare(c, honest, leaked, margin=0.02), compare(c, honest, leaked, margin=0.02, more=120)
    own = float(leaked.scores()[0] - honest.scores()[0])  # the anchors are items too
    assert before.verdict == "passes"
    assert "anchors-differ" in found.candidate_flags
    assert found.baseline_flags == ()
    assert abs(found.difference - own) < 0.02
    assert before.difference > own + 0.2


def test_calibration_moves_two_models_apart_only_where_probabilities_were_learned_from():
    """The same answers, surer: nothing for a score model of grades, something for one of probabilities."""
    r = population(60, 300, seed=1)
    known, one = r.pick(models=np.arange(60) != 30), r.pick(models=[30])
    sharp = np.asarray(one.probs) ** 3
    surer = Responses.from_probs(Models(["surer"]), one.items, sharp / sharp.sum(axis=2, keepdims=True))
    np.testing.assert_array_equal(surer.grades(), one.grades())
    by_grades = condense(known, 60, rng=0, n_folds=4, curve=False, predict_options={"grades": True})
    found = compare(by_grades, one, surer)
    assert (found.distance, found.difference) == (0, 0)
    assert compare(condense(known, 60, rng=0, n_folds=4, curve=False), one, surer).distance > 0.05


def test_nearer_than_any_pair_the_interval_is_nearly_a_survey_s():
    """Half-widths fall with the distance, but not to nothing where no anchor shows a difference."""
    r = population(60, 300, graded=True, seed=1)
    c = condense(r.pick(models=np.arange(60) != 30), 60, rng=0, n_folds=4, curve=False)
    anchors = r.items.positions(c.anchors.ids)

    def width(n_changed):
        other = np.array(r.correct[[30]])
        other[0, anchors[:n_changed]] = 1 - other[0, anchors[:n_changed]]
        found = compare(c, r.pick(models=[30]), renamed(r, 30, "other", other))
        assert found.distance < found.pair_distance
        return found.high - found.low

    equal, one, ten = (width(n) for n in (0, 1, 10))
    assert 0.01 < equal < one < 0.5 * ten  # errors of a survey's difference grow with the distance: 0, 0.13 and 0.41


@pytest.mark.parametrize("power", [0.3, 1.0])
def test_errors_that_grow_by_a_power_of_the_distance_are_carried_on_by_it(power):
    """Half of the pairs err up and half down, whichever way they differ: the estimated differences are all real."""
    apart = np.repeat(np.geomspace(0.02, 0.1, 8), 4)
    estimated = np.tile([0.1, 0.1, -0.1, -0.1], 8)
    true = estimated + np.tile([1, -1, 1, -1], 8) * (100 * apart**power - 1e-3)
    share, half, n_pairs, typical = calibrate("toy", (true, estimated, apart), 10.0, 0.9, 100)
    assert (n_pairs, typical) == (32, pytest.approx(np.median(apart)))
    assert share == pytest.approx(1)
    assert half == pytest.approx(100 * 10.0**power, rel=0.01)


def test_what_is_taken_off_a_difference_is_left_in_the_interval(small, monkeypatch):
    """Pairs of sources may say that differences this small are all error; these two need not be such a pair."""
    monkeypatch.setattr("disco_eval.difference.calibrate", lambda *args: (0.25, 0.001, 100, 0.3))
    r = population(40, 120)
    order = np.argsort(r.scores())
    one, other = (r.pick(models=[int(order[k])]) for k in (15, 22))
    found = compare(small, one, other)
    estimated = small.estimate(other)[0].score - small.estimate(one)[0].score
    assert abs(estimated) > 0.01
    assert found.difference == pytest.approx(0.25 * estimated)
    assert (found.high - found.low) / 2 >= 0.75 * abs(estimated)


@pytest.mark.parametrize("k", range(1, 13))
def test_a_drop_of_exactly_the_margin_is_acceptable(all_known, k):
    """With all items known; on 100 or 200 items a drop of a point is an ordinary one."""
    c, baseline = all_known
    right = np.flatnonzero(baseline.correct[0])
    worse = np.array(baseline.correct)
    worse[0, right[-k:]] = 0
    candidate = Responses.from_correct(["candidate"], baseline.items, worse)
    exact, more = k / 200, len(c.reserve)
    found = compare(c, baseline, candidate, margin=exact, more=more)
    assert (found.verdict, found.more_items, found.needed, found.whole) == ("passes", 0, "", True)
    assert compare(c, baseline, candidate, margin=exact - 1e-6, more=more).verdict == "fails"


@pytest.fixture(scope="module")
def all_known():
    r = population(50, 200, seed=2)
    r = Responses.from_correct(r.models, r.items.ids, np.asarray(r.correct) > 0.5)
    c = condense(r.pick(models=np.arange(49)), 40, rng=0, n_folds=4, curve=False)
    return c, r.pick(models=[49])


def test_items_that_do_not_count_are_not_asked_for():
    """Half of the items weigh nothing: with 100 asked there are 60 left that could decide."""
    r = population(40, 200, seed=2)
    items = Items(r.items.ids, weight=np.where(np.arange(200) < 120, 1.0, 0.0))
    r = Responses.from_correct(r.models, items, r.correct)
    c = condense(r.pick(models=np.arange(30)), 40, rng=0, n_folds=4, curve=False)
    assert c.reserve.n_items == 120
    pairs = [(r.pick(models=[i]), r.pick(models=[j])) for i in range(30, 40) for j in range(30, 40) if i != j]
    wanted = [compare(c, a, b, margin=0.01, more=40) for a, b in pairs]
    assert max(found.more_items for found in wanted) <= 40
    assert all(found.more_items > 0 for found in wanted if found.verdict == "undecided")


def test_how_many_more_items_counts_that_they_run_out():
    """Half-width 0.05 where 0.04 would decide: a survey of further items, 0.08 wide for 100, is weighed with it."""
    said = Difference(-0.03, 0.05, 0.1, 100, 0.1, False, [(), ()], 0.08)
    assert _more_items(said, 100, 0, 10**9, 0.07) == 144  # 1 / 0.05**2 + 144 / (100 * 0.08**2) = 1 / 0.04**2
    few = _more_items(said, 100, 0, 300, 0.07)
    square = 0.08**2 / (1 / 100 - 1 / 400)
    halves = [(0.05**-2 + 1 / (square * (1 / n - 1 / 300))) ** -0.5 for n in (few - 1, few)]
    assert halves[1] <= 0.04 < halves[0]
    known = replace(said, half=(0.05**-2 + 1 / (square * (1 / 50 - 1 / 300))) ** -0.5)
    assert _more_items(known, 100, 50, 250, 0.07) == few - 50  # the same whether 50 were asked before or not
    assert _more_items(said, 100, 0, 300, 0.03) == 300  # just at the margin: only all of them
    assert _more_items(said, 100, 300, 0, 0.07) == 0
    assert _more_items(replace(said, half=0.0), 100, 0, 300, 0.07) == 1  # never none where it is undecided
    alone = int(np.ceil(1 / (1 / 300 + 0.04**2 / square))) - 50
    assert _more_items(replace(said, half=1.0), 100, 50, 250, 0.07) == alone  # what else is known counts for nothing
    suspect = replace(said, flags=[(), ("odd-answers",)])
    assert _more_items(suspect, 100, 0, 10**9, 0.07) == 4 * 100  # as a survey twice as wide as it should be
    assert _more_items(suspect, 100, 60, 10**9, 0.07) == 4 * 100 - 60
    assert _more_items(replace(suspect, by_itself=0.01), 100, 60, 10**9, 0.07) == 40  # no fewer than decide alone
    assert _more_items(replace(suspect, set_aside=True), 100, 200, 10**9, 0.07) == 113  # 313 = 200 * 1.25**2
    aside = _more_items(replace(suspect, set_aside=True), 100, 200, 300, 0.07)
    assert 200 + aside == int(np.ceil(1 / (1 / 500 + (1 / 200 - 1 / 500) / 1.25**2)))


def test_a_few_further_items_do_not_overrule_suspect_anchors():
    """Where they disagree with the anchors the interval reaches over what they say, else they only add to it."""
    c, honest, leaked = one_that_has_seen(2)
    none, few, many = (compare(c, honest, leaked, margin=0.02, more=more) for more in (0, 8, 40))
    assert "odd-answers" in few.candidate_flags
    assert [found.set_aside for found in (none, few, many)] == [False, False, True]
    assert none.low > 0  # a model is not better than itself
    assert "anchors-differ" in few.candidate_flags
    assert few.low < 0 < few.high
    assert few.difference > many.difference
    cases = (("outside-range", 1.0), ("odd-answers", -0.5), ("odd-answers", 1.0), ("anchors-differ", 3.0))
    by_lead = [halves_with_few(c, honest, leaked, flag, lead) for flag, lead in cases]
    assert by_lead[0] == by_lead[1] < by_lead[2] < by_lead[3]
    assert many.basis.startswith("Of 40 further items alone")
    made = c.top_up(40)
    grades = [np.concatenate([x.grades()[0] for x in (c.answers(r), c.further(r, 40))]) for r in (honest, leaked)]
    alone = float(np.diff(made.second.predict(np.stack(grades))[0])[0])
    own = made.quantile(0.9) * made.second.difference_error(*grades)
    assert many.difference == pytest.approx(alone)
    assert many.high - many.difference > own + 1e-6  # it reaches to what it would have been with the anchors


def halves_with_few(c, one, other, flag, lead):
    """Half-width of the difference's interval with 8 further items, where the candidate is flagged so and leads so."""
    pair = [Asked.of(c, r, 8) for r in (one, other)]
    said = replace(by_anchors(c, pair, 0.9), flags=[(), (flag,)])
    return with_more(said, said.half, c.top_up(8), pair, [0.0, lead], 0.9).half


def test_a_pair_that_is_unlike_all_is_known_where_all_items_are(all_known):
    c, baseline = all_known
    best = Responses.from_correct(["best"], baseline.items, np.ones((1, 200)))
    assert compare(c, baseline, best).unlike
    found = compare(c, baseline, best, more=len(c.reserve))
    assert not found.unlike


@pytest.mark.parametrize(("by_survey", "unseen"), [(0.0, 0.7), (0.7, 0.0)])
def test_the_survey_s_interval_comes_in_by_the_larger_of_two_reasons(small, monkeypatch, by_survey, unseen):
    """That an estimate is the survey's, and that the anchors cannot tell whether a model is like the sources."""
    r = population(40, 120)
    pair = [Asked.of(small, r.pick(models=[k])) for k in (1, 2)]
    monkeypatch.setattr(difference, "_as_survey", lambda *args: (0.0, 0.2, 0.0))
    pairs = by_anchors(small, pair, 0.9)
    monkeypatch.setattr(difference, "_as_survey", lambda *args: (by_survey, 0.2, unseen))
    found = by_anchors(small, pair, 0.9)
    estimated = np.diff([one.found.score[0] for one in pair])[0]
    of_pairs = pairs.half**2 - (estimated - pairs.difference) ** 2
    expected = np.sqrt(of_pairs + (estimated - found.difference) ** 2 + (0.7 * 0.2) ** 2)
    assert found.half == pytest.approx(expected)


def test_a_drop_at_the_very_margin_is_decided_by_the_whole_benchmark_alone(small):
    r = population(40, 120)
    one, other = r.pick(models=[2]), r.pick(models=[1])
    drop = compare(small, one, other).difference
    if drop > 0:
        one, other, drop = other, one, -drop
    at = compare(small, one, other, margin=-drop)
    assert (at.more_items, at.all_items) == (80, True)
    assert at.needed == "only the whole benchmark would decide"
    near = compare(small, one, other, margin=-drop + 0.9 * (at.high - at.low) / 2)
    assert near.verdict == "undecided"
    assert 0 < near.more_items < 80
    assert not near.all_items


def test_where_only_the_whole_benchmark_would_decide_it_is_said():
    found = Comparison("a", "b", 0.0, -0.02, 0.02, 0.9, 0.1, 100, 0.1, 0.01, "undecided", 300, True)
    assert found.needed == "only the whole benchmark would decide"
    assert replace(found, all_items=False).needed == "about 300 more items would decide if the estimate stays"


@pytest.mark.parametrize(
    ("more", "wanted", "said"),
    [
        (0, 3, "disco anchors DIR --more 4 lists them"),
        (0, 400, "disco anchors DIR --more 400 lists them"),
        (0, 863, "disco anchors DIR --more 400 lists all 400 that the condensation keeps in reserve"),
        (400, 901, "keeps no more than 400 items in reserve: run the whole benchmark"),
    ],
)
def test_where_the_reserve_ends_it_is_said(more, wanted, said):
    assert said in _next(more, wanted, 400)


def test_what_is_flagged_about_both_is_said_once():
    both = Comparison("a", "b", 0.0, -0.02, 0.02, 0.9, 0.1, 100, 0.1)
    flagged = replace(both, baseline_flags=("odd-answers",), candidate_flags=("source-model", "odd-answers"))
    about_one, about_both = flagged.warnings
    assert about_one.startswith("The candidate is flagged source-model: ")
    assert about_both.startswith("The baseline and the candidate are flagged odd-answers: ")
    assert both.warnings == []


@pytest.mark.parametrize("left", [2, 6])
def test_what_was_answered_bounds_the_difference(left):
    """Two models that would be right on none and on all of the few items left differ by what these make."""
    r = population(40, 60, graded=True, seed=2)
    c = condense(r.pick(models=np.arange(30)), 60 - left, predict="ridge", rng=0, n_folds=4, curve=False)
    share = r.items.weight / r.items.weight.sum()
    asked = np.isin(r.items.ids, c.items.ids)
    for i, j in ((30, 31), (33, 36), (39, 32)):
        one, other = r.pick(models=[i]), r.pick(models=[j])
        known = float(((other.grades() - one.grades())[0] * share)[asked].sum())
        room = float(share[~asked].sum()) + 1e-8
        found = compare(c, one, other, level=0.999)
        assert known - room <= found.low <= found.difference <= found.high <= known + room


def test_all_items_as_anchors_tell_the_difference_itself():
    r = population(40, 40, seed=2)
    c = condense(r.pick(models=np.arange(30)), 40, rng=0, n_folds=4, curve=False)
    assert c.reserve is None
    one, other = r.pick(models=[33]), r.pick(models=[36])
    found = compare(c, one, other, margin=0.3)
    true = other.scores()[0] - one.scores()[0]
    assert [found.low, found.difference, found.high] == pytest.approx([true] * 3)
    assert found.whole
    old = replace(c, total_weight=None)  # of a file made before it was kept
    assert compare(old, one, other, margin=0.3) == found
    unknown = replace(old, provenance={k: v for k, v in c.provenance.items() if k != "n_items"})
    assert not compare(unknown, one, other, margin=0.3).whole
