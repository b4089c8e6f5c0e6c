"""How script/setup brings what the demonstration needs: by Debian's packages, or by pip alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HERE = ("sh", "dirname", "touch", "env", "mkdir", "cat", "chmod")
PYTHON = """#!/bin/sh
echo "python $*" >> "$LOG"
case "$*" in
*"import ensurepip"*) [ -z "${NO_ENSUREPIP:-}" ] ;;
*"import pip"*) [ -z "${NO_ENSUREPIP:-}" ] ;;
*venv*) mkdir -p .venv/bin; cat "$0" > .venv/bin/python; chmod +x .venv/bin/python ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path):
    """A checkout on a machine with nothing but what is put there; gives what setup prints and what it runs."""
    tools, checkout = tmp_path / "bin", tmp_path / "checkout"
    (checkout / "script").mkdir(parents=True)
    shutil.copy2(ROOT / "script" / "setup", checkout / "script")
    (checkout / "pyproject.toml").touch()
    tools.mkdir()
    for name in HERE:
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)

    def run(programs: dict[str, str], **settings: str) -> tuple[int, str, list[str]]:
        for name, text in {"python3": PYTHON, **programs}.items():
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        log = tmp_path / "log"
        log.write_text("")
        settings |= {"PATH": str(tools), "LOG": str(log)}
        command = ["script/setup", "demo"]
        done = subprocess.run(command, cwd=checkout, env=settings, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr, log.read_text().splitlines()

    return run


def says(text: str) -> str:
    return f"#!/bin/sh\necho {text}\n"


LOGS = '#!/bin/sh\necho "${0##*/} $*" >> "$LOG"\n'
WITH_PIP = "python -m pip --quiet --disable-pip-version-check install -e .[boards]"
WITH_APT = "python -m pip --quiet --disable-pip-version-check install -e ."


def test_root_installs_packages(machine) -> None:
    status, said, ran = machine({"id": says("0"), "apt-get": LOGS})
    assert status == 0, said
    wanted = "gcc-arm-none-eabi qemu-system-arm gcc"
    assert any(line.startswith(f"apt-get -qq install -y --no-install-recommends {wanted}") for line in ran)
    assert WITH_APT in ran


@pytest.mark.parametrize("sudo", [None, "#!/bin/sh\nexit 1\n"], ids=["no sudo", "a sudo that asks"])
@pytest.mark.parametrize("apt", [True, False])
def test_others_take_what_pip_has(machine, sudo: str | None, apt: bool) -> None:
    programs = {"id": says("1000"), **({"apt-get": LOGS} if apt else {}), **({"sudo": sudo} if sudo else {})}
    status, said, ran = machine(programs)
    assert status == 0, said
    assert "no Debian packages can be installed here: compiler and emulator come by pip" in said
    assert not [line for line in ran if line.startswith("apt-get")]
    assert WITH_PIP in ran


def test_sudo_that_does_not_ask(machine) -> None:
    sudo = '#!/bin/sh\nshift\nexec "$@"\n'
    status, said, ran = machine({"id": says("1000"), "apt-get": LOGS, "sudo": sudo, "true": "#!/bin/sh\n"})
    assert status == 0, said
    assert any(line.startswith("apt-get -qq install") for line in ran)
    assert WITH_APT in ran


def test_pip_without_what_makes_environments(machine) -> None:
    status, said, ran = machine({"id": says("1000")}, NO_ENSUREPIP="1")
    assert status == 0, said
    assert "python -m venv --without-pip .venv" in ran
    outer = "python -m pip --python .venv/bin/python --quiet --disable-pip-version-check install -e .[boards]"
    assert outer in ran


def test_neither_packages_nor_pip(machine) -> None:
    status, said, _ = machine({"id": says("1000"), "python3": "#!/bin/sh\nexit 1\n"})
    assert status == 3
    assert said.endswith("script/setup: please install: python3-venv\n")


def test_what_is_there_is_not_installed(machine) -> None:
    there = {name: LOGS for name in ("arm-none-eabi-gcc", "qemu-system-arm", "gcc")}
    status, said, ran = machine({"id": says("1000"), **there})
    assert status == 0, said
    assert WITH_APT in ran or not Path("/usr/include/stdio.h").exists()
