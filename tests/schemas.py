"""Every ``--json`` output that a test meets is held against its published schema."""

import json
from functools import cache
from pathlib import Path

from jsonschema import Draft202012Validator

FOLDER = Path(__file__).parent.parent / "docs" / "schemas"


@cache
def schema(command: str) -> Draft202012Validator:
    """The validator of a command's output."""
    text = json.loads((FOLDER / f"{command}.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(text)
    return Draft202012Validator(text)


def check(args, stdout: str) -> None:
    """Validate what ``disco ARGS`` printed, if it was asked for JSON and printed any."""
    words = [str(a) for a in args]
    wanted = "--json" in words or (words[:1] == ["anchors"] and "json" in words)
    if not wanted or not stdout or "--export" in words:
        return
    rest, decoder = stdout.strip(), json.JSONDecoder(parse_constant=_refuse)
    while rest:
        document, end = decoder.raw_decode(rest)
        schema(words[0]).validate(document)
        rest = rest[end:].strip()


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")
