"""The real lm_eval on the anchors alone gives what its full run gave."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from disco_eval import DiscoError, Responses, load, open_responses
from disco_eval.harness.formats import write_task_folder
from disco_eval.harness.prompts import Settings
from disco_eval.io.lm_eval import find_runs, read_lm_eval, read_run
from tests.harness.conftest import DISCO, OFFLINE, run


def evaluate(toy, out, *more, status=0):
    args = f"pretrained={toy / 'models' / 'm11'},dtype=float32"
    return run(
        DISCO, "run", "toy-18", "--model-args", args, "--tasks-path", "tasks", "--device", "cpu", "--batch-size", 8,
        "--out", out, "--json", *more, cwd=toy, status=status,
    )  # fmt: skip


def stock_lm_eval(toy):
    """lm_eval's own command line on the model that is no source."""
    args = f"pretrained={toy / 'models' / 'm11'},dtype=float32"
    command = (sys.executable, "-m", "lm_eval", "run", "--model", "hf", "--model_args", args)
    return (*command, "--device", "cpu", "--batch_size", "8", "--log_samples")


@pytest.fixture(scope="module")
def answered(toy):
    return toy / "answers", json.loads(evaluate(toy, "answers").stdout)


def test_what_lm_eval_wrote_is_read_as_it_scored(toy):
    responses = open_responses(toy / "toy.zarr")
    assert responses.items.subtasks == ["toy_facts", "toy_fill", "toy_shots"]
    assert responses.items.label is not None
    assert sorted(set(responses.items.n_choices.tolist())) == [2, 3, 4, 5]
    for one in find_runs([toy / "runs"]):
        reported = one.about["results"]["toy"]["acc,none"]
        row = list(responses.models.ids).index(one.model)
        assert responses.scores()[row] == pytest.approx(reported, abs=1e-9)


def test_log_likelihoods_of_the_anchors_equal_the_full_runs(toy, answered):
    folder, _ = answered
    ids = load(toy / "toy-18").anchors.ids
    assert {i.split("/")[0] for i in ids} == {"toy_facts", "toy_fill", "toy_shots"}
    (full,) = [r for r in find_runs([toy / "runs"]) if r.model.endswith("m11")]
    mine = rows_of(folder)
    whole = {
        k: v
        for f in full.samples.values()
        for k, v in rows_in(f, f.name.split("_2")[0].removeprefix("samples_")).items()
    }
    assert set(mine) == set(ids.tolist())
    for item, lls in mine.items():
        np.testing.assert_allclose(lls, whole[item], atol=1e-4)


def rows_in(file, task):
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return {f"{task}/{r['doc_id']}": [float(x[0]) for x in r["filtered_resps"]] for r in rows}


def rows_of(folder):
    files = {f.name.removeprefix("samples_").removesuffix("_anchors.jsonl"): f for f in folder.glob("samples_*.jsonl")}
    return {k: v for task, f in files.items() for k, v in rows_in(f, task).items()}


def test_the_estimate_equals_that_from_the_full_runs_files(toy, answered):
    _, record = answered
    full = run(DISCO, "estimate", "toy-18", "runs/" + full_folder(toy), "--json", cwd=toy)
    a, b = record["estimates"][0], json.loads(full.stdout)["estimates"][0]
    assert a["model"] == b["model"]
    assert a["score"] == pytest.approx(b["score"], abs=1e-5)
    again = json.loads(run(DISCO, "estimate", "toy-18", "answers", "--json", cwd=toy).stdout)["estimates"][0]
    assert again["score"] == a["score"]


def full_folder(toy):
    (name,) = [p.name for p in (toy / "runs").iterdir() if p.name.endswith("m11")]
    return name


@pytest.fixture(scope="module")
def both(toy, tmp_path_factory):
    """Two benchmarks of the toy's tasks, one graded by acc_norm, condensed together into ``both``."""
    folder = tmp_path_factory.mktemp("both")
    for name, tasks, metric in (("one", ["toy_facts", "toy_shots"], "acc"), ("two", ["toy_fill"], "acc_norm")):
        for found in find_runs([toy / "runs"]):
            (folder / name / found.results.parent.name).mkdir(parents=True)
            for file in (found.results, *(found.samples[task] for task in tasks)):
                shutil.copy(file, folder / name / found.results.parent.name)
        run(DISCO, "import", "lm-eval", name, "--out", f"{name}.zarr", "--metric", metric, cwd=folder)
    run(
        DISCO, "condense", "one.zarr", "two.zarr", "--out", "both", "--anchors", 12,
        "--sources", toy / "sources.txt", "--select", "uniform", "--predict", "ridge", cwd=folder,
    )  # fmt: skip
    return folder


