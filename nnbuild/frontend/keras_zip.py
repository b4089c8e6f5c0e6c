"""The .keras format of Keras 3 and late Keras 2: a zip of config.json, metadata.json and model.weights.h5,
and texts of layers that learned words or numbers.

Members are read into memory by name. Nothing is ever unpacked to disk.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nnbuild.base.errors import ModelError
from nnbuild.frontend.hdf5 import MAX_TEXT, H5File
from nnbuild.frontend.import_options import DEFAULTS, ImportOptions
from nnbuild.frontend.keras_config import parse
from nnbuild.frontend.keras_import import import_model
from nnbuild.frontend.keras_quantized import UNQUANTIZED
from nnbuild.frontend.keras_version import dialect
from nnbuild.frontend.keras_weights import DAMAGED, Stored, StoredArray, WeightTree
from nnbuild.model.graph import Graph

CONFIG, METADATA, WEIGHTS = "config.json", "metadata.json", "model.weights.h5"
TEXT = re.compile(r"assets/(.+/)?[a-z_]+\.txt")
MOST_TEXTS, LONGEST_TEXT = 256, 1 << 20
SAMPLES = "Give the model, and samples with --inputs or --calibrate."
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ROOM = 64 * 2**20
"""Keras does not compress. A repacked file may unpack to four times its size plus this many bytes."""


def load(path: Path, name: str, options: ImportOptions = DEFAULTS) -> Graph:
    where = path.name
    try:
        members = _members(path, where)
    except ModelError:
        raise
    except Exception as error:  # zipfile raises a dozen kinds of exception for a damaged file
        raise ModelError(where, f"the zip is damaged ({' '.join(str(error).split())[:100]}).", DAMAGED) from None
    return read(members, name, where, options)


def read(members: Mapping[str, bytes], name: str, where: str, options: ImportOptions = DEFAULTS) -> Graph:
    """Builds the model from unpacked members."""
    metadata = parse(_text(members[METADATA], where), where)
    version = metadata.get("keras_version") if isinstance(metadata, dict) else None
    if not isinstance(version, str):
        raise ModelError(where, f"its {METADATA} does not say which Keras wrote it.", DAMAGED)
    data = parse(_text(members[CONFIG], where), where)
    with H5File(members[WEIGHTS], f"{where}: {WEIGHTS}") as file:
        texts = {each: _text(data, where) for each, data in members.items() if each.startswith("assets/")}
        found = dialect(version, where)
        return import_model(name, data, found, where, lambda tree: _stored(file, tree, texts), options)


def _members(path: Path, where: str) -> dict[str, bytes]:
    limit = ROOM + 4 * path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        for entry in names:
            if entry.startswith(("/", "\\")) or ".." in entry.replace("\\", "/").split("/") or ":" in entry:
                raise ModelError(
                    where,
                    f"its member {entry[:80]!r} points outside of the zip.",
                    "Do not unpack this file: it was made to write outside its folder.",
                )
        if names and all(name.endswith(".npy") for name in names):
            raise ModelError(where, "it is a file of arrays, as samples are, and not a model.", SAMPLES)
        for name in (CONFIG, METADATA, WEIGHTS):
            if names.count(name) != 1:
                raise ModelError(where, f"it is a zip, but holds {name} {names.count(name)} times.", DAMAGED)
        limits = {CONFIG: MAX_TEXT, METADATA: MAX_TEXT, WEIGHTS: limit}
        short = [e.filename for e in archive.infolist() if TEXT.fullmatch(e.filename) and e.file_size <= LONGEST_TEXT]
        limits |= dict.fromkeys(short[:MOST_TEXTS], LONGEST_TEXT)
        return {name: _read(archive, name, where, most) for name, most in limits.items()}


def _read(archive: zipfile.ZipFile, name: str, where: str, limit: int) -> bytes:
    info = archive.getinfo(name)
    if info.compress_type not in METHODS or info.flag_bits & 1:
        raise ModelError(
            where, f"its {name} is encrypted or uses an unknown compression.", "Zip it again without encryption."
        )
    with archive.open(info) as member:
        data = member.read(min(limit, info.file_size) + 1)
    if len(data) > min(limit, info.file_size):
        raise ModelError(where, f"its {name} unpacks to far more than the file's size.", "Do not use this file.")
    return data


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ModelError(where, "its configuration is not text.", DAMAGED) from None


def _stored(file: H5File, model: WeightTree, texts: Mapping[str, str]) -> Stored:
    arrays: dict[str, StoredArray] = {}
    _collect(file, model, "", "", arrays)
    return Stored(arrays, texts=dict(_own_texts(texts, model, "", "")))


def _own_texts(texts: Mapping[str, str], tree: WeightTree, prefix: str, folder: str) -> Iterator[tuple[str, str]]:
    """A layer's texts are in its folder, beside those of the weights."""
    place = f"assets/{folder}{tree.text}.txt"
    if tree.text and place in texts:
        yield prefix + tree.text, texts[place]
    for child in tree.children:
        if child.folder:
            yield from _own_texts(texts, child.tree, f"{prefix}{child.name}/", f"{folder}{child.folder}/")


def _collect(file: H5File, tree: WeightTree, prefix: str, folder: str, arrays: dict[str, StoredArray]) -> None:
    """A layer's arrays are in folder/vars/0, 1, …, and each layer inside it has a folder there."""
    tree = tree.archived or tree
    if tree.around_scalar is not None:
        arrays |= {prefix + role: found for role, found in _around_scalar(file, tree.around_scalar, prefix, folder)}
    roles = (*tree.trained, *tree.fixed)
    where = f"layer {prefix.rstrip('/')!r}"
    for number, role in enumerate(roles):
        found: Any = file.array(file.root, f"{folder}vars/{number}", where)
        if found is not None:  # a missing one is reported by the layer that needs it
            arrays[prefix + role] = found
    if roles and file.array(file.root, f"{folder}vars/{len(roles)}", where) is not None:
        first = arrays.get(prefix + roles[0])
        if first is not None and first.read_whole is not None:
            raise ModelError(where, "Keras has quantized it, but its layer does not say how.", UNQUANTIZED)
        raise ModelError(where, f"the file holds more than {len(roles)} weight arrays for it.", DAMAGED)
    for child in tree.children:
        if child.folder:
            before = len(arrays)
            _collect(file, child.tree, f"{prefix}{child.name}/", f"{folder}{child.folder}/", arrays)
            if len(arrays) == before:  # Keras 2 names some parts of layers as private ones
                _collect(file, child.tree, f"{prefix}{child.name}/", f"{folder}_{child.folder}/", arrays)


def _around_scalar(
    file: H5File, roles: tuple[tuple[str, ...], tuple[str, ...]], prefix: str, folder: str
) -> Iterator[tuple[str, StoredArray]]:
    """Those before it may follow copies of themselves and of others."""
    found: list[StoredArray] = []
    while (array := file.array(file.root, f"{folder}vars/{len(found)}", f"layer {prefix.rstrip('/')!r}")) is not None:
        found.append(array)
    at = next((index for index, array in enumerate(found) if array.shape == ()), len(found))
    before, behind = roles
    yield from zip(before, found[max(at - len(before), 0) : at], strict=False)
    yield from zip(behind, found[at + 1 :], strict=False)
