"""Files as lmms-eval 0.7.3 writes them: date in front, no documents, metrics that are numbers or parts of them."""

import json

import numpy as np
import pytest

from disco_eval import AlignmentError, FormatError, ValidationError, load
from disco_eval.doubts import limited
from disco_eval.io import open_answers
from disco_eval.io.lmms_eval import lmms_eval, read_lmms_eval
from disco_eval.store import open_responses
from tests.cli.test_cli import disco, refused

DATE = "20261124_064852"
STAR = [{"average": {"question_id": k, "score": s}, "maths": {"score": s}} for k, s in enumerate((1.0, 0.0, 1.0, 0.5))]
SEED = [{"seed_all": {"pred": p, "answer": "A"}} for p in ("A", "b", " a ", "C")]
MME = [{f"mme_{part}_score": {"score": s}} for part, s in (("cognition", 1.0), ("perception", 0.0))]
NUMBER = [{"exact_match": 1.0, "mae": 7.0, "submission": {"a": 1}}, {"exact_match": False, "mae": 2.0}]
HALF = 50.0


def write(
    folder,
    rows=NUMBER,
    *,
    task="toy",
    model="org/m",
    reported=None,
    listed=None,
    date=DATE,
    asked="Q",
    metadata=None,
    numbers=None,
    **config,
):
    """One run of one task: a row for each of what its metrics logged; ``numbers`` are those in what was asked."""
    folder.mkdir(parents=True, exist_ok=True)
    names = listed or list(dict.fromkeys(name for row in rows for name in row))
    about = {
        "results": {task: {"alias": task, **{f"{k},none": v for k, v in (reported or {}).items()}}},
        "configs": {
            task: {"task": task, "metric_list": [{"metric": name} for name in names], "metadata": metadata},
        },
        "versions": {task: "Yaml"}, "n-shot": {task: 0}, "n-samples": {task: {"original": len(rows)}},
        "config": {"model_args": "a=1", "limit": None, "offset": 0, **config}, "date": date, "model_name": model,
    }  # fmt: skip
    (folder / f"{date}_results.json").write_text(json.dumps(about))
    lines = [
        {"doc_id": k, "target": "A", "filtered_resps": "A", "doc_hash": "74", **row, "input": f"{asked} {n}?"}
        for k, (n, row) in enumerate(zip(numbers or range(len(rows)), rows, strict=True))
    ]
    file = folder / f"{date}_samples_{task}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@pytest.mark.parametrize(
    ("rows", "reported", "grades"),
    [
        (STAR, {}, [1, 0, 1, 0.5]),
        (SEED, {"seed_all": HALF}, [1, 0, 1, 0]),
        (SEED, {"seed_all": HALF / 100}, [1, 0, 1, 0]),
        (MME, {}, [1, 0]),
        (NUMBER, {}, [1, 0]),
    ],
)
def test_grades_are_what_the_metric_logged(tmp_path, rows, reported, grades):
    write(tmp_path, rows, reported=reported)
    r = read_lmms_eval([tmp_path])
    assert r.probs is None
    assert r.correct.tolist() == [grades]
    assert r.items.ids.tolist() == [f"toy/{k}" for k in range(len(rows))]
    assert set(r.items.subtask) == {"toy"}
    assert r.models.ids.tolist() == ["org/m"]
    assert r.provenance["models"]["org/m"]["tasks"]["toy"]["partial"] is False
    assert open_answers(tmp_path, items=["toy/1"]).correct.tolist() == [grades[1:2]]


def test_equal_texts_count_as_right_only_where_the_results_agree(tmp_path):
    """Else right is something else, such as the number inside a sentence."""
    file = write(tmp_path, SEED, reported={"seed_all": 75.0})
    with pytest.raises(
        FormatError, match=r"50.0 % of them are the same text, but the results file says 75, so right is"
    ):
        read_lmms_eval([tmp_path])
    write(tmp_path, SEED * 50, reported={"seed_all": 50.5})  # one of 200 counts for right otherwise
    with pytest.raises(FormatError, match=r"the results file says 50\.5"):
        read_lmms_eval([tmp_path])
    write(tmp_path, SEED)
    with pytest.raises(FormatError, match=f"'{file}' holds predictions and answers for 'seed_all'.* says nothing"):
        read_lmms_eval([tmp_path])


