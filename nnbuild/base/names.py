"""Names from a model or a command line as C identifiers, and in messages."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Container, Sequence
from unicodedata import normalize
from zlib import crc32

from nnbuild.base.errors import UsageError

_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
alignas alignof and and_eq asm bitand bitor bool catch class compl concept constexpr consteval constinit
const_cast co_await co_return co_yield decltype delete dynamic_cast explicit export false friend mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires
static_assert static_cast template this thread_local throw true try typeid typename using virtual wchar_t xor
xor_eq
"""

KEYWORDS = frozenset(_WORDS.split())
"""Keywords of C and C++, since the generated header serves both."""

_HEADERS = """
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype
alloca dirent endian fcntl features malloc newlib poll pthread reent sched semaphore termios unistd
"""

HEADERS = frozenset(_HEADERS.split())
"""A model's header of such a name would hide the C library's."""

OURS = "nn_"
"""Prefix of nnbuild's own C: the link, the mathematics, the start code."""

LONGEST = 63
"""C99 guarantees that so many characters of a name are significant."""


def identifier(text: str) -> str:
    """The lower-case C prefix for `text`: "KWS ref-model" becomes "kws_ref_model"."""
    name = _joined(text)
    cause = _fault(name)
    if cause:
        raise UsageError(
            f"name {text[:80]!r}",
            f"it cannot begin the names in the C code: {cause}",
            "Give another one with --name, name= for scons or NAME for CMake, "
            "of letters, digits and underscores, beginning with a letter.",
        )
    return name


def of_file(stem: str) -> str:
    """A C prefix for every file's name: "9 lives (1)" becomes "model_9_lives_1", one without letters a checksum."""
    name = _joined(stem)
    if not _fault(name):
        return name
    letters = normalize("NFKD", name).encode("ascii", "ignore").decode()
    name = re.sub(r"[^a-z0-9]+", "_", letters).strip("_")
    if _fault(name[:LONGEST]):
        name = f"model_{name or f'{crc32(stem.encode()):08x}'}"
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 9]}_{crc32(stem.encode()):08x}"


def _joined(text: str) -> str:
    return re.sub(r"[\s.\-]+", "_", text.strip()).lower()


def _fault(name: str) -> str:
    if not name:
        return "it is empty."
    if name in KEYWORDS:
        return f"{name!r} is a word of C or C++ itself."
    if name in HEADERS:
        return f"'{name}.h' is a header of the C library."
    if name.startswith(OURS):
        return f"names that begin with {OURS!r} are those of nnbuild's own C."
    if len(name) > LONGEST:
        return f"it is longer than {LONGEST} characters."
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        return "it does not begin with a letter." if re.fullmatch(r"[a-z0-9_]+", name) else "it holds other characters."
    return ""


def fragment(text: str) -> str:
    """The text as part of a C name: lower case, everything but letters and digits becomes an underscore."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:40] or "x"


def unique(text: str) -> str:
    """A part of a C name that differs for every text: where characters were lost, a checksum of all of them follows."""
    name = fragment(text)
    return name if name == text else f"{name[:31]}_{crc32(text.encode()):08x}"


def distinct(texts: Collection[str]) -> dict[str, str]:
    """A part of a C name for each text: its fragment, or where several texts have the same one, `unique`."""
    fragments = {text: fragment(text) for text in texts}
    shared = Counter(fragments.values())
    return {text: unique(text) if shared[name] > 1 else name for text, name in fragments.items()}


def some_of(names: Sequence[str], most: int = 8) -> str:
    """The first ones, quoted, and how many more there are."""
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def unused(name: str, taken: Container[str]) -> str:
    """The name, or one like it that is not taken."""
    while name in taken:
        name += "_"
    return name


def main(text: str) -> int:
    """For CMake, which asks when it configures: python -m nnbuild.base.names TEXT prints the C prefix."""
    try:
        print(identifier(text))
    except UsageError as error:
        print(f"nnbuild: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
