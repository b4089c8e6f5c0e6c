"""Every rounding, saturation and fixed-point rule of the integer path, once.

The rules are those of TFLite's reference kernels, bit for bit. Each is a small function on numpy
integers (all arithmetic in 64 bits, so no rule depends on the width of what it is given), and its
comment holds the C form that generated code uses. The files:

- `rounding`: shifts, high multiplies and requantisation of an accumulator
- `multiplier`: real scales to integer multipliers and shifts, and activation ranges (build time)
- `real_scale`: multiplication by a float64 scale as FULLY_CONNECTED does it, in integers
- `edge`: float values in and out of a quantised model
- `fixed_point`: exp, reciprocal, logistic and tanh in 16- and 32-bit fixed point
- `tables`: lookup tables and how they are read
- `elementwise`: the arithmetic of add, multiply, leaky relu, hard swish … on single elements
- `softmax`, `lstm`: the two operators with a rule of several steps
"""
