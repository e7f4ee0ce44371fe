import numpy as np
import polars as pl
import pytest

from disco_eval import DiscoError, FormatError, Items, Models, Responses, ValidationError
from disco_eval.io import open_answers, read_npz, read_table, write_npz, write_table
from tests.conftest import population


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("options", [{}, {"graded": True}, {"ragged": True}])
def test_round_trip(tmp_path, suffix, options):
    r = population(6, 9, **options)
    write_table(r, tmp_path / f"r{suffix}")
    back = read_table(tmp_path / f"r{suffix}")
    np.testing.assert_array_equal(back.models.ids, r.models.ids)
    np.testing.assert_array_equal(back.items.ids, r.items.ids)
    np.testing.assert_array_equal(back.correct, r.correct)
    np.testing.assert_array_equal(back.items.subtask, r.items.subtask)
    np.testing.assert_allclose(back.items.weight, r.items.weight)
    np.testing.assert_array_equal(back.models.family, r.models.family)
    np.testing.assert_array_equal(back.models.released, r.models.released)
    if r.probs is not None:
        np.testing.assert_allclose(back.probs, r.probs, atol=1e-6)
        np.testing.assert_array_equal(back.items.n_choices, r.items.n_choices)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("graded", [False, True])
def test_every_column_of_models_and_items_survives(tmp_path, suffix, graded):
    r = population(6, 9, graded=graded)
    kin = {k: [f"{k}-{m}" if m else "" for m in range(6)] for k in ("family", "base", "revision")}
    models = Models(r.models.ids, released=["", *["2024-05-01"] * 5], **kin)
    about = {k: getattr(r.items, k) for k in ("subtask", "weight", "n_choices", "digest")}
    label = {} if graded else {"label": r.items.label}
    items = Items(r.items.ids, cost=np.arange(9) / 4, **about, **label)
    write_table(Responses(models, items, r.correct, r.probs), tmp_path / f"r{suffix}")
    back = read_table(tmp_path / f"r{suffix}")
    for name in ("ids", "released", *kin):
        np.testing.assert_array_equal(getattr(back.models, name), getattr(models, name))
    for name in ("ids", "subtask", "digest", *label, *([] if graded else ["n_choices"])):
        np.testing.assert_array_equal(getattr(back.items, name), getattr(items, name))
    for name in ("weight", "cost"):
        np.testing.assert_allclose(getattr(back.items, name), getattr(items, name))


def test_grades_of_their_own_beside_probabilities_have_no_place_in_a_table(tmp_path):
    r = population(6, 9)
    grades = np.array(r.correct)
    grades[2, [3, 5]] = 1 - grades[2, [3, 5]]
    own = Responses(r.models, r.items, grades, r.probs)
    with pytest.raises(DiscoError, match=r"2 items are not graded by the most probable choice, such as .*; write a st"):
        write_table(own, tmp_path / "r.csv")
    assert list(tmp_path.iterdir()) == []
    write_npz(own, tmp_path / "r.npz")
    np.testing.assert_array_equal(read_npz(tmp_path / "r.npz").correct, grades)


def test_npz_and_table_agree(tmp_path):
    r = population(6, 9)
    write_table(r, tmp_path / "r.csv")
    write_npz(r, tmp_path / "r.npz")
    np.testing.assert_allclose(read_table(tmp_path / "r.csv").probs, read_npz(tmp_path / "r.npz").probs, atol=1e-6)


