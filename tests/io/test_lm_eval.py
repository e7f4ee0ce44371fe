"""Samples files of the documented layout; tests/harness reads those that the real lm_eval writes."""

import json

import numpy as np
import polars as pl
import pytest

from disco_eval import AlignmentError, DiscoError, FormatError, Items, Models, Responses, open_responses
from disco_eval.io import importing, open_answers
from disco_eval.io.importing import import_models
from disco_eval.io.lm_eval import check_same_items, find_runs, read_lm_eval, read_run
from tests.cli.test_cli import disco, refused
from tests.conftest import population


def row(doc_id, lls, gold, *, prompt="Q", metrics=None, **extra):
    """A multiple-choice row as lm_eval logs it: every number as text."""
    best = int(np.argmax([-1e9 if np.isnan(x) else x for x in lls]))
    grades = {"acc": float(best == gold), "acc_norm": 1.0} if metrics is None else metrics
    return {
        "doc_id": doc_id,
        "doc": {"question": "long " * 50},
        "target": str(gold),
        "arguments": {
            f"gen_args_{c}": {"arg_0": f"{prompt} {doc_id}", "arg_1": f" choice {c}"} for c in range(len(lls))
        },
        "resps": [[[str(x), "False"]] for x in lls],
        "filtered_resps": [[str(x), "False"] for x in lls],
        "filter": "none",
        "metrics": list(grades),
        **grades,
        **extra,
    }


