"""One workshop for all tests that boot a kernel."""

from __future__ import annotations

import pytest

from tests.kmod.workshop import FLOAT, Workshop, require_kernel, require_tools


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    require_tools()
    require_kernel(FLOAT)
    return Workshop(tmp_path_factory.mktemp("kernel"))