def test_what_cannot_be_a_grade_is_refused(tmp_path):
    write(tmp_path, [{"judged": {"score": 4.0}}])
    with pytest.raises(ValidationError, match=r"line 1: the grade is 4.0, expected 0 to 1; choose another metric"):
        read_lmms_eval([tmp_path])
    write(tmp_path, [{"caption": {"text": "a cat"}}])
    with pytest.raises(
        FormatError, match=r"no metric grades every document .none grades any.; choose one with --metric"
    ):
        read_lmms_eval([tmp_path])
    write(tmp_path, [{"a": 1.0}, {"b": 1.0, "c": 0.0}])
    with pytest.raises(FormatError, match=r"no metric grades every document \(a, b, c\)"):
        read_lmms_eval([tmp_path])
    write(tmp_path, NUMBER)
    ((_, read),) = lmms_eval([tmp_path], metric="f1")
    with pytest.raises(FormatError, match="line 1: there is no metric 'f1'; the row has exact_match, mae"):
        read()


def test_damaged_files_are_told_by_line(tmp_path):
    file = write(tmp_path)
    whole = file.read_text()
    for text, line in (
        (whole[:-20], "line 2: the line is cut short or not JSON"),
        ("3\n" + whole, "line 1: the line is cut short or not JSON"),
        (whole.replace('"doc_id": 1', '"doc_id": 1.5'), "line 2: doc_id is 1.5, expected a number"),
        (whole.replace('"doc_id": 1', '"no": 1'), "line 2: there is no 'doc_id'"),
        (whole.splitlines()[0], "has 1 documents, but the task has 2: rows are lost"),
        ("", "is empty; the run did not finish"),
    ):
        file.write_text(text)
        with pytest.raises(FormatError, match=line):
            read_lmms_eval([tmp_path])
    write(tmp_path, limit=-1)
    file.write_text(whole.splitlines()[0])
    with pytest.raises(FormatError, match="rows are lost"):
        read_lmms_eval([tmp_path])
    about = json.loads((tmp_path / f"{DATE}_results.json").read_text())
    about["config"]["limit"] = 1
    (tmp_path / f"{DATE}_results.json").write_text(json.dumps(about))
    assert read_lmms_eval([tmp_path]).n_items == 1
    file.unlink()
    with pytest.raises(FormatError, match="no samples files beside it; run lmms-eval with --log_samples"):
        read_lmms_eval([tmp_path])
    with pytest.raises(FormatError, match=r"holds no \*_results.json of lmms-eval"):
        read_lmms_eval([tmp_path / "none"])
    file.write_text(whole)
    for text, line in (
        ("[]", "is not a results file of lmms-eval"),
        ('{"results": {}, "configs": {"toy": 3}}', "is not a run of lmms-eval in the known layout"),
    ):
        (tmp_path / f"{DATE}_results.json").write_text(text)
        with pytest.raises(FormatError, match=line):
            read_lmms_eval([tmp_path])


def test_tasks_of_several_runs_are_subtasks_and_one_task_twice_is_refused(tmp_path):
    write(tmp_path / "a", STAR, task="star")
    write(tmp_path / "b", NUMBER, task="toy", date="20261125_000000")
    r = read_lmms_eval([tmp_path])
    assert r.items.subtasks == ["star", "toy"]
    assert r.provenance["models"]["org/m"]["date"] == "20261125_000000"
    write(tmp_path / "c", NUMBER, task="toy", date="20261126_000000")
    with pytest.raises(AlignmentError, match="'org/m' has two runs of toy"):
        read_lmms_eval([tmp_path])


def test_on_the_command_line(tmp_path):
    for k in range(3):
        write(tmp_path / "runs" / f"m{k}", STAR, model=f"org/m{k}" if k else "")
    out = disco("import", "lmms-eval", "runs", "--out", "s.zarr", "--json", cwd=tmp_path)
    assert json.loads(out.stdout)["added"] == ["m0", "org/m1", "org/m2"]
    again = disco("import", "lmms-eval", "runs", "--out", "s.zarr", cwd=tmp_path).stdout
    assert "3 were there already" in again
    assert open_responses(tmp_path / "s.zarr").n_items == 4
    write(tmp_path / "other", STAR, model="org/o", asked="Think first. Q")
    line = refused("import", "lmms-eval", "runs", "other", "--out", "t.zarr", cwd=tmp_path)
    assert "'org/o' answered 4 of 4 items with other prompts than 'm0'" in line
    line = refused("import", "lm-eval", "runs", "--out", "t.zarr", cwd=tmp_path)
    assert f"('{DATE}_results.json' looks like lmms-eval's: disco import lmms-eval)" in line
    one = disco("import", "lmms-eval", "other", "--metric", "maths", "--out", "t.zarr", "--json", cwd=tmp_path)
    assert json.loads(one.stdout)["n_items"] == 4


