"""Counts what a printed C function consists of: loads, sums, products, comparisons, loops and calls.

Variable names do not matter. The text is read line by line, one statement each, as the writer prints it; equal lines
are parsed once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache

KINDS = {
    "function": "entering and leaving it",
    "parameter": "a parameter beyond the first",
    "loop": "a loop: its start, its step, its comparison",
    "branch": "an `if`, and every && and ||",
    "select": "a value chosen by ?:, or kept unless an `if` replaces it",
    "compare": "a comparison",
    "assign": "a value that gets a name, or is kept",
    "memory": "a load or store",
    "address": "a product inside an index",
    "operation": "a sum, a product, a shift of integers",
    "narrow": "a cast to 8 or 16 bits",
    "literal": "an integer too large for most instructions to hold",
    "wide_memory": "a load or store of 64 bits",
    "wide": "a sum, a product, a shift by a fixed amount of 64 bits",
    "wide_shift": "a shift of 64 bits by a variable amount",
    "float_memory": "a load or store of a float",
    "float": "a sum, a product, a comparison, a conversion of floats",
    "float_literal": "a float that is written out",
    "vector": "an intrinsic of vectors",
    "native": "an instruction written as such",
    "assembly": "a further instruction of a routine that is written in them",
    "call": "a call",
    "argument": "one of the first four values that a call is given",
    "pushed": "a value beyond them, which goes over the stack",
    "regular": "a load or store in a loop that a compiler may compute many at a time",
    "regular_wide": "the same, and a product, where 64 bits are computed with",
    "regular_float": "the same of floats",
}
"""Kinds of operations. isa/encoding.py says how many bytes each takes."""

_SILENT = re.compile(r'/\*.*?\*/|^\s*#[^\n]*$|"[^"\n]*"|^\s*typedef [^;]*;$', re.DOTALL | re.MULTILINE)
_BROKEN = re.compile(r"(?<=[^;{}:\s])\s*\n\s*(?!\{)")
_NATIVE = re.compile(r'__asm__[^(]*\(\s*"[a-z]')
_CALL = re.compile(r"\b([A-Za-z_]\w*)\(")
_TYPED = re.compile(
    r"\b(float|double|u?int64_t|__m\d+\w*|v?(?:u?int|float)\d+[xm]\w+_t)\b\s*(?:const\b\s*)?\*?\s*"
    r"(?:const\b\s*|restrict\b\s*)*([A-Za-z_]\w*)"
)
_VECTORS = re.compile(r"__m\d|v?(?:u?int|float)\d+[xm]\w+_t$")
"""Types of vectors."""
_NAME = re.compile(r"\b[A-Za-z_]\w*\b(\()?")
_TOKEN = re.compile(
    r"0[xX][0-9a-fA-F]+\w*|\d[\d.]*(?:[eE][-+]?\d+)?\w*|[A-Za-z_]\w*|<<=|>>=|\+\+|--|->|<<|>>|<=|>=|==|!=|&&|\|\|"
    r"|[-+*/%&|^]=|\S"
)
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*$")
_NARROW = frozenset({"int8_t", "uint8_t", "int16_t", "uint16_t"})
_PLAIN = frozenset(
    "void char int const restrict static inline unsigned signed long int32_t uint32_t size_t uintptr_t volatile".split()
)
_LETTERS = {"float": "f", "double": "w", "int64_t": "w", "uint64_t": "w"}
_TYPES = _NARROW | _PLAIN | _LETTERS.keys() | {"V"}
_WORDS = frozenset({"for", "if", "while", "switch", "sizeof", "return", "else", "do", "case", "typedef"})
_BINARY = frozenset("+ - * / % & | ^ << >> += -= *= /= |= &= ^= <<= >>=".split())
_NO_CALLS = re.compile(r"__builtin|U?INT(?:32|64)_C")
_VECTOR = re.compile(r"_mm\w*|__riscv_v\w+|v[a-z]\w*_[suf]\d+\w*|vctp\d+q|vpnot")
_FREE = re.compile(r"(?:__riscv_)?v(?:reinterpret|get|set|undefined|lmul)\w*_[suifv]+\d+\w*")
"""Intrinsics of vectors, and those of them that are no instructions."""
_LOOP = re.compile(r"for \(int32_t i = 0; i < (\d+); \+\+i\) \{")
_MANY = {
    "regular": ("memory",),
    "regular_wide": ("wide_memory", "wide"),
    "regular_float": ("float_memory",),
}
_CONDITIONAL = re.compile(r"if \([^{;&|]*\) \w+ = [^{;]*;$")
"""An assignment that compilers turn into a move on a condition."""
_COMPARISONS = frozenset("< > <= >= == !=".split())


@dataclass(frozen=True)
class Metrics:
    """Counts of each of KINDS in a function itself, and how often it calls each function."""

    kinds: Mapping[str, int]
    calls: Mapping[str, int] = field(default_factory=dict)


@lru_cache(maxsize=4096)
def measure_c(text: str) -> Metrics:
    """Counts of a function, given its whole text with the signature."""
    if "__asm__" in text:
        return Metrics({"native": len(_NATIVE.findall(text)), "assembly": text.count("\\n\\t")})
    text = _BROKEN.sub(" ", _SILENT.sub("", text))
    signature, _, body = text.partition("{")
    calls = Counter(_CALL.findall(body))
    vectors = sum(count for name, count in calls.items() if _is_vector(name))
    kinds = Counter({"function": 1, "parameter": signature.count(","), "vector": vectors})
    kinds["memory"] += sum(count for name, count in calls.items() if name.startswith("__builtin"))
    lines = [line.strip() for line in _nameless(text).partition("{")[2].splitlines()]
    for line, count in Counter(lines).items():
        for kind, number in _line(line).items():
            kinds[kind] += count * number
    kinds.update(_regular(lines))
    own = {name: n for name, n in calls.items() if name not in _WORDS and not _of_compiler(name)}
    return Metrics(+kinds, own)


def _is_vector(name: str) -> bool:
    return _VECTOR.fullmatch(name) is not None and _FREE.fullmatch(name) is None


def _of_compiler(name: str) -> bool:
    return any(names.match(name) for names in (_NO_CALLS, _VECTOR, _FREE))


def _regular(lines: list[str]) -> Iterator[str]:
    """Loads, stores and products in every innermost loop without calls whose count is a multiple of eight."""
    for index, line in enumerate(lines):
        found = _LOOP.match(line)
        if found and int(found[1]) % 8 == 0 and "}" in lines[index:]:
            inner = lines[index + 1 : lines.index("}", index)]
            if not any(text.endswith("{") or "v" in text or "c(" in text for text in inner):
                counts = [_line(text) for text in inner]
                for kind, many in _MANY.items():
                    yield from [kind] * sum(count.get(one, 0) for count in counts for one in many)


def _nameless(text: str) -> str:
    """The text with a letter in place of every name, by type: i, w (64 bits), f or v."""
    letters = {name: _LETTERS.get(kind, "v") for kind, name in _TYPED.findall(text)}

    def letter(found: re.Match[str]) -> str:
        name = found[0]
        if name.endswith("("):
            name = name[:-1]
            return name + "(" if name in _WORDS else "v(" if _is_vector(name) else "c("
        if name in _TYPES or name in _WORDS:
            return name
        return "V" if _VECTORS.match(name) else letters.get(name, "i")

    return _NAME.sub(letter, text)


def _is_value(token: str) -> bool:
    return token in (")", "]") or (token[0].isalnum() and token not in _TYPES and token not in _WORDS)


@cache
def _line(line: str) -> Mapping[str, int]:
    """Counts of one line, whose names are letters."""
    tokens = _TOKEN.findall(line)
    found: Counter[str] = Counter()
    if tokens and tokens[0] == "for":
        return {"loop": 1}
    tokens = _without_casts(tokens, found)
    if _CONDITIONAL.match(line):
        tokens = ["?" if token == "if" else token for token in tokens]
    form = next((form for mark, form in _FORMS.items() if mark in tokens), "")
    depth = 0
    for before, token, after in zip(["{", *tokens], tokens, [*tokens[1:], ";"], strict=False):
        if token == "[":
            depth += 1
            found[_memory("" if form == "wide_" and before != "w" else form)] += 1
        elif token == "]":
            depth -= 1
        else:
            kind = _kind(before, token, after, "" if depth else form)
            if depth:
                kind = "address" if token in ("*", "<<") and kind else None
            if kind:
                found[kind] += 1
    return found


_ALWAYS = {
    **dict.fromkeys(("if", "while", "&&", "||"), "branch"),
    **dict.fromkeys(("++", "--"), "operation"),
    "?": "select",
    "=": "assign",
}
_FORMS = {"v": "vector_", "V": "vector_", "f": "float_", "float": "float_", "w": "wide_", "int64_t": "wide_"}
_FORMS |= {"uint64_t": "wide_", "double": "wide_"}


def _without_casts(tokens: list[str], found: Counter[str]) -> list[str]:
    """The tokens without casts; a cast to 64 bits leaves its type as a token, since the rest of the line is wide."""
    kept: list[str] = []
    index = 0
    while index < len(tokens):
        end = index + 1
        while end < len(tokens) and (tokens[end] in _TYPES or tokens[end] == "*"):
            end += 1
        if tokens[index] == "(" and end > index + 1 and tokens[end : end + 1] == [")"]:
            kind = tokens[end - 1]
            found["narrow"] += kind in _NARROW
            found["float"] += kind == "float"
            kept += [kind] if _LETTERS.get(kind) == "w" else []
            index = end + 1
        else:
            kept.append(tokens[index])
            index += 1
    return kept


def _kind(before: str, token: str, after: str, form: str) -> str | None:
    """The kind of one token in a statement of integers, wide integers, floats or vectors."""
    if token in _ALWAYS:
        return _ALWAYS[token]
    floats = form == "float_"
    if token in _COMPARISONS:
        return "float" if floats else "compare"
    if token == "*" and not _is_value(before):
        return None if before in _TYPES else _memory(form if floats or after == "w" else "")
    if token in _BINARY:
        folded = before[0].isdigit() and after[0].isdigit()
        if folded or (len(token) == 1 and not _is_value(before)):
            return None
        return "float" if floats else _wide(before, token, after) if form == "wide_" else "operation"
    return _literal(token, floats) if token[0].isdigit() else None


def _memory(form: str) -> str:
    return f"{form}memory" if form in ("float_", "wide_") else "memory"


def _wide(before: str, token: str, after: str) -> str | None:
    """Shifts by 32 select a half, and shifts of 1 are constants; neither costs anything."""
    if token not in ("<<", ">>"):
        return "wide"
    return None if after == "32" or before == "1" else "wide" if after[0].isdigit() else "wide_shift"


def _literal(token: str, floats: bool) -> str | None:
    whole = _INTEGER.match(token)
    if whole is None:
        return "float_literal" if floats and token != "0.0f" else None
    value = int(whole[1], 0)
    simple = value < 4096 or value & (value + 1) == 0 or value & (value - 1) == 0
    return None if simple else "literal"