def write_run(folder, model="org/m", tasks=None, stamp="2026-01-01T00-00-00.1", **about):
    """A run's folder; ``tasks`` maps names to rows."""
    where = folder / model.replace("/", "__")
    where.mkdir(parents=True, exist_ok=True)
    tasks = tasks or {"t": [row(i, [-1.0, -2.0 - i, -3.0], i % 3) for i in range(4)]}
    documents = {t: len({r["doc_id"] for r in rows}) for t, rows in tasks.items()}  # lm_eval counts no filters
    record = {
        "results": {}, "model_name": model, "n-shot": dict.fromkeys(tasks, 0), "versions": dict.fromkeys(tasks, 1),
        "n-samples": {t: {"original": n, "effective": n} for t, n in documents.items()},
        "config": {"model_revision": "main"}, "date": 1.7e9, "lm_eval_version": "0.4.13", **about,
    }  # fmt: skip
    (where / f"results_{stamp}.json").write_text(json.dumps(record))
    for task, rows in tasks.items():
        (where / f"samples_{task}_{stamp}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return where


def test_probabilities_are_the_softmax_over_own_choices(tmp_path):
    write_run(
        tmp_path, tasks={"b": [row(0, [-1.0, -2.0], 0)], "a": [row(10, [-1.0, -2.0, -3.0], 1), row(9, [-5.0, -4.0], 1)]}
    )
    r = read_lm_eval([tmp_path])
    assert r.items.ids.tolist() == ["a/9", "a/10", "b/0"]
    assert r.items.n_choices.tolist() == [2, 3, 2]
    assert r.items.label.tolist() == [1, 1, 0]
    assert r.items.subtask.tolist() == ["a", "a", "b"]
    assert r.correct.tolist() == [[1, 0, 1]]
    expected = np.exp([-1.0, -2.0, -3.0]) / np.exp([-1.0, -2.0, -3.0]).sum()
    np.testing.assert_allclose(r.probs[0, 1], expected, atol=1e-6)
    assert r.models.ids.tolist() == ["org/m"]
    assert r.models.revision.tolist() == ["main"]
    about = r.provenance["models"]["org/m"]
    assert about["n-shot"] == {"a": 0, "b": 0}
    assert about["lm_eval_version"] == "0.4.13"
    assert not about["partial"]


def test_metric_and_length(tmp_path):
    write_run(tmp_path)
    assert read_lm_eval([tmp_path], metric="acc_norm").correct.tolist() == [[1, 1, 1, 1]]
    plain, scaled = (read_lm_eval([tmp_path], length_normalised=x).probs[0, 0] for x in (False, True))
    expected = np.exp(np.array([-1.0, -2.0, -3.0]) / len("choice 0"))
    np.testing.assert_allclose(scaled, expected / expected.sum(), atol=1e-6)
    assert scaled[0] < plain[0]
    with pytest.raises(FormatError, match=r"line 1: there is no metric 'f1'; the rows have acc, acc_norm"):
        read_lm_eval([tmp_path], metric="f1")


def test_tasks_may_have_metrics_of_their_own(tmp_path):
    rows = [row(k, [-1.0, -2.0], 0, metrics={"acc": 0.0, "acc_norm": 1.0}) for k in range(3)]
    tasks = {"arc_easy": rows, "arc_hard": rows, "other": rows, "whole_anchors": rows}
    for k in range(2):
        write_run(tmp_path / "runs", f"org/m{k}", tasks)
    for metric, right in (
        ("arc_*=acc_norm", ["arc_easy", "arc_hard"]),
        ("arc_hard=acc;arc_*=acc_norm;acc", ["arc_easy"]),
        ("acc;arc_*=acc_norm", ["arc_easy", "arc_hard"]),  # what is for a task goes before what is for all
        ("arc_hard=acc;acc_norm", ["arc_easy", "other", "whole_anchors"]),
        ("whole=acc_norm", ["whole_anchors"]),  # a folder of tasks with the anchors alone
    ):
        r = read_lm_eval([tmp_path], metric=metric)
        assert sorted(set(r.items.subtask[r.correct[0] == 1])) == right, metric
    ask = ("import", "lm-eval", "runs", "--out", "s.zarr")
    disco(*ask, "--metric", "arc_*=acc_norm", "--metric", "acc", cwd=tmp_path)
    there = open_responses(tmp_path / "s.zarr")
    assert there.provenance["metric"] == "arc_*=acc_norm;acc"
    assert there.scores().tolist() == [0.5, 0.5]
    write_run(tmp_path / "more", "org/m2", tasks)
    assert there.provenance["graded"] == dict.fromkeys(("arc_easy", "arc_hard"), "acc_norm") | {
        "other": "acc", "whole_anchors": "acc",
    }  # fmt: skip
    line = refused("import", "lm-eval", "more", "--out", "s.zarr", "--metric", "acc", cwd=tmp_path)
    assert "'s.zarr' has 'arc_easy' graded by 'acc_norm', --metric asks for 'acc'" in line
    line = refused("import", "lm-eval", "more", "--out", "s.zarr", cwd=tmp_path)
    assert "has 'arc_easy' graded by 'acc_norm', the models to add by 'acc', and scores of both cannot" in line
    one_by_one = ("--metric", "arc_easy=acc_norm", "--metric", "arc_hard=acc_norm")  # comes to the same
    disco("import", "lm-eval", "more", "--out", "s.zarr", *one_by_one, cwd=tmp_path)
    assert open_responses(tmp_path / "s.zarr").n_models == 3
    line = refused(*ask, "--metric", "arc=acc_norm", cwd=tmp_path)
    assert "no task is called as in 'arc=acc_norm'; there are arc_easy, arc_hard, other" in line
    line = refused(*ask, "--metric", "acc", "--metric", "*=acc_norm", cwd=tmp_path)
    assert "--metric 'acc' decides no task: others are given for all of arc_easy, arc_hard, other" in line


def test_tasks_that_are_not_wanted_have_no_part_in_a_run(tmp_path):
    """A model's run of more tasks than were condensed: ones without choices, and ones that nothing grades."""
    choices = [row(k, [-1.0, -2.0], 0) for k in range(3)]
    text = {**row(0, [-1.0], 0, metrics={"word_perplexity": [-100.0, 20]}), "filtered_resps": "x"}
    generated = {**row(0, [-1.0], 0, metrics={"exact_match": 1.0}), "filtered_resps": ["x"]}
    write_run(tmp_path, tasks={"t": choices, "gen": [generated], "wiki": [text]})
    wanted = ["t/0", "t/2", "other/1"]
    r = open_answers(tmp_path, items=wanted)
    assert r.items.ids.tolist() == ["t/0", "t/2"]
    assert r.probs is not None
    assert r.provenance["graded"] == {"t": "acc"}
    with pytest.raises(DiscoError, match="samples_wiki"):
        open_answers(tmp_path)
    write_run(tmp_path / "anchors", tasks={"t_anchors": choices, "wiki": [text]})
    assert open_answers(tmp_path / "anchors", items=["t_anchors/0"]).n_items == 1
    assert open_answers(tmp_path / "anchors", items=["t/0", "t_anchors/0"]).n_items == 1


def test_runs_of_a_part_of_a_task_are_told(tmp_path):
    """As with --limit 2: what is imported is then no whole benchmark."""
    counts = {"n-samples": {"t": {"original": 120, "effective": 4}}}
    for model in "ab":
        write_run(tmp_path / "runs", model, **counts)
    said = "2 of 2 models ran on a part of their tasks (--limit, --samples, anchors) ('t' has 120 documents)"
    assert said in disco("import", "lm-eval", "runs", "--out", "s.zarr", cwd=tmp_path).stderr
    assert json.loads(disco("info", "s.zarr", "--json", cwd=tmp_path).stdout)["limited"] == said
    write_run(tmp_path / "whole", "a")
    assert "limited" not in json.loads(disco("info", "whole", "--json", cwd=tmp_path).stdout)


def with_args(args):
    return {"config": {"model_revision": "main", "model_args": args}}


def test_runs_of_one_name_with_other_arguments_are_two_models(tmp_path):
    """As a model and itself in 4 bits: lm_eval calls both by what is loaded."""
    args, rows = "pretrained=org/m,dtype=float16", [row(0, [-1.0, -2.0], 0)]
    write_run(tmp_path / "a", tasks={"a": rows}, **with_args(args))
    write_run(tmp_path / "b", tasks={"b": rows}, **with_args(f"{args},load_in_4bit=True,batch_size=4"))
    with pytest.raises(AlignmentError, match=r"'org/m' has runs of two models: .* differ in load_in_4bit not given"):
        find_runs([tmp_path])
    same = {"pretrained": "org/m/", "dtype": "float16", "device": "cuda:1"}
    write_run(tmp_path / "b", tasks={"b": rows}, **with_args(same))
    assert set(find_runs([tmp_path])[0].samples) == {"a", "b"}
    disco("import", "lm-eval", "a", "--out", "s.zarr", cwd=tmp_path)
    write_run(tmp_path / "c", tasks={"a": rows}, **with_args({**same, "peft": "org/adapter"}))
    done = disco("import", "lm-eval", "c", "--out", "s.zarr", cwd=tmp_path)
    assert "'org/m' was in 's.zarr' already, from a run that differs in peft not given against org/ada" in done.stderr
    again = disco("import", "lm-eval", "a", "--out", "s.zarr", cwd=tmp_path)
    assert "differs" not in again.stderr
    assert "1 were there already" in again.stdout


def test_a_metric_other_than_the_stores_is_refused_where_no_model_is_new(tmp_path):
    write_run(tmp_path / "runs")
    disco("import", "lm-eval", "runs", "--out", "s.zarr", cwd=tmp_path)
    line = refused("import", "lm-eval", "runs", "--out", "s.zarr", "--metric", "acc_norm", cwd=tmp_path)
    assert "'s.zarr' has 't' graded by 'acc', --metric asks for 'acc_norm', and scores of both" in line
    disco("import", "lm-eval", "runs", "--out", "s.zarr", "--metric", "acc", cwd=tmp_path)


def test_generated_answers_are_grades(tmp_path):
    rows = [{"doc_id": i, "target": "7", "arguments": {"gen_args_0": {"arg_0": f"Q{i}", "arg_1": {"until": []}}},
             "filtered_resps": ["7"], "filter": f, "metrics": ["exact_match"], "exact_match": g}
            for i in range(3) for f, g in (("strict", 1.0 if i else 0.0), ("flexible", 1.0))]  # fmt: skip
    write_run(tmp_path, tasks={"gsm": rows})
    r = read_lm_eval([tmp_path])
    assert r.probs is None
    assert r.correct.tolist() == [[0, 1, 1]]
    for metric in ("exact_match,flexible", ",flexible"):
        assert read_lm_eval([tmp_path], metric=metric).correct.tolist() == [[1, 1, 1]]
    assert read_lm_eval([tmp_path], metric="exact_match,strict").correct.tolist() == [[0, 1, 1]]
    with pytest.raises(
        FormatError, match=r"no row is of the filter 'none' \(--metric METRIC,FILTER\); flexible, strict"
    ):
        read_lm_eval([tmp_path], metric="exact_match,none")
    with pytest.raises(FormatError, match="there is no metric 'f1'"):
        read_lm_eval([tmp_path], metric="f1,strict")


def test_mutual_information_asks_twice(tmp_path):
    rows = [row(0, [-1.0, -2.0, -9.0, -9.0], 0, metrics={"acc": 1.0, "acc_mutual_info": 1.0})]
    write_run(tmp_path, tasks={"t": rows})
    r = read_lm_eval([tmp_path])
    assert r.items.n_choices.tolist() == [2]


def test_several_contexts_tell_the_label_by_the_grade(tmp_path):
    rows = []
    for i, (lls, acc) in enumerate([([-1.0, -2.0], 1.0), ([-1.0, -2.0], 0.0)]):
        one = row(i, lls, 0, metrics={"acc": acc})
        one["target"] = "since it rained"
        one["arguments"] = {f"gen_args_{c}": {"arg_0": f"ctx {c}", "arg_1": " since it rained"} for c in range(2)}
        rows.append(one)
    write_run(tmp_path, tasks={"wino": rows})
    assert read_lm_eval([tmp_path]).items.label.tolist() == [0, 1]


def test_a_label_that_cannot_be_known_is_not_invented(tmp_path):
    one = row(0, [-1.0, -2.0, -3.0], 0)
    one["target"] = "something else"
    write_run(tmp_path, tasks={"t": [one]})
    r = read_lm_eval([tmp_path])
    assert r.items.label is None
    assert r.correct.tolist() == [[1]]
    said = disco("import", "lm-eval", tmp_path, "--out", tmp_path / "s.zarr").stderr
    assert "Which choice is right is not told for every item" in said


def numbers(doc_id, choices, gold, best, target):
    """A row whose choices are texts; the one at ``best`` is the most probable."""
    one = row(doc_id, [-1.0 if c == best else -5.0 for c in range(len(choices))], gold)
    one["target"] = target
    one["arguments"] = {f"gen_args_{c}": {"arg_0": f"Q{doc_id}", "arg_1": f" {t}"} for c, t in enumerate(choices)}
    return one


def labels(folder, rows):
    write_run(folder, tasks={"t": rows})
    label = read_lm_eval([folder]).items.label
    return None if label is None else label.tolist()


def test_a_target_that_is_one_choices_number_and_anothers_text_is_meant_as_the_others_are(tmp_path):
    by_number = [numbers(0, ["1", "0"], 1, 0, "1"), numbers(1, ["5", "7"], 0, 1, "0")]
    assert labels(tmp_path / "a", by_number) == [1, 0]
    by_text = [numbers(0, ["1", "0"], 0, 0, "1"), numbers(1, ["5", "7"], 1, 1, "7")]
    assert labels(tmp_path / "b", by_text) == [0, 1]
    assert labels(tmp_path / "c", [numbers(0, ["0", "1"], 1, 0, "1")]) == [1]  # both mean the same


def test_where_all_targets_could_be_both_the_grades_tell(tmp_path):
    as_numbers = [numbers(0, ["1", "0"], 1, 1, "1"), numbers(1, ["2", "0", "1"], 2, 0, "2")]
    assert labels(tmp_path / "a", as_numbers) == [1, 2]
    as_texts = [numbers(0, ["1", "0"], 0, 1, "1"), numbers(1, ["2", "0", "1"], 0, 0, "2")]
    assert labels(tmp_path / "b", as_texts) == [0, 0]
    neither = [numbers(0, ["1", "0", "x"], 1, 2, "1")]  # wrong by both: nobody knows
    assert labels(tmp_path / "c", neither) is None
    mixed = [*as_numbers, numbers(2, ["a", "b"], 0, 0, "0"), numbers(3, ["a", "b"], 1, 0, "b")]
    assert labels(tmp_path / "d", mixed) is None


def test_minus_infinity_is_kept_and_nan_refused(tmp_path):
    write_run(tmp_path, tasks={"t": [row(0, [-1.0, float("-inf")], 0)]})
    assert read_lm_eval([tmp_path]).probs[0, 0].tolist() == [1, 0]
    write_run(tmp_path, tasks={"t": [row(0, [-1.0, float("nan")], 0)]})
    with pytest.raises(DiscoError, match=r"samples_t_.*line 1: a log-likelihood is NaN"):
        read_lm_eval([tmp_path])


def test_other_prompts_are_refused_by_name(tmp_path):
    write_run(tmp_path, "a")
    write_run(
        tmp_path, "b", {"t": [row(i, [-1.0, -2.0, -3.0], 0, prompt="Other") for i in range(4)]}, **{"n-shot": {"t": 5}}
    )
    with pytest.raises(
        AlignmentError, match=r"'b' answered 4 of 4 items with other prompts than 'a', such as t/0.*n-shot"
    ):
        read_lm_eval([tmp_path])
    r = read_lm_eval([tmp_path], allow_prompt_drift=True)
    assert r.n_models == 2
    assert set(r.items.digest) == {""}


def test_a_partial_run_is_recognised(tmp_path):
    write_run(tmp_path, "a")
    rows = [row(i, [-1.0, -2.0, -3.0], i) for i in range(2)]
    write_run(tmp_path, "b", {"t": rows}, **{"n-samples": {"t": {"original": 4, "effective": 2}}})
    with pytest.raises(AlignmentError, match=r"'b' has no answers to 2 items, such as t/2, t/3. 'b' ran on a subset"):
        read_lm_eval([tmp_path])
    assert read_lm_eval([tmp_path], items=["t/0", "t/1"]).n_items == 2


def test_two_runs_of_a_model(tmp_path):
    write_run(tmp_path / "1")
    write_run(tmp_path / "2", stamp="2026-01-02T00-00-00.1")
    with pytest.raises(AlignmentError, match="'org/m' has two runs of t"):
        find_runs([tmp_path])
    write_run(tmp_path / "3", "n", {"x": [row(0, [-1, -2], 0)]})
    write_run(tmp_path / "3", "n", {"y": [row(0, [-1, -2], 0)]}, stamp="2026-01-02T00-00-00.1")
    assert read_lm_eval([tmp_path / "3"]).items.ids.tolist() == ["x/0", "y/0"]


def test_the_second_leaderboards_details_are_lm_evals_rows(tmp_path):
    write_run(tmp_path / "details", "org/m")
    write_run(tmp_path / "details", "org/n")
    disco("import", "leaderboard", "details", "--out", "a.zarr", cwd=tmp_path)
    disco("import", "lm-eval", "details", "--out", "b.zarr", cwd=tmp_path)
    one, other = (open_responses(tmp_path / name) for name in ("a.zarr", "b.zarr"))
    np.testing.assert_array_equal(one.load().probs, other.load().probs)
    assert one.models.ids.tolist() == ["org/m", "org/n"]


def test_revisions_of_a_model_are_models_of_their_own(tmp_path):
    """Checkpoints of one training run, as on the hub: one name, many revisions."""
    for step in ("step1", "step2"):
        write_run(tmp_path / step, config={"model_revision": step})
    write_run(tmp_path / "main")
    read = read_lm_eval([tmp_path])
    assert sorted(read.models.ids.tolist()) == ["org/m", "org/m@step1", "org/m@step2"]
    assert sorted(read.models.revision.tolist()) == ["main", "step1", "step2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; the run did not finish"),
        (json.dumps(row(0, [-1, -2], 0))[:-20], r"line 1: the line is cut short or not JSON"),
        (
            json.dumps(row(0, [-1, -2], 0)) + "\n" + json.dumps(row(1, [-1, -2], 0))[:100],
            r"line 2: the line is cut short",
        ),
        (json.dumps(row(0, [-1, -2], 0)) + "\n{}\n", r"line 2"),
        (
            json.dumps(row(0, [-1, -2], 0)) + "\n" + json.dumps({**row(1, [-1, -2], 0), "acc": 3.0}),
            r"line 2: the grade is 3.0",
        ),
        (
            json.dumps(row(0, [-1, -2], 0))
            + "\n"
            + json.dumps({**row(1, [-1, -2], 0), "filtered_resps": [["x", 1]] * 2}),
            "line 2",
        ),
        (json.dumps(row(0, [-1, -2], 0)) + "\n" + json.dumps(row(0, [-1, -2], 0)), "1 items twice: t/0"),
    ],
)
def test_broken_samples_say_where(tmp_path, text, message):
    where = write_run(tmp_path)
    (file,) = where.glob("samples_*")
    file.write_text(text)
    with pytest.raises(DiscoError, match=message):
        read_lm_eval([tmp_path])


