"""Condensations on the Hugging Face hub: three files, no code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .errors import DiscoError

FILES = ("condensation.json", "arrays.safetensors", "README.md")
_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def is_repo(name: str | Path) -> bool:
    """Whether a name that is no path here reads as ``USER/NAME`` on the hub."""
    return bool(_REPO.fullmatch(str(name))) and not Path(name).exists()


def download(
    repo: str, *, revision: str | None = None, token: str | None = None, out: str | Path | None = None
) -> Path:
    """Fetch a condensation's files to the hub's cache, or to ``out``, and return their folder.

    Only the three files of a condensation are fetched, never code. Raises DiscoError with what the hub answered.
    """
    _check_name(repo)
    hub = _hub(f"'{repo}' is no folder here; to fetch it from the hub")
    try:
        folder = hub.snapshot_download(repo, revision=revision, token=token, local_dir=out, allow_patterns=list(FILES))
    except Exception as e:  # the client raises its own, requests' and the system's errors
        raise DiscoError(f"'{repo}' is no folder here and cannot be fetched from the hub: {_why(e)}") from None
    return Path(folder)


def upload(
    folder: str | Path,
    repo: str,
    *,
    private: bool = False,
    token: str | None = None,
    message: str = "Add a condensation",
) -> str:
    """Send a condensation's three files to the hub in one commit and return the address; a new repository is made."""
    _check_name(repo)
    hub = _hub("to send to the hub")
    api = hub.HfApi(token=token)
    try:
        address = api.create_repo(repo, private=private, exist_ok=True)
        api.upload_folder(folder_path=str(folder), repo_id=repo, allow_patterns=list(FILES), commit_message=message)
    except Exception as e:  # the client raises its own, requests' and the system's errors
        raise DiscoError(f"the condensation cannot be sent to '{repo}': {_why(e)}") from None
    return str(address)


def _check_name(repo: str) -> None:
    if not _REPO.fullmatch(repo):
        raise DiscoError(f"'{repo}' is no name on the hub; write USER/NAME")


def _hub(to: str) -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise DiscoError(f"{to}, huggingface_hub is needed: pip install 'disco-eval[hub]'") from None
    return huggingface_hub


def _why(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
