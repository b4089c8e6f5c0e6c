"""Back ends are found by the name in a board's table, and what they let users choose reaches every command."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from nnbuild.backends.backend import add_choices, chosen
from nnbuild.backends.listing import commands, names
from nnbuild.backends.registry import backend_of, backends, choices
from nnbuild.base.errors import UsageError
from nnbuild.board.tables import boards, find
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model

MODEL = Path(__file__).resolve().parents[2] / "examples" / "mnist" / "mnist.h5"


def test_every_board_has_its_back_end() -> None:
    assert {board.output for board in boards()} == set(names())
    assert {id(backend_of(board)) for board in boards()} == {id(backend) for backend in backends()}


def test_an_unknown_one_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        backend_of(replace(find("linux"), output="toaster"))
    assert str(caught.value) == (
        f"board 'linux': its board.toml has the unknown output 'toaster'. Outputs: {', '.join(names())}."
    )


def test_choices_are_told_only_where_they_are_given() -> None:
    assert [choice.name for choice in choices()] == ["kernel", "kdir"]
    parser = argparse.ArgumentParser()
    add_choices(parser, choices())
    assert chosen(parser.parse_args(["--kernel", "6.1-cloud"]), choices()) == {"kernel": "6.1-cloud"}


def test_commands_name_modules_that_run() -> None:
    assert commands()["module"] == ("build the kernel module of a generated folder", "nnbuild.backends.kmod.command")


def test_weights_are_exchanged_only_where_they_can_be() -> None:
    with pytest.raises(UsageError) as caught:
        compile_model(Options(MODEL, swappable=True))
    assert str(caught.value).startswith(
        "--swappable: the weights of a program for linux cannot be replaced at run time. "
        "Leave it out, or choose a board that supports it: linux-kmod"
    )


def test_programs_are_named_before_they_are_built() -> None:
    named = {name: backend_of(find(name)).program("m") for name in ("linux", "stm32", "linux-kmod")}
    assert named == {"linux": "program", "stm32": "program.elf", "linux-kmod": "nn_m.ko"}
