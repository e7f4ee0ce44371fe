"""Where an estimate puts a model among the sources."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disco_eval import Models, Responses, condense
from disco_eval.estimates import Rank, ranked
from disco_eval.io import write_npz
from tests.cli.test_cli import disco
from tests.conftest import population

tenths = st.integers(0, 10).map(lambda k: k / 10)


@given(st.lists(tenths, min_size=1, max_size=12), st.lists(st.tuples(tenths, tenths, tenths), min_size=1, max_size=4))
def test_ranks_count_the_better_ones(known, found):
    """Half of the models are themselves among the known ones."""
    names = np.array([f"m{i}" for i in range(len(known))])
    asked = np.array([f"m{i}" if i % 2 and i < len(known) else f"new{i}" for i in range(len(found))])
    low, score, high = np.sort(np.array(found), axis=1).T
    own = [names.tolist().index(name) if name in names else None for name in asked.tolist()]
    for i, rank in enumerate(ranked((score, low, high), np.array(known), own)):
        others = [s for name, s in zip(names, known, strict=True) if name != asked[i]]
        assert rank.of == len(others) + 1
        for place, value in ((rank.at, score[i]), (rank.best, high[i]), (rank.worst, low[i])):
            assert place == 1 + sum(s > value for s in others)
        assert 1 <= rank.best <= rank.at <= rank.worst <= rank.of


def test_scores_that_differ_by_rounding_share_a_rank():
    (rank,) = ranked([np.array([0.1 * 3])] * 3, np.array([0.3, 0.9]), [None])
    assert rank == Rank(2, 2, 2, 3)
    (rank,) = ranked([np.array([2 / 3])] * 3, np.array([float(np.float32(2 / 3)), 0.9]), [None])  # of single precision
    assert rank == Rank(2, 2, 2, 3)
    assert str(rank) == "2"
    assert str(Rank(2, 1, 3, 9)) == "2 (1 to 3)"


def test_the_true_rank_lies_between_as_often_as_the_score():
    r = population(160, 400, graded=True)
    held = []
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(160)
        known, new = r.pick(models=order[:110]), r.pick(models=order[110:])
        c = condense(known, 40, rng=seed, curve=False, relatives=False)
        for e, truth in zip(c.estimate(new.pick(items=c.anchors.positions)), new.scores(), strict=True):
            true_rank = 1 + int((known.scores() > truth + 1e-9).sum())
            within = e.rank.best <= true_rank <= e.rank.worst
            assert within or not e.low <= truth <= e.high
            held.append(within)
    assert np.mean(held) > 0.85


def test_commands_and_reports_tell_it(tmp_path):
    r = population(60, 300, graded=True)
    condense(r.pick(models=slice(0, 50)), 30, rng=0, curve=False).save(tmp_path / "c")
    write_npz(r.pick(models=slice(50, 60)), tmp_path / "new.npz")
    command = ("estimate", "c", "new.npz")
    out = disco(*command, "--out", "e", cwd=tmp_path).stdout
    found = json.loads(disco(*command, "--json", cwd=tmp_path).stdout)["estimates"]
    assert "rank of 51" in out
    for e in found:
        assert f"{Rank(**e['rank'])}" in out
    both = r.pick(models=slice(49, 60)).load()
    write_npz(both, tmp_path / "both.npz")
    first = json.loads(disco("estimate", "c", "both.npz", "--json", cwd=tmp_path).stdout)["estimates"][0]["rank"]
    assert f"{Rank(**first)} of 50" in disco("estimate", "c", "both.npz", cwd=tmp_path).stdout  # it is a source
    page = (tmp_path / "e" / "report.html").read_text(encoding="utf-8")
    assert "the place among the 50 source models and itself" in page
    about = json.loads((tmp_path / "e" / "about.json").read_text())
    for e in about["estimates"]:
        del e["rank"]  # as records of older versions
    (tmp_path / "e" / "about.json").write_text(json.dumps(about))
    disco("report", "e", cwd=tmp_path)
    assert "the place among" not in (tmp_path / "e" / "report.html").read_text(encoding="utf-8")
    for wrong in ({"at": 1}, "first", [1, 2, 3, 4]):
        about["estimates"][0]["rank"] = wrong
        (tmp_path / "e" / "about.json").write_text(json.dumps(about))
        assert "lacks something" in disco("report", "e", cwd=tmp_path, status=2).stderr


@pytest.mark.parametrize("model", [0, 7])
def test_a_source_model_is_not_counted_beside_itself(model):
    r = population(40, 200, graded=True)
    c = condense(r, 30, rng=0, curve=False)
    (e,) = c.estimate(r.pick(models=[model]))
    assert e.rank.of == 40
    others = np.delete(r.scores(), model)
    assert e.rank.at == 1 + (others > e.score).sum()


def test_another_model_of_a_sources_name_is_counted_beside_it():
    """Names such as checkpoint-1000 come again in every training run."""
    r = population(40, 200, graded=True)
    c = condense(r.pick(models=slice(0, 39)), 30, rng=0, curve=False)
    other = Responses(Models([r.models.ids[0]]), r.items, r.correct[39:])
    (e,) = c.estimate(other)
    assert "source-model" not in e.flags
    assert e.rank.of == 40
    assert e.rank.at == 1 + (r.scores()[:39] > e.score + 1e-6).sum()


def test_parts_of_a_condensation_are_shown_in_a_line():
    r = population(40, 200, graded=True)
    c = condense(r, 30, rng=0, curve=False)
    error = f"error {100 * c.validation.mae:.2f} ± {100 * c.validation.mae_se:.2f} points"
    assert repr(c.validation) == f"CrossValidation({error}, 40 source models, whole families left out in 5 folds)"
    assert repr(c.reserve).startswith("Reserve(Items(120, e.g. task/")
