"""nnbuild: a trained Keras model goes in, audited and checked firmware comes out."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
OF_THE_API = ("Network", "NnbuildError", "compile", "from_torch")


def __getattr__(name: str) -> Any:
    """What is used from Python comes from nnbuild.api, which is imported when it is first asked for: the command line
    starts without it."""
    if name in OF_THE_API:
        return getattr(import_module("nnbuild.api"), name)
    raise AttributeError(f"module 'nnbuild' has no attribute {name!r}")
