"""The schemas of ``--json``: there is one for every command, and they refuse what they should."""

import json

import pytest
import typer
from jsonschema import ValidationError

from disco_eval.cli import app
from disco_eval.cli.common import print_json
from tests.schemas import FOLDER, check, schema


def with_json(command, name):
    """Names of top-level commands of which one takes --json."""
    if hasattr(command, "commands"):
        return any(with_json(c, name) for c in command.commands.values())
    return any("--json" in p.opts for p in command.params)


def test_every_command_with_json_has_a_schema():
    commands = typer.main.get_command(app).commands
    named = {name for name, command in commands.items() if with_json(command, name)} | {"anchors"}
    assert {f.stem for f in FOLDER.glob("*.json")} == named
    page = (FOLDER.parent / "json.md").read_text()
    for name in named:
        schema(name)
        assert f"schemas/{name}.json" in page


def test_the_schemas_refuse_what_is_wrong():
    good = {"benchmark": "b", "level": 0.9, "estimates": []}
    check(("estimate", "--json"), json.dumps(good))
    for wrong in ({**good, "level": 90}, {**good, "more": 1}, {"benchmark": "b"}):
        with pytest.raises(ValidationError):
            check(("estimate", "--json"), json.dumps(wrong))
    with pytest.raises(AssertionError, match="NaN is no JSON"):
        check(("estimate", "--json"), '{"level": NaN}')


def test_what_is_no_number_is_null(capsys):
    print_json({"a": [float("nan"), 1.5], "b": {"c": float("inf")}, "d": (True, None, "NaN")})
    assert json.loads(capsys.readouterr().out) == {"a": [None, 1.5], "b": {"c": None}, "d": [True, None, "NaN"]}
