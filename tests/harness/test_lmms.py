"""lmms-eval's tasks with the anchors alone. lmms-eval is not installed here: what it does with them is done by hand."""

import importlib.util
import json
import re
import sys
import types

import datasets
import pytest
import yaml

from disco_eval import load
from tests.cli.test_cli import disco, refused
from tests.io.test_lmms_eval import benchmark, write

TASK = """
include: base
task: toy   # as in the logs
metadata: {{version: 3.0, style: plain}}
{more}
"""
BASE = """
dataset_path: json
test_split: test
doc_to_text: !function utils.text
process_docs: !function utils.odd
"""


@pytest.fixture(scope="module")
def condensed(tmp_path_factory):
    """A folder with the models' runs of one task, and its condensation to 8 of 40 items."""
    work = tmp_path_factory.mktemp("lmms")
    rows = benchmark(work)
    disco("import", "lmms-eval", "runs", "--out", "toy.zarr", cwd=work)
    disco("condense", "toy.zarr", "--anchors", 8, "--out", "c", "--no-curve", cwd=work)
    return work, rows


def tasks_in(folder, more=""):
    (folder / "sub").mkdir(parents=True, exist_ok=True)
    (folder / "sub" / "toy.yaml").write_text(TASK.format(more=more))
    (folder / "sub" / "base").write_text(BASE)
    (folder / "group.yaml").write_text("group: all\ntask:\n  - toy\n")
    return folder


class Function(yaml.SafeLoader):
    """Reads the names of functions as text."""


Function.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


def kept_by(folder, documents):
    """What the task in a folder leaves of a split, as lmms-eval would load and call it."""
    (file,) = folder.glob("*.yaml")
    config = yaml.load(file.read_text(), Function)
    module, function = config["process_docs"].split(".")
    spec = importlib.util.spec_from_file_location(module, folder / f"{module}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return config, getattr(loaded, function)(documents)


@pytest.fixture
def lmms(monkeypatch):
    """What the tasks call of lmms-eval: the config of a file, here with a function that keeps odd numbers."""
    asked = []

    def load_yaml_config(yaml_path, mode):
        asked.append((yaml_path, mode))
        return {"process_docs": lambda documents: documents.filter(lambda row: row["number"] % 2 == 1)}

    utils = types.ModuleType("lmms_eval.utils")
    utils.load_yaml_config = load_yaml_config
    monkeypatch.setitem(sys.modules, "lmms_eval", types.ModuleType("lmms_eval"))
    monkeypatch.setitem(sys.modules, "lmms_eval.utils", utils)
    return asked


def split_of(n, name):
    info = datasets.Features({"number": datasets.Value("int64")})
    return datasets.Dataset.from_list([{"number": k} for k in range(n)], features=info, split=name)


def test_a_run_on_the_anchors_alone_gives_the_estimate_of_the_whole_run(condensed, lmms, tmp_path):
    work, rows = condensed
    tasks = tasks_in(tmp_path / "tasks")
    out = disco(
        "anchors", "c", "--format", "lmms-eval", "--tasks-path", tasks, "--out", tmp_path / "anchors", cwd=work
    ).stdout
    assert f"--include_path {tmp_path / 'anchors'} --tasks toy_anchors --log_samples" in out
    config, kept = kept_by(tmp_path / "anchors", split_of(80, "test"))
    assert lmms == [(str(tasks / "sub" / "toy.yaml"), "full")]
    assert config["include"] == str(tasks / "sub" / "toy.yaml")
    assert config["task"] == "toy_anchors"
    numbers = config["metadata"]["disco_doc_ids"]
    assert {f"toy/{n}" for n in numbers} == set(load(work / "c").anchors.ids)
    assert kept["number"][:] == [2 * n + 1 for n in numbers]  # the task's own function came first
    assert config["metadata"] == {"version": 3.0, "style": "plain", "disco_task": "toy", "disco_doc_ids": numbers}
    write(
        tmp_path / "new", [rows[3][n] for n in numbers], task="toy_anchors", model="org/new",
        metadata=config["metadata"], numbers=numbers,
    )  # fmt: skip
    write(tmp_path / "whole", rows[3], model="org/new")
    new, whole = (
        json.loads(disco("estimate", "c", tmp_path / name, "--json", cwd=work).stdout)["estimates"]
        for name in ("new", "whole")
    )
    assert new == whole


def test_other_splits_stay_as_they_are_and_another_benchmark_is_refused(condensed, lmms, tmp_path):
    work, _ = condensed
    folder = ("--tasks-path", tasks_in(tmp_path / "tasks"), "--out", tmp_path / "anchors")
    disco("anchors", "c", "--format", "lmms-eval", *folder, cwd=work)
    assert len(kept_by(tmp_path / "anchors", split_of(10, "train"))[1]) == 5
    with pytest.raises(ValueError, match=r"has 5 documents, but the anchors name document \d+: the benchmark is not"):
        kept_by(tmp_path / "anchors", split_of(10, "test"))
    more = ("--more", 4, "--overwrite")
    disco("anchors", "c", "--format", "lmms-eval", *folder, *more, cwd=work)
    config, _ = kept_by(tmp_path / "anchors", split_of(80, "test"))
    assert len(config["metadata"]["disco_doc_ids"]) == 12


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("num_fewshot: 2", "task 'toy' shows examples, which would be others among the anchors alone"),
        ("class: !function utils.Toy", "task 'toy' is a class of its own"),
        ("test_split: null", "names neither test_split nor validation_split"),
        ("include: [toy.yaml]", "is no task of lmms-eval, or includes itself"),
        ("a: [", "cannot be read as a task: while parsing"),
        ("include: nothing", "nothing' cannot be read as a task: .*No such file"),
    ],
)
def test_tasks_whose_documents_cannot_be_chosen(condensed, tmp_path, more, line):
    work, _ = condensed
    tasks = tasks_in(tmp_path / "tasks", more)
    said = refused(
        "anchors", "c", "--format", "lmms-eval", "--tasks-path", tasks, "--out", tmp_path / "anchors", cwd=work
    )
    assert re.search(line, said), said
    assert not (tmp_path / "anchors").exists()


def test_what_is_missing_is_said(condensed, tmp_path):
    work, _ = condensed
    ask = ("anchors", "c", "--format", "lmms-eval")
    assert "name it with --out" in refused(*ask, cwd=work)
    ask = (*ask, "--out", tmp_path / "anchors")
    assert "lmms-eval is not installed here; name the folder of its tasks with --tasks-path" in refused(*ask, cwd=work)
    assert "--tasks-path 'none' is no folder" in refused(*ask, "--tasks-path", "none", cwd=work)
    (tmp_path / "empty").mkdir()
    assert "empty' has toy as its task" in refused(*ask, "--tasks-path", tmp_path / "empty", cwd=work)
    tasks = tasks_in(tmp_path / "tasks")
    (tasks / "again.yaml").write_text("task: 'toy'\n")
    assert "task 'toy' is in" in refused(*ask, "--tasks-path", tasks, cwd=work)
