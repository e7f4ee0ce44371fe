# ruff: noqa: E501
"""Changes to valid files: of bytes, and of what the bytes mean (JSON values, archive members, tables, arrays).

Where a format seals its content with checksums, half of the changes are sealed again, as an attacker would.
"""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from disco_eval.io.frames import without_panics

Rng = np.random.Generator

DEEP: Any = []
for _ in range(300):
    DEEP = [DEEP]
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, 10**30, -(10**300), 0.5, -0.0, 1e308, 5e-324, float("nan"), float("inf"),
    "", "x", "0", "-1", "1e999", "nan", "True", "../../escape", "/etc/passwd", "a\x00b", "\x1b[2J", "<script>alert(1)</script>",
    "{{7*7}}", "\ud800", "ü" * 300, "a" * 20_000, "[" * 5000, "__import__('os')", [], {}, [[]], [None], {"": None}, DEEP,
    {"__class__": "x"}, [1, "a", None], "2024-13-45", "9" * 5000,
]  # fmt: skip
BYTES = [
    b"\x00",
    b"\xff",
    b"\x80",
    b"\n",
    b"{",
    b"[",
    b'"',
    b"-",
    b"\x7f\xff\xff\xff",
    b"\xff" * 8,
    b"\x00" * 16,
    b"PK\x03\x04",
    b"9" * 40,
]
OPCODES = b"().012FGIJKLMNPQRSTUVXabcdeghijlopqrstu}]\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98"


