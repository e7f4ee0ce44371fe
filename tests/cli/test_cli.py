"""The command line as people and scripts meet it: output, exit status, message."""

import atexit
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import typer

from disco_eval import Items, Responses, load, open_responses
from disco_eval.cli import app
from disco_eval.io import read_npz, write_npz, write_table
from disco_eval.predict import PREDICTORS
from disco_eval.select import SELECTORS
from disco_eval.studies import SPLITS
from tests.conftest import population
from tests.schemas import check
from tests.warm import Warm

DISCO = str(Path(sys.executable).parent / "disco")


HEAVY = ("numpy", "polars", "rich.console", "safetensors", "scipy.stats", "typer", "zarr")


@cache
def warm():
    process = Warm(dict(os.environ), HEAVY)
    atexit.register(process.close)
    return process


def disco(*args, cwd=None, status=0):
    """A command as a process of its own: a fork of one that has imported what commands need."""
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    done = warm().run("disco_eval", [*map(str, args)], cwd, env)
    assert status in (None, done.returncode), done.stderr
    check(args, done.stdout)
    return done


def refused(*args, cwd=None):
    """The one line with which a command refuses."""
    done = disco(*args, cwd=cwd, status=2)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("disco: ")
    return line


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    r = population(40, 80)
    write_npz(r, folder / "r.npz")
    (folder / "sources.txt").write_text("  # the first thirty\n" + "\n".join(r.models.ids[:30]) + "\n\n")
    (folder / "targets.txt").write_text("\n".join(r.models.ids[30:]) + "\n")
    disco("import", "npz", "r.npz", "--out", "toy.zarr", cwd=folder)
    disco("condense", "toy.zarr", "--out", "toy-20", "--anchors", 20, "--sources", "sources.txt", cwd=folder)
    return folder


def test_import_npz(work):
    r = open_responses(work / "toy.zarr")
    assert (r.n_models, r.n_items) == (40, 80)


def test_import_table_with_other_names(work, tmp_path):
    write_table(population(4, 5, graded=True), tmp_path / "t.csv")
    text = (tmp_path / "t.csv").read_text().replace("score", "acc", 1)
    (tmp_path / "t.csv").write_text(text)
    out = disco("import", "table", tmp_path / "t.csv", "--column", "score=acc", "--out", tmp_path / "t.zarr", "--json")
    assert json.loads(out.stdout) == {"out": str(tmp_path / "t.zarr"), "n_models": 4, "n_items": 5}


@pytest.mark.parametrize(("n", "said"), [(9, "disco estimate CONDENSATION"), (10, "disco condense")])
def test_few_models_are_no_sources(tmp_path, n, said):
    write_npz(population(n, 12), tmp_path / "r.npz")
    done = disco("import", "npz", "r.npz", "--out", "r.zarr", cwd=tmp_path)
    assert f"\nNext: {said} " in done.stdout


def test_condense_learned_from_the_sources_alone(work):
    c = load(work / "toy-20")
    assert c.sources.models.ids.tolist() == population(40, 80).models.ids[:30].tolist()
    assert c.benchmark == "toy"
    assert c.provenance["select"]["name"] == "auto"
    assert c.provenance["seed"] == 0


def test_condense_takes_options(work, tmp_path):
    out = disco(
        "condense", work / "toy.zarr", "--out", tmp_path / "c", "--anchors", 9, "--select", "jsd", "--predict", "knn",
        "--select-opt", "committee_size=20", "--select-opt", "stratify=true", "--predict-opt", "parts=probs,correct",
        "--predict-opt", "k=3", "--predict-opt", "n_components=none", "--name", "mine", "--seed", 4, "--json",
    )  # fmt: skip
    assert {"mae_pp", "direct_mae_pp", "half_width_90_pp", "n_anchors", "n_sources", "out"} <= set(
        json.loads(out.stdout)
    )
    about = load(tmp_path / "c").provenance
    assert about["select"] == {"name": "jsd", "committee_size": 20, "stratify": True}
    assert about["predict"] == {"name": "knn", "parts": ["probs", "correct"], "k": 3, "n_components": None}
    assert about["seed"] == 4


