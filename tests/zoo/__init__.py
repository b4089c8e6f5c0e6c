"""A zoo of small Keras models: every layer with every option that changes its result.

    directory = zoo("keras3")           # or "tfkeras", the writer of Keras 2; generated on first use, then cached
    for name in names("keras3"):        # needs no TensorFlow, so tests can be parametrised with it
        directory / f"{name}.h5", directory / f"{name}.keras", directory / f"{name}.npz"

In a run of tests that take turns (`pytest --turn N`) the number chooses a quarter of the cases, as writing them takes
long. `write.py` says what the files hold. `legacy.py` turns a Keras 2 file into what older versions wrote, `vgg16.py`
and `big.py` make two large models.
"""

from __future__ import annotations

from pathlib import Path

from tests.zoo.cache import generated
from tests.zoo.case import KERAS3, TFKERAS, WRITERS, chosen_part, part_of

__all__ = [
    "KERAS3",
    "TFKERAS",
    "WRITERS",
    "big",
    "chosen_part",
    "examples",
    "layers",
    "long_lstm",
    "names",
    "vgg16",
    "zoo",
]


def zoo(writer: str) -> Path:
    """The directory with all the models of `writer`: about two minutes the first time."""
    part = chosen_part()
    label, words = (writer, ()) if part is None else (f"{writer}-{part}", ("--part", str(part)))
    return generated(label, ("write.py", "case.py", "cases/*.py"), "--writer", writer, *words)


def names(writer: str) -> list[str]:
    """The names of all the cases of `writer`."""
    from tests.zoo.cases import cases_of  # here, because the cases are only read where a test needs them

    part = chosen_part()
    return [case.name for case in cases_of(writer) if part in (None, part_of(case.name))]


def long_lstm(writer: str) -> Path:
    """The directory with long_lstm.h5, a stateful model, and 200 calls of it in long_lstm.npz."""
    return generated(f"long_lstm-{writer}", ("long_lstm.py",), "--writer", writer)


def layers() -> Path:
    """The directory with a small .keras file of every layer and operation; see layers.py."""
    return generated("layers", ("layers.py",))


def examples() -> Path:
    """The directory with whole networks as .keras and .tflite, about half a minute the first time; see examples.py."""
    return generated("examples", ("examples.py",))


def vgg16() -> Path:
    """The directory with vgg16.h5 (553 MB, 138 million parameters) and vgg16.npz."""
    return generated("vgg16", ("vgg16.py", "large.py"))


def big() -> Path:
    """The directory with big.h5 (98 MB, 24 million parameters) and big.npz."""
    return generated("big", ("big.py", "large.py"))