def test_benchmarks_condensed_together_are_asked_in_one_run(toy, both):
    args = ("--model-args", f"pretrained={toy / 'models' / 'm11'},dtype=float32", "--device", "cpu", "--json")
    ask = ("run", "both", *args, "--tasks-path", toy / "tasks", "--out", "answers")
    (a,) = json.loads(run(DISCO, *ask, cwd=both).stdout)["estimates"]
    assert len(rows_of(both / "answers")) == 12
    assert {s["name"] for s in a["subtasks"]} == {"one", "two"}
    whole = (f"{name}/{full_folder(toy)}" for name in ("one", "two"))
    full, again = (
        json.loads(run(DISCO, "estimate", "both", *folders, "--json", cwd=both).stdout)["estimates"][0]
        for folders in (whole, ["answers"])
    )
    assert a["score"] == again["score"] == pytest.approx(full["score"], abs=1e-5)
    samples = json.loads(run(DISCO, "anchors", "both", "--format", "lm-eval", cwd=both).stdout)
    assert set(samples) == {"toy_facts", "toy_fill", "toy_shots"}
    run(DISCO, "anchors", "both", "--format", "task-dir", "--out", "frozen", "--tasks-path", toy / "tasks", cwd=both)
    assert {f.stem for f in (both / "frozen").glob("*.yaml")} == {f"{task}_anchors" for task in samples}


def test_benchmarks_that_cannot_be_asked_in_one_run(toy, both):
    shutil.copytree(both / "one.zarr", both / "same.zarr")
    columns = ("--sources", toy / "sources.txt", "--anchors", 12, "--select", "uniform", "--predict", "ridge")
    run(DISCO, "condense", "one.zarr", "same.zarr", "--out", "twice", *columns, cwd=both)
    line = run(DISCO, "anchors", "twice", "--format", "lm-eval", cwd=both, status=2).stderr
    assert "asks one task in several benchmarks" in line
    table = open_responses(both / "one.zarr")
    for name, half in (("first", slice(0, None, 2)), ("second", slice(1, None, 2))):
        table.pick(items=np.arange(table.n_items)[half]).save(both / f"{name}.zarr")
    run(DISCO, "condense", "first.zarr", "second.zarr", "--out", "halves", *columns, cwd=both)
    line = run(DISCO, "anchors", "halves", "--format", "lm-eval", cwd=both, status=2).stderr
    assert "asks one task in several benchmarks" in line
    items = table.items.having(ids=[f"mine/{k}" for k in range(table.n_items)], digest=None)
    Responses(table.models, items, table.correct, table.probs).save(both / "mine.zarr")
    run(DISCO, "condense", "two.zarr", "mine.zarr", "--out", "mixed", *columns, cwd=both)
    line = run(DISCO, "anchors", "mixed", "--format", "lm-eval", cwd=both, status=2).stderr
    assert "'mine' in 'two+mine' was not made from outputs of lm_eval" in line


def test_what_is_shared_names_no_folder_of_this_machine(both):
    load(both / "both").without_local_paths().save(both / "shared")
    assert str(both) in (both / "both" / "condensation.json").read_text()
    assert str(both) not in (both / "shared" / "condensation.json").read_text()


def test_only_the_anchors_were_run(answered):
    folder, _ = answered
    assert sum(len(f.read_text().splitlines()) for f in folder.glob("samples_*")) == 18
    assert json.loads((folder / "results_anchors.json").read_text())["n-samples"]["toy_facts"]["original"] == 24