def test_estimate_json_has_the_documented_shape(work):
    out = disco("estimate", "toy-20", "toy.zarr", "--models", "targets.txt", "--json", "--level", 0.8, cwd=work)
    record = json.loads(out.stdout)
    assert record["benchmark"] == "toy"
    assert record["level"] == 0.8
    r = population(40, 80)
    assert [e["model"] for e in record["estimates"]] == r.models.ids[30:].tolist()
    expected = load(work / "toy-20").estimate(r.pick(models=np.arange(30, 40)), 0.8)
    assert [(e["score"], e["low"], e["high"]) for e in record["estimates"]] == [
        (e.score, e.low, e.high) for e in expected
    ]
    assert [tuple(e["flags"]) for e in record["estimates"]] == [e.flags for e in expected]
    assert all("source-model" not in e.flags for e in expected)


def test_a_source_is_estimated_and_flagged(work):
    out = disco("estimate", "toy-20", "toy.zarr", cwd=work).stdout
    assert "source-model: this model is one of the source models" in out


def test_models_are_added_to_a_store_that_is_there(tmp_path):
    r = population(24, 60)
    write_npz(r.pick(models=slice(0, 14)), tmp_path / "a.npz")
    write_npz(r.pick(models=slice(10, 20)), tmp_path / "b.npz")
    write_table(r.pick(models=slice(20, 24)), tmp_path / "c.csv")
    assert "nothing to add to" in refused("import", "npz", "a.npz", "--out", "s.zarr", "--add", cwd=tmp_path)
    disco("import", "npz", "a.npz", "--out", "s.zarr", cwd=tmp_path)
    for taken in ("s-20", "s-20-2"):
        (tmp_path / taken).mkdir()
    added = disco("import", "npz", "b.npz", "--out", "s.zarr", "--add", cwd=tmp_path)
    assert "\nNext: disco condense s.zarr --out s-20-3 --anchors 20\n" in added.stdout
    assert "4 models are in 's.zarr' already and are skipped" in added.stderr
    assert added.stdout.startswith("s.zarr: 6 models added; now Responses(20 models")
    assert "disco condense s.zarr --update DIR --out NEW" in added.stdout
    assert json.loads(disco("import", "table", "c.csv", "--out", "s.zarr", "--add", "--json", cwd=tmp_path).stdout) == {
        "out": "s.zarr",
        "n_models": 24,
        "n_items": 60,
    }
    back = open_responses(tmp_path / "s.zarr").load()
    assert back.models.ids.tolist() == r.models.ids.tolist()
    np.testing.assert_allclose(back.align(r.items.ids).probs, r.probs, atol=1e-6)
    for option, words in (("--overwrite", "give one of them"), ("--float16", "leave out --float16")):
        assert words in refused("import", "npz", "b.npz", "--out", "s.zarr", "--add", option, cwd=tmp_path)
    items = Items(r.items.ids, n_choices=r.items.n_choices, label=(r.items.label + 1) % 4)
    write_npz(Responses.from_probs(["new"], items, r.probs[:1]), tmp_path / "d.npz")
    line = refused("import", "npz", "d.npz", "--out", "s.zarr", "--add", cwd=tmp_path)
    assert "60 items have another right choice than in 's.zarr'" in line


def test_answers_in_tables_npz_and_several_files(work, tmp_path):
    c = load(work / "toy-20")
    part = population(40, 80).align(c.anchors.ids)
    write_table(part.pick(models=[30, 31]), tmp_path / "a.csv")
    write_npz(part.pick(models=[32]), tmp_path / "b.npz")
    got = json.loads(disco("estimate", work / "toy-20", tmp_path / "a.csv", tmp_path / "b.npz", "--json").stdout)[
        "estimates"
    ]
    expected = c.estimate(part.pick(models=[30, 31, 32]))
    np.testing.assert_allclose([e["score"] for e in got], [e.score for e in expected], atol=1e-6)
    line = refused("estimate", work / "toy-20", tmp_path / "a.csv", tmp_path / "a.csv")
    assert "has answers in several files" in line


