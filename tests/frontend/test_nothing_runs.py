"""Model files that made Keras' own loaders run code: here nothing in them is imported, evaluated or unmarshalled."""

from __future__ import annotations

import base64
import json
import marshal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.frontend.keras_files import (
    called,
    dense,
    functional,
    h5_bytes,
    input_layer,
    keras_bytes,
    layer,
    random_arrays,
    sequential,
    small,
)

REPO = Path(__file__).resolve().parents[2]

WATCHER = """
import json, sys
from pathlib import Path
from nnbuild import passes
from nnbuild.base.errors import NnbuildError
from nnbuild.frontend import keras_h5, keras_zip, load

FORBIDDEN = ("exec", "compile", "marshal.", "pickle.", "os.", "subprocess.", "socket.", "shutil.", "code.", "ctypes.")
seen, watching = [], False
def watch(event, arguments):
    if not watching:
        return
    if event.startswith(FORBIDDEN) or (event == "import" and "nnbuild_trap" in str(arguments[0])):
        seen.append(event)
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        seen.append(f"open {arguments[0]} to write")

sys.addaudithook(watch)
for path in map(Path, sys.argv[1:]):
    try:
        load(path)  # once before watching: what Python itself imports late is no concern
    except NnbuildError:
        pass
    seen.clear()
    watching = True
    try:
        passes.run(load(path))
        outcome = "imported"
    except NnbuildError as error:
        outcome = str(error)
    watching = False
    print(json.dumps({"outcome": outcome, "seen": seen}))
"""


def bytecode(marker: Path) -> str:
    """What Keras stores of a lambda, which here would leave a file behind."""
    code = compile(f"lambda x: open({str(marker)!r}, 'w').close() or x", "model", "eval").co_consts[0]
    return base64.b64encode(marshal.dumps(code)).decode()


def lambda_layer(marker: Path) -> dict[str, Any]:
    return layer("Lambda", "evil", function=[bytecode(marker), None, None], function_type="lambda", module="os")


def traps(marker: Path) -> dict[str, bytes]:
    """Files after CVE-2025-9905 and CVE-2025-9906 (.h5, .keras with a Lambda) and CVE-2025-1550 (module, class)."""
    shell = f"touch {marker}"
    registered = {"module": "nnbuild_trap", "registered_name": "os>system", "class_name": "system", "config": shell}
    call = {"module": "os", "class_name": "function", "config": "system", "registered_name": "system"}
    x = input_layer("x", [4])
    arrays = {f"layers/dense/vars/{i}": array for i, array in enumerate(small()[1]["dense"])}
    unsafe = {"module": "keras.src.config", "class_name": "function", "config": "enable_unsafe_deserialization"}

    def around(evil: Any) -> dict[str, Any]:
        return sequential(x, dense("dense", 3), evil)

    def node(evil: Any) -> dict[str, Any]:
        layers = [called(x), {**called(dense("dense", 3), "x"), "inbound_nodes": [{"args": [evil], "kwargs": {}}]}]
        return functional(layers, ["x"], ["dense"])

    configs = {
        "lambda": around(lambda_layer(marker)),
        "lambda in a wrapper": around(layer("TimeDistributed", "td", layer=lambda_layer(marker))),
        "registered name": around(registered),
        "module and class": around({"module": "os", "class_name": "system", "config": {"command": shell}}),
        "activation": sequential(x, dense("dense", 3, activation=call)),
        "initializer": sequential(x, dense("dense", 3, kernel_initializer=call, bias_initializer=registered)),
        "regularizer": sequential(x, dense("dense", 3, kernel_regularizer=lambda_layer(marker))),
        "function that allows more": around(unsafe),
        "argument": node({**registered, "class_name": "__lambda__", "config": {"value": bytecode(marker)}}),
        "model class": {**registered, "config": {"name": "model", "layers": []}},
    }
    files = {f"{name}.h5": h5_bytes(config, {"dense": random_arrays((4, 3), (3,))}) for name, config in configs.items()}
    return files | {f"{name}.keras": keras_bytes(config, arrays) for name, config in configs.items()}


NAMES = sorted(traps(Path("unused")))


def marker_of(folder: Path, name: str) -> Path:
    return folder / f"{NAMES.index(name)}.ran"


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, Any]]]:
    """What one process that read all files saw of each, and the folder in which they would have left something."""
    folder = tmp_path_factory.mktemp("traps")
    paths = [folder / f"model{number}{Path(name).suffix}" for number, name in enumerate(NAMES)]
    for path, name in zip(paths, NAMES, strict=True):
        path.write_bytes(traps(marker_of(folder, name))[name])
    command = [sys.executable, "-c", WATCHER, *map(str, paths)]
    result = subprocess.run(command, cwd=REPO, capture_output=True, text=True, timeout=600, check=True)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    return folder, dict(zip(NAMES, found, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_in_a_file_is_run(name: str, watched: tuple[Path, dict[str, dict[str, Any]]]) -> None:
    folder, all_found = watched
    found = all_found[name]
    assert found["seen"] == []
    assert not marker_of(folder, name).exists()
    harmless = ("initializer", "regularizer")  # nobody needs these after training, so nobody reads them
    assert (found["outcome"] == "imported") == (name.rpartition(".")[0] in harmless), found["outcome"]


def test_the_watcher_sees_what_it_should(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    path.write_bytes(h5_bytes(*small()))
    spoilt = WATCHER.replace(
        "        passes.run(load(path))", "        import marshal; marshal.loads(marshal.dumps(1))"
    )
    result = subprocess.run(
        [sys.executable, "-c", spoilt, str(path)], cwd=REPO, capture_output=True, text=True, timeout=60, check=True
    )
    assert "marshal.loads" in json.loads(result.stdout)["seen"]


def test_the_trap_is_real(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    code = marshal.loads(base64.b64decode(bytecode(marker)))
    type(lambda: None)(code, {"open": open})(1)
    assert marker.exists()