def test_an_interrupted_run_goes_on(toy, answered, tmp_path):
    folder, record = answered
    shutil.copytree(folder, tmp_path / "answers")
    files = sorted((tmp_path / "answers").glob("samples_*"))
    files[0].unlink()
    lines = files[1].read_text().splitlines(keepends=True)
    files[1].write_text("".join(lines[:2]) + lines[2][: len(lines[2]) // 2] + "\n3\n")  # killed in the middle of a line
    before = files[2].read_text()
    again = json.loads(evaluate(toy, tmp_path / "answers").stdout)
    assert again["estimates"][0]["score"] == pytest.approx(record["estimates"][0]["score"], abs=1e-6)
    assert files[2].read_text() == before
    line = evaluate(toy, tmp_path / "answers", "--name", "another", status=2).stderr.splitlines()[-1]
    assert "holds the run of" in line
    (tmp_path / "answers" / "results_anchors.json").write_text('{"model_n')
    line = evaluate(toy, tmp_path / "answers", status=2).stderr.splitlines()[-1]
    assert "is not the record of a run" in line


def test_answers_of_other_arguments_or_weights_are_not_taken_up(toy, answered, tmp_path):
    shutil.copytree(toy / "models" / "m11", tmp_path / "model")
    whole = f"pretrained={tmp_path / 'model'},dtype=float32"

    def refused(args):
        line = evaluate(toy, tmp_path / "a", "--model-args", args, status=2).stderr.splitlines()[-1]
        assert "choose another --out" in line
        return line

    first = json.loads(evaluate(toy, tmp_path / "a", "--model-args", whole).stdout)
    assert f"holds the run of hf with {whole}, not of hf with" in refused(whole.replace("float32", "bfloat16"))
    for file in (toy / "models" / "m10").iterdir():
        shutil.copy(file, tmp_path / "model" / file.name)
    assert "holds the run of other weights of" in refused(whole)
    other = json.loads(evaluate(toy, tmp_path / "b", "--model-args", whole).stdout)
    assert other["estimates"][0]["score"] != first["estimates"][0]["score"]
    record = tmp_path / "a" / "results_anchors.json"
    about = json.loads(record.read_text())
    del about["disco_eval"]["asked"]
    record.write_text(json.dumps(about))
    assert "a run that does not say with which arguments" in refused(whole)


def test_rows_of_items_that_are_not_asked_now_are_kept(toy, tmp_path):
    most = json.loads(evaluate(toy, tmp_path / "a", "--more", 12).stdout)
    fewer = json.loads(evaluate(toy, tmp_path / "a").stdout)
    assert fewer["estimates"][0]["more"] == 0
    again = run(DISCO, "estimate", "toy-18", tmp_path / "a", "--more", 12, "--json", cwd=toy)
    assert json.loads(again.stdout)["estimates"][0]["score"] == most["estimates"][0]["score"]


def test_a_level_that_cannot_be_is_refused_before_the_model_runs(toy, tmp_path):
    line = evaluate(toy, tmp_path / "a", "--level", 95, status=2).stderr.splitlines()[-1]
    assert line == "disco: level must lie between 0 and 1, such as 0.9, got 95.0"
    assert not (tmp_path / "a").exists()


def test_a_run_that_is_killed_leaves_what_the_next_can_use(toy, tmp_path):
    args = f"pretrained={toy / 'models' / 'm11'},dtype=float32"
    command = [
        DISCO,
        "run",
        "toy-18",
        "--model-args",
        args,
        "--tasks-path",
        "tasks",
        "--device",
        "cpu",
        "--out",
        tmp_path / "k",
    ]
    process = subprocess.Popen(
        list(map(str, command)), cwd=toy, env=OFFLINE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while process.poll() is None and not list((tmp_path / "k").glob("samples_*")):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert json.loads(evaluate(toy, tmp_path / "k").stdout)["estimates"]


def test_other_prompts_are_refused_before_the_model_runs(toy, tmp_path):
    shutil.copytree(toy / "tasks", tmp_path / "tasks")
    for file in (tmp_path / "tasks").glob("*.yaml"):
        file.write_text(
            file.read_text().replace(str(toy / "tasks"), str(tmp_path / "tasks")).replace("{{q}}", "Say: {{q}}")
        )
    done = evaluate(toy, tmp_path / "a", "--tasks-path", tmp_path / "tasks", status=2)
    line = done.stderr.splitlines()[-1]
    assert "is not the one that the source models answered. They part at character 0: then " in line
    assert re.search(r"then '(\d+)\. The .*, now 'Say: \1\. The ", line)
    assert not (tmp_path / "a").exists()
    line = evaluate(toy, tmp_path / "a", "--apply-chat-template", status=2).stderr.splitlines()[-1]
    assert "no chat template, lm_eval" in line
    (tmp_path / "empty").mkdir()
    line = evaluate(toy, tmp_path / "a", "--tasks-path", tmp_path / "empty", status=2).stderr.splitlines()[-1]
    assert "lm_eval knows no task toy_facts, toy_fill, toy_shots" in line


def test_both_prompts_are_shown_from_a_run_that_is_at_hand(toy, tmp_path):
    """The sources' files have moved since the import; the user says where one is now."""
    shutil.copytree(toy / "tasks", tmp_path / "tasks")
    for file in (tmp_path / "tasks").glob("*.yaml"):
        text = file.read_text().replace(str(toy / "tasks"), str(tmp_path / "tasks"))
        file.write_text(text.replace("{{choices}}", "{{choices | reverse | list}}").replace("gold", "0"))
    load(toy / "toy-18").without_local_paths().save(tmp_path / "moved")
    args = f"pretrained={toy / 'models' / 'm11'},dtype=float32"
    command = (DISCO, "run", "moved", "--model-args", args, "--tasks-path", "tasks", "--out", "a")
    line = run(*command, cwd=tmp_path, status=2).stderr.splitlines()[-1]
    assert "The old prompt's text is not at hand; give a source model's run with --source-run" in line
    line = run(*command, "--source-run", toy / "runs", cwd=tmp_path, status=2).stderr.splitlines()[-1]
    (then, now) = re.search(r"They part at character \d+: then \.\.\.'(.*)' \(.*, now \.\.\.'(.*)' \(", line).groups()
    prompt, choices, reversed_choices = then.split(" is")[0], then.split("\\n ")[1:], now.split("\\n ")[1:]
    assert now.startswith(prompt)
    assert sorted(choices) == sorted(reversed_choices) != []
    assert choices == reversed_choices[::-1] != choices[::-1]
    assert not (tmp_path / "a").exists()


def test_a_run_with_a_chat_template_is_told_apart(toy):
    line = run(DISCO, "import", "lm-eval", "runs", "chat", "--out", "x.zarr", cwd=toy, status=2).stderr.splitlines()[-1]
    assert "has two runs of toy_facts" in line
    line = run(DISCO, "estimate", "toy-18", "chat", cwd=toy, status=2).stderr.splitlines()[-1]
    assert "the prompt (digest) of 18 of 18 anchors differs" in line


def test_a_model_that_does_not_load_is_one_line(toy, tmp_path):
    done = run(
        DISCO,
        "run",
        "toy-18",
        "--model-args",
        f"pretrained={tmp_path / 'nothing'}",
        "--tasks-path",
        "tasks",
        cwd=toy,
        status=2,
    )
    assert "cannot load the model" in done.stderr.splitlines()[-1]


def test_a_frozen_task_folder_runs_on_the_stock_command_line(toy, tmp_path, answered):
    out = run(
        DISCO,
        "anchors",
        "toy-18",
        "--format",
        "task-dir",
        "--out",
        tmp_path / "frozen",
        "--tasks-path",
        "tasks",
        cwd=toy,
    )
    tasks = out.stdout.split("--tasks ")[1].split()[0]
    assert tasks == "toy_facts_anchors,toy_fill_anchors,toy_shots_anchors"
    run(
        *stock_lm_eval(toy), "--include_path", tmp_path / "frozen", "--tasks", tasks,
        "--output_path", tmp_path / "answers", cwd=tmp_path,
    )  # fmt: skip
    got = json.loads(run(DISCO, "estimate", "toy-18", tmp_path / "answers", "--json", cwd=toy).stdout)["estimates"][0]
    assert got["score"] == pytest.approx(answered[1]["estimates"][0]["score"], abs=1e-5)
    frozen, full = read_lm_eval([tmp_path / "answers"]), open_responses(toy / "toy.zarr")
    np.testing.assert_array_equal(frozen.items.digest, full.align(frozen.items.ids).items.digest)
    norm = read_lm_eval([tmp_path / "answers"], metric="acc_norm")
    (run_,) = [r for r in find_runs([toy / "runs"]) if r.model.endswith("m11")]
    np.testing.assert_array_equal(norm.correct, read_run(run_, metric="acc_norm").align(norm.items.ids).correct)


def test_tasks_that_are_graded_otherwise_are_not_frozen(toy, tmp_path):
    """As truthfulqa_mc2, which grades by the probability of all right choices."""
    shutil.copytree(toy / "tasks", tmp_path / "tasks")
    (tmp_path / "tasks" / "own.py").write_text("def grade(doc, results):\n    return {'acc': 0.5}\n")
    with (tmp_path / "tasks" / "toy_facts.yaml").open("a") as file:
        file.write("process_results: !function own.grade\n")
    ask = ("anchors", "toy-18", "--format", "task-dir", "--tasks-path", tmp_path / "tasks", "--out", tmp_path / "f")
    line = run(DISCO, *ask, cwd=toy, status=2).stderr
    assert "task 'toy_facts' has a grader of its own (process_results), so it cannot be frozen; use 'disco run'" in line
    assert not (tmp_path / "f").exists()
    c, settings = load(toy / "toy-18"), Settings(tasks_path=toy / "tasks")
    s = c.sources
    other = replace(c, sources=Responses(s.models, s.items, 0.9 * s.grades(), s.probs))
    with pytest.raises(DiscoError, match="'toy_facts' was graded otherwise than by which choice is the most probable"):
        write_task_folder(other, tmp_path / "f", settings)
    responses = {**c.provenance["responses"], "graded": {"toy_facts": "brier"}}
    with pytest.raises(DiscoError, match="'toy_facts' was graded by 'brier', not by acc or acc_norm"):
        write_task_folder(replace(c, provenance={**c.provenance, "responses": responses}), tmp_path / "f", settings)


def test_the_samples_file_is_sorted_complete_and_says_when_it_is_safe(toy):
    out = run(DISCO, "anchors", "toy-18", "--format", "lm-eval", cwd=toy)
    record = json.loads(out.stdout)
    ids = load(toy / "toy-18").anchors.ids
    assert {f"{t}/{i}" for t, own in record.items() for i in own} == set(ids.tolist())
    assert all(own == sorted(own) for own in record.values())
    assert "NOT SAFE for the few-shot tasks toy_shots" in out.stderr
    inspect = run(DISCO, "anchors", "toy-18", "--format", "inspect", cwd=toy).stdout.strip()
    assert inspect.split(",") == [i.replace("/", ":") for i in ids]  # two tasks share ids


def test_why_samples_alone_is_not_enough(toy, tmp_path):
    """The trap itself: lm_eval --samples changes the few-shot prompts, and the digests tell."""
    (tmp_path / "s.json").write_text(run(DISCO, "anchors", "toy-18", "--format", "lm-eval", cwd=toy).stdout)
    run(
        *stock_lm_eval(toy), "--include_path", toy / "tasks", "--tasks", "toy_facts,toy_fill,toy_shots",
        "--output_path", tmp_path / "answers", "--samples", tmp_path / "s.json", cwd=tmp_path,
    )  # fmt: skip
    partial, full = read_lm_eval([tmp_path / "answers"]), open_responses(toy / "toy.zarr")
    differs = partial.items.digest != full.align(partial.items.ids).items.digest
    assert set(partial.items.subtask[differs]) == {"toy_shots"}
    line = run(DISCO, "estimate", "toy-18", tmp_path / "answers", cwd=toy, status=2).stderr
    assert "the prompt (digest) of" in line


def sampled(toy, folder, tasks, samples):
    """The stock command line on some documents."""
    run(
        *stock_lm_eval(toy), "--include_path", toy / "tasks", "--tasks", tasks,
        "--output_path", folder / "answers", "--samples", json.dumps(samples), cwd=folder,
    )  # fmt: skip
    return folder / "answers"


def test_unsorted_samples_are_logged_under_wrong_numbers_and_their_digests_tell(toy, tmp_path):
    partial = read_lm_eval([sampled(toy, tmp_path, "toy_facts", {"toy_facts": [20, 3, 7]})])
    full = open_responses(toy / "toy.zarr")
    assert not np.array_equal(partial.items.digest, full.align(partial.items.ids).items.digest)  # the trap is there
    assert set(partial.items.digest) <= set(full.items.digest)  # what was answered is real, its numbers are not
    assert partial.provenance["models"][str(partial.models.ids[0])]["partial"]


@pytest.mark.parametrize(
    ("ids", "message"),
    [([3, 3, 7], "has answers to 1 items twice: toy_facts/3"), ([-2, 3, 7], "doc_id is -2; lm_eval logs wrong rows")],
    ids=["duplicate", "negative"],
)
def test_what_samples_makes_of_odd_ids_is_refused(toy, tmp_path, ids, message):
    answers = sampled(toy, tmp_path, "toy_facts", {"toy_facts": ids})
    assert message in run(DISCO, "estimate", "toy-18", answers, cwd=toy, status=2).stderr


def test_a_group_in_samples_runs_everything_and_is_read_as_a_full_run(toy, tmp_path):
    """Ours names leaf tasks only; with a group's name lm_eval evaluates all documents, which the import tells."""
    whole = read_lm_eval([sampled(toy, tmp_path, "toy", {"toy": [1, 2]})])
    full = open_responses(toy / "toy.zarr")
    assert len(whole.items) == len(full.items)
    assert not next(iter(whole.provenance["models"].values()))["partial"]
    ours = json.loads(run(DISCO, "anchors", "toy-18", "--format", "lm-eval", cwd=toy).stdout)
    assert "toy" not in ours
    assert all(ours.values())


def test_a_request_cache_of_lm_eval_is_never_used(toy, tmp_path, answered):
    """A full run of other prompts fills the cache under the same task names; ours neither reads nor changes it."""
    cache = tmp_path / "cache"
    env = {**OFFLINE, "LM_HARNESS_CACHE_PATH": str(cache)}
    shutil.copytree(toy / "tasks", tmp_path / "tasks")
    for file in (tmp_path / "tasks").glob("*.yaml"):
        text = file.read_text().replace(str(toy / "tasks"), str(tmp_path / "tasks"))
        file.write_text(text.replace("{{q}}", "Say: {{q}}"))
    stock = (*stock_lm_eval(toy), "--include_path", tmp_path / "tasks", "--tasks", "toy", "--cache_requests", "true")
    filled = subprocess.run(
        [*map(str, stock), "--output_path", str(tmp_path / "o")], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert filled.returncode == 0, filled.stderr[-3000:]
    before = {f: f.read_bytes() for f in cache.iterdir()}
    assert before  # the trap is set
    args = f"pretrained={toy / 'models' / 'm11'},dtype=float32"
    ours = subprocess.run(
        [DISCO, "run", "toy-18", "--model-args", args, "--tasks-path", "tasks", "--out", str(tmp_path / "a"), "--json"],
        cwd=toy, env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert ours.returncode == 0, ours.stderr[-3000:]
    got = json.loads(ours.stdout)["estimates"][0]
    assert got["score"] == pytest.approx(answered[1]["estimates"][0]["score"], abs=1e-5)
    assert {f: f.read_bytes() for f in cache.iterdir()} == before


def test_other_condensations_cannot_be_run(tmp_path):
    from disco_eval import condense
    from tests.conftest import population

    condense(population(), 5, predict="ridge", rng=0).save(tmp_path / "c")
    line = run(DISCO, "anchors", "c", "--format", "task-dir", "--out", "d", cwd=tmp_path, status=2).stderr
    assert "was not made from outputs of lm_eval" in line
    line = run(DISCO, "anchors", "c", "--format", "lm-eval", cwd=tmp_path, status=2).stderr
    assert "was not made from outputs of lm_eval" in line
    nowhere = ("--model-args", "pretrained=no/such-model")  # what cannot be asked is refused before a model is loaded
    assert "was not made from outputs of lm_eval" in run(DISCO, "run", "c", *nowhere, cwd=tmp_path, status=2).stderr
    (tmp_path / "training").mkdir()
    line = run(DISCO, "watch", "c", "training", "--once", cwd=tmp_path, status=2).stderr
    assert "was not made from outputs of lm_eval" in line
