"""Functions of numbers that are made of others: trigonometric, hyperbolic and their inverses, in any reader's graph."""

from __future__ import annotations

from math import inf, pi
from typing import Protocol, TypeVar

V = TypeVar("V")


class Arithmetic(Protocol[V]):
    """How a reader adds operations to its graph."""

    def of(self, function: str, x: V, *parameters: float) -> V: ...

    def two(self, function: str, left: V | float, right: V | float) -> V: ...

    def line(self, x: V, factor: float, summand: float = 0.0) -> V:
        """x * factor + summand."""

    def where(self, comparison: str, x: V, bound: V | float, chosen: V, other: V) -> V: ...


def error_rest(a: Arithmetic[V], x: V) -> V:
    """1 - erf(x)."""
    return a.line(a.of("erf", x), -1.0, 1.0)


def tangent(a: Arithmetic[V], x: V) -> V:
    return a.two("divide", a.of("sin", x), a.of("cos", x))


def hyperbolic_cosine(a: Arithmetic[V], x: V) -> V:
    grown = a.of("exponential", x)
    return a.line(a.two("add", grown, a.two("divide", 1.0, grown)), 0.5)


def hyperbolic_sine(a: Arithmetic[V], x: V) -> V:
    """With e = exp(-|x|) - 1, sinh |x| = -e * (1 + 1 / (1 + e)) / 2, without cancellation; its sign is that of x."""
    small = a.of("elu", a.of("negative", a.of("absolute", x)), 1.0)
    inner = a.line(a.two("divide", 1.0, a.line(small, 1.0, 1.0)), 1.0, 1.0)
    return _signed(a, x, a.line(a.two("multiply", small, inner), -0.5))


ARC = (0.99999999, -0.3333321, 0.19993055, -0.14199, 0.10614, -0.0749, 0.0425)
"""Coefficients of x, x³, x⁵ … of the arc tangent up to 0.42, within 2e-9."""


def arc_tangent(a: Arithmetic[V], x: V) -> V:
    """Numbers above 1 use their inverse: both are computed, and one is selected."""
    size = a.of("absolute", x)
    angle = _first_half(a, a.two("divide", a.two("minimum", size, 1.0), a.two("maximum", size, 1.0)))
    return _signed(a, x, a.where("greater", size, 1.0, a.line(angle, -1.0, pi / 2), angle))


def _first_half(a: Arithmetic[V], small: V) -> V:
    """The angle of a tangent from 0 to 1, which is halved: tan(a/2) = x / (1 + sqrt(1 + x²))."""
    root = a.of("sqrt", a.line(a.of("square", small), 1.0, 1.0))
    half = a.two("divide", small, a.line(root, 1.0, 1.0))
    square = a.of("square", half)
    total = a.line(square, ARC[-1], ARC[-2])
    for factor in reversed(ARC[:-2]):
        total = a.line(a.two("multiply", total, square), 1.0, factor)
    return a.line(a.two("multiply", total, half), 2.0)


def angle_of(a: Arithmetic[V], y: V, x: V) -> V:
    """The angle of the point (x, y), from -pi to pi."""
    wide, high = a.of("absolute", x), a.of("absolute", y)
    most = a.two("maximum", a.two("maximum", wide, high), 1e-30)
    angle = _first_half(a, a.two("divide", a.two("minimum", wide, high), most))
    angle = a.where("greater", high, wide, a.line(angle, -1.0, pi / 2), angle)
    angle = a.where("less", x, 0.0, a.line(angle, -1.0, pi), angle)
    return _signed(a, y, angle)


def arc_sine(a: Arithmetic[V], x: V) -> V:
    return a.line(_half_of_arc_sine(a, x), 2.0)


def arc_cosine(a: Arithmetic[V], x: V) -> V:
    """The complement to a right angle."""
    return a.line(_half_of_arc_sine(a, x), -2.0, pi / 2)


def _half_of_arc_sine(a: Arithmetic[V], x: V) -> V:
    """The arc tangent of x / (1 + sqrt(1 - x²))."""
    root = a.of("sqrt", a.of("clamp", a.line(a.of("square", x), -1.0, 1.0), 0.0, inf))
    return arc_tangent(a, a.two("divide", x, a.line(root, 1.0, 1.0)))


def area_cosine(a: Arithmetic[V], x: V) -> V:
    root = a.of("sqrt", a.line(a.of("square", x), 1.0, -1.0))
    return a.of("log", a.two("add", x, root))


def area_sine(a: Arithmetic[V], x: V) -> V:
    size = a.of("absolute", x)
    root = a.of("sqrt", a.line(a.of("square", size), 1.0, 1.0))
    return _signed(a, x, a.of("log", a.two("add", size, root)))


def area_tangent(a: Arithmetic[V], x: V) -> V:
    size = a.of("absolute", x)
    inner = a.two("divide", a.line(size, 1.0, 1.0), a.line(size, -1.0, 1.0))
    return _signed(a, x, a.line(a.of("log", inner), 0.5))


def _signed(a: Arithmetic[V], x: V, size: V) -> V:
    return a.where("less", x, 0.0, a.of("negative", size), size)
