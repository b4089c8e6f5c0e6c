"""Turns the options of a build back into command-line arguments, for builds that run the command line."""

from __future__ import annotations

from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import weights_form


def arguments_of(options: Options) -> list[str]:
    """The options as command-line arguments."""
    words = [str(options.model), "--board", options.board, "--quantize", options.quantize]
    words += _quantization_arguments(options)
    words += ["--memory", options.memory] if options.memory is not None else []
    words += ["--optimize", options.optimize, "--price", options.price, "--weights", weights_form(options)]
    words += ["--labels", str(options.labels)] if options.labels is not None else []
    words += ["--features", str(options.features)] if options.features is not None else []
    words += ["--swappable"] if options.swappable else []
    words += options.import_words
    words += ["--isa", options.isa] if options.isa else []
    words += ["--cores", str(options.threads)] if options.threads is not None else []
    words += ["--max-instructions", str(options.max_instructions)] if options.max_instructions is not None else []
    words += ["--local", options.local] if options.local is not None else []
    words += ["--stream", options.stream] if options.stream is not None else []
    words += ["--device", options.device] if options.device is not None else []
    words += [word for layer, where in options.place for word in ("--place", f"{layer}={where}")]
    return words + (["--name", options.name] if options.name else [])


def _quantization_arguments(options: Options) -> list[str]:
    words = ["--calibrate", str(options.calibrate)] if options.calibrate else []
    words += ["--calibration", options.method, "--io", options.io]
    words.append(f"--image-range={','.join(map(str, options.image_range))}")  # in one word: it may start with a minus
    for layer, form in options.keep:
        words += ["--keep", f"{layer}={form}"]
    words += [] if options.bias_correction else ["--no-bias-correction"]
    words += options.weight_words
    return words + (["--accuracy-drop", str(options.accuracy_drop)] if options.accuracy_drop is not None else [])


def place_arguments(options: Options, port: str | None) -> list[str]:
    """The device's port and baud rate as command-line arguments."""
    words = ["--baud", str(options.baud)] if options.baud is not None else []
    return words + (["--port", port] if port else [])
