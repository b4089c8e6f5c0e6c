"""All supported layers by class name."""

from __future__ import annotations

from nnbuild.frontend.checked_config import shown
from nnbuild.frontend.keras_config import LayerSpec
from nnbuild.frontend.keras_layers import (
    activation,
    attention,
    audio,
    categories,
    conv_recurrent,
    convolution,
    dense,
    embedding,
    locally_connected,
    merging,
    normalization,
    operations,
    pooling,
    preprocessing,
    products,
    qkeras,
    quantize_wrappers,
    recurrent,
    shaping,
    volumes,
    wrappers,
)
from nnbuild.frontend.keras_layers.base import LayerKind
from nnbuild.frontend.keras_names import snake_case

LAYERS: dict[str, LayerKind] = {
    **activation.LAYERS,
    **convolution.LAYERS,
    **dense.LAYERS,
    **merging.LAYERS,
    **normalization.LAYERS,
    **operations.LAYERS,
    **pooling.LAYERS,
    **recurrent.LAYERS,
    **shaping.LAYERS,
    **wrappers.LAYERS,
    **attention.LAYERS,
    **audio.LAYERS,
    **categories.LAYERS,
    **conv_recurrent.LAYERS,
    **embedding.LAYERS,
    **locally_connected.LAYERS,
    **preprocessing.LAYERS,
    **products.LAYERS,
    **volumes.LAYERS,
    **quantize_wrappers.LAYERS,
    **qkeras.LAYERS,
}


USUAL = (
    "Export what it computes, model.export('model.tflite', format='litert') or ('model.onnx', format='onnx'); or "
    "rebuild the model with the layers in `nnbuild docs import`: layer.call(x) in the place of layer(x) records those "
    "it is made of."
)
OF_WORDS = (
    "Save what comes behind it, keras.Model(layer.output, model.output), and look words up in your own program: "
    "layer.get_vocabulary() lists them by number."
)
HASHED = (
    "Use IntegerLookup for whole numbers, or save what comes behind it, keras.Model(layer.output, model.output), and "
    "hash in your own program."
)
STRETCHED = (
    "It is computed at inference, too. Leave it out of the model: save what comes behind it, "
    "keras.Model(layer.output, model.output), and apply it to the images before."
)
RECORDED = "Express it with the operations in `nnbuild docs layers`, or compute it outside the model."
OF_TWO_VALUES = (
    "Within larq.context.quantized_scope(True) get_weights() gives its kernel of two values: copy it into the same "
    "layer of Keras, behind keras.ops.where(x >= 0, 1.0, -1.0) for an input_quantizer, and save that model."
)
LARQ = ("Dense", "Conv1D", "Conv2D", "Conv3D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D")
QKERAS = (
    *("QBatchNormalization", "QDenseBatchnorm", "QAdaptiveActivation"),
    *("QConv2DTranspose", "QAveragePooling2D", "QGlobalAveragePooling2D"),
    *("QSimpleRNN", "QLSTM", "QGRU", "QBidirectional"),
)
HGQ = "hgq>"
"""Its package's classes have names of QKeras' and another meaning."""
OF_HGQ = (
    "Build the model of Keras' own layers, with each layer's qkernel and qbias as weights, and save that; --quantize "
    "rounds its activations."
)
LEFT_IN = {
    **dict.fromkeys((f"Quant{name}" for name in (*LARQ, "Conv2DTranspose")), OF_TWO_VALUES),
    **dict.fromkeys(QKERAS, qkeras.ADVICE),
    **dict.fromkeys(("StringLookup", "TextVectorization"), OF_WORDS),
    **dict.fromkeys(("Hashing", "HashedCrossing"), HASHED),
    **dict.fromkeys(("Equalization", "ContrastLimitedAdaptiveHistogramEqualization"), STRETCHED),
    "PruneLowMagnitude": "Save strip_pruning(model) of tensorflow_model_optimization: it takes out what trained it.",
    "ClusterWeights": "Save strip_clustering(model) of tensorflow_model_optimization: it takes out what trained it.",
}
"""What to do about wrappers that training leaves in a model, and about layers of words."""


KNOWN_BY_NAME = (
    *("LRN", "CustomScaleLayer", "LayerScale", "StochasticDepth", "QuantizeLayer", "QuantizeWrapperV2"),
    *qkeras.LAYERS,
)
"""Classes of others whose meaning is known, whatever package they are registered in."""


def kind_of(spec: LayerSpec) -> LayerKind:
    if spec.class_name == "Lambda":
        raise spec.config.error(
            "a Lambda layer is Python bytecode; nnbuild never runs code from a model file.",
            "Use Keras operations, such as keras.ops.square(x) for Lambda(lambda x: x ** 2)(x); save the model again.",
        )
    if spec.registered is not None and spec.registered.startswith(HGQ):
        raise spec.config.error(
            f"its class {shown(spec.registered)} is one of HGQ, which nnbuild does not read.", OF_HGQ
        )
    if spec.registered is not None and spec.class_name not in (*KNOWN_BY_NAME, *LEFT_IN):
        cause = f"its class {shown(spec.registered)} is not Keras' own, and what it computes is Python code."
        raise spec.config.error(cause, USUAL)
    kind = None if spec.operation else LAYERS.get(spec.class_name)
    kind = kind or operations.keras3_operation(spec.class_name)  # an operation may look like a layer, such as Cast
    if kind is None and spec.operation:
        name = snake_case(spec.class_name)
        raise spec.config.error(
            f"Keras made this layer of keras.ops.{name}() or an equivalent expression, which is not supported.",
            RECORDED,
        )
    if kind is None:
        raise spec.config.error(
            f"its class {shown(spec.class_name)} is not supported.", LEFT_IN.get(spec.class_name, USUAL)
        )
    return kind
