"""Write a VGG16 with seeded weights (138 million parameters, 553 MB): `python tests/zoo/vgg16.py --out DIR`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.zoo.large import main, seed_weights


def build() -> Any:
    import keras

    model = keras.applications.VGG16(weights=None)
    seed_weights(model)
    return model


if __name__ == "__main__":
    main("vgg16", build)
