"""The user's options for weights: how many, how many different ones, how wide, and the budget for all."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from nnbuild.base.errors import UsageError
from nnbuild.quantize.accuracy import refuse_no_points

BY_LAYER, AUTO = "by-layer", "auto"
WORDS = (BY_LAYER, AUTO)
WIDE = "8"
NARROW = ("2", "2.5", "3", "3.5", "4", "4.5", "5", "6", "7")
"""2 bits hold -1, 0 and 1; 2.5 bits hold -2 to 2."""
BITS = (*NARROW, WIDE, AUTO)
UNITS = {"": 1, "K": 1024, "M": 1024 * 1024}
_ONE = re.compile(r"(.+?)=([^=,]*)(?:,(?=.)|$)")
"""A layer and its number. Names may contain commas and equals signs: the last one before a number separates."""
_PRUNE = "Give a share of the weights such as 0.9, one per layer such as fc1=0.9,fc2=0.5, by-layer, or auto."
_BITS = f"Give one of {', '.join(BITS)}, one per layer such as fc1=4,fc2=2.5, or a default first as in 3,fc2=2.5."


@dataclass(frozen=True)
class WeightOptions:
    """`prune` is the share of all layers' weights to remove, or one of `WORDS`; `by_layer` gives shares of single
    layers. `bits` and `bits_by_layer` are of `BITS`. `drop` is in percentage points, `flash` in bytes."""

    prune: float | str | None = None
    by_layer: Mapping[str, float] = field(default_factory=dict)
    share: int | None = None
    bits: str | None = None
    bits_by_layer: Mapping[str, str] = field(default_factory=dict)
    flash: int | None = None
    drop: float | None = None

    @property
    def prunes(self) -> bool:
        return self.prune is not None or bool(self.by_layer)

    def share_of(self, layer: str) -> float | None:
        """The share of a layer's weights to remove, if a number was given."""
        return self.by_layer.get(layer, self.prune if isinstance(self.prune, float) else None)

    @property
    def limits_bits(self) -> bool:
        """Whether a number of bits was given."""
        return self.bits is not None or bool(self.bits_by_layer)

    @property
    def changes_weights(self) -> bool:
        """Whether weights are to take fewer bytes, whatever room there is."""
        widths = {self.bits or WIDE, *self.bits_by_layer.values()} - {WIDE}
        return self.prunes or bool(widths) or self.share is not None

    def in_bytes(self, layer: str) -> bool:
        """Whether the weights of a float layer are to take 8 bits."""
        return self.bits_by_layer.get(layer, self.bits) == WIDE

    @property
    def for_floats(self) -> bool:
        """Whether all that was given applies to float layers: 8 bits, or a limit for all."""
        others = self.prunes or self.share is not None or self.drop is not None
        return not others and {self.bits or WIDE, *self.bits_by_layer.values()} == {WIDE}

    @property
    def any(self) -> bool:
        return self.changes_weights or self.flash is not None

    def max_integer(self, layer: str) -> int:
        """The largest weight of a layer as an integer."""
        bits = self.bits_by_layer.get(layer, self.bits)
        return int((2 ** float(bits if bits in NARROW else WIDE) - 1) / 2)

    @property
    def needs_search(self) -> bool:
        """Whether a search must find out how far each layer can be compressed."""
        return AUTO in (self.prune, self.bits) or self.flash is not None or (self.any and self.drop is not None)

    @property
    def given(self) -> str:
        """The names of the options that were given."""
        given = {
            "--prune": self.prunes,
            "--share": self.share is not None,
            "--weights-bits": self.limits_bits,
            "--flash": self.flash is not None,
        }
        return ", ".join(name for name, is_given in given.items() if is_given)


def weight_options(
    prune: object, share: object, bits: object, flash: object, drop: float | None = None
) -> WeightOptions:
    """Parses the options from the command line or Python; None means not given."""
    whole, single = _prune(prune)
    if whole == 0 or (single and not any(single.values())):
        raise UsageError(f"--prune {prune}", "no weight would be removed.", _PRUNE)
    width, widths = _bits(bits)
    if drop is not None:
        refuse_no_points(drop)
    return WeightOptions(whole, single, _share(share), width, widths, _flash(flash), drop)


def _prune(given: object) -> tuple[float | str | None, dict[str, float]]:
    if given is None:
        return None, {}
    if isinstance(given, Mapping):
        return None, {str(layer): _part(given, part) for layer, part in given.items()}
    text = str(given)
    if text in WORDS:
        return text, {}
    if "=" not in text:
        return _part(given, text), {}
    single = _one_a_layer(f"--prune {given}", text, "it is not a list of layers, each with a share.", _PRUNE)
    return None, {layer: _part(given, part) for layer, part in single.items()}


def option_text(wish: object) -> object:
    """A mapping by layer as option text; anything else unchanged."""
    return ",".join(f"{layer}={part}" for layer, part in wish.items()) if isinstance(wish, Mapping) else wish


def _one_a_layer(option: str, text: str, cause: str, advice: str) -> dict[str, str]:
    """Layers, each with its number as it was typed."""
    pairs = _ONE.findall(text)
    if ",".join(map("=".join, pairs)) != text:
        raise UsageError(option, cause, advice)
    single: dict[str, str] = {}
    for layer, number in pairs:
        if layer in single:
            raise UsageError(option, f"layer {layer!r} is named twice.", "Name it once.")
        single[layer] = number
    return single


def _bits(given: object) -> tuple[str | None, dict[str, str]]:
    """The bits of all layers, and of single ones."""
    if given is None:
        return None, {}
    option, unknown = f"--weights-bits {given}", "there is no such choice."
    whole, single = None, {}
    if isinstance(given, Mapping):
        single = {str(layer): str(width) for layer, width in given.items()}
    elif "=" not in str(given):
        whole = str(given)
    else:
        first, _, rest = str(given).partition(",")
        whole, text = (first, rest) if first in BITS and rest else (None, str(given))
        single = _one_a_layer(option, text, unknown, _BITS)
    if whole not in (None, *BITS) or not {*single.values()} <= {*NARROW, WIDE} or (single and whole == AUTO):
        raise UsageError(option, unknown, _BITS)
    return whole, single


def _part(given: object, part: object) -> float:
    try:
        value = float(str(part))
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        cause = "nothing would be left." if value == 1 else "it is not a share of the weights from 0 to less than 1."
        raise UsageError(f"--prune {given}", cause, _PRUNE)
    return value


def _share(given: object) -> int | None:
    if given is None:
        return None
    text = str(given)
    if not text.isascii() or not text.isdecimal() or not 2 <= int(text) <= 256:
        raise UsageError(f"--share {text}", "weights can share 2 to 256 different values.", "For example: --share 16.")
    return int(text)


def _flash(given: object) -> int | None:
    if given is None:
        return None
    found = re.fullmatch(r"(\d{1,12})([KM]?)B?", str(given).strip(), re.IGNORECASE | re.ASCII)
    if found is None or int(found[1]) == 0:
        raise UsageError(
            f"--flash {given}", "it is not a number of bytes.", "For example: --flash 64K or --flash 48000."
        )
    return int(found[1]) * UNITS[found[2].upper()]