def test_folders_that_are_no_runs(tmp_path):
    with pytest.raises(FormatError, match="holds no results"):
        find_runs([tmp_path])
    where = write_run(tmp_path)
    (results,) = where.glob("results*")
    for text, message in (
        ("{", "not readable JSON"),
        ("[]", "not a results file"),
        ("[" * 10_000, "not readable JSON"),
    ):
        good = results.read_text()
        results.write_text(text)
        with pytest.raises(FormatError, match=message):
            find_runs([tmp_path])
        results.write_text(good)
    for file in where.glob("samples_*"):
        file.unlink()
    with pytest.raises(FormatError, match="run lm_eval with --log_samples"):
        find_runs([tmp_path])


def rows_of(seed, n=30):
    rng = np.random.default_rng(seed)
    return [row(i, rng.normal(-5, 2, 4).tolist(), i % 4) for i in range(n)]


def test_import_resumes_and_adds(tmp_path, monkeypatch):
    monkeypatch.setattr("disco_eval.io.importing.BATCH", 2)
    for k in range(5):
        write_run(tmp_path / "runs", f"m{k}", {"t": rows_of(k)})
    readers = [(run.model, lambda run=run: read_run(run)) for run in find_runs([tmp_path / "runs"])]

    def dies():
        raise KeyboardInterrupt

    def check(first, other):
        check_same_items(first, other, False)

    with pytest.raises(KeyboardInterrupt):
        import_models([*readers[:3], ("bad", dies)], tmp_path / "s.zarr", check=check)
    assert open_responses(tmp_path / "s.zarr").models.ids.tolist() == ["m0", "m1"]
    done = import_models(readers, tmp_path / "s.zarr", check=check)
    assert (done.present, done.added) == (["m0", "m1"], ["m2", "m3", "m4"])
    back = open_responses(tmp_path / "s.zarr").load()
    whole = read_lm_eval([tmp_path / "runs"])
    np.testing.assert_array_equal(back.probs, whole.probs)
    np.testing.assert_array_equal(back.items.digest, whole.items.digest)
    assert set(back.provenance["models"]) == {f"m{k}" for k in range(5)}