def csv(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    return tmp_path / "t.csv"


def test_letters_and_loglikelihoods(tmp_path):
    rows = [f"m,q{i},{c},{v},B" for i in range(2) for c, v in (("C", -3.0), ("A", -1.0), ("B", -0.5))]
    r = read_table(csv(tmp_path, "model,item,choice,loglikelihood,label\n" + "\n".join(rows)))
    assert r.items.label.tolist() == [1, 1]
    expected = np.exp([-1.0, -0.5, -3.0]) / np.exp([-1.0, -0.5, -3.0]).sum()
    np.testing.assert_allclose(r.probs[0, 0], expected, atol=1e-6)


def test_columns_can_be_called_otherwise(tmp_path):
    path = csv(tmp_path, "llm,question,acc\na,1,1\na,2,0\n")
    r = read_table(path, {"model": "llm", "item": "question", "score": "acc"})
    assert r.items.ids.tolist() == ["1", "2"]
    assert r.correct.tolist() == [[1, 0]]
    with pytest.raises(FormatError, match=r"column 'lm' is not known\. Did you mean 'llm'"):
        read_table(path, {"model": "lm"})
    with pytest.raises(DiscoError, match=r"column 'modle' is not known\. Did you mean 'model'"):
        read_table(path, {"modle": "llm"})


def test_items_asked_for_are_not_to_be_left_out(tmp_path):
    text = "model,item,score\na,x,1\na,y,1\nb,x,1\nb,z,1\n"
    with pytest.raises(ValidationError, match=r"'y' is missing .1 of 4 cells.*drops 1 of 2 models\.$"):
        read_table(csv(tmp_path, text), items=["x", "y"])


def test_booleans_are_grades(tmp_path):
    assert read_table(csv(tmp_path, "model,item,score\na,x,true\na,y,false\n")).correct.tolist() == [[1, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "model,item,score\na,x,1\na,y,1\nb,x,1\n",
            "model 'b', item 'y' is missing .1 of 4 cells.*drops 1 of 2 models, .* 1 of 2 items",
        ),
        ("model,item,score\na,x,1\na,x,0\n", "model 'a', item 'x' is there 2 times"),
        (
            "model,item,subtask,score\na,0,law,1\na,0,art,0\n",
            r"item '0' is of several subtasks, art, law \(1 such items\): .* such as 'art/0' and 'law/0'",
        ),
        (
            "model,item,score\na,x,1\na,y,\n",
            "score of model 'a', item 'y' is empty: leave out rows without an answer",
        ),
        ("model,item,score\na,x,1\na,y,oops\n", "score of model 'a', item 'y' is 'oops'"),
        ("model,item,score\na,x,1.5\n", "model 'a', item 'x' is 1.5"),
        ("model,item,score\n,x,1\n", "column 'model' is empty in 1 rows"),
        ("model,item\na,x\n", "needs exactly one of the columns score, prob, loglikelihood; it has none"),
        ("model,item,score,prob\na,x,1,1\n", "it has score and prob"),
        (
            "who,item,score\na,x,1\n",
            "no column 'model' .columns: who, item, score.. Name it with 'disco import table --column model=NAME'",
        ),
        ("model,item,prob\na,x,1\n", "no column 'choice'"),
        ("model,item,choice,prob\na,x,0,1\n", "no column 'label'"),
        (
            "model,item,choice,prob,label\na,x,0,0.5,0\na,x,1,0.5,0\nb,x,0,1,0\n",
            "model 'b', item 'x', choice 2 is missing",
        ),
        ("model,item,choice,prob,label\na,x,0,0.5,0\na,x,0,0.5,0\n", "choice 1 is there 2 times"),
        (
            "model,item,choice,prob,label\na,x,0,0.5,7\na,x,1,0.5,7\n",
            "item 'x' has a label that none of its choices has",
        ),
        ("model,item,choice,prob,label\na,x,0,0.5,0\na,x,1,0.5,1\n", "item 'x' has several labels"),
        ("model,item,choice,prob,label\na,x,0,0.5,0\na,x,1,0.1,0\n", "sum to 0.6"),
        (
            "model,item,score,subtask\na,x,1,s\nb,x,1,t\n",
            "item 'x' is of several subtasks, s, t .* or give each one subtask",
        ),
        ("model,item,score\n", "holds no rows"),
        ("", "cannot be read as csv"),
    ],
)
def test_bad_tables_say_what_and_where(tmp_path, text, message):
    with pytest.raises(DiscoError, match=message):
        read_table(csv(tmp_path, text))


def test_only_some_items_are_needed(tmp_path):
    path = csv(tmp_path, "model,item,score\na,x,1\na,y,1\nb,x,1\n")
    assert read_table(path, items=["x"]).correct.tolist() == [[1], [1]]
    with pytest.raises(ValidationError, match="model 'b', item 'y' is missing"):
        read_table(path, items=["x", "y"])


