"""Sheets with the names and columns that VLMEvalKit gives them, as Excel and as tab-separated text."""

import json
import zipfile

import numpy as np
import polars as pl
import pytest

from disco_eval import AlignmentError, DiscoError, FormatError, ValidationError
from disco_eval.io import open_answers
from disco_eval.io.vlmevalkit import vlmevalkit
from disco_eval.resources import limited
from disco_eval.store import open_responses
from tests.cli.test_cli import disco, refused

CHOICES = {
    "index": [0, 3, 12], "question": ["What is it?", "How many?", "007"],
    "A": ["a cat", "1", "x"], "B": ["a dog", "2", None],
    "answer": ["A", "B", "A"], "prediction": ["A", "A", "x"], "hit": [1, 0, 1], "log": ["ok", "ok", "ok"],
}  # fmt: skip
YES_OR_NO = {"index": [1, 2], "question": ["Is it?", "Was it?"], "extracted": ["Yes", "No"], "score": [True, False]}


def write(folder, model="Qwen2.5-VL_7B", what="MMStar_exact_matching_result", sheet=CHOICES, ending=".xlsx"):
    where = folder / model
    where.mkdir(parents=True, exist_ok=True)
    file = where / f"{model}_{what}{ending}"
    frame = pl.DataFrame(sheet)
    frame.write_excel(file) if ending == ".xlsx" else frame.write_csv(file, separator="\t")
    return file


def read(*paths):
    return {name: one() for name, one in vlmevalkit(list(paths))}


@pytest.mark.parametrize("ending", [".xlsx", ".tsv"])
def test_sheets_of_a_model_are_subtasks(tmp_path, ending):
    write(tmp_path, ending=ending)
    write(tmp_path, what="POPE_auxmatch", sheet=YES_OR_NO, ending=ending)
    write(tmp_path, what="MMStar", sheet={"index": [0], "prediction": ["A"]}, ending=ending)  # before it was judged
    ((name, r),) = read(tmp_path, tmp_path / "Qwen2.5-VL_7B", tmp_path).items()
    assert (name, r.models.ids.tolist()) == ("Qwen2.5-VL_7B", ["Qwen2.5-VL_7B"])
    assert r.items.ids.tolist() == ["MMStar/0", "MMStar/3", "MMStar/12", "POPE/1", "POPE/2"]
    assert r.items.subtasks == ["MMStar", "POPE"]
    assert r.correct.tolist() == [[1, 0, 1, 1, 0]]
    assert r.probs is None


def test_answers_that_different_judges_graded_are_not_mixed(tmp_path):
    write(tmp_path, "A", ending=".tsv")
    write(tmp_path, "A", "POPE_auxmatch", YES_OR_NO, ".tsv")
    write(tmp_path, "B", "MMStar_gpt-4o-mini_result", ending=".tsv")
    graded = {name: r.provenance["graded"] for name, r in read(tmp_path).items()}
    assert graded == {"A": {"MMStar": "exact_matching", "POPE": "auxmatch"}, "B": {"MMStar": "gpt-4o-mini"}}
    (tmp_path / "A" / "A_POPE_auxmatch.tsv").unlink()
    line = refused("import", "vlmevalkit", ".", "--out", "s.zarr", cwd=tmp_path)
    assert "'A' has 'MMStar' graded by 'exact_matching', 'B' by 'gpt-4o-mini'" in line
    assert line.rstrip().endswith("let the same judge grade all")


def test_numbers_that_a_spreadsheet_made_fractions_are_whole_again(tmp_path):
    write(tmp_path, sheet={"index": ["12.0", "v1.0"], "hit": ["1.0", "0.0"]}, ending=".tsv")
    r = read(tmp_path)["Qwen2.5-VL_7B"]
    assert r.items.ids.tolist() == ["MMStar/v1.0", "MMStar/12"]
    assert r.correct.tolist() == [[0, 1]]


def test_both_kinds_of_file_hold_the_same_questions(tmp_path):
    write(tmp_path / "x")
    write(tmp_path / "t", ending=".tsv")
    a, b = (next(iter(read(tmp_path / kind).values())) for kind in "xt")
    assert a.items.digest.tolist() == b.items.digest.tolist()
    assert len(set(a.items.digest)) == 3
    other = write(tmp_path / "x", sheet={**CHOICES, "A": ["a cow", "1", "x"]})
    assert (read(other.parent.parent)["Qwen2.5-VL_7B"].items.digest == a.items.digest).tolist() == [False, True, True]


def test_runs_lie_in_folders_of_their_own_and_links_count_once(tmp_path):
    file = write(tmp_path, what="MMStar_gpt-4o-mini_result")
    run = file.parent / "T20260101_G0"
    run.mkdir()
    file.rename(run / file.name)
    file.symlink_to(run / file.name)
    assert read(tmp_path)["Qwen2.5-VL_7B"].n_items == 3
    write(tmp_path, what="MMStar_exact_matching_result")
    with pytest.raises(AlignmentError, match=r"'Qwen2.5-VL_7B' has two sheets of MMStar"):
        read(tmp_path)