def test_a_metric_without_a_value_matters_only_where_it_counts(tmp_path):
    file = write(tmp_path, [{"f1": 0.5, "rating": 4.0, "speed": 1.0}, {"f1": 1.0, "rating": 5.0, "speed": 0.0}])
    file.write_text(file.read_text().replace('"speed": 1.0', '"speed": NaN'))
    r = read_lmms_eval([tmp_path])
    assert r.correct.tolist() == [[0.5, 1.0]]
    assert r.provenance["models"]["org/m"]["tasks"]["toy"]["metric"] == ["f1"]
    with pytest.raises(ValidationError, match=r"line 1: the grade is 4.0, expected 0 to 1"):
        read_lmms_eval([tmp_path], metric="rating")
    with pytest.raises(ValidationError, match=r"line 1: the grade is nan, expected 0 to 1"):
        read_lmms_eval([tmp_path], metric="speed")


def test_anchors_alone_are_read_under_the_names_that_they_have_in_the_whole_task(tmp_path):
    about = {"version": 2.0, "disco_task": "toy", "disco_doc_ids": [2, 3]}
    write(tmp_path / "new", SEED[2:], task="toy_anchors", metadata=about, numbers=[2, 3], reported={"seed_all": HALF})
    write(tmp_path / "old", SEED, reported={"seed_all": HALF}, model="org/o")
    new, old = read_lmms_eval([tmp_path / "new"]), read_lmms_eval([tmp_path / "old"])
    assert new.items.ids.tolist() == ["toy/2", "toy/3"]
    assert new.items.subtasks == ["toy"]
    assert new.items.digest.tolist() == old.items.digest[[2, 3]].tolist()
    assert new.correct.tolist() == old.correct[:, [2, 3]].tolist()
    assert new.provenance["models"]["org/m"]["tasks"]["toy"]["partial"] is True
    write(tmp_path / "new", SEED, date="20270101_000000")
    with pytest.raises(AlignmentError, match="'org/m' has two runs of toy"):
        read_lmms_eval([tmp_path / "new"])
    for wrong, line in (
        ({**about, "disco_doc_ids": [1]}, "doc_id is 1, but 1 documents were asked"),
        ({**about, "disco_doc_ids": [1, 1]}, "does not say which documents of 'toy' were asked"),
        ({**about, "disco_doc_ids": [1, -3]}, "does not say which documents of 'toy' were asked"),
        ({"disco_task": "toy"}, "does not say which documents of 'toy' were asked .disco_doc_ids of 'toy_anchors'"),
        ({**about, "disco_task": 3}, "does not say which documents"),
    ):
        write(tmp_path / "wrong", SEED[2:], task="toy_anchors", metadata=wrong, reported={"seed_all": HALF})
        with pytest.raises(FormatError, match=line):
            read_lmms_eval([tmp_path / "wrong"])


def benchmark(tmp_path, n_models=24, n_items=40):
    """Models whose answers are right by one metric where they are not by the other; returns every model's rows."""
    rng = np.random.default_rng(0)
    right = rng.random((n_models, n_items)) < rng.uniform(0.2, 0.9, (n_models, 1))
    rows = [[{"average": float(x), "maths": float(not x)} for x in model] for model in right]
    for k, one in enumerate(rows):
        write(tmp_path / "runs" / f"m{k}", one, model=f"org/m{k}")
    return rows


