"""LSTM in integers on Cortex-M4 and up."""

from __future__ import annotations

from nnbuild.kernels.lstm import integer
from nnbuild.kernels.recurrent_dsp import variants

VARIANTS = variants(integer.demand, integer.emit)