def test_anchors_and_further_items_may_lie_in_files_of_their_own_for_every_model(work, tmp_path):
    responses, c = open_responses(work / "toy.zarr"), load(work / "toy-20")
    asked, files = c.asked(10).ids, []
    for name in responses.models.ids[30:32].tolist():
        own = responses.pick(models=responses.models.positions([name])).align(asked)
        for part, at in (("anchors", slice(0, 20)), ("more", slice(20, 30))):
            files.append(tmp_path / f"{name}-{part}.npz")
            write_npz(own.pick(items=np.arange(30)[at]), files[-1])
    whole = tmp_path / "whole.npz"
    write_npz(responses.pick(models=np.arange(30, 32)).align(asked), whole)
    found, expected = (
        json.loads(disco("estimate", work / "toy-20", *answers, "--more", 10, "--json").stdout)["estimates"]
        for answers in (files, [whole])
    )
    assert [e["model"] for e in found] == [e["model"] for e in expected]
    np.testing.assert_allclose([e["score"] for e in found], [e["score"] for e in expected], atol=1e-6)
    first, second = files[0], files[2]  # the anchors of one model, but for one, and of another, but for two
    for file, n in ((first, 1), (second, 2)):
        r = read_npz(file)
        write_npz(r.pick(items=np.arange(n, r.n_items)), file)
    line = refused("estimate", work / "toy-20", first, second)
    assert "no answer for 1 of 20 anchors" in line
    assert str(c.anchors.ids[0]) in line


def test_anchors_in_each_format(work):
    ids = disco("anchors", "toy-20", cwd=work).stdout.split()
    assert ids == load(work / "toy-20").anchors.ids.tolist()
    assert len(disco("anchors", "toy-20", "--format", "csv", cwd=work).stdout.splitlines()) == 21
    record = json.loads(disco("anchors", "toy-20", "--format", "json", cwd=work).stdout)
    assert [a["id"] for a in record["anchors"]] == ids
    assert record["reserve"] == []


def test_items_in_reserve_follow_the_anchors_in_every_format(work):
    c = load(work / "toy-20")
    asked = c.asked(5)
    assert asked.ids[:20].tolist() == c.anchors.ids.tolist()
    expected = list(zip(asked.ids.tolist(), asked.subtask.tolist(), strict=True))
    assert disco("anchors", "toy-20", "--more", 5, cwd=work).stdout.split() == asked.ids.tolist()
    rows = list(
        csv.DictReader(disco("anchors", "toy-20", "--more", 5, "--format", "csv", cwd=work).stdout.splitlines())
    )
    assert [(row["id"], row["subtask"]) for row in rows] == expected
    assert [float(row["weight"]) for row in rows[:20]] == pytest.approx(c.anchors.weights.tolist(), abs=1e-12)
    assert {row["weight"] for row in rows[20:]} == {""}
    for form in (["--format", "json"], ["--json"]):
        record = json.loads(disco("anchors", "toy-20", "--more", 5, *form, cwd=work).stdout)
        for name, those in (("anchors", expected[:20]), ("reserve", expected[20:])):
            assert [(row["id"], row["subtask"]) for row in record[name]] == those


def test_info_of_both_kinds(work):
    store = json.loads(disco("info", "toy.zarr", "--json", cwd=work).stdout)
    assert (store["n_models"], store["n_items"]) == (40, 80)
    small = json.loads(disco("info", "toy-20", "--json", cwd=work).stdout)
    assert small["n_anchors"] == 20
    c = load(work / "toy-20")
    assert (small["n_more"], small["more_mae_pp"]) == (20, 100 * c.validation.more_mae)
    said = disco("info", "toy-20", cwd=work).stdout
    assert f"{small['mae_pp']:.2f} points on whole families left out in 5 folds" in said
    assert f"{small['more_mae_pp']:.2f} points with 20 (--more)" in said
    assert "families" in disco("info", "toy.zarr", cwd=work).stdout


