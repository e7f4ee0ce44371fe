"""Sharing: the real hub client against a stand-in server, exports, and MASEval's artifact."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor

from disco_eval import DiscoError, FormatError, ValidationError, condense, load
from disco_eval.harness.exports import every_eval_ever, model_index
from disco_eval.harness.maseval import MasevalDisco, read_maseval
from disco_eval.hub import is_repo
from disco_eval.numerics.forest import Trees
from tests.cli.test_cli import disco, refused
from tests.conftest import population
from tests.harness.conftest import DISCO, run
from tests.harness.hub_server import stand_in


@pytest.fixture
def saved(tmp_path):
    r = population()
    condense(r, 12, select="jsd", predict="ridge", rng=0, benchmark="toy").save(tmp_path / "toy-12")
    r.save(tmp_path / "toy.zarr")
    return tmp_path


def against(address, *command, cwd, status=0):
    env = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(cwd / "cache"), "HF_TOKEN": "hf_test", "NO_COLOR": "1"}
    env |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "0"}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=cwd, env=env)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def test_push_and_pull_through_the_real_client(saved):
    pytest.importorskip("huggingface_hub", reason="needs the extra hub")
    expected = [e.score for e in load(saved / "toy-12").estimate(population())]
    with stand_in() as (address, repos):
        out = against(address, DISCO, "push", "toy-12", "me/toy-12", cwd=saved)
        assert "me/toy-12" in out.stdout
        assert set(repos["me/toy-12"]) == {"condensation.json", "arrays.safetensors", "README.md"}
        against(address, DISCO, "pull", "me/toy-12", "--out", "back", cwd=saved)
        script = (
            "import disco_eval as de, json\n"
            "c = de.load('me/toy-12')\n"
            "print(json.dumps([e.score for e in c.estimate(de.open_responses('toy.zarr'))]))"
        )
        assert json.loads(against(address, sys.executable, "-c", script, cwd=saved).stdout) == expected
        line = against(address, DISCO, "pull", "me/nothing", "--out", "x", cwd=saved, status=2).stderr.splitlines()[-1]
        assert "'me/nothing' is no folder here and cannot be fetched from the hub" in line
        repos["me/toy-12"]["arrays.safetensors"] = b"\x00" + repos["me/toy-12"]["arrays.safetensors"][1:]
        line = against(address, DISCO, "pull", "me/toy-12", "--out", "y", cwd=saved, status=2).stderr.splitlines()[-1]
        assert "is damaged" in line
        assert not (saved / "y").exists()
    assert [e.score for e in load(saved / "back").estimate(population())] == expected


def test_what_reads_as_a_repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_repo("me/toy-12")
    (tmp_path / "me" / "toy-12").mkdir(parents=True)
    assert not is_repo("me/toy-12")
    for name in ("toy-12", "/a/b", "../a", "a/b/c", "a/b c"):
        assert not is_repo(name)


@pytest.mark.parametrize("name", ["mmlu-100", "me/", "a/b/c", "me/mmlu 100", "../foo", "me/mmlu,100"])
def test_what_is_no_repository_is_not_asked_for(saved, name):
    line = run(DISCO, "pull", name, "--out", saved / "pulled", status=2).stderr.splitlines()[-1]
    assert line == f"disco: '{name}' is no name on the hub; write USER/NAME"


def test_damaged_condensations_are_not_shared(saved):
    (saved / "toy-12" / "arrays.safetensors").write_bytes(b"x")
    assert "is damaged" in refused("push", "toy-12", "me/toy-12", cwd=saved)


def test_exports_carry_the_interval_and_say_that_they_are_estimates(saved):
    (saved / "one.txt").write_text(f"{population().models.ids[0]}\n")

    def export(form, *more):
        args = ("toy-12", "toy.zarr", "--export", form, "--dataset", "me/toy", "--level", 0.8, *more)
        return json.loads(disco("estimate", *args, cwd=saved).stdout)

    estimates = load(saved / "toy-12").estimate(population(), 0.8)
    e = estimates[0]
    [first] = export("eval-results", "--models", "one.txt")
    args = ("estimate", "toy-12", "toy.zarr", "--export", "eval-results", "--out", "none")
    assert "estimates of 24 models; give one" in refused(*args, cwd=saved)
    assert not (saved / "none").exists()
    assert first["dataset"] == {"id": "me/toy", "task_id": "toy"}
    assert first["value"] == round(100 * e.score, 2)
    assert (
        f"DISCO estimate from 12 of 60 items, 80 % interval {100 * e.low:.1f} to {100 * e.high:.1f}" in first["notes"]
    )
    hub = pytest.importorskip("huggingface_hub", reason="needs the extra hub")
    parsed = hub.parse_eval_result_entries([first])
    assert parsed[0].dataset_id == "me/toy"
    index = export("model-index")[0]
    args = {"n_anchors": 12, "low": round(100 * e.low, 2), "high": round(100 * e.high, 2), "level": 80.0}
    args["flags"] = list(e.flags)
    assert index["results"][0]["metrics"][0]["args"] == args
    assert args["low"] <= index["results"][0]["metrics"][0]["value"] <= args["high"]
    from huggingface_hub.repocard_data import model_index_to_eval_results

    names, results = zip(*[model_index_to_eval_results([i]) for i in export("model-index")], strict=True)
    assert names[0] == e.model
    assert results[0][0].metric_type == "accuracy"
    record = export("every-eval-ever")[0]
    interval = record["evaluation_results"][0]["score_details"]["uncertainty"]["confidence_interval"]
    assert (interval["lower"], interval["upper"], interval["confidence_level"]) == (e.low, e.high, 0.8)
    assert record["model_info"]["id"] == e.model
    assert "Choose from" in refused("estimate", "toy-12", "toy.zarr", "--export", "xml", cwd=saved)


def test_exports_say_what_the_interval_and_the_number_of_items_rest_on():
    r = population(60, 200)
    small = condense(r.pick(models=np.arange(50)), 20, rng=0, benchmark="toy", curve=False)
    assert small.reserve is not None
    own = "errors of the same procedure on source models left out"
    survey = "standard error of the anchors as a random sample of the benchmark"
    rest = "as a random sample of what the anchors left"

    def exported(c, more=0, flags=(), surveyed=None):
        surveyed = bool(more and flags) if surveyed is None else surveyed
        e = replace(c.estimate(r.pick(models=[55]))[0], flags=flags, more=more, surveyed=surveyed)
        [made] = every_eval_ever(c, [e], "me/toy", "toy")[0]["evaluation_results"]
        [arguments] = [m["args"] for m in model_index(c, [e], "me/toy", "toy")[0]["results"][0]["metrics"]]
        details = made["score_details"]
        spoken = made["metric_config"]["evaluation_description"]
        assert details["uncertainty"]["num_samples"] == 20 + more
        assert f"DISCO estimate from {20 + more} of 200 items" in spoken
        assert (f"(20 anchors and {more} further ones)" in spoken) == (more > 0)
        assert (details["details"]["n_anchors"], details["details"]["n_more"]) == ("20", str(more))
        assert (arguments["n_anchors"], arguments.get("n_more", 0)) == (20, more)
        assert arguments.get("flags", []) == list(flags)
        return details["uncertainty"]["confidence_interval"]["method"]

    assert exported(small) == f"{own}, widened where they tell little of the model"
    assert exported(small, flags=("odd-answers",)) == f"{own}, or {survey} where that is wider"
    assert (
        exported(small, flags=("outside-range",)) == exported(small, flags=("odd-answers", "outside-range")) == survey
    )
    assert exported(small, 10) == f"{own}, with further items too, widened where they tell little of the model"
    older = replace(small, validation=replace(small.validation, n_more=0))
    assert exported(older, 10) == f"{own}, and standard error of 10 further items {rest}"
    assert exported(small, 10, ("outside-range",), surveyed=False) == exported(small, 10, surveyed=True)
    assert exported(small, 10, surveyed=True) == f"{survey} and of 10 further items as one of what the anchors left"
    outside = exported(small, 10, ("outside-range",))
    assert outside == f"{survey} and of 10 further items as one of what the anchors left"
    reaching = "reaching over what the further items say by themselves"
    assert exported(small, 10, ("odd-answers",)) == f"{outside}, {reaching} as far as anchors lead"
    assert exported(small, 30, ("odd-answers",)) == f"standard error of 30 further items {rest}"
    assert exported(small, 30, ("anchors-differ",)).endswith(f"{rest}, and what the anchors would change")
    few = exported(small, 10, ("anchors-differ",), surveyed=False)
    assert few == f"{exported(small, 10)}, reaching over what the further items say by themselves"
    picked = condense(r, 20, select="jsd", rng=0, benchmark="toy", curve=False)
    assert exported(picked, flags=("odd-answers",)) == f"{own}, or error of the ability line where that is wider"
    assert exported(condense(r, 20, predict="ridge", rng=0, benchmark="toy", curve=False)) == own


@pytest.mark.parametrize(("n", "more"), [(20, 40), (60, 0)])
def test_an_export_of_all_items_says_so(n, more):
    r = population(40, 60)
    small = condense(r.pick(models=np.arange(30)), n, rng=0, benchmark="toy", curve=False)
    [e] = [replace(e, more=more) for e in small.estimate(r.pick(models=[35]))]
    [made] = every_eval_ever(small, [e], "me/toy", "toy")[0]["evaluation_results"]
    method = made["score_details"]["uncertainty"]["confidence_interval"]["method"]
    assert method == "none needed: every item of the benchmark was answered"


def maseval_predictor(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, 6, 4))
    p = np.exp(x) / np.exp(x).sum(axis=2, keepdims=True)
    pca = PCA(5).fit(p.reshape(30, -1))
    forest = RandomForestRegressor(20, random_state=0).fit(pca.transform(p.reshape(30, -1)), rng.random(30))
    config = {"model_type": "disco", "n_components": 5, "eval_config": {"pca": 5, "pad_to_size": 4}}
    meta = {"sampling_name": "high-disagreement", "number_item": 6, "fitted_model_type": "RandomForestRegressor"}
    trees = Trees.from_sklearn(forest.estimators_)
    made = MasevalDisco(np.array([9, 3, 7, 1, 0, 4]), pca.mean_, pca.components_, trees, 4, meta, config)
    return made, x, forest.predict(pca.transform(p.reshape(30, -1)))


def test_masevals_artifact_round_trips_exactly(tmp_path):
    made, x, expected = maseval_predictor()
    np.testing.assert_allclose(made.predict(x), expected, atol=1e-12)
    made.save(tmp_path / "a")
    assert {p.name for p in (tmp_path / "a").iterdir()} == {
        "anchor_points.json", "disco_transform.npz", "disco_model.npz", "disco_meta.json", "config.json"
    }  # fmt: skip
    back = read_maseval(tmp_path / "a")
    np.testing.assert_array_equal(back.predict(x), made.predict(x))
    back.save(tmp_path / "b")
    for file in sorted((tmp_path / "a").iterdir()):
        if file.suffix == ".json":
            assert json.loads(file.read_text()) == json.loads((tmp_path / "b" / file.name).read_text())
            continue
        with np.load(file) as a, np.load(tmp_path / "b" / file.name) as b:
            assert set(a) == set(b)
            for name in a:
                assert a[name].dtype == b[name].dtype
                np.testing.assert_array_equal(a[name], b[name])
    assert back.anchors.tolist() == [9, 3, 7, 1, 0, 4]


def test_a_missing_anchor_is_an_error_and_not_a_constant():
    made, x, _ = maseval_predictor()
    x[3, 2] = -np.inf
    with pytest.raises(ValidationError, match="1 anchors have no answer from some model: positions 7"):
        made.predict(x)
    with pytest.raises(ValidationError, match="expected"):
        made.predict(x[:, :5])
    x[3, 2] = 0.0
    x[0, 0, 3] = -np.inf  # a choice that the item lacks
    assert np.isfinite(made.predict(x)).all()


def test_damaged_artifacts_are_refused(tmp_path):
    made, _, _ = maseval_predictor()
    made.save(tmp_path / "a")
    for name in ("anchor_points.json", "disco_transform.npz", "disco_model.npz"):
        data = (tmp_path / "a" / name).read_bytes()
        (tmp_path / "a" / name).write_bytes(data[: len(data) // 2])
        with pytest.raises(FormatError):
            read_maseval(tmp_path / "a")
        (tmp_path / "a" / name).write_bytes(data)
    (tmp_path / "a" / "anchor_points.json").write_text("[1, 2]")
    with pytest.raises(FormatError, match="are not 2 anchors times"):
        read_maseval(tmp_path / "a")
    with pytest.raises(DiscoError, match="exists already"):
        made.save(tmp_path / "a")
