"""The colours by meaning, in light and dark mode."""

from __future__ import annotations

PAINTS: dict[str, tuple[str, str]] = {
    "paper": ("#ffffff", "#14171c"),
    "card": ("#f6f7f9", "#1c2027"),
    "rule": ("#d9dde3", "#343b46"),
    "ink": ("#1a1f27", "#e8ebf0"),
    "soft": ("#566070", "#a4adbb"),
    "accent": ("#1f5fbf", "#7fb0ff"),
    "good": ("#1a7a43", "#5fce8f"),
    "bad": ("#b3261e", "#ff8a80"),
    "warn": ("#8a5a00", "#f0bd5a"),
    "edge": ("#8b95a5", "#78828f"),
    "bar": ("#6f9fe0", "#4877bd"),
    "bar-back": ("#e6eaf0", "#2a303a"),
    # Kinds of operations.
    "input": ("#5c6675", "#97a1b0"),
    "convolution": ("#2f6fd0", "#6ba2f5"),
    "depthwise": ("#0f8a8a", "#45c4c0"),
    "dense": ("#7a4fc9", "#b295f2"),
    "recurrent": ("#b5388c", "#ee86c9"),
    "pooling": ("#2e8b4a", "#69c987"),
    "merge": ("#c4631a", "#f2a05f"),
    "pointwise": ("#a98200", "#dcbc4c"),
    "moving": ("#7b8492", "#8d97a6"),
    # Roles of memory.
    "tensor": ("#8fb6ee", "#3b65a6"),
    "tensor-b": ("#b4cdf3", "#2f5185"),
    "output": ("#8fd0a6", "#2f7a4d"),
    "scratch": ("#f1b877", "#9a6124"),
    "given": ("#c3cad4", "#4b5462"),
    "overlap": ("#7a1f6a", "#ff9be6"),
    "peak": ("#c62828", "#ff8a80"),
}

KINDS: dict[str, str] = {
    **dict.fromkeys(("conv2d", "conv2d_transpose"), "convolution"),
    "depthwise_conv2d": "depthwise",
    "dense": "dense",
    **dict.fromkeys(("lstm", "gru", "simple_rnn", "tflite_lstm", "svdf"), "recurrent"),
    **dict.fromkeys(("pool2d", "reduce", "lrn"), "pooling"),
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "maximum", "minimum", "concatenate"), "merge"),
    **dict.fromkeys(
        ("reshape", "offset", "transpose", "pad", "slice", "shift", "repeat", "resize_bilinear", "convert"), "moving"
    ),
    **dict.fromkeys(("gather", "pick", "known"), "moving"),
    "matmul": "dense",
    "input": "input",
}
"""Kind of operation -> the paint of its family; kinds not listed are elementwise."""


def paint_of(kind: str) -> str:
    return KINDS.get(kind, "pointwise")


def families(kinds: set[str]) -> list[tuple[str, str]]:
    """(paint, meaning) for a legend of the families that occur."""
    words = {
        "input": "input",
        "convolution": "convolution",
        "depthwise": "depthwise convolution",
        "dense": "dense",
        "recurrent": "recurrent",
        "pooling": "pooling",
        "merge": "merging",
        "pointwise": "activation, normalization",
        "moving": "moving only",
    }
    there = {paint_of(kind) for kind in kinds}
    return [(paint, word) for paint, word in words.items() if paint in there]


def as_css() -> str:
    """The paints as custom properties, with dark ones where preferred. Paper is light."""
    light = "".join(f"--{name}:{pair[0]};" for name, pair in PAINTS.items())
    dark = "".join(f"--{name}:{pair[1]};" for name, pair in PAINTS.items())
    return (
        f":root{{color-scheme:light dark;{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
    )