def test_few_models_are_held_together(tmp_path, monkeypatch):
    r, n = population(23, 30), 30
    large = 4 * n * (1 + 4)
    monkeypatch.setattr("disco_eval.io.importing.memory_bound", lambda: 4 * 3 * large)
    held = []

    def write(batch, *args):
        held.append(len(batch))
        return original(batch, *args)

    original = importing._write
    monkeypatch.setattr(importing, "_write", write)
    readers = [(name, lambda k=k: r.pick(models=[k])) for k, name in enumerate(r.models.ids.tolist())]
    done = import_models(readers, tmp_path / "s.zarr", check=lambda first, other: None)
    assert held == [3] * 7 + [2]
    assert done.added == open_responses(tmp_path / "s.zarr").models.ids.tolist() == [name for name, _ in readers]


@pytest.mark.parametrize("graded", [0, 3, 19])
def test_a_model_with_grades_only_is_refused_among_ones_with_probabilities(tmp_path, graded):
    r = population(20, 30)

    def one(k):
        return Responses(r.models.pick([k]), r.items, r.correct[[k]], None if k == graded else r.probs[[k]])

    readers = [(name, lambda k=k: one(k)) for k, name in enumerate(r.models.ids.tolist())]
    with pytest.raises(AlignmentError, match=f"'{readers[graded][0]}' has grades only, 'model-.*' probabilities"):
        import_models(readers, tmp_path / "s.zarr", check=lambda first, other: None)


