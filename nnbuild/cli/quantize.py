"""nnbuild quantize: measures quantization loss, layer by layer."""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict, replace
from typing import Any

from nnbuild.base.errors import UsageError
from nnbuild.cli.arguments import (
    add_build_options,
    announce,
    options_of,
    print_json,
    progress,
    say_lost,
    say_notes,
    say_weights,
)
from nnbuild.jobs.job import is_classifier
from nnbuild.jobs.pipeline import compile_model
from nnbuild.jobs.quantization_loss import loss_of
from nnbuild.quantize.report import Loss
from nnbuild.report.table import render


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_options(parser)
    parser.set_defaults(quantize="int8")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the report as JSON")


def run(arguments: argparse.Namespace) -> int:
    options = options_of(arguments)
    if options.quantize == "float" and not options.of_weights.given:
        cause = "a float model has no quantization loss."
        raise UsageError("--quantize float", cause, "Give --quantize int8 or int16, or --weights-bits 8.")
    floats = options.quantize == "float"  # which need no samples to be compiled
    compiled = compile_model(
        replace(options, calibrate=None) if floats else options, progress("calibration sample"), announce
    )
    say_notes(compiled.graph.notes)
    say_weights(compiled)
    loss = loss_of(replace(compiled, options=options))
    for output in loss.outputs:
        if options.calibrate is not None and not is_classifier(compiled.imported, output.name):
            say_lost(output.name, output.lost, output.values)
    if arguments.json is not None:
        print_json(as_object(loss), arguments.json)
    if arguments.json != "-":
        print(as_text(loss))
    return 0


def as_object(loss: Loss) -> dict[str, Any]:
    """Infinite ratios become null, because JSON has no infinity."""
    layers = [asdict(layer) for layer in loss.layers]
    for layer in layers:
        layer["sqnr"] = layer["sqnr"] if math.isfinite(layer["sqnr"]) else None
    return {
        "samples": loss.samples,
        "layers": layers,
        "outputs": [asdict(output) for output in loss.outputs],
        "accuracy": asdict(loss.accuracy) if loss.accuracy else None,
    }


def as_text(loss: Loss) -> str:
    rows = [
        [
            layer.layer,
            layer.format,
            f"{layer.low:.4g}",
            f"{layer.high:.4g}",
            "" if layer.scale is None else f"{layer.scale:.4g}",
            "" if layer.zero_point is None else str(layer.zero_point),
            f"{layer.saturated:,}",
            f"{layer.sqnr:.1f}",
            f"{layer.max_error:.3g}",
        ]
        for layer in loss.layers
    ]
    heads = ["layer, worst first", "format", "low", "high", "scale", "zero", "saturated", "SQNR dB", "max error"]
    lines = [render(heads, rows, 2)]
    for output in loss.outputs:
        same = f"top-1 agreement {output.agreement:.2%}, " if output.agreement is not None else ""
        lines.append(
            f"output {output.name}: {same}rmse {output.rmse:.4g}, "
            f"mae {output.mae:.4g}, cosine {output.cosine:.6f} over {loss.samples} samples"
        )
    if loss.accuracy:
        lines.append(f"accuracy {loss.accuracy.quantized:.2%}, float model {loss.accuracy.float_model:.2%}")
    if loss.unlabelled:
        lines.append(f"no accuracy: {loss.unlabelled}")
    return "\n".join(lines)
