from __future__ import annotations

from pathlib import Path

import pytest
from link_devices import HERE, LINK, MemoryDevice, compile_c, host_program


@pytest.fixture(scope="session")
def memory_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("link")
    sources = [*LINK, HERE / "memory_platform.c", HERE / "fake_target.c"]
    return compile_c(sources, folder / "device.so", "-shared", "-fPIC")


@pytest.fixture
def device(memory_library: Path) -> MemoryDevice:
    return MemoryDevice(memory_library)


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return host_program(tmp_path_factory.mktemp("host"), "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
