"""Files of the documented layouts, made here: none of these tools is installed (docs/how-to/import.md says so)."""

import json

import numpy as np
import polars as pl
import pytest

from disco_eval import AlignmentError, DiscoError, FormatError, open_responses
from disco_eval.io import others
from disco_eval.io.records import natural
from tests.cli.test_cli import disco, refused


def read(named):
    return {name: reader() for name, reader in named}


LLS = [[-1.0, -2.0, -3.0], [-4.0, -1.0]]
SOFTMAX = [np.exp(x) / np.exp(x).sum() for x in LLS]


def leaderboard(folder, model="org__m", as_text=False, gold=(0, 0)):
    rows = []
    for i, (ll, g) in enumerate(zip(LLS, gold, strict=True)):
        answer = {"predictions": ll, "choices": [f"c{k}" for k in range(len(ll))], "gold_index": g}
        rows.append({**answer, "metrics": {"acc": float(np.argmax(ll) == g)}, "example": f"Q{i}"})
    if as_text:
        rows = [{k: str(v) for k, v in row.items()} for row in rows]
    where = folder / f"details_{model}" / "2024-01-01"
    where.mkdir(parents=True)
    pl.DataFrame(rows).write_parquet(where / "details_harness|arc:challenge|25_2024-01-01T00-00-00.parquet")


@pytest.mark.parametrize("as_text", [False, True])
def test_leaderboard(tmp_path, as_text):
    leaderboard(tmp_path, as_text=as_text)
    (r,) = read(others.details([tmp_path])).values()
    assert r.models.ids.tolist() == ["org/m"]
    assert r.items.ids.tolist() == ["arc_challenge/0", "arc_challenge/1"]
    assert r.correct.tolist() == [[1, 0]]
    assert r.items.label.tolist() == [0, 0]
    for i, p in enumerate(SOFTMAX):
        np.testing.assert_allclose(r.probs[0, i, : len(p)], p, atol=1e-6)


def test_a_superscript_is_no_number_of_a_choice(tmp_path):
    leaderboard(tmp_path, gold=("²", "²"))
    (r,) = read(others.details([tmp_path])).values()
    assert r.items.label is None
    assert sorted(["t/10", "t/²", "t/9"], key=natural) == ["t/²", "t/9", "t/10"]


def test_text_is_never_evaluated(tmp_path):
    where = tmp_path / "details_x"
    where.mkdir()
    row = {
        "predictions": f"open({str(tmp_path / 'boom')!r}, 'w')",
        "choices": "['a', 'b']",
        "gold_index": "0",
        "metrics": "{'acc': 1}",
    }
    pl.DataFrame([row]).write_parquet(where / "details_t_1.parquet")
    (r,) = read(others.details([tmp_path])).values()
    assert r.probs is None
    assert not (tmp_path / "boom").exists()


def test_lighteval(tmp_path):
    where = tmp_path / "details" / "org" / "m" / "2026-01-01T00-00-00"
    where.mkdir(parents=True)
    rows = [
        {"doc": {"id": str(9 - i), "query": f"Q{i}", "choices": [f"c{k}" for k in range(3)], "gold_index": [1]},
         "model_response": {"logprobs": [-1.0, -2.0, -3.0]}, "metric": {"acc": 0.0, "acc_norm": 1.0}}
        for i in range(3)
    ]  # fmt: skip
    pl.DataFrame(rows).write_parquet(where / "details_lighteval|arc|0_2026-01-01.parquet")
    (r,) = read(others.details([tmp_path])).values()
    assert r.models.ids.tolist() == ["org/m"]
    assert r.items.ids.tolist() == ["arc/7", "arc/8", "arc/9"]
    np.testing.assert_allclose(r.probs[0, 0], SOFTMAX[0], atol=1e-6)
    assert read(others.details([tmp_path], metric="acc_norm"))["org/m"].correct.tolist() == [[1, 1, 1]]
    with pytest.raises(FormatError, match=r"row 0: there is no metric 'f1'; the rows have acc, acc_norm"):
        read(others.details([tmp_path], metric="f1"))


def test_lighteval_without_a_score_for_every_choice_is_grades(tmp_path):
    doc = {"id": "0", "query": "Q", "choices": ["a", "b"], "gold_index": [0]}
    row = {"doc": doc, "model_response": {"logprobs": [-1.0]}, "metric": {"acc": 1.0}}
    where = tmp_path / "details" / "m" / "d"
    where.mkdir(parents=True)
    pl.DataFrame([row]).write_parquet(where / "details_t_d.parquet")
    assert read(others.details([tmp_path]))["m"].probs is None


