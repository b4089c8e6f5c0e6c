from __future__ import annotations

import pytest

from nnbuild.base.errors import UsageError
from nnbuild.base.names import LONGEST, identifier, of_file


@pytest.mark.parametrize(
    ("text", "name"),
    [("kws", "kws"), ("KWS ref-model.v2", "kws_ref_model_v2"), ("pretrainedResnet", "pretrainedresnet"), ("a1", "a1")],
)
def test_names_become_identifiers(text: str, name: str) -> None:
    assert identifier(text) == name


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "it is empty."),
        ("9lives", "it does not begin with a letter."),
        ("_x", "it does not begin with a letter."),
        ("naïve", "it holds other characters."),
        ("a/b", "it holds other characters."),
        ("int", "'int' is a word of C or C++ itself."),
        ("Class", "'class' is a word of C or C++ itself."),
        ("String", "'string.h' is a header of the C library."),
        ("stdint", "'stdint.h' is a header of the C library."),
        ("nn-link", "names that begin with 'nn_' are those of nnbuild's own C."),
        ("x" * 64, "it is longer than 63 characters."),
    ],
)
def test_other_names_are_refused(text: str, cause: str) -> None:
    with pytest.raises(UsageError) as caught:
        identifier(text)
    assert str(caught.value) == (
        f"name {text!r}: it cannot begin the names in the C code: {cause} "
        "Give another one with --name, name= for scons or NAME for CMake, of letters, digits and underscores, "
        "beginning with a letter."
    )
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("KWS ref-model.v2", "kws_ref_model_v2"),
        ("model (1)", "model_1"),
        ("320n", "model_320n"),
        ("naïve 72.7%", "naive_72_7"),
        ("double", "model_double"),
        ("nn-link", "model_nn_link"),
        ("_x", "x"),
    ],
)
def test_every_files_name_becomes_an_identifier(stem: str, name: str) -> None:
    assert of_file(stem) == name == identifier(name)


def test_long_names_of_files_are_cut_and_stay_different() -> None:
    names = [of_file("x" * 70 + end) for end in "ab"] + [of_file("1" * 70), of_file("模型"), of_file("日本")]
    assert len(set(names)) == 5
    assert all(len(name) <= LONGEST and identifier(name) == name for name in names)