def test_a_label_that_one_model_tells_holds_for_all_and_two_are_refused(tmp_path):
    """Where a target may be a number or a text, the grades of some models tell which, of others not."""
    r = population(3, 30)

    def one(k, label):
        items = r.items.having(label=label)
        return Responses(r.models.pick([k]), items, r.correct[[k]], r.probs[[k]])

    def stored(name, *labels):
        readers = [(r.models.ids[k], lambda k=k, label=label: one(k, label)) for k, label in enumerate(labels)]
        import_models(readers, tmp_path / name, check=lambda a, b: importing.check_items(a, b, False))
        return open_responses(tmp_path / name).items.label

    known = r.items.label
    for k, labels in enumerate(((None, known, known), (known, None, None), (None, None, known))):
        np.testing.assert_array_equal(stored(f"{k}.zarr", *labels), known)
    assert stored("none.zarr", None, None) is None
    other = np.where(np.arange(30) < 2, (known + 1) % 2, known)
    with pytest.raises(AlignmentError, match="2 of 30 items have another right choice for"):
        stored("two.zarr", known, other)


def test_prompts_that_drift_are_not_kept_in_any_order(tmp_path, monkeypatch):
    monkeypatch.setattr("disco_eval.io.importing.BATCH", 1)
    r = population(3, 5)
    digests = (["a", "b", "c", "d", ""], ["a", "b", "x", "d", "e"], ["a", "b", "c", "y", ""])
    about = {k: getattr(r.items, k) for k in ("subtask", "weight", "n_choices", "label")}

    def one(k):
        items = Items(r.items.ids, digest=digests[k], **about)
        return Responses(Models([f"m{k}"]), items, r.correct[[k]], r.probs[[k]])

    kept = {}
    for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        store = tmp_path / f"{order}.zarr"
        readers = [(f"m{k}", lambda k=k: one(k)) for k in order]
        import_models(readers, store, check=lambda *_: None, allow_prompt_drift=True)
        back = open_responses(store)
        kept[tuple(back.items.digest.tolist())] = back.models.ids.tolist()
    assert len(kept) == 1
    assert not set("xycde") & set(next(iter(kept)))  # prompts that not all were asked