def test_answers_are_graded_as_the_sources_were(tmp_path):
    rows = benchmark(tmp_path)
    disco("import", "lmms-eval", "runs", "--metric", "maths", "--out", "maths.zarr", cwd=tmp_path)
    disco("condense", "maths.zarr", "--anchors", 10, "--out", "c", "--no-curve", cwd=tmp_path)
    write(tmp_path / "new", rows[0], model="org/new")
    disco("import", "lmms-eval", "new", "--metric", "maths", "--out", "new.zarr", cwd=tmp_path)
    by_folder, by_store = (
        json.loads(disco("estimate", "c", answers, "--json", cwd=tmp_path).stdout)["estimates"]
        for answers in ("new", "new.zarr")
    )
    assert by_folder == by_store
    disco("import", "lmms-eval", "new", "--out", "otherwise.zarr", cwd=tmp_path)
    line = refused("estimate", "c", "otherwise.zarr", cwd=tmp_path)
    assert "'maths' has 'toy' graded by 'maths', 'otherwise.zarr' by 'average', and scores of both cannot" in line
    c = load(tmp_path / "c")
    assert c.estimate(open_answers(tmp_path / "new", graded=c.provenance["responses"]))[0].score == by_store[0]["score"]
    with pytest.raises(AlignmentError, match="'maths' has 'toy' graded by 'maths', these answers by 'average'"):
        c.estimate(open_answers(tmp_path / "new"))
    line = refused("compare", "c", "new", "otherwise.zarr", cwd=tmp_path)
    assert "'otherwise.zarr' by 'average'" in line


def test_benchmarks_condensed_together_may_have_been_graded_by_different_metrics(tmp_path):
    new = {}
    for seed, (task, metric) in enumerate((("aa", "maths"), ("bb", "average"))):
        right = np.random.default_rng(seed).random((15, 30)) < np.linspace(0.2, 0.9, 15)[:, None]
        rows = [[{"average": float(x), "maths": float(not x)} for x in model] for model in right]
        for k, one in enumerate(rows):
            write(tmp_path / f"runs-{task}" / f"m{k}", one, task=task, model=f"org/m{k}")
        write(tmp_path / "new" / task, rows[3], task=task, model="org/new")
        write(tmp_path / f"new-{task}", rows[3], task=task, model="org/new")
        new[task] = read_lmms_eval([tmp_path / "new" / task], metric=metric)
        disco("import", "lmms-eval", f"runs-{task}", "--metric", metric, "--out", f"{task}.zarr", cwd=tmp_path)
    disco("condense", "aa.zarr", "bb.zarr", "--anchors", 12, "--out", "c", "--no-curve", cwd=tmp_path)
    by_task = disco("estimate", "c", "new-aa", "new-bb", "--json", cwd=tmp_path).stdout
    named = disco("estimate", "c", "new/aa", "new/bb", "--json", cwd=tmp_path).stdout
    for task, r in new.items():
        r.save(tmp_path / f"{task}-new.zarr")
    stored = disco("estimate", "c", "aa-new.zarr", "bb-new.zarr", "--json", cwd=tmp_path).stdout
    assert json.loads(named)["estimates"] == json.loads(stored)["estimates"] == json.loads(by_task)["estimates"]
    disco("import", "lmms-eval", "new-aa", "--metric", "average", "--out", "other.zarr", cwd=tmp_path)
    line = refused("estimate", "c", "other.zarr", "bb-new.zarr", cwd=tmp_path)
    assert "'aa' has 'aa' graded by 'maths', 'other.zarr' by 'average'" in line


def test_anchors_alone_are_graded_by_what_decided_the_whole(tmp_path):
    """The default is a metric that every document has: among the anchors alone that may be another."""
    rng = np.random.default_rng(0)
    right = rng.random((16, 30)) < rng.uniform(0.2, 0.9, (16, 1))
    right[:, 0] = True  # so that it is no anchor
    rows = [[{"judged": {"score": float(not x)}, "overall": float(x)} for x in one] for one in right]
    for k, one in enumerate(rows):
        del one[0]["judged"]
        write(tmp_path / "runs" / f"m{k}", one, model=f"org/m{k}")
    disco("import", "lmms-eval", "runs", "--out", "all.zarr", cwd=tmp_path)
    assert open_responses(tmp_path / "all.zarr").provenance["graded"] == {"toy": "overall"}
    disco("condense", "all.zarr", "--anchors", 10, "--out", "c", "--no-curve", cwd=tmp_path)
    kept = [int(i.rpartition("/")[2]) for i in load(tmp_path / "c").anchors.ids]
    assert 0 not in kept
    write(tmp_path / "whole", rows[3], model="org/new")
    metadata = {"disco_task": "toy", "disco_doc_ids": kept}
    few = [rows[3][k] for k in kept]
    write(tmp_path / "part", few, model="org/new", task="toy_anchors", metadata=metadata, numbers=kept)
    assert open_answers(tmp_path / "part").provenance["graded"] == {"toy": "judged"}
    whole, part = (json.loads(disco("estimate", "c", a, "--json", cwd=tmp_path).stdout) for a in ("whole", "part"))
    assert whole["estimates"] == part["estimates"]