def helm(folder, method="multiple_choice_separate_original", drop=False):
    folder.mkdir(parents=True)
    (folder / "run_spec.json").write_text(
        json.dumps({"name": "arc:challenge,model=org_m", "adapter_spec": {"model": "org/m", "method": method}})
    )
    states = []
    for i, ll in enumerate(LLS):
        references = [{"output": {"text": f"c{k}"}, "tags": ["correct"] if k == 0 else []} for k in range(len(ll))]
        instance = {"id": f"id{i}", "input": {"text": f"Q{i}"}, "references": references}
        for k, x in enumerate(ll):
            result = {"completions": [{"logprob": x}]}
            states.append({"instance": instance, "reference_index": k, "result": result, "request_mode": "original"})
            states.append({"instance": instance, "reference_index": k, "result": result, "request_mode": "calibration"})
    (folder / "scenario_state.json").write_text(json.dumps({"request_states": states[:-2] if drop else states}))
    means = [{"name": {"name": "exact_match"}, "count": 1, "mean": float(i)} for i in range(2)]
    stats = [{"instance_id": f"id{i}", "train_trial_index": 0, "stats": [means[i]]} for i in range(2)]
    (folder / "per_instance_stats.json").write_text(json.dumps(stats))


def test_helm(tmp_path):
    helm(tmp_path / "a")
    (r,) = read(others.helm([tmp_path])).values()
    assert r.models.ids.tolist() == ["org/m"]
    assert r.items.ids.tolist() == ["arc:challenge/id0", "arc:challenge/id1"]
    assert r.correct.tolist() == [[1, 0]]
    np.testing.assert_allclose(r.probs[0, 0], SOFTMAX[0], atol=1e-6)
    helm(tmp_path / "b", method="generation")
    (r,) = read(others.helm([tmp_path / "b"])).values()
    assert r.probs is None
    assert r.correct.tolist() == [[0, 1]]
    helm(tmp_path / "c", drop=True)
    with pytest.raises(DiscoError, match="has answers to 1 of 2 choices"):
        read(others.helm([tmp_path / "c"]))
    with pytest.raises(DiscoError, match="has no 'f1'; it has exact_match"):
        read(others.helm([tmp_path / "b"], metric="f1"))


def test_perturbed_instances_of_helm_are_passed_over(tmp_path):
    """Robustness runs ask the same instances again, misspelt: under the same ids, with answers of their own."""
    for name, method in (("a", "multiple_choice_separate_original"), ("b", "generation")):
        helm(tmp_path / name, method=method)
        states = json.loads((tmp_path / name / "scenario_state.json").read_text())["request_states"]
        other = json.loads(json.dumps(states))
        for state in other:
            state["instance"] |= {"perturbation": {"name": "misspellings"}, "input": {"text": "Qq"}}
            state["result"] = {"completions": [{"logprob": -0.1 if state["reference_index"] else -9.0}]}
        (tmp_path / name / "scenario_state.json").write_text(json.dumps({"request_states": states + other}))
        stats = json.loads((tmp_path / name / "per_instance_stats.json").read_text())
        for one in json.loads(json.dumps(stats)):
            one["perturbation"] = {"name": "misspellings"}
            one["stats"][0]["mean"] = 1 - one["stats"][0]["mean"]
            stats.append(one)
        for one in stats[:2]:  # the worst over an instance and its perturbed copies stands beside it
            one["stats"].append(
                {"name": {"name": "exact_match", "perturbation": {"name": "worst"}}, "count": 1, "mean": 0}
            )
        (tmp_path / name / "per_instance_stats.json").write_text(json.dumps(stats))
    (plain,), (r,) = (read(others.helm([tmp_path / name])).values() for name in "ab")
    assert plain.correct.tolist() == [[1, 0]]
    for i, p in enumerate(SOFTMAX):
        np.testing.assert_allclose(plain.probs[0, i, : len(p)], p, atol=1e-6)
    assert r.correct.tolist() == [[0, 1]]
    assert r.items.ids.tolist() == plain.items.ids.tolist() == ["arc:challenge/id0", "arc:challenge/id1"]
    helm(tmp_path / "c")
    (alone,) = read(others.helm([tmp_path / "c"])).values()
    assert alone.items.digest.tolist() == plain.items.digest.tolist()


def test_opencompass(tmp_path):
    where = tmp_path / "predictions" / "m"
    where.mkdir(parents=True)
    rows = {
        str(i): {"label: A": {"PPL": 1.2}, "label: B": {"PPL": 1.4}, "prediction": "A", "gold": g}
        for i, g in enumerate("AB")
    }
    (where / "arc.json").write_text(json.dumps(rows))
    (r,) = read(others.opencompass([tmp_path])).values()
    assert r.probs is None
    assert r.items.ids.tolist() == ["arc/0", "arc/1"]
    assert r.correct.tolist() == [[1, 0]]
    (where / "arc.json").write_text(json.dumps({"0": {"prediction": "A"}}))
    with pytest.raises(FormatError, match="entry 0: it has no prediction and gold"):
        read(others.opencompass([tmp_path]))


