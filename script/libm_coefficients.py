"""Compute the polynomial coefficients printed in firmware/libm/.

Every polynomial there is a weighted minimax fit made by this script: a Remez exchange on a dense grid, the
coefficients rounded to the target's number format one at a time, lowest degree first, with the others refitted after
each rounding. Run it without arguments to print all of them:

    python script/libm_coefficients.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[Any]  # of long doubles
Rounding = Callable[[np.longdouble], np.longdouble]
GRID = 1500


def float32(value: np.longdouble) -> np.longdouble:
    """Round to the nearest float."""
    return np.longdouble(np.float32(value))


def fixed(bits: int) -> Rounding:
    """A rounding to a multiple of 2^-bits."""
    scale = np.longdouble(2) ** bits
    return lambda value: np.longdouble(np.rint(value * scale) / scale)


def solve(matrix: Vector, right: Vector) -> Vector:
    """Gaussian elimination in long double; numpy's own solver is double only."""
    a, b = matrix.copy(), right.copy()
    for i in range(len(b)):
        pivot = i + int(np.argmax(np.abs(a[i:, i])))
        a[[i, pivot]], b[[i, pivot]] = a[[pivot, i]], b[[pivot, i]]
        for j in range(i + 1, len(b)):
            factor = a[j, i] / a[i, i]
            a[j] -= factor * a[i]
            b[j] -= factor * b[i]
    for i in reversed(range(len(b))):
        b[i] = (b[i] - a[i, i + 1 :] @ b[i + 1 :]) / a[i, i]
    return b


