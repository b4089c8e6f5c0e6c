"""Names of the listening program's files, known before a model is read."""

from __future__ import annotations

from pathlib import Path

from nnbuild.features.config import recipe_of
from nnbuild.features.frontend_c import feature_files
from nnbuild.features.listen_c import features_of, listen_files
from nnbuild.features.network_binding import Hearing


def hearing_names(features: Path | None, prefix: str) -> list[str]:
    if features is None:
        return []
    front = recipe_of(features).name or prefix
    return [f"{front}_features.h", f"{front}_features.c", f"{prefix}_listen.h", f"{prefix}_listen.c"]


def hearing_files(hearing: Hearing, prefix: str, header: bytes) -> dict[str, bytes]:
    """The files that are printed beside those of the network, whose header this is."""
    name = features_of(hearing, prefix)
    front = feature_files(hearing.front_end, name)
    return front | listen_files(hearing, prefix, header.decode(), front[f"{name}_features.h"].decode())
