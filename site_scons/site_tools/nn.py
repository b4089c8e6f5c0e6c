"""The SCons tool "nn", for a checkout of nnbuild: Environment(tools=["default", "nn"])."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from nnbuild.scons import exists, generate

__all__ = ["exists", "generate"]
