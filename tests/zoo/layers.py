"""A small file of every layer and every operation of tests/frontend/test_layers.py, for the fuzzer to spoil.

python layers.py --out DIR
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import keras

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.frontend.test_layers import CASES


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    for number, (name, build) in enumerate(CASES.items()):
        keras.utils.set_random_seed(number)
        keras.backend.clear_session()
        kept = "".join(c if c.isalnum() else "_" for c in name)
        build(keras).save(out / f"{kept}.keras")


if __name__ == "__main__":
    main()