def test_foreign_files(tmp_path):
    with pytest.raises(FormatError, match=r"should end in one of .csv, .tsv"):
        read_table(tmp_path / "x.docx")
    with pytest.raises(FormatError, match="does not exist"):
        read_table(tmp_path / "x.csv")
    for name in ("x.parquet", "x.jsonl"):
        (tmp_path / name).write_bytes(b"\x00\xffgarbage{")
        with pytest.raises(FormatError, match="cannot be read as"):
            read_table(tmp_path / name)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"model":"a","item":', r"line 3 is no JSON: '\{\"model\":\"a\",\"item\":'$"),
        (b"[1, 2]", "line 3 is no JSON object"),
        (b'{"model":"a","item":"\xff","score":1}', "line 3 is no JSON in UTF-8.*save it as UTF-8"),
    ],
)
def test_damaged_json_lines_are_told_by_number(tmp_path, line, message):
    good = b'{"model":"a","item":"x","score":1}\n'
    (tmp_path / "x.jsonl").write_bytes(good + b"\n" + line + b"\n" + good)
    with pytest.raises(FormatError, match=message):
        read_table(tmp_path / "x.jsonl")


def test_open_answers_goes_by_the_ending(tmp_path):
    r = population(4, 6)
    write_npz(r, tmp_path / "r.npz")
    write_table(r, tmp_path / "r.parquet")
    r.save(tmp_path / "r.zarr")
    for name in ("r.npz", "r.parquet", "r.zarr"):
        np.testing.assert_array_equal(open_answers(tmp_path / name).load().correct, r.correct)
    (tmp_path / "r.txt").write_text("x")
    with pytest.raises(FormatError, match="neither a store"):
        open_answers(tmp_path / "r.txt")


def test_empty_parquet(tmp_path):
    pl.DataFrame({"model": [], "item": [], "score": []}).write_parquet(tmp_path / "e.parquet")
    with pytest.raises(FormatError, match="no rows"):
        read_table(tmp_path / "e.parquet")


def test_ids_are_text_as_they_stand(tmp_path):
    """001 and 1, 1e5 and 100000 are four names."""
    ids = ["001", "1", "1e5", "100000", "0.10"]
    text = "model,item,score\n" + "".join(f"07,{i},{k % 2}\n" for k, i in enumerate(ids))
    r = read_table(csv(tmp_path, text))
    assert r.items.ids.tolist() == ids
    assert r.models.ids.tolist() == ["07"]
    assert r.correct.tolist() == [[0, 1, 0, 1, 0]]


def test_numbered_choices_keep_their_order(tmp_path):
    rows = "".join(f"m,q,{c},{0.5 if c == 10 else 0.05},10\n" for c in range(11))
    r = read_table(csv(tmp_path, "model,item,choice,prob,label\n" + rows))
    assert r.items.label.tolist() == [10]
    assert r.probs[0, 0].argmax() == 10


def test_cells_that_are_empty_or_nested(tmp_path):
    text = "model,item,choice,prob,label\na,x,0,0.5,0\na,x,,0.5,0\n"
    with pytest.raises(ValidationError, match="choice or label of model 'a', item 'x' is empty"):
        read_table(csv(tmp_path, text))
    (tmp_path / "n.jsonl").write_text('{"model": "a", "item": ["x"], "score": 1}\n')
    with pytest.raises(FormatError, match="has lists or records in item"):
        read_table(tmp_path / "n.jsonl")


INCOMPLETE = "model,item,score\na,x,1\na,y,0\nb,x,1\nc,x,0\nc,y,1\n"