def test_models_graded_by_different_defaults_are_not_mixed(tmp_path):
    write(tmp_path / "runs" / "a", [{"overall": 1.0}, {"overall": 0.0}], model="a")
    write(tmp_path / "runs" / "b", [{"overall": 1.0, "acc": 0.0}, {"overall": 0.0, "acc": 0.0}], model="b")
    line = refused("import", "lmms-eval", "runs", "--out", "s.zarr", cwd=tmp_path)
    assert "'a' has 'toy' graded by 'overall', 'b' by 'acc', and scores of both cannot be compared" in line
    with pytest.raises(AlignmentError, match="'a' has 'toy' graded by 'overall', 'b' by 'acc'"):
        read_lmms_eval([tmp_path / "runs"])
    disco("import", "lmms-eval", "runs", "--metric", "overall", "--out", "s.zarr", cwd=tmp_path)


def test_a_task_whose_documents_have_one_of_two_metrics_is_read_so_again(tmp_path):
    write(tmp_path, MME)
    r = read_lmms_eval([tmp_path])
    how = r.provenance["graded"]
    assert how == {"toy": "mme_cognition_score|mme_perception_score"}
    again = open_answers(tmp_path, graded=r.provenance)
    assert again.correct.tolist() == r.correct.tolist()
    assert again.provenance["graded"] == how
    write(tmp_path / "half", MME[:1], listed=list(how["toy"].split("|")))
    assert open_answers(tmp_path / "half", graded=r.provenance).provenance["graded"] == how


def test_tasks_that_are_not_wanted_are_not_graded(tmp_path):
    write(tmp_path, NUMBER)
    write(tmp_path, [{"judged": {"scores": [8, 7]}}], task="more", date="20261125_000000")
    assert open_answers(tmp_path, items=["toy/0", "toy/1"]).correct.tolist() == [[1, 0]]
    with pytest.raises(FormatError, match="none grades any"):
        open_answers(tmp_path)


def test_runs_of_one_name_with_other_arguments_are_two_models(tmp_path):
    write(tmp_path, NUMBER, model_args="a=1,batch_size=1")
    write(tmp_path, NUMBER, task="more", date="20261125_000000", model_args="a=1,load_in_4bit=True")
    with pytest.raises(AlignmentError, match=r"'org/m' has runs of two models: .* differ in load_in_4bit not given"):
        read_lmms_eval([tmp_path])


def test_runs_of_a_part_of_a_task_are_told(tmp_path):
    write(tmp_path / "runs", NUMBER, limit=2)
    assert "1 of 1 models ran on a part of their tasks" in limited(read_lmms_eval([tmp_path]).provenance)
    write(tmp_path / "runs", NUMBER)
    assert limited(read_lmms_eval([tmp_path]).provenance) == ""


def test_of_benchmarks_of_several_harnesses_those_of_a_folders_own_tell_how_it_is_graded(tmp_path):
    write(tmp_path / "new", STAR)
    ours = {name: {"harness": "lmms-eval", "graded": {name: "maths"}, "metric": "default"} for name in ("toy", "b")}
    other = {"harness": "lm-eval", "graded": {"toy": "acc"}, "metric": "acc"}
    r = open_answers(tmp_path / "new", graded={"benchmarks": {**ours, "c": other, "d": {}}})
    assert r.provenance["graded"] == {"toy": "maths"}
    contradicts = {"harness": "lmms-eval", "graded": {"toy": "average"}, "metric": "average"}
    r = open_answers(tmp_path / "new", graded={"benchmarks": {**ours, "c": contradicts}})
    assert r.provenance["graded"] == {"toy": "average"}  # by default


def test_arguments_that_overlap_and_files_of_others_are_passed_over(tmp_path):
    write(tmp_path / "runs", NUMBER)
    assert read_lmms_eval([tmp_path / "runs", tmp_path]).n_models == 1
    (tmp_path / "runs" / "results_summary.json").write_text("{}")
    assert open_answers(tmp_path).n_models == 1