def test_from_outputs_to_an_estimate(tmp_path):
    for k in range(14):
        write_run(tmp_path / "runs", f"m{k}", {"t": rows_of(k)})
    out = disco("import", "lm-eval", "runs", "--out", "s.zarr", "--json", cwd=tmp_path)
    assert json.loads(out.stdout)["n_models"] == 14
    write_run(tmp_path / "more", "late", {"t": rows_of(99)})
    assert "1 models added" in disco("import", "lm-eval", "runs", "more", "--out", "s.zarr", cwd=tmp_path).stdout
    disco("condense", "s.zarr", "--out", "c", "--anchors", 8, "--predict", "ridge", cwd=tmp_path)
    estimate = json.loads(disco("estimate", "c", "more", "--json", cwd=tmp_path).stdout)["estimates"][0]
    again = json.loads(disco("estimate", "c", "s.zarr", "--json", cwd=tmp_path).stdout)["estimates"][-1]
    assert estimate["score"] == pytest.approx(again["score"], abs=1e-9)
    write_run(tmp_path / "drift", "odd", {"t": [{**r, "arguments": {}} for r in rows_of(5)]})
    assert "another prompt" in refused("import", "lm-eval", "drift", "--out", "s.zarr", cwd=tmp_path)
    disco("import", "lm-eval", "drift", "--out", "s.zarr", "--allow-prompt-drift", cwd=tmp_path)
    assert open_responses(tmp_path / "s.zarr").n_models == 16