def test_incomplete_models_or_items_are_left_out_where_asked(tmp_path):
    path = csv(tmp_path, INCOMPLETE)
    r = read_table(path, leave_out="models")
    assert (r.models.ids.tolist(), r.items.ids.tolist()) == (["a", "c"], ["x", "y"])
    assert r.provenance["left_out"] == {"models": ["b"]}
    r = read_table(path, leave_out="items")
    assert (r.models.ids.tolist(), r.items.ids.tolist()) == (["a", "b", "c"], ["x"])
    with pytest.raises(DiscoError, match="takes models or items, not 'cells'"):
        read_table(path, leave_out="cells")
    with pytest.raises(
        ValidationError, match="2 of 3 models are incomplete, too many to leave out; leave out the items"
    ):
        read_table(csv(tmp_path, "model,item,score\na,x,1\nb,x,0\nc,x,1\nc,odd,1\n"), leave_out="models")
    empty = read_table(csv(tmp_path, INCOMPLETE + "b,y,\n"), leave_out="models")
    assert empty.models.ids.tolist() == ["a", "c"]
    silent = read_table(csv(tmp_path, INCOMPLETE + "b,y,0\nd,x,\nd,y, \n"), leave_out="models")
    assert silent.provenance["left_out"] == {"models": ["d"]}  # one without any answer is named too
    with pytest.raises(ValidationError, match="3 of 3 models are incomplete"):  # an item that nobody answered
        read_table(csv(tmp_path, INCOMPLETE + "b,y,0\na,z,\n"), leave_out="models")
    choices = "model,item,choice,label,prob\n" + "".join(
        f"{m},{i},{c},A,0.5\n" for m in "abc" for i in "xy" for c in "AB" if (m, i, c) != ("b", "y", "B")
    )
    assert read_table(csv(tmp_path, choices), leave_out="models").models.ids.tolist() == ["a", "c"]
    assert read_table(csv(tmp_path, choices), leave_out="items").items.ids.tolist() == ["x"]
    assert read_table(csv(tmp_path, "model,item,score\na,x,1\nb,x,0\n"), leave_out="models").provenance == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model;item;score\na;x;0,5\n", "separates its columns by ';', expected ','"),
        ("model\titem\tscore\na\tx\t1\n", "expected ','; save it with that"),
        (
            "model," + ",".join(f"i{k}" for k in range(30)) + "\n" + ",".join(["a"] + ["1"] * 30) + "\n",
            "One row for each",
        ),
        ("model,item,score\na,x,100\na,y,0\n", "divide percentages by 100"),
    ],
)
def test_tables_of_other_shapes_are_told_what_is_needed(tmp_path, text, message):
    with pytest.raises(DiscoError, match=message):
        read_table(csv(tmp_path, text))


def test_what_is_cut_as_it_should_be_is_not_refused(tmp_path):
    import gzip

    (tmp_path / "t.csv").write_bytes(gzip.compress(b"model,item,score\na,x;y,1\nb,x;y,0\n"))
    assert read_table(tmp_path / "t.csv").items.ids.tolist() == ["x;y"]
    metadata = ",".join(f"c{k}" for k in range(25))
    with pytest.raises(FormatError, match="Name it with 'disco import table --column model=NAME'"):
        read_table(csv(tmp_path, f"name,item,score,{metadata}\na,x,1{',1' * 25}\n"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_text_in_utf_16_is_named(tmp_path, encoding):
    text = "model,item,score\na,x,1\n"
    (tmp_path / "t.csv").write_text(text if encoding == "utf-16" else "\ufeff" + text, encoding=encoding)
    with pytest.raises(FormatError, match=r"text in UTF-16.*save it as 'CSV UTF-8'"):
        read_table(tmp_path / "t.csv")


def test_rows_of_other_items_are_shown_beside_those_asked_for(tmp_path):
    (tmp_path / "a.csv").write_text("model,item,score\nm, q1,1\n")
    with pytest.raises(FormatError, match="items asked for, such as q1, q2; its items are  q1"):
        read_table(tmp_path / "a.csv", items=["q1", "q2"])


def test_columns_that_are_nearly_known_or_there_twice_are_not_passed_over(tmp_path):
    rows = "a,x,1,2\nb,x,0,2\na,y,0,1\nb,y,1,1\n"
    (tmp_path / "t.csv").write_text("model,item,score,weights\n" + rows)
    with pytest.raises(FormatError, match="a column 'weights', which is not known; did you mean 'weight'"):
        read_table(tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv", columns={"weight": "weights"}).items.weight.tolist() == [2, 1]
    for name, meant in (("WEIGHT", "weight"), ("lable", "label"), ("base_model", "base"), ("base_models", "base")):
        (tmp_path / "t.csv").write_text(f"model,item,score,{name}\n" + rows)
        with pytest.raises(FormatError, match=f"a column '{name}', which is not known; did you mean '{meant}'"):
            read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("model,item,scores,note\n" + rows)
    with pytest.raises(FormatError, match=r"it has none .columns: model, item, scores, note.. Name it with"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("model,item,score,height\n" + rows)
    assert read_table(tmp_path / "t.csv").n_items == 2
    (tmp_path / "t.csv").write_text("model,item,score,score\n" + rows)
    with pytest.raises(FormatError, match="has the column 'score' twice"):
        read_table(tmp_path / "t.csv")
