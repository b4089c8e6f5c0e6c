"""Floats at a model's edges, and its classes' names: the header's inline functions do what a check does."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.errors import UsageError
from nnbuild.cli import main
from nnbuild.emit.text import quoted
from nnbuild.frontend import load
from nnbuild.jobs.class_names import class_names
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.model.graph import Tensor
from nnbuild.numeric.edge import quantize as quantize_values
from tests.frontend.keras_files import h5_bytes, put, small
from tests.support.compiled import STRICT

MAIN = """\
#include <stdio.h>
#include "small.h"
static small_context context;
int main(void) {{
    static const float values[] = {{{values}}};
    float answers[SMALL_OUTPUT0_SIZE];
    small_init(&context);
    for (int i = 0; i < {count}; ++i) {{
        small_quantize_input(&context, 0, values + i * SMALL_INPUT0_SIZE);
        fwrite(small_input(&context, 0), sizeof(*small_input(&context, 0)), SMALL_INPUT0_SIZE, stdout);
    }}
    small_quantize_input(&context, 9, values);
    if (small_run(&context) != 0) {{
        return 1;
    }}
    small_dequantize_output(&context, 0, answers);
    fwrite(answers, sizeof answers[0], SMALL_OUTPUT0_SIZE, stdout);
    return 0;
}}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return put(tmp_path / "small.h5", h5_bytes(*small()))


def literal(value: np.float32) -> str:
    return f"{float(value).hex()}f" if np.isfinite(value) else {"inf": "1e39f", "-inf": "-1e39f"}[str(float(value))]


def quantized_as(values: np.ndarray, port: Tensor) -> np.ndarray:
    limits = np.iinfo(port.dtype)
    assert port.quant is not None
    return quantize_values(values, port.quant.scale, port.quant.zero_point, limits.min, limits.max)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang", "g++"])
@pytest.mark.parametrize("quantize", ["float", "int8", "int16"])
def test_values_enter_as_a_check_writes_them(quantize: str, compiler: str, model: Path, tmp_path: Path) -> None:
    compiled = compile_model(Options(model, quantize=quantize))
    graph = compiled.graph
    port, answer = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
    rng = np.random.default_rng(5)
    values = np.float32(rng.normal(scale=3, size=(60, *port.shape)))
    if port.quant is not None:  # ties, ends and beyond
        values[:40] = np.float32(rng.integers(-200, 200, values[:40].shape) * port.quant.scale / 2)
        values[0] = np.float32(3e38)
        values[1] = np.float32(-3e38)
    out = tmp_path / "out"
    compiled.artifact.write(out)
    text = MAIN.format(values=", ".join(map(literal, values.reshape(-1))), count=len(values))
    (out / "main.c").write_text(text)
    strict = [flag for flag in STRICT if compiler != "g++" or flag != "-std=c99"]
    casts = ["-Wold-style-cast", "-Wuseless-cast", "-Wsign-conversion"]
    language = ["-x", "c++", "-std=c++17", *casts] if compiler == "g++" else []
    objects = []
    for name in ("small.c", "small_kernels.c", "small_weights.c"):
        objects.append(str(out / f"{name}.o"))
        subprocess.run(["gcc", "-O1", "-c", str(out / name), "-o", objects[-1]], check=True)
    main_object = str(out / "main.o")
    subprocess.run(
        [compiler, *strict, *language, "-Wno-overlength-strings", "-c", str(out / "main.c"), "-o", main_object],
        check=True,
    )
    subprocess.run(["gcc", *objects, main_object, "-o", str(out / "program")], check=True)
    said = subprocess.run([str(out / "program")], capture_output=True, check=True).stdout
    dtype = np.dtype(port.dtype)
    found = np.frombuffer(said[: values.size * dtype.itemsize], dtype).reshape(values.shape)
    expected = values if port.quant is None else quantized_as(values, port)
    assert np.array_equal(found, expected)
    answers = np.frombuffer(said[values.size * dtype.itemsize :], np.float32)
    assert answers.shape == (int(np.prod(answer.shape)),) and np.isfinite(answers).all()


NAMES = ["plain", 'with "quotes"', "back\\slash", "Käse ??/", "tab\tinside", "0123 digits behind ü9", "percent %s"]


def test_names_are_strings_whatever_they_hold(tmp_path: Path) -> None:
    body = "".join(f"    puts({quoted(name)});\n" for name in NAMES)
    (tmp_path / "names.c").write_text(f"#include <stdio.h>\nint main(void) {{\n{body}    return 0;\n}}\n")
    program = tmp_path / "names"
    subprocess.run(
        ["gcc", "-std=c99", "-Wall", "-Werror", "-trigraphs", str(tmp_path / "names.c"), "-o", str(program)], check=True
    )
    said = subprocess.run([str(program)], capture_output=True, check=True).stdout.decode()
    assert said.splitlines() == NAMES


def test_a_header_names_the_classes(model: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("yes\nno\nperhaps\n\n", "utf-8")
    assert main(["compile", str(model), "--labels", str(tmp_path / "labels.txt"), "-o", str(tmp_path / "out")]) == 0
    header = (tmp_path / "out" / "small.h").read_text()
    assert "#define SMALL_CLASSES 3" in header and '        "perhaps",\n' in header


WRONG = [
    ("yes\nno\n", "it names 2 classes, and the model's first output has 3 values."),
    ("a\n\nb\n", "line 2: the name is empty."),
]


@pytest.mark.parametrize(("text", "told"), WRONG)
def test_names_that_do_not_fit(text: str, told: str, model: Path, tmp_path: Path) -> None:
    graph = load(model, "small")
    (tmp_path / "labels.txt").write_text(text)
    with pytest.raises(UsageError) as raised:
        class_names(tmp_path / "labels.txt", model, graph)
    assert told in str(raised.value)
    with pytest.raises(UsageError, match="cannot be read"):
        class_names(tmp_path / "nothing.txt", model, graph)


def test_a_tflite_file_brings_its_labels(model: Path, tmp_path: Path) -> None:
    graph = load(model, "small")
    file = tmp_path / "net.tflite"
    file.write_bytes(b"TFL3 and so on")
    assert class_names(None, file, graph) == ()
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("labelmap.txt", "one\ntwo\nthree\n")
    assert class_names(None, file, graph) == ("one", "two", "three")
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("more_labels.txt", "one\n")
    assert class_names(None, file, graph) == (), "two lists say nothing"