def test_open_answers_knows_an_output_folder(tmp_path):
    write_run(tmp_path / "runs")
    assert open_answers(tmp_path / "runs", items=["t/1"]).items.ids.tolist() == ["t/1"]


def test_models_graded_otherwise_are_not_added(tmp_path):
    for k in range(2):
        write_run(tmp_path / f"r{k}", f"m{k}")
    store = tmp_path / "s.zarr"
    disco("import", "lm-eval", tmp_path / "r0", "--metric", "acc", "--out", store)
    for options in (("--metric", "acc_norm"), ("--metric", "acc", "--length-normalised")):
        line = refused("import", "lm-eval", tmp_path / "r1", *options, "--out", store)
        assert "scores of both cannot be compared" in line
    assert open_responses(store).models.ids.tolist() == ["m0"]
    disco("import", "lm-eval", tmp_path / "r1", "--metric", "acc", "--out", store)
    assert open_responses(store).models.ids.tolist() == ["m0", "m1"]


def test_rows_lost_at_the_end_of_a_file_are_noticed(tmp_path):
    where = write_run(tmp_path)
    (file,) = where.glob("samples_*")
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:3]))
    with pytest.raises(FormatError, match="has 3 documents, but the run answered 4: rows are lost"):
        read_lm_eval([tmp_path])


@pytest.mark.parametrize("change", [lambda r: r["filtered_resps"].pop(), lambda r: r["arguments"].popitem()])
def test_as_many_answers_as_requests(tmp_path, change):
    rows = rows_of(0, 3)
    change(rows[1])
    write_run(tmp_path, tasks={"t": rows})
    with pytest.raises(FormatError, match=r"line 2: document 1 has \d answers to \d requests"):
        read_lm_eval([tmp_path])


@pytest.mark.parametrize("text", [str, lambda resps: [str(r) for r in resps], lambda resps: [tuple(r) for r in resps]])
def test_answers_that_became_text_are_read(tmp_path, text):
    write_run(tmp_path / "a", tasks={"t": rows_of(0, 3)})
    write_run(tmp_path / "b", tasks={"t": [{**r, "filtered_resps": text(r["filtered_resps"])} for r in rows_of(0, 3)]})
    np.testing.assert_array_equal(read_lm_eval([tmp_path / "a"]).probs, read_lm_eval([tmp_path / "b"]).probs)


def test_a_bare_nan_matters_where_it_decides(tmp_path):
    """Python writes NaN, which is no JSON, for a metric without a value."""
    write_run(tmp_path, tasks={"t": [row(k, [-1.0, -2.0], 0, brier=float("nan")) for k in range(3)]})
    assert read_lm_eval([tmp_path]).correct.tolist() == [[1, 1, 1]]
    with pytest.raises(DiscoError, match="line 1: the grade is nan, expected 0 to 1; choose another metric"):
        read_lm_eval([tmp_path], metric="brier")
    write_run(tmp_path, tasks={"t": [{**row(0, [-1.0, -2.0], 0), "doc_id": float("nan")}]})
    with pytest.raises(FormatError, match="line 1: a value is NaN"):
        read_lm_eval([tmp_path])
    (file,) = tmp_path.rglob("samples*")
    file.write_text(file.read_text()[:-30])
    with pytest.raises(FormatError, match="line 1: the line is cut short or not JSON"):
        read_lm_eval([tmp_path])


def test_arguments_that_overlap_and_files_of_others_are_passed_over(tmp_path):
    where = write_run(tmp_path / "runs")
    (where / "results_summary.json").write_text(json.dumps({"mine": 1}))
    assert len(find_runs([tmp_path / "runs", tmp_path, where / ".." / where.name])) == 1
    assert open_answers(tmp_path).n_models == 1
    disco("import", "lm-eval", "runs", where, "--out", "s.zarr", cwd=tmp_path)
    (file,) = tmp_path.rglob("samples*")
    file.rename(file.with_suffix(".jsonl.gz"))
    with pytest.raises(FormatError, match=r"samples_t_.*jsonl.gz' is packed; unpack it and its like \(gunzip\)"):
        find_runs([tmp_path])
    (next(tmp_path.rglob("results_2026*"))).unlink()
    with pytest.raises(FormatError, match=r"results_summary.json' is not a results file of lm_eval"):
        find_runs([tmp_path])