def extrema(error: Vector, count: int) -> list[int]:
    """Indices of `count` alternating extrema of the error, the largest of each run of one sign."""
    peaks: list[int] = []
    for i in range(len(error)):
        if peaks and (error[i] > 0) == (error[peaks[-1]] > 0):
            if abs(error[i]) > abs(error[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > count:
        peaks.pop(0 if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else -1)
    return peaks


def minimax(basis: Vector, target: Vector) -> Vector:
    """The combination of the basis columns whose largest distance from the target on the grid is smallest."""
    count = basis.shape[1] + 1
    nodes = (1 - np.cos(np.pi * np.arange(count) / (count - 1))) / 2 * (len(target) - 1)
    points = [round(float(node)) for node in nodes]
    signs = np.array([(-1) ** i for i in range(count)], dtype=np.longdouble)
    coefficients = np.zeros(count - 1, dtype=np.longdouble)
    for _ in range(30):
        solution = solve(np.column_stack([basis[points], signs]), target[points])
        coefficients = solution[:-1]
        fresh = extrema(target - basis @ coefficients, count)
        if len(fresh) < count or fresh == points:
            break
        points = fresh
    return coefficients


def evaluate(coefficients: Sequence[np.longdouble], t: Vector) -> Vector:
    """The polynomial at t, by Horner's rule."""
    total = np.zeros_like(t)
    for c in reversed(coefficients):
        total = total * t + c
    return total


def fit(
    function: Callable[[Vector], Vector],
    weight: Callable[[Vector], Vector],
    interval: tuple[float, float],
    degree: int,
    rounding: Rounding = float32,
) -> tuple[list[np.longdouble], float]:
    """Coefficients p with weight(t)*(p(t) - function(t)) smallest on the interval, and that error.

    Refitting after each rounding usually helps, but powers of t from the first on are no Chebyshev system on an
    interval around zero, and the exchange may then fail; so plain rounding of the best polynomial is tried too.
    """
    low, high = (np.longdouble(end) for end in interval)
    spread = (1 - np.cos(np.pi * (np.arange(GRID, dtype=np.longdouble) + 0.5) / GRID)) / 2
    t = low + (high - low) * spread
    w, target = weight(t), function(t)
    basis = np.column_stack([w * t**power for power in range(degree + 1)])
    plain = [rounding(c) for c in minimax(basis, w * target)]
    refitted: list[np.longdouble] = []
    for first in range(degree + 1):
        rest = target - evaluate(refitted, t)
        refitted.append(rounding(minimax(basis[:, first:], w * rest)[0]))
    errors = [float(np.max(np.abs(w * (evaluate(c, t) - target)))) for c in (plain, refitted)]
    return (plain, errors[0]) if errors[0] <= errors[1] else (refitted, errors[1])


def series(terms: Sequence[np.longdouble | float]) -> Callable[[Vector], Vector]:
    """A power series, summed from its smallest term."""

    return lambda t: evaluate([np.longdouble(term) for term in terms], t)


def one(value: int) -> np.longdouble:
    return np.longdouble(value)


def factorial(n: int) -> np.longdouble:
    return np.longdouble(math.factorial(n))


LN2 = np.log(one(2))
PI = 4 * np.arctan(one(1))


def erf(x: Vector) -> Vector:
    """2/sqrt(pi) exp(-x^2) sum 2^n x^(2n+1)/(2n+1)!!, a series of positive terms."""
    term, total = x.copy(), x.copy()
    for n in range(1, 200):
        term = term * 2 * x * x / (2 * n + 1)
        total = total + term
    result: Vector = 2 / np.sqrt(PI) * np.exp(-x * x) * total
    return result


def tanh_ratio(u: Vector) -> Vector:
    """(tanh(x)/x - 1)/x^2 at u = x^2."""
    x = np.sqrt(u)
    return (np.tanh(x) / x - 1) / u


def show(name: str, result: tuple[list[np.longdouble], float]) -> None:
    coefficients, error = result
    print(f"{name}: weighted error 2^{math.log2(error):.2f}")
    for power, c in enumerate(coefficients):
        print(f"    {power}: {c_float(float(c))}  {float(c)!r}")


def c_float(value: float) -> str:
    """The shortest hexadecimal C constant of a float."""
    mantissa, exponent = value.hex().split("p")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}p{exponent}f"


def show_fixed(name: str, result: tuple[list[np.longdouble], float], bits: int) -> None:
    coefficients, error = result
    print(f"{name}: weighted error 2^{math.log2(error):.2f}")
    for power, c in enumerate(coefficients):
        print(f"    {power}: {int(np.rint(c * one(2) ** bits)):#x}")


def reductions() -> None:
    """1/ln2, and ln2 as a float of 15 bits, whose product with an exponent is exact, and the rest."""
    high = float32(np.floor(LN2 * 2**15) / 2**15)
    constants = (c_float(float(float32(c))) for c in (1 / LN2, high, LN2 - high))
    print("expf: 1/ln2 and ln2 in two parts:", ", ".join(constants))


def exponentials() -> None:
    half = float(LN2) / 2
    q = series([1 / factorial(n + 2) for n in range(20)])
    show("expf: (exp(r)-1-r)/r^2", fit(q, lambda r: r * r / np.exp(r), (-half * 1.01, half * 1.01), 4))
    show("expm1f: (exp(r)-1-r)/r^2", fit(q, lambda r: abs(r), (-half * 1.01, half * 1.01), 5))
    # The first coefficient is ln2 - 1/2: the function adds the exact r/2 apart.
    terms = [LN2 - 0.5] + [LN2**n / factorial(n) for n in range(2, 22)]
    show("exp2f: (2^r-1)/r - 1/2", fit(series(terms), lambda r: abs(r) / np.exp2(r), (-0.5, 0.5), 5))


def logarithms() -> None:
    low, high = math.sqrt(0.5) - 1, math.sqrt(2) - 1
    q = series([one((-1) ** n) / (n + 3) for n in range(120)])
    show("logpartsf: (log(1+f)-f+f^2/2)/f^3", fit(q, lambda f: f * f, (low, high), 7))


def sigmoids() -> None:
    show("tanhf: (tanh(x)/x-1)/x^2 in x^2", fit(tanh_ratio, lambda u: u, (1e-9, 0.5625**2), 4))


def error_function() -> None:
    two_over_root_pi = 2 / np.sqrt(PI)
    terms = [two_over_root_pi * (-1) ** n / (factorial(n) * (2 * n + 1)) for n in range(60)]
    terms[0] -= 1
    show("erff: erf(x)/x - 1 in x^2", fit(series(terms), lambda u: one(1) + 0 * u, (0, 0.875**2), 6))


def error_function_tail() -> None:
    """erf on six intervals of width 1/2 from 7/8 on: a float near the middle value, and a polynomial for the rest."""
    for i in range(6):
        middle = one(1) + np.longdouble(i) / 2 + np.longdouble(1) / 8
        base = float32(erf(np.array([middle]))[0])

        def rest(t: Vector, middle: np.longdouble = middle, base: np.longdouble = base) -> Vector:
            return erf(middle + t) - base

        result = fit(rest, lambda t: one(1) + 0 * t, (-0.25, 0.25), 6)
        show(f"erff: erf({float(middle)}+t) - {c_float(float(base))}", result)


def power() -> None:
    """The fixed-point numbers of powf."""
    q = series([one((-1) ** (n + 1)) / (n + 2) / LN2 for n in range(20)])
    show_fixed("powf: (log2(1+r)-r/ln2)/r^2, Q31", fit(q, lambda r: abs(r), (-0.04, 0.04), 4, fixed(31)), 31)
    h = series([LN2 ** (n + 1) / factorial(n + 1) for n in range(24)])
    show_fixed("powf: (2^f-1)/f, Q32", fit(h, lambda f: f / np.exp2(f), (0, 1), 6, fixed(32)), 32)
    log2e = scaled_log2e(94)
    print(f"powf: log2(e) Q31 {log2e >> 63:#x}, the next 32 bits {(log2e >> 31) & 0xFFFFFFFF:#x}")
    for i in range(16):
        low = 0x3F3C0000 + i * 0x80000
        ends = np.array([low, low + 0x80000], dtype=np.uint32).view(np.float32).astype(np.longdouble)
        inverse = round(float(128 * 2 / (ends[0] + ends[1]))) if i != 8 else 128
        value = int(np.rint(-np.log2(np.longdouble(inverse) / 128) * one(2) ** 62))
        reach = max(abs(float(end) * inverse / 128 - 1) for end in ends)
        print(f"    {{{inverse}, {value:#x}}}  |r| <= {reach:.4f}")


def scaled_log2e(bits: int) -> int:
    """floor(2^bits / ln 2), with ln 2 = sum 1/(n 2^n) in integers."""
    work = bits + 40
    ln2 = sum((1 << work) // (n << n) for n in range(1, work + 1))
    return (1 << (bits + work)) // ln2


def two_over_pi() -> None:
    """2/pi in 32-bit words, by Machin's formula in integers."""
    work = 400

    def arctan_inverse(n: int) -> int:
        return sum((-1) ** k * ((1 << work) // ((2 * k + 1) * n ** (2 * k + 1))) for k in range(work))

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    value = (2 << (work + 224)) // pi
    print("trigf: 2/pi", ", ".join(f"{value >> (224 - 32 * (i + 1)) & 0xFFFFFFFF:#010x}" for i in range(7)))
    print(f"trigf: pi/2 Q30 {(pi << 29 >> work):#x}, exactly rounded {((pi >> (work - 30)) + 1) >> 1:#x}")


def trigonometric() -> None:
    top = (math.pi / 4) ** 2 * 1.001
    sine = series([(-1) ** (n + 1) / factorial(2 * n + 3) for n in range(15)])
    cosine = series([(-1) ** n / factorial(2 * n + 4) for n in range(15)])
    show("trigf: (sin(x)-x)/x^3 in x^2", fit(sine, lambda u: u, (0, top), 3))
    show("trigf: (cos(x)-1+x^2/2)/x^4 in x^2", fit(cosine, lambda u: u * u, (0, top), 3))


if __name__ == "__main__":
    reductions()
    exponentials()
    logarithms()
    sigmoids()
    error_function()
    error_function_tail()
    trigonometric()
    two_over_pi()
    power()