def timm(folder, name, n=20, classes=5, separate=False, seed=0, names=None):
    p = np.random.default_rng(seed).dirichlet(np.ones(classes), n).astype(np.float32)
    names = names or [f"img{i:03d}.jpg" for i in range(n)]
    columns = {f"prob_{c}": p[:, c] for c in range(classes)} if separate else {"prob": p.tolist()}
    pl.DataFrame({"filename": names, **columns}).write_parquet(folder / f"{name}.parquet")
    return p


def labels(folder, n=20):
    pl.DataFrame(
        {"filename": [f"img{i:03d}.jpg" for i in range(n)][::-1], "label": [i % 5 for i in range(n)]}
    ).write_csv(folder / "labels.csv")
    return folder / "labels.csv"


@pytest.mark.parametrize("separate", [False, True])
def test_timm(tmp_path, separate):
    p = timm(tmp_path, "resnet", separate=separate)
    (r,) = read(others.timm([tmp_path / "resnet.parquet"], labels(tmp_path))).values()
    np.testing.assert_allclose(r.probs[0], p[::-1], atol=1e-6)
    assert r.items.label.tolist() == [i % 5 for i in range(20)]
    assert r.models.ids.tolist() == ["resnet"]


def test_timm_refusals(tmp_path):
    file = labels(tmp_path)
    timm(tmp_path, "few", names=[f"img{i:03d}.jpg" for i in range(10)], n=10)
    with pytest.raises(AlignmentError, match="has no answer to 10 labelled files: img010"):
        read(others.timm([tmp_path / "few.parquet"], file))
    pl.DataFrame({"filename": ["a"], "logit": [[1.0, 2.0]]}).write_parquet(tmp_path / "l.parquet")
    with pytest.raises(FormatError, match="run with --output-type prob"):
        read(others.timm([tmp_path / "l.parquet"], file))
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FormatError, match="columns filename and label"):
        read(others.timm([tmp_path / "few.parquet"], tmp_path / "x.csv"))