def test_info_and_condense_of_several_benchmarks_and_of_all_items(tmp_path):
    r = population(20, 40)
    for name, at in (("law", np.arange(25)), ("art", np.arange(25, 40))):
        write_npz(r.pick(items=at), tmp_path / f"{name}.npz")
    told = disco("condense", "law.npz", "art.npz", "--anchors", 40, "--out", "c", cwd=tmp_path).stdout
    assert "2 subtasks are estimated too" in told
    assert "By number of source models" not in told  # nothing is estimated of a benchmark that is asked in full
    record = json.loads(disco("info", "c", "--json", cwd=tmp_path).stdout)
    assert (record["benchmarks"], record["subtasks"]) == (["law", "art"], 2)
    assert "law, art: each counts the same" in disco("info", "c", cwd=tmp_path).stdout
    assert "sources-curve" not in (tmp_path / "c" / "report.html").read_text()


def test_the_error_with_further_items_is_said_where_it_is_known(work, tmp_path):
    for predict, known in (("auto", True), ("ridge", False)):
        words = ("toy.zarr", "--anchors", 10, "--predict", predict, "--overwrite", "--out", tmp_path / "c")
        record = json.loads(disco("condense", *words, "--json", cwd=work).stdout)
        error = load(tmp_path / "c").validation.more_mae
        assert (error is not None) == known
        assert (record["n_more"], record["more_mae_pp"]) == ((10, 100 * error) if known else (0, None))
        said = disco("condense", *words, cwd=work).stdout
        assert ("With 10 further items: " in said) == known
        page, card = (tmp_path / "c" / name for name in ("report.html", "README.md"))
        assert ("With 10 further items: " in page.read_text()) == known
        assert ("With 10 further items (`--more`): " in card.read_text()) == known
        assert ("further items" in disco("info", tmp_path / "c").stdout) == known


def test_help_has_examples():
    assert "disco demo" in disco("--help").stdout
    for command in ("demo", "info", "condense", "anchors", "estimate"):
        assert "Usage" in disco(command, "--help").stdout
    assert "disco condense mmlu.zarr --out mmlu-100" in disco("condense", "--help").stdout
    for form in ("npz", "table"):
        assert f"disco import {form}" in disco("import", form, "--help").stdout
    assert disco("--version").stdout.strip()


