"""python -m nnbuild.backends.kmod BOARD [KERNEL ...]: downloads in advance what a build and a check need."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from nnbuild.backends.kmod import headers
from nnbuild.backends.kmod.guest import image_of
from nnbuild.backends.kmod.packages import unpacked
from nnbuild.backends.kmod.versions import kernels_of
from nnbuild.base.errors import NnbuildError
from nnbuild.board.tables import find


def fetch(board: str, names: Sequence[str]) -> None:
    """Downloads the headers and image of each kernel, and the guest's programs."""
    kernels = kernels_of(find(board))
    for name in names or [kernels.default]:
        folder = headers.folder_of(kernels, kernels.find(name))
        release = headers.release_of(folder)
        print(f"{folder}\n{image_of(release, kernels)}")
    print(unpacked(kernels.machine.busybox, kernels.debian))


def main(arguments: Sequence[str]) -> int:
    try:
        fetch(arguments[0], arguments[1:])
    except IndexError:
        print(__doc__, file=sys.stderr)
        return 2
    except NnbuildError as error:
        print(f"nnbuild: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
