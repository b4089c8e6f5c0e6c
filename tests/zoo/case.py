"""What a case of the zoo is, and the two short ways of making one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

# Keras 2 (tf_keras) and Keras 3 (keras) are two modules with nearly one API: builders take either. They carry no types
# that both share, hence Any.
Keras = Any
Model = Any
Builder = Callable[[Keras], Model]

KERAS3 = "keras3"
TFKERAS = "tfkeras"
WRITERS = (KERAS3, TFKERAS)

PARTS = 4
PART = "NNBUILD_ZOO_PART"
"""The environment variable that chooses a part of the zoo; without it, all is there."""

Step = tuple[str, dict[str, Any]]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One model of the zoo.

    A stateful case has batch size 1 and its samples are consecutive calls, the state carried from one to the next.
    """

    category: str
    variant: str
    build: Builder
    writers: tuple[str, ...] = WRITERS
    samples: int = 3
    input_spread: float = 1.0
    stateful: bool = False

    @property
    def name(self) -> str:
        return f"{self.category}_{self.variant}"


def part_of(name: str) -> int:
    return crc32(name.encode()) % PARTS


def chosen_part() -> int | None:
    part = os.environ.get(PART)
    return None if part is None else int(part)


def layer(keras: Keras, class_name: str, **config: Any) -> Any:
    """A layer by the name of its class, with Keras 3's option names translated for Keras 2."""
    if is_keras2(keras):
        config = {_keras2_option(class_name, option): value for option, value in config.items()}
    return getattr(keras.layers, class_name)(**config)


def is_keras2(keras: Keras) -> bool:
    return str(keras.__version__).startswith("2.")


def _keras2_option(class_name: str, option: str) -> str:
    return "alpha" if (class_name, option) == ("LeakyReLU", "negative_slope") else option


def one(category: str, variant: str, shape: Shape, class_name: str, /, **config: Any) -> Case:
    """A model of a single layer."""
    return chain(category, variant, shape, (class_name, config))


def chain(category: str, variant: str, shape: Shape, /, *steps: Step) -> Case:
    """A model of layers in a row."""

    def build(keras: Keras) -> Model:
        x = first = keras.Input(shape)
        for class_name, config in steps:
            x = layer(keras, class_name, **config)(x)
        return keras.Model(first, x)

    return Case(category, variant, build)


def tag(value: Any) -> str:
    """An option's value as part of a name: 2 -> "2", (1, 3) -> "1x3", -1 -> "m1", 0.25 -> "0p25"."""
    if isinstance(value, (tuple, list)):
        return "x".join(tag(item) for item in value)
    return str(value).replace("-", "m").replace(".", "p").lower()