@pytest.mark.parametrize(
    ("command", "option", "names"),
    [("study", "--split", SPLITS), ("condense", "--select", SELECTORS), ("condense", "--predict", PREDICTORS)],
)
def test_help_names_everything_there_is_to_choose(command, option, names):
    (text,) = (p.help for p in typer.main.get_command(app).commands[command].params if option in p.opts)
    assert set(names) <= set(re.findall(r"\w+", text))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("import", "npz", "nothing.npz", "--out", "x"), "'nothing.npz' does not exist"),
        (("import", "npz", "r.npz", "--out", "toy.zarr"), "exists already; add to it with --add"),
        (("import", "table", "r.npz", "--out", "x"), "should end in one of"),
        (("import", "table", "r.npz", "--column", "item", "--out", "x"), "--column takes OURS=THEIRS"),
        (("condense", "nothing.zarr", "--out", "x"), "'nothing.zarr' does not exist"),
        (("condense", "toy.zarr", "--out", "toy-20"), "exists already"),
        (("condense", "toy-20", "--out", "x"), "'toy-20' is a condensation, not models' answers"),
        (("condense", "toy.zarr", "--out", "x", "--anchors", "81"), "81 anchors were asked for"),
        (("condense", "toy.zarr", "--out", "x", "--select", "jds"), "is not known"),
        (("condense", "toy.zarr", "--out", "x", "--select-opt", "stratify"), "write NAME=VALUE"),
        (("condense", "toy.zarr", "--out", "x", "--sources", "nothing.txt"), "cannot be read as a list"),
        (("condense", "toy.zarr", "--out", "x", "--sources", "few.txt"), "2 source models are too few"),
        (
            ("condense", "toy.zarr", "--out", "x", "--sources", "wrong.txt"),
            "1 of 1 models are not in 'toy.zarr': gpt-7",
        ),
        (
            (
                *("condense", "toy.zarr", "--out", "x", "--update", "toy-20", "--anchors", "9", "--budget", "9"),
                *("--name", "y", "--select", "pds", "--select-opt", "committee_size=9", "--mixed"),
                *("--predict", "knn", "--predict-opt", "k=3"),
            ),
            "leave out --anchors and --budget and --name and --select and --select-opt and --mixed and "
            "--predict and --predict-opt",
        ),
        (("condense", "toy.zarr", "--out", "x", "--update", "toy-20", "--predict", "auto"), "leave out --predict"),
        (("estimate", "toy.zarr", "toy.zarr"), "is not a condensation"),
        (("estimate", "toy-20", "nothing.npz"), "does not exist"),
        (("estimate", "toy-20", "toy.zarr", "--level", "90"), "level must lie between 0 and 1"),
        (
            ("estimate", "toy-20", "toy.zarr", "--models", "wrong.txt"),
            "no answers, or not to all 20 items asked, from gpt-7",
        ),
        (("estimate", "toy-20", "part.npz"), "anchors of 'toy' from"),
        (("anchors", "toy-20", "--format", "pdf"), "Choose from: ids, csv, json"),
        (("info", "r.txt"), "'r.txt' does not exist"),
        (("demo", "--models", "20", "--out", "d"), "at least 60 models"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(work, args, message):
    (work / "few.txt").write_text("\n".join(population(40, 80).models.ids[:2]))
    (work / "wrong.txt").write_text("gpt-7\n")
    write_npz(population(40, 80).pick(items=np.arange(30)), work / "part.npz")
    before = sorted(p.name for p in work.iterdir())
    assert message in refused(*args, cwd=work)
    assert sorted(p.name for p in work.iterdir()) == before


def test_the_memory_bound_holds_for_reading_too(tmp_path, monkeypatch):
    """40 MB of zeros, of which the archive holds little: they are not unpacked where twice that is too much."""
    ids = np.arange(5000)
    np.savez_compressed(tmp_path / "big.npz", models=ids[:1000], items=ids, correct=np.zeros((1000, 5000)))
    for command in (("condense", "big.npz", "--out", "x"), ("study", "big.npz", "--out", "x")):
        line = refused(*command, "--memory", "70MB", cwd=tmp_path)
        assert "the arrays of 'big.npz' would take 80.1 MB of memory, more than the bound of 70 MB" in line
    monkeypatch.setenv("DISCO_MEMORY", "70MB")
    assert "more than the bound of 70 MB" in refused("import", "npz", "big.npz", "--out", "x", cwd=tmp_path)


def test_usage_errors_exit_with_two(work):
    assert disco("condense", "toy.zarr", cwd=work, status=2).stderr
    assert disco("nonsense", status=2).stderr


def test_our_own_bugs_exit_with_one_and_a_traceback(work, tmp_path):
    script = (
        "import sys; from disco_eval import cli, artifact\n"
        "def broken(path): raise RuntimeError('a bug')\n"
        "artifact.load = broken; sys.argv = ['disco', 'anchors', 'toy-20']; cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=work)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "a bug" in done.stderr


def test_piped_output_has_no_colour_nor_progress(work):
    out = disco("estimate", "toy-20", "toy.zarr", cwd=work)
    assert "\x1b" not in out.stdout + out.stderr
    assert out.stderr == ""


def test_hostile_names_are_shown_as_they_are(tmp_path):
    r = population(12, 20)
    from disco_eval import Models, Responses

    names = ["[red]x[/red]", "<script>alert(1)</script>", "n" * 120, *[f"m{i}" for i in range(9)]]
    write_npz(Responses(Models(names), r.items, r.correct, r.probs), tmp_path / "r.npz")
    disco("condense", "r.npz", "--out", "c", "--anchors", 5, "--predict", "ridge", cwd=tmp_path)
    out = disco("estimate", "c", "r.npz", cwd=tmp_path).stdout
    assert "[red]x[/red]" in out
    assert "<script>alert(1)</script>" in out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_one_line(tmp_path):
    for words in (("--version",), ("info", "toy.npz")):
        write_npz(population(12, 20), tmp_path / "toy.npz")
        with open("/dev/full", "w") as full:
            done = subprocess.run([DISCO, *words], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.splitlines() == ["disco: No space left on device: free some, and run the command again"]


def test_interrupted_commands_say_so(tmp_path):
    write_npz(population(60, 400), tmp_path / "toy.npz")
    words = [DISCO, "study", "toy.npz", "--methods", "table1", "--runs", "20", "--anchors", "20", "--out", "s"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    while process.poll() is None and not list((tmp_path / "s").rglob("*.parquet")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert said.splitlines()[-1] == "disco: interrupted; nothing was left half-written"


def test_a_study_that_was_cut_off_is_called_so(tmp_path):
    (tmp_path / "s" / "parts").mkdir(parents=True)
    for command in ("info", "report", "check"):
        assert "'s' is a study that was cut off" in refused(command, "s", cwd=tmp_path)


def test_where_nothing_may_be_written_is_found_before_the_work(work, tmp_path, monkeypatch):
    for name in ("toy.npz", "toy-20"):
        (tmp_path / name).symlink_to(work / name)
    (tmp_path / "notes").mkdir()
    for command in (
        ("condense", "no.npz", "--out", "notes", "--overwrite"),
        ("estimate", "toy-20", "no.npz", "--out", "notes"),
        ("compare", "toy-20", "no.npz", "no.npz", "--out", "notes"),
        ("import", "npz", "no.npz", "--out", "notes", "--overwrite"),
        ("import", "table", "no.csv", "--out", "notes", "--overwrite"),
    ):
        line = refused(*command, cwd=tmp_path)
        assert "'notes' exists and is something else (it holds no" in line
        assert line.endswith("not overwritten; choose another name")


def test_demo_end_to_end(tmp_path):
    out = disco("demo", "--models", 60, "--anchors", 30, "--out", tmp_path / "d", "--json")
    record = json.loads(out.stdout)
    assert set(record) == {"mae_pp", "spearman", "direct_mae_pp", "n_anchors", "n_targets", "out"}
    assert (record["n_anchors"], record["n_targets"]) == (30, 10)
    names = {p.name for p in (tmp_path / "d").iterdir()}
    files = {"demo.csv", "demo.png", "demo.svg", "digits-condensed", "sources.txt", "zoo.zarr"}
    assert names == files | {"about.json", "predictions.parquet", "report.html"}
    assert f"{record['mae_pp']:.2f} points" in (tmp_path / "d" / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "d" / "demo.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    c, zoo = load(tmp_path / "d" / "digits-condensed"), open_responses(tmp_path / "d" / "zoo.zarr")
    sources = set(c.sources.models.ids.tolist())
    targets = [i for i, name in enumerate(zoo.models.ids.tolist()) if name not in sources]
    assert len(targets) == 10
    estimates = c.estimate(zoo.pick(models=targets))
    mae = 100 * np.mean([abs(e.score - t) for e, t in zip(estimates, zoo.scores()[targets], strict=True)])
    assert record["mae_pp"] == pytest.approx(mae)


def test_large_costs_are_written_out():
    from disco_eval.report.parts import amount

    assert [amount(x) for x in (22_542.4, 1234567.0, 999.96, 0.0123456)] == ["22,542", "1,234,567", "1000", "0.01235"]


def test_a_damaged_store_is_one_line_whatever_else_was_being_read(tmp_path):
    population(60, 400).save(tmp_path / "s.zarr")
    chunk = min(file for file in (tmp_path / "s.zarr" / "probs" / "c").rglob("*") if file.is_file())
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 255
    chunk.write_bytes(data)
    done = disco("condense", "s.zarr", "--out", "c", cwd=tmp_path, status=2)
    assert (
        done.stderr
        == "disco: 's.zarr' is damaged: a checksum does not fit. Write it again from the original results.\n"
    )
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.ones(60), "all alike"),
        (np.where(np.arange(60) % 3 == 0, 2.0, 1.0), "subtasks all alike"),
        (np.arange(1, 61), "up to 1.97 times the mean"),
    ],
)
def test_info_says_what_items_count_for(tmp_path, weight, words):
    r = population(graded=True)
    third = [f"s{min(i % 3, 1)}" for i in range(60)]  # one third of the items, and two
    Responses(r.models, Items(r.items.ids, subtask=third, weight=weight), r.correct).save(tmp_path / "s.zarr")
    found = json.loads(disco("info", tmp_path / "s.zarr", "--json").stdout)
    assert found["items_count"] == words
    assert found["largest_subtasks"] == {"s1": 40, "s0": 20}