def mutate(folder: Path, rng: Rng) -> None:
    """Change one file of a folder, now and then several; or lose one."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    for _ in range(1 + int(rng.random() < 0.2)):
        file = files[rng.integers(len(files))]
        if rng.random() < 0.01:
            file.unlink(missing_ok=True)
        elif file.exists():
            changed = _changed(file, rng)
            file.write_bytes(changed[: 2**22])
    if rng.random() < 0.7:
        for seal in (_seal_condensations, _seal_store):
            seal(folder)


def _changed(file: Path, rng: Rng) -> bytes:
    data = file.read_bytes()
    kind = file.suffix.lower()
    ways: dict[str, Callable[[bytes, Rng], bytes]] = {
        ".json": of_json, ".jsonl": of_lines, ".npz": of_zip, ".parquet": of_table, ".csv": of_csv,
        ".pickle": of_pickle, ".safetensors": of_safetensors,
    }  # fmt: skip
    if kind in ways and rng.random() < 0.7:
        try:
            return ways[kind](data, rng)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # the change before made it unreadable; polars' panics are no Exception
            pass
    return of_bytes(data, rng)


def of_bytes(data: bytes, rng: Rng) -> bytes:
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        at, way = int(rng.integers(len(out) + 1)), rng.integers(6)
        span = int(min(len(out) - at, rng.integers(1, 64)))
        if way == 0 and at < len(out):
            out[at] ^= 1 << int(rng.integers(8))
        elif way == 1:
            out[at : at + span] = BYTES[rng.integers(len(BYTES))]
        elif way == 2:
            out[at:at] = BYTES[rng.integers(len(BYTES))]
        elif way == 3:
            del out[at : at + span]
        elif way == 4:
            out[at:at] = out[at : at + span]
        elif rng.random() < 0.3:
            del out[at:]
    return bytes(out)


# ---- JSON ------------------------------------------------------------------------------------------------------


def odd(rng: Rng) -> Any:
    return ODD[rng.integers(len(ODD))]


def of_value(value: Any, rng: Rng) -> Any:
    """A value with one of its parts changed."""
    whole = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            places.append((node, key))
            visit(node[key])

    visit(whole)
    if not places or rng.random() < 0.02:
        return odd(rng)
    node, key = places[rng.integers(len(places))]
    way = rng.integers(6)
    if way == 0:
        del node[key]
    elif way == 1 and isinstance(node, list):
        node.insert(key, copy.deepcopy(node[key]))
    elif way == 2 and isinstance(node, dict):
        node[str(odd(rng))[:50]] = node.pop(key)
    elif way == 3:
        other, place = places[rng.integers(len(places))]
        node[key] = (
            copy.deepcopy(other[place]) if place in other or (isinstance(other, list) and place < len(other)) else None
        )
    elif way == 4 and isinstance(node[key], (int, float)) and not isinstance(node[key], bool):
        node[key] = node[key] * int(rng.choice([-1, 2, 10, 10**6])) + int(rng.integers(-2, 3))
    else:
        node[key] = odd(rng)
    return whole


def of_json(data: bytes, rng: Rng) -> bytes:
    text = json.dumps(of_value(json.loads(data), rng))
    if rng.random() < 0.02:
        text = text.replace("{", '{"a":' * 100_000, 1)
    return text.encode("utf-8", "surrogatepass")


def of_lines(data: bytes, rng: Rng) -> bytes:
    lines = data.splitlines()
    at = int(rng.integers(len(lines)))
    lines[at] = of_json(lines[at], rng)
    return b"\n".join(lines)


# ---- archives, tables, arrays ------------------------------------------------------------------------------------


def of_zip(data: bytes, rng: Rng) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        members = old.namelist()
        chosen = members[rng.integers(len(members))]
        for name in members:
            content = old.read(name)
            if name == chosen:
                way = rng.integers(4)
                if way == 0:
                    content = _npy(of_array(np.load(io.BytesIO(content)), rng))
                elif way == 1:
                    content = of_header(content, rng)
                elif way == 2:
                    content = of_bytes(content, rng)
                else:
                    name = str(rng.choice(["../x.npy", "models.npy", "probs.npy", "correct.npy", name.upper()]))
            new.writestr(name, content)
    return out.getvalue() if rng.random() < 0.9 else of_bytes(out.getvalue(), rng)


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def of_header(content: bytes, rng: Rng) -> bytes:
    shapes = ["(1000000000000,)", "(-1,)", "()", "(0,)", "(2, 3, 4, 5)", "(9**9,)", "'x'", "(True,)", "(1e9,)"]
    kinds = ["<f8", "|O", "<U0", "<U99999999", "|V8", ">i2", "<c16", "<M8[D]", "|S0", "x"]
    fields = f"{{'descr': '{rng.choice(kinds)}', 'fortran_order': {rng.choice(['False', 'True', '3'])}, 'shape': {rng.choice(shapes)}, }}"
    head = fields.ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + content[128:]


def of_array(array: np.ndarray, rng: Rng) -> np.ndarray:
    way = rng.integers(8)
    if way == 0:
        return array.astype(rng.choice(["f2", "f8", "i1", "u8", "U5", "S3", "?", "c8"]))
    if way == 1:
        return array[..., None]
    if way == 2:
        return array.reshape(-1)
    if way == 3:
        return array[: rng.integers(len(array) + 1)] if array.ndim else array
    if way == 4:
        return np.concatenate([array, array]) if array.ndim else array
    if way == 5:
        return np.zeros((0, *array.shape[1:]), array.dtype)
    out = array.copy()
    if out.size:
        values = [-1, 0, 1, 2, 10**9] if out.dtype.kind in "iu" else [np.nan, np.inf, -np.inf, -1, 0, 2, 1e30]
        out.reshape(-1)[rng.integers(out.size)] = odd(rng) if out.dtype.kind == "U" else rng.choice(values)
    return out


def of_table(data: bytes, rng: Rng) -> bytes:
    with without_panics():  # another change may have damaged it before
        frame = pl.read_parquet(io.BytesIO(data))
    name = frame.columns[rng.integers(len(frame.columns))]
    way = rng.integers(7)
    kinds = [pl.String, pl.Int8, pl.Float32, pl.Boolean, pl.Binary, pl.Date, pl.List(pl.Float64), pl.Categorical]
    if way == 0:
        frame = frame.with_columns(pl.col(name).cast(kinds[rng.integers(len(kinds))], strict=False))
    elif way == 1:
        frame = frame.drop(name)
    elif way == 2:
        frame = frame.with_columns(
            pl.when(pl.int_range(pl.len()) == rng.integers(len(frame))).then(None).otherwise(pl.col(name)).alias(name)
        )
    elif way == 3:
        frame = pl.concat([frame, frame.head(1)])
    elif way == 4:
        frame = frame.head(int(rng.integers(len(frame))))
    elif way == 5:
        frame = frame.rename({name: str(odd(rng))[:30]})
    else:
        value = odd(rng)
        frame = frame.with_columns(
            pl.lit(value if isinstance(value, (str, float, bool, type(None))) else 1).alias(name)
        )
    out = io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue() if rng.random() < 0.8 else of_bytes(out.getvalue(), rng)


def of_csv(data: bytes, rng: Rng) -> bytes:
    rows = [line.split(",") for line in data.decode().splitlines()]
    line = rows[rng.integers(len(rows))]
    at = int(rng.integers(len(line)))
    way = rng.integers(4)
    if way == 0:
        del line[at]
    elif way == 1:
        line.insert(at, line[at])
    elif way == 2:
        rows.append(line)
    else:
        line[at] = str(odd(rng))
    return "\n".join(map(",".join, rows)).encode("utf-8", "surrogatepass")


def of_pickle(data: bytes, rng: Rng) -> bytes:
    """Opcodes put in, taken out and exchanged; lengths and memo positions made huge; names of functions exchanged."""
    out = bytearray(data)
    names = [
        b"numpy\nndarray\n",
        b"numpy\ndtype\n",
        b"_codecs\nencode\n",
        b"os\nsystem\n",
        b"collections\nOrderedDict\n",
    ]
    pieces = [
        b"c" + names[rng.integers(len(names))], b"r\xff\xff\xff\x7f", b"j\xff\xff\xff\xff", b"\x8e" + b"\xff" * 8, b"X\xff\xff\xff\x7f",
        b"(" * 50, b")" + b"\x94\x86" * 60, b"\x88\x85R", b"N\x85R", b"}b", b"\x8a\xff" + b"\x7f" * 255, b"(lp0\n", b"I99999999999\n", b"]\x94h\x00a",
    ]  # fmt: skip
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(2, len(out)))
        way = rng.integers(4)
        if way == 0:
            out[at] = OPCODES[rng.integers(len(OPCODES))]
        elif way == 1:
            out[at:at] = bytes([OPCODES[rng.integers(len(OPCODES))]])
        elif way == 2:
            out[at:at] = pieces[rng.integers(len(pieces))]
        else:
            del out[at]
    return bytes(out)


def of_safetensors(data: bytes, rng: Rng) -> bytes:
    from safetensors.numpy import load, save

    arrays = dict(load(data))
    name = sorted(arrays)[rng.integers(len(arrays))]
    way = rng.integers(8)
    if way == 0:
        del arrays[name]
    elif way == 1:
        arrays[name + "x"] = arrays.pop(name)
    else:
        arrays[name] = np.ascontiguousarray(of_array(arrays[name], rng))
    out = save(arrays)
    return out if rng.random() < 0.8 else of_bytes(out, rng)


# ---- seals -----------------------------------------------------------------------------------------------------


def _seal_condensations(folder: Path) -> None:
    from disco_eval.files import checksum_of, sha256

    for file in folder.rglob("condensation.json"):
        try:
            about = json.loads(file.read_bytes())
            about["files"] = {n: sha256((file.parent / n).read_bytes()) for n in ("arrays.safetensors", "README.md")}
            about["checksum"] = checksum_of(about)
            file.write_text(json.dumps(about))
        except Exception:  # no longer a description that could be sealed
            continue


def _seal_store(folder: Path) -> None:
    """Make the checksums of a store's descriptions fit again; those of its columns where they can be read."""
    from disco_eval import store

    for path in folder.glob("*.zarr"):
        file = path / "zarr.json"
        try:
            import zarr

            record = json.loads(file.read_bytes())
            about = record["attributes"]
            group = zarr.open_group(str(path), mode="r", zarr_format=3)
            for name in about["arrays"]:
                about["arrays"][name] = store._description(group, name)
                if name in about["columns"] and np.prod(store.array_of(group, name).shape) < 1000:
                    about["columns"][name] = store._content(group, name, about["n_models"])
            about["checksum"] = store.checksum_of(about)
            file.write_text(json.dumps(record))
        except Exception:  # no longer a store that could be sealed
            continue
