"""Measures what quantization, or rounded weights, changed in a compiled model."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.jobs.options import recipe_of
from nnbuild.jobs.pipeline import Compiled
from nnbuild.jobs.recordings import samples_from_recordings
from nnbuild.quantize.report import Loss, measure


def loss_of(compiled: Compiled) -> Loss:
    """Uses the calibration's samples, or windows from recordings; for a stream, measures the windowed model."""
    options = compiled.options
    quantized = compiled.streamed.window if compiled.streamed is not None else compiled.graph
    with samples_from_recordings(options.features, options.calibrate, compiled.imported) as calibrate:
        source = recipe_of(replace(options, calibrate=calibrate)).source
        return measure(compiled.folded, quantized, source, floats=bool(compiled.compression.rounded))
