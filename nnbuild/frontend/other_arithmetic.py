"""Where a file's own interpreter computes otherwise than nnbuild, and what to do; told where golden outputs miss a
gate."""

EXPANDED = (
    "Weights stored in 8 bits or fewer multiply floats. Kernels that store them in 8 bits are taken where they are as "
    "fast, and with --optimize size or --flash; with --quantize int8 and --calibrate, layers compute in integers."
)
"""A note."""
_ALLOW = "allow for the difference with --golden-tolerance, or compare with outputs of the float model"
DYNAMIC_RANGE = (
    "The file has integer weights of dynamic range, for which TFLite also rounds the inputs of each layer to 8 bits "
    f"and nnbuild does not: {_ALLOW}"
)
HALF_PRECISION = f"The file computes in half precision and nnbuild in float32: {_ALLOW}"
ROUNDED_INPUTS = (
    f"The file has layers quantized by Keras, which also rounds their inputs to 8 bits and nnbuild does not: {_ALLOW}"
)
RUN_TIME_ROUNDING = (
    f"The file has layers whose inputs onnxruntime also rounds to 8 bits at run time, and nnbuild does not: {_ALLOW}"
)
SATURATED_SUMS = (
    "The file quantizes at run time. On x86 processors without VNNI onnxruntime saturates sums of two products to 16 "
    f"bits, nnbuild never does: quantize it again with reduce_range=True; or {_ALLOW}"
)
SMALL_QUOTIENTS = (
    "The file divides with scales less than 64 times apart. TFLite then shifts quotients near zero by more bits than a "
    f"word has and gives large numbers, nnbuild gives the quotient: {_ALLOW}"
)
OVERFLOWS = (
    "The file has channels with a bias at the end of its type and nearly no weights, whose sums overflow in TFLite. In "
    f"nnbuild such a channel is what it is where they do not: {_ALLOW}"
)
OTHER_SCALES = (
    "The file reverses integers into a tensor with another scale. TFLite copies them as they are, which changes the "
    f"numbers they stand for, nnbuild converts them: {_ALLOW}"
)
