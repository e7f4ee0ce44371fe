"""For the API pages: our docstrings' short form of a field, ``name : what it is.``, read as a name and its description.

numpydoc would take what follows the colon as a type; types stand in the signatures.
"""

from __future__ import annotations

import re

import griffe

FIELD = re.compile(r"^(?P<indent> *)(?P<names>[a-z_*]\w*(, [a-z_*]\w*)*) : (?P<text>.+)$")


class ShortFields(griffe.Extension):
    """Rewrites ``name : text`` lines of Parameters and Attributes before they are parsed."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Called for every object that was loaded."""
        if obj.docstring is None:
            return
        out: list[str] = []
        inside = False
        lines = obj.docstring.value.splitlines()
        for line, below in zip(lines, [*lines[1:], ""], strict=True):
            if set(below.strip()) == {"-"}:
                inside = line.strip() in ("Parameters", "Attributes")
            field = FIELD.match(line) if inside else None
            out += [f"{field['indent']}{field['names']}", f"{field['indent']}    {field['text']}"] if field else [line]
        obj.docstring.value = "\n".join(out)