def test_on_the_command_line(tmp_path):
    for k in range(12):
        timm(tmp_path, f"m{k}", seed=k)
    labels(tmp_path)
    files = [f"m{k}.parquet" for k in range(12)]
    out = disco("import", "timm", *files, "--labels", "labels.csv", "--out", "s.zarr", "--json", cwd=tmp_path)
    assert json.loads(out.stdout)["n_models"] == 12
    assert (
        "12 were there already"
        in disco("import", "timm", *files, "--labels", "labels.csv", "--out", "s.zarr", cwd=tmp_path).stdout
    )
    leaderboard(tmp_path / "a", "org__a")
    leaderboard(tmp_path / "b", "org__b")
    disco("import", "leaderboard", "a", "b", "--out", "l.zarr", cwd=tmp_path)
    assert open_responses(tmp_path / "l.zarr").models.ids.tolist() == ["org/a", "org/b"]
    for form in ("lighteval", "leaderboard", "helm", "opencompass"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        assert "holds no" in refused("import", form, "empty", "--out", "x.zarr", cwd=tmp_path)


def test_models_that_answered_other_items_are_refused(tmp_path):
    helm(tmp_path / "a")
    second = tmp_path / "b"
    helm(second)
    for file in ("run_spec.json", "scenario_state.json"):
        text = (second / file).read_text().replace("org/m", "org/n").replace("id1", "id7")
        (second / file).write_text(text)
    line = refused("import", "helm", "a", "b", "--out", "x.zarr", cwd=tmp_path)
    assert "'org/n' has no answers to 1 items, such as arc:challenge/id1" in line
    assert not (tmp_path / "x.zarr").exists()


def lighteval(folder, model, *metrics, task="arc"):
    """One model's rows, whose grade is another by every metric."""
    where = folder / "details" / "org" / model / "2026-01-01"
    where.mkdir(parents=True)
    doc = {"query": "Q", "choices": ["a", "b"], "gold_index": [0]}
    grades = {"acc": 0.0, "acc_norm": 1.0}
    rows = [
        {"doc": {**doc, "id": str(i)}, "model_response": {"logprobs": [-2.0, -1.0]},
         "metric": {m: grades[m] for m in metrics}} for i in range(3)
    ]  # fmt: skip
    pl.DataFrame(rows).write_parquet(where / f"details_lighteval|{task}|0_2026-01-01.parquet")


def test_what_decided_a_task_is_kept_and_not_mixed(tmp_path):
    lighteval(tmp_path / "runs", "a", "acc_norm")
    lighteval(tmp_path / "runs", "b", "acc", "acc_norm")
    graded = [r.provenance["graded"] for r in read(others.details([tmp_path / "runs"])).values()]
    assert graded == [{"arc": "acc_norm"}, {"arc": "acc"}]
    line = refused("import", "lighteval", "runs", "--out", "x.zarr", cwd=tmp_path)
    assert "'org/a' has 'arc' graded by 'acc_norm', 'org/b' by 'acc'" in line
    disco("import", "lighteval", "runs", "--metric", "arc=acc_norm", "--out", "x.zarr", cwd=tmp_path)
    assert open_responses(tmp_path / "x.zarr").grades().min() == 1
    line = refused("import", "lighteval", "runs", "--metric", "mmlu=acc", "--out", "y.zarr", cwd=tmp_path)
    assert "no task is called as in 'mmlu=acc'; there are arc" in line
    helm(tmp_path / "h1")
    assert read(others.helm([tmp_path / "h1"]))["org/m"].provenance["graded"] == {
        "arc:challenge": "the most probable choice"
    }
    helm(tmp_path / "h2", "generation")
    assert read(others.helm([tmp_path / "h2"]))["org/m"].provenance["graded"] == {"arc:challenge": "exact_match"}


def test_helm_names_the_model_anywhere_in_a_run(tmp_path):
    for model in "ab":
        helm(tmp_path / model)
        file = tmp_path / model / "run_spec.json"
        name = f"boolq:model=org_{model},data_augmentation=canonical"
        spec = {"name": name, "adapter_spec": {"model": f"org/{model}", "method": "generation"}}
        file.write_text(json.dumps(spec))
    found = read(others.helm([tmp_path]))
    assert {name: r.items.ids.tolist()[0] for name, r in found.items()} == {
        f"org/{model}": "boolq:data_augmentation=canonical/id0" for model in "ab"
    }
    file.write_text(json.dumps({**spec, "name": "gsm:model=org_b"}))
    assert read(others.helm([tmp_path / "b"]))["org/b"].items.subtasks == ["gsm"]


def test_opencompass_grades_are_compared_with_its_results(tmp_path):
    """Answers in sentences are graded by the letter in them, which only the tool's own evaluator finds."""
    for kind in ("predictions", "results"):
        (tmp_path / "oc" / kind / "m").mkdir(parents=True)
    answers = zip(["A", "The answer is B.", "C", "A"], "ABAA", strict=True)
    rows = {str(i): {"origin_prompt": "Q", "prediction": p, "gold": g} for i, (p, g) in enumerate(answers)}
    (tmp_path / "oc" / "predictions" / "m" / "mmlu.json").write_text(json.dumps(rows))
    said = tmp_path / "oc" / "results" / "m" / "mmlu.json"
    said.write_text(json.dumps({"accuracy": 75.0, "details": {}}))
    line = refused("import", "opencompass", "oc", "--out", "s.zarr", cwd=tmp_path)
    assert "50.0 % of the predictions are the gold text, but" in line
    assert "says accuracy 75, so right is something else here" in line
    said.write_text(json.dumps({"accuracy": 50.0}))
    done = disco("import", "opencompass", "oc", "--out", "s.zarr", cwd=tmp_path)
    assert "gold text" not in done.stderr
    said.unlink()
    done = disco("import", "opencompass", "oc", "--out", "t.zarr", cwd=tmp_path)
    assert "Answers of 1 models are graded as right where the prediction is the gold text" in done.stderr


def test_arguments_that_overlap_count_once_and_files_of_one_name_are_not_one_model(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        timm(tmp_path / name, "results")
    labels(tmp_path)
    first, second = (tmp_path / name / "results.parquet" for name in "ab")
    assert len(read(others.timm([first, first], tmp_path / "labels.csv"))) == 1
    with pytest.raises(AlignmentError, match=r"would both be 'results', since models are named by their files; rename"):
        read(others.timm([first, second], tmp_path / "labels.csv"))
    helm(tmp_path / "h")
    assert read(others.helm([tmp_path / "h", tmp_path]))["org/m"].n_items == 2
    where = tmp_path / "oc" / "predictions" / "m"
    where.mkdir(parents=True)
    (where / "arc.json").write_text(json.dumps({"0": {"prediction": "A", "gold": "A"}}))
    assert read(others.opencompass([tmp_path / "oc", tmp_path]))["m"].n_items == 1
    leaderboard(tmp_path / "l")
    assert read(others.details([tmp_path / "l", tmp_path]))["org/m"].n_items == 2