def test_a_download_may_be_links_to_files_without_names(tmp_path):
    file = write(tmp_path / "snapshot")
    (tmp_path / "blobs").mkdir()
    file.rename(tmp_path / "blobs" / "0f3a")
    file.symlink_to(tmp_path / "blobs" / "0f3a")
    assert read(tmp_path / "snapshot")["Qwen2.5-VL_7B"].n_items == 3


def test_what_is_no_sheet_of_grades_is_refused(tmp_path):
    with pytest.raises(FormatError, match="holds no MODEL_DATASET_JUDGE_result"):
        read(tmp_path)
    file = write(tmp_path, sheet={"index": [0], "prediction": ["A"]})
    with pytest.raises(FormatError, match="needs a column index and one of hit, score; it has index, prediction"):
        read(tmp_path)
    write(tmp_path, sheet={"index": [0, 1], "hit": [1, None]})
    with pytest.raises(ValidationError, match="index 1: the grade is 'None'"):
        read(tmp_path)
    write(tmp_path, sheet={"index": [0, 1], "score": [1, 5]})
    with pytest.raises(ValidationError, match=r"index 1: the grade is 5.0, expected 0 to 1"):
        read(tmp_path)
    whole = file.read_bytes()
    for damaged in (whole[:2000], b"", b"index\thit\n1\t1\n"):
        file.write_bytes(damaged)
        with pytest.raises(FormatError, match=r"cannot be read as \.xlsx"):
            read(tmp_path)
    file.rename(tmp_path / file.name)
    with pytest.raises(FormatError, match="lies in no folder of its model's name"):
        read(tmp_path)


def test_a_small_archive_that_unpacks_to_far_more_is_refused(tmp_path):
    file = write(tmp_path)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/large.xml", b" " * 50_000_000)
    with limited("200MB"), pytest.raises(ValidationError, match=r"the sheet in '.*' would take 400 MB of memory"):
        read(tmp_path)


def test_on_the_command_line(tmp_path):
    for k in range(2):
        write(tmp_path / "outputs", f"model_{k}")
    made = json.loads(disco("import", "vlmevalkit", "outputs", "--out", "s.zarr", "--json", cwd=tmp_path).stdout)
    assert made["added"] == ["model_0", "model_1"]
    assert open_responses(tmp_path / "s.zarr").n_items == 3
    write(tmp_path / "other", "model_2", sheet={**CHOICES, "question": ["Where is it?", "How many?", "007"]})
    line = refused("import", "vlmevalkit", "outputs", "other", "--out", "t.zarr", cwd=tmp_path)
    assert "'model_2' answered 1 of 3 items with other prompts than 'model_0', such as MMStar/0" in line


def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch):
    write(tmp_path)

    def missing(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("fastexcel")

    monkeypatch.setattr(pl, "read_excel", missing)
    with pytest.raises(DiscoError, match=r"pip install 'disco-eval\[excel\]'"):
        read(tmp_path)


def test_a_benchmark_of_the_anchors_alone_is_read_as_answers_to_the_whole(tmp_path):
    rng = np.random.default_rng(0)
    sheet = {"index": list(range(30)), "question": [f"Which is {k}?" for k in range(30)]}
    for k in range(20):
        write(tmp_path / "outputs", f"model_{k}", sheet={**sheet, "hit": rng.binomial(1, 0.3 + k / 40, 30)})
    disco("import", "vlmevalkit", "outputs", "--out", "s.zarr", cwd=tmp_path)
    disco("condense", "s.zarr", "--anchors", 8, "--out", "c", "--no-curve", cwd=tmp_path)
    asked = [int(i.removeprefix("MMStar/")) for i in disco("anchors", "c", cwd=tmp_path).stdout.split()]
    whole = pl.DataFrame({**sheet, "hit": rng.binomial(1, 0.5, 30)})
    write(tmp_path / "whole", "new", sheet=whole)
    alone = whole.filter(pl.col("index").is_in(asked))
    write(tmp_path / "alone", "new", "MMStar_anchors_exact_matching_result", alone)
    a, b = (
        json.loads(disco("estimate", "c", folder, "--json", cwd=tmp_path).stdout)["estimates"]
        for folder in ("whole", "alone")
    )
    assert a == b
    assert a[0]["model"] == "new"
    write(tmp_path / "whole", "new", "MMStar_anchors_exact_matching_result", alone)
    assert "'new' has two sheets of MMStar" in refused("estimate", "c", "whole", cwd=tmp_path)
    (tmp_path / "empty").mkdir()
    assert "is not a store" in refused("estimate", "c", "empty", cwd=tmp_path)


def test_sheets_that_are_not_wanted_are_not_graded(tmp_path):
    write(tmp_path, ending=".tsv")
    write(tmp_path, what="MMVet_gpt-4o_result", sheet={"index": [0], "score": [7]}, ending=".tsv")
    assert open_answers(tmp_path, items=["MMStar/0", "MMStar/3"]).correct.tolist() == [[1, 0]]
    with pytest.raises(ValidationError, match="MMVet"):
        open_answers(tmp_path)
