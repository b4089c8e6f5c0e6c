"""What to do about operators that are not read."""

from __future__ import annotations

from collections.abc import Mapping

from nnbuild.base.errors import ModelError
from nnbuild.frontend.onnx.records import Node

DOMAINS = ("", "com.microsoft", "ai.onnx.ml")
OF_ANY_SIZE = (
    "How much it gives depends on the numbers it gets, but memory is planned at compile time. Export the network up to "
    "the node before it, as the boxes and scores of a detector, and select among these in your own program."
)
IN_TRAINING = "It is for training. Export the model in evaluation mode, without its loss."
AT_RANDOM = "Draw the numbers in your own program, and make them an input of the model."
ADVICE: Mapping[str, str] = {
    **dict.fromkeys(("NonZero", "NonMaxSuppression", "Unique"), OF_ANY_SIZE),
    **dict.fromkeys(("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"), IN_TRAINING),
    **dict.fromkeys(
        ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"),
        AT_RANDOM,
    ),
    "MaxUnpool": "Use an upsampling without indices instead.",
    "RoiAlign": "Export the network up to its features, and crop these with GridSample at positions that are an input.",
}


def refused(node: Node) -> ModelError:
    if node.domain not in DOMAINS:
        return node.error(
            f"its domain {node.domain!r} is not a standard ONNX domain, so its meaning is unknown.",
            "Export the model with standard operators.",
        )
    if node.domain == "com.microsoft":
        return node.error(
            f"nnbuild does not support {node.kind}, which onnxruntime writes when it optimizes a model.",
            "Give the model from before, or have it optimized with ORT_ENABLE_BASIC.",
        )
    if node.kind.endswith("PartitionedCall"):
        return node.error(
            "it is a call of TensorFlow's that tf2onnx did not convert.",
            "Give the .keras or .h5 file, or export it to TFLite: model.export('model.tflite', format='litert').",
        )
    advice = "Replace the layer it comes from, or compute it outside the model."
    return node.error(f"nnbuild does not support {node.kind}.", ADVICE.get(node.kind, advice))
