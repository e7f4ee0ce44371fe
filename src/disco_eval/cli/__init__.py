"""The ``disco`` command: one file per subcommand, each a few lines over the library.

Results go to standard output, progress and errors to standard error. Exit status: 0 done; 2 the input is wrong, with
one line that says what to do; 1 our bug, with a traceback.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import warnings

import typer

from ..errors import DiscoError
from . import (
    anchors,
    check,
    collect,
    compare,
    condense,
    cost,
    demo,
    estimate,
    imports,
    info,
    report,
    run,
    sharing,
    study,
    watch,
)

INTERRUPTED = 130  # the exit status after Ctrl-C, as shells have it

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Condense a benchmark to about 100 items and predict a model's full score from its answers on those alone.",
    epilog="Start with **disco demo**. Documentation: README.md and docs/.",
)
app.command("demo")(demo.demo)
app.add_typer(imports.app, name="import")
app.command("info")(info.info)
app.command("condense")(condense.condense)
app.command("anchors")(anchors.anchors)
app.command("estimate")(estimate.estimate)
app.command("compare")(compare.compare)
app.command("study")(study.study)
app.command("cost")(cost.cost)
app.add_typer(report.app, name="report")
app.command("run")(run.run)
app.command("watch")(watch.watch)
app.command("collect")(collect.collect)
app.command("push")(sharing.push)
app.command("pull")(sharing.pull)
app.command("check")(check.check)


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", help="Show the version and stop.")) -> None:
    if version:
        from .. import __version__

        print(__version__)
        raise typer.Exit


def _hush() -> None:
    """After an error nobody waits for reads that Zarr still has under way; Python would complain of each at the end."""
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", message="coroutine .* was never awaited", category=RuntimeWarning)
    sys.unraisablehook = lambda _: None


def main() -> None:
    """The entry point: runs the command and turns the library's errors into one line and exit status 2."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except DiscoError as e:
        print(f"disco: {e}", file=sys.stderr)
        _hush()
        sys.exit(2)
    except SystemExit as e:
        if e.code == INTERRUPTED:  # typer makes this of a KeyboardInterrupt
            print("disco: interrupted; nothing was left half-written", file=sys.stderr)
        raise
    except BrokenPipeError:
        _shut()
        sys.exit(0)
    except OSError as e:
        if e.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _shut()
        print(f"disco: {e.strerror or 'no space left'}: free some, and run the command again", file=sys.stderr)
        sys.exit(2)


def _shut() -> None:
    """What is still to be printed goes nowhere, or Python would try once more at the end and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