def test_some_tasks_alone_are_imported(tmp_path):
    rows = [row(k, [-1.0, -2.0], 0) for k in range(3)]
    write_run(tmp_path / "runs", "a", tasks={"arc": rows, "hella": rows})
    write_run(tmp_path / "runs", "b", tasks={"arc": rows})
    write_run(tmp_path / "runs", "c", tasks={"hella": rows})
    line = refused("import", "lm-eval", "runs", "--out", "s.zarr", cwd=tmp_path)
    assert "'b' has no answers to 3 items, such as hella/0" in line
    assert "To import some of the tasks alone: --tasks" in line
    disco("import", "lm-eval", "runs", "--tasks", "ar*", "--out", "s.zarr", cwd=tmp_path)
    r = open_responses(tmp_path / "s.zarr")
    assert r.models.ids.tolist() == ["a", "b"]
    assert r.items.subtasks == ["arc"]
    line = refused("import", "lm-eval", "runs", "--tasks", "mmlu", "--out", "t.zarr", cwd=tmp_path)
    assert "no task is called as in mmlu; there are arc, hella" in line


def test_probabilities_that_are_dropped_are_told(tmp_path):
    generated = {**row(0, [-1.0], 0, metrics={"exact_match": 1.0}), "filtered_resps": ["x"]}
    tasks = {"t": [row(k, [-1.0, -2.0], 0) for k in range(3)], "gen": [generated]}
    write_run(tmp_path / "runs", tasks=tasks)
    said = disco("import", "lm-eval", "runs", "--out", "s.zarr", cwd=tmp_path).stderr
    assert "Probabilities of choices are left out, since gen has none of them: import such tasks apart" in said
    write_run(tmp_path / "all", tasks={"gen": [generated]})
    assert "left out" not in disco("import", "lm-eval", "all", "--out", "t.zarr", cwd=tmp_path).stderr


def test_a_mark_before_a_text_is_passed_over(tmp_path):
    write_run(tmp_path)
    (file,) = tmp_path.rglob("samples*")
    expected = read_lm_eval([tmp_path]).correct.tolist()
    file.write_text(file.read_text(), encoding="utf-8-sig")
    assert read_lm_eval([tmp_path]).correct.tolist() == expected


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_table_tells_families_of_models_whose_runs_do_not(tmp_path, ending):
    for name in ("org/a", "org/b", "org/c"):
        write_run(tmp_path / "runs", name)
    facts = pl.DataFrame({
        "model": ["org/a", "org/b", "other"], "family": ["alpha", " beta ", "x"], "released": ["2024-03-01", None, ""],
        "notes": ["", "", ""],
    })  # fmt: skip
    file = tmp_path / f"facts.{ending}"
    {"csv": facts.write_csv, "jsonl": facts.write_ndjson, "parquet": facts.write_parquet}[ending](file)
    said = disco("import", "lm-eval", tmp_path / "runs", "--out", tmp_path / "s.zarr", "--about", file).stderr
    assert "says nothing of 1 of 3 models: org/c; it tells of 1 that did not come: other" in said
    r = open_responses(tmp_path / "s.zarr")
    at = r.models.positions(["org/a", "org/b", "org/c"])
    assert r.models.family[at].tolist() == ["alpha", "beta", ""]
    assert r.models.released[at].astype(str).tolist() == ["2024-03-01", "NaT", "NaT"]
    assert r.models.base.tolist() == [""] * 3
    assert read_lm_eval([tmp_path / "runs"]).grades().tolist() == r.grades().tolist()
    again = disco("import", "lm-eval", tmp_path / "runs", "--out", tmp_path / "s.zarr", "--about", file).stderr
    assert "of models that are in the store already is not taken (2): org/a, org/b" in again


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("name,family\na,x\n", "needs a column model and one of family, base, released; it has name, family"),
        ("model,notes\na,x\n", "needs a column model and one of"),
        ("model,family\na,x\na,y\n", "has several rows of a; keep one"),
        ("model,released\norg/m,May\n", "facts.csv', model 'org/m': released holds something that is no date"),
        ("model,released\nother,20240506\n", "model 'other': released holds 20240506, which is no date; write 2024-01"),
        ("model,family\n,x\n,y\n", "has 2 rows without a model"),
    ],
)
def test_a_table_of_models_that_cannot_be_read_is_refused(tmp_path, text, line):
    write_run(tmp_path / "runs")
    (tmp_path / "facts.csv").write_text(text)
    command = ("import", "lm-eval", tmp_path / "runs", "--out", tmp_path / "s.zarr", "--about")
    assert line in refused(*command, tmp_path / "facts.csv")
    assert not (tmp_path / "s.zarr").exists()
    assert "is no table that can be read" in refused(*command, tmp_path / "facts.txt")
    (tmp_path / "facts.jsonl").write_text('{"model": "a", "family": ["x", "y"]}\n')
    assert "family must hold one text each, but holds lists" in refused(*command, tmp_path / "facts.jsonl")
