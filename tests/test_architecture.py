"""Data flows one way and modules import one way."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import disco_eval

SRC = Path(disco_eval.__file__).parent
LAYERS = [
    ["errors", "flags"], ["files", "hub", "resources"], ["numerics"], ["axes"], ["checks"], ["responses"],
    ["layout", "doubts"], ["store"], ["appending", "joining"], ["io", "splits"], ["select"], ["predict"],
    ["recipe", "topup"], ["further", "baseline"], ["relatives"], ["calibration", "estimates", "sizing"],
    ["more", "pairs", "subtasks", "left_out"], ["condensation"], ["condensing"],
    ["audit", "card", "difference", "older"], ["comparison"], ["artifact"],
    ["studies"], ["integrity"], ["harness"], ["report"], ["cli"], ["__main__"],
]  # fmt: skip
RANK = {name: k for k, layer in enumerate(LAYERS) for name in layer}
WITHIN_FUNCTIONS = {("responses", "store")}  # Responses.save is the one shortcut upwards, and condensations' save
WITHIN_FUNCTIONS |= {("more", "condensation"), ("condensation", "artifact"), ("condensation", "comparison")}
SEES_ONLY = {
    "io": {"errors", "files", "resources", "axes", "checks", "responses", "store", "appending"},
    "numerics": {"errors"},
}


def for_types(node: ast.AST) -> bool:
    """Whether this is ``if TYPE_CHECKING:``, which never runs."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports(path: Path):
    """(module of this package that is imported, whether inside a function) for every import of a file.

    What only type checkers import counts as inside a function.
    """
    tree = ast.parse(path.read_text())
    inner = {id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) or for_types(f) for n in ast.walk(f)}
    depth = len(path.relative_to(SRC).parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            if node.level == depth:
                names = [node.module.split(".")[0]] if node.module else [a.name for a in node.names]
                for name in names:
                    if name in RANK:
                        yield name, id(node) in inner
            else:
                assert node.level < depth, f"{path} imports from outside the package"


def test_imports_go_one_way():
    for path in SRC.rglob("*.py"):
        own = path.relative_to(SRC).parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        assert own in RANK, f"{path} belongs to no layer"
        for other, in_function in imports(path):
            if other == own:
                continue
            if in_function and (own, other) in WITHIN_FUNCTIONS:
                continue
            assert RANK[other] < RANK[own], f"{path} imports {other}"
            if own in SEES_ONLY:
                assert other in SEES_ONLY[own], f"{path} imports {other}"


def test_the_map_for_contributors_is_this_one():
    page = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"^ +errors, [^`]*?\n\n", page, re.MULTILINE)
    assert [part.replace(",", " ").split() for part in lines.split("<")] == LAYERS[:-1]


def loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )


def test_importing_the_package_loads_nothing_heavy():
    heavy = {"numpy", "scipy", "sklearn", "zarr", "polars", "matplotlib", "typer", "rich"}
    assert not heavy & loaded_after("import disco_eval")


def test_the_command_line_starts_without_scikit_learn():
    assert not {"scipy", "sklearn", "polars", "matplotlib", "zarr"} & loaded_after(
        "import disco_eval.cli, disco_eval.artifact"
    )


def test_every_public_name_resolves():
    for name in disco_eval.__all__:
        assert getattr(disco_eval, name) is not None
    assert callable(disco_eval.condense)
    assert set(disco_eval.__all__) <= set(dir(disco_eval))
