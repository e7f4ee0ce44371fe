"""For the site: the list of decision notes is made from the notes."""

from pathlib import Path
from typing import Any

NOTES = Path(__file__).parent / "decisions"


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Adds the titles of all notes to their index."""
    if page.file.src_uri != "decisions/index.md":
        return markdown
    notes = sorted(NOTES.glob("[0-9]*.md"))
    titles = {note.name: note.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for note in notes}
    return markdown + "\n" + "\n".join(f"- [{title}]({name})" for name, title in titles.items()) + "\n"
