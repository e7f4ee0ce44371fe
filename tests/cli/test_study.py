"""disco study, report and cost as people and scripts meet them."""

import json
import re

import polars as pl
import pytest

from disco_eval.io import read_npz, write_npz
from disco_eval.studies import Predictions, study
from tests.cli.test_cli import disco, refused
from tests.conftest import population


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    write_npz(population(40, 80), folder / "mine.npz")
    disco(
        "study",
        "mine.npz",
        "--methods",
        "random+direct,pds+knn",
        "--anchors",
        "5,10",
        "--runs",
        2,
        "--out",
        "s",
        cwd=folder,
    )
    return folder


def test_a_study_and_its_tables_and_figures(work):
    table = pl.read_parquet(work / "s" / "predictions.parquet")
    assert set(table["benchmark"]) == {"mine"}
    assert len(table) == 2 * 2 * 2 * 4
    out = disco("report", "tables", "s", cwd=work).stdout
    assert "| Baseline | Random | Direct eval. |" in out
    assert (work / "s" / "tables" / "table-iid-10.tex").is_file()
    figures = disco("report", "figures", "s", cwd=work).stdout.split()
    assert "s/figures/curves-mine-iid.svg" in figures
    made = json.loads(disco("report", "tables", "s", "--json", cwd=work).stdout)
    assert {row["method"] for row in made["summary"]} == {"random+direct", "pds+knn"}


def test_info_says_which_command_wrote_a_folder(work):
    said = json.loads(disco("info", "s", "--json", cwd=work).stdout)
    assert said["kind"] == "study"
    assert said["command"].startswith("disco study")
    assert said["to_see_it"] == "disco report s"
    assert "disco report s" in disco("info", "s", cwd=work).stdout


def test_the_help_says_which_method_gives_intervals():
    words = " ".join(re.sub(r"[│|\n]", " ", disco("study", "--help").stdout).split())
    assert "default is all of 'disco condense', with intervals; auto+auto its selection and prediction alone" in words


def test_a_study_goes_on_and_prints_json(work):
    command = ("study", "mine.npz", "--methods", "random+direct,pds+knn", "--anchors", "5,10", "--runs", 2)
    again = json.loads(disco(*command, "--out", "s", "--json", cwd=work).stdout)
    fresh = json.loads(disco(*command, "--out", "s2", "--json", "--jobs", 2, cwd=work).stdout)
    assert again["summary"] == fresh["summary"]


def test_another_study_is_replaced_when_asked_and_leaves_nothing(work):
    command = ("study", "mine.npz", "--anchors", "5", "--runs", 1, "--out", "replaced")
    disco(*command, "--methods", "random+direct", "--split", "iid", cwd=work)
    disco("report", "tables", "replaced", cwd=work)
    disco("report", "figures", "replaced", cwd=work)
    own = work / "replaced" / "tables" / "table-of-mine-1.md"
    own.write_text("# mine\n")
    other = (*command, "--methods", "uniform+direct", "--split", "top10")
    line = refused(*other, cwd=work)
    assert "'replaced' holds another study: it has the methods random+direct, which are not asked for now" in line
    assert line.rstrip().endswith("replace it with --overwrite")
    disco(*other, "--overwrite", cwd=work)
    assert set(pl.read_parquet(work / "replaced" / "predictions.parquet")["split"]) == {"top10"}
    assert [f.name for f in (work / "replaced" / "tables").iterdir()] == [own.name]
    assert not list((work / "replaced" / "figures").iterdir())


def test_what_was_made_of_a_smaller_study_goes_when_predictions_change(work, monkeypatch):
    command = ("study", "mine.npz", "--anchors", "5", "--runs", 1, "--split", "iid", "--out", "grows", "--methods")
    disco(*command, "random+direct", cwd=work)
    disco("report", "tables", "grows", cwd=work)
    disco("report", "figures", "grows", cwd=work)
    disco(*command, "random+direct", cwd=work)
    made = [*(work / "grows" / "tables").iterdir(), *(work / "grows" / "figures").iterdir()]
    assert len(made) == 3 + 3
    answers = read_npz(work / "mine.npz")
    with monkeypatch.context() as m:
        m.setattr(Predictions, "save", lambda *args: 1 / 0)  # it is stopped just before predictions change
        with pytest.raises(ZeroDivisionError):
            study(["random+direct", "pds+knn"], {"mine": answers}, "iid", 5, 1, 0, out=work / "grows")
    assert not any(file.exists() for file in [*made, work / "grows" / "report.html"])


def test_a_long_table_from_elsewhere(work):
    pl.read_parquet(work / "s" / "predictions.parquet").select(
        "method", "run", "n_anchors", "model", "truth", "estimate"
    ).write_csv(work / "theirs.csv")
    out = disco("report", "tables", "theirs.csv", "--out", "t", cwd=work).stdout
    assert "| Baseline | Random | Direct eval. |" in out


def test_wrong_input_is_one_line(work):
    common = ("study", "mine.npz", "--out", "x")
    assert "method 'nonsense' is not known" in refused(*common, "--methods", "nonsense", cwd=work)
    assert "split 'idd' is not known" in refused(*common, "--split", "idd", cwd=work)
    assert "100 anchors were asked for" in refused(*common, cwd=work)
    assert "there is no 'nowhere'" in refused("report", "tables", "nowhere", cwd=work)
    assert "svg, png, pdf" in refused("report", "figures", "s", "--format", "gif", cwd=work)
    assert "give --full and --anchors" in refused("cost", cwd=work)


def test_the_papers_cost():
    out = disco("cost", "--full", "8.53", "--anchors", "0.07", "--offline", "3284", "--unit", "GPU-hours").stdout
    assert "break-even: 389 evaluations" in out
    assert "99.3 %" in disco("cost", "--full", "30739", "--anchors", "218").stdout
    paper = json.loads(disco("cost", "--paper", "--json").stdout)["costs"]
    assert [c["break_even"] for c in paper] == [389, 388]
    assert round(100 * paper[1]["saved_share"], 1) == 99.3


def test_a_cost_that_was_typed_has_no_spread(tmp_path):
    out = disco("cost", "--full", 8.53, "--anchors", 0.07, "--offline", 3284, cwd=tmp_path).stdout
    assert out.startswith("full evaluation 8.53 units, on the anchors 0.07\n")


def test_the_cost_of_a_study(work):
    out = disco("cost", "--study", "s", cwd=work).stdout
    assert "pds+knn" in out
