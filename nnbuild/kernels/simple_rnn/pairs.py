"""SimpleRNN in integers on Cortex-M4 and up."""

from __future__ import annotations

from nnbuild.kernels.recurrent_dsp import variants
from nnbuild.kernels.simple_rnn import integer

VARIANTS = variants(integer.demand, integer.emit)
