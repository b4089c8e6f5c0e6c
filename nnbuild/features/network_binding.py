"""Binds a front end to a network: how rows become inputs, how often the network runs, what its answers mean."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.features.config import Recipe
from nnbuild.features.frontend import Array, FrontEnd
from nnbuild.features.row_map import DEVICE_RANGE, FixedMap, fixed_map
from nnbuild.model.graph import Graph, Tensor
from nnbuild.numeric.edge import quantize

NEAR = 0.02
"""Tolerance between a model's scale and the range that devices use."""


@dataclass(frozen=True, eq=False)
class Hearing:
    """The network's input holds `rows` rows, `hop` of them new at each run. Answers are numbers from 0 on; a class in
    `classes` is heard where the sum of its last `mean` answers is above `limit`."""

    recipe: Recipe
    input: Tensor
    output: Tensor
    rows: int
    hop: int
    classes: tuple[int, ...]
    limit: int
    warm_up: int = 0
    """Runs of a streamed network up to the first valid answer."""

    @property
    def front_end(self) -> FrontEnd:
        return self.recipe.front_end

    @property
    def width(self) -> int:
        return self.front_end.row[1]

    @cached_property
    def map(self) -> FixedMap | None:
        """Map from a row's integers to the input's; None where either is a float."""
        if self.input.quant is None or self.front_end.row[0] == "float32":
            return None
        quant = self.input.quant
        return fixed_map(self.front_end.row[0], self.input.dtype, self.recipe, quant.scale, quant.zero_point)

    def entered(self, rows: Array) -> Array:
        """Rows converted for the network's input."""
        if self.map is not None:
            return self.map(rows)
        floats = rows.astype(np.float32)
        if self.front_end.row[0] != "float32" or self.recipe.scale != 1.0:
            floats = floats * np.float32(self.recipe.scale)
        quant = self.input.quant
        if quant is None:
            return floats
        limits = np.iinfo(self.input.dtype)
        if self.recipe.rounding == "truncate":
            moved = floats / np.float32(quant.scale) + np.float32(quant.zero_point)
            return np.asarray(np.trunc(np.clip(moved, limits.min, limits.max)), self.input.dtype)
        whole = quantize(floats, quant.scale, quant.zero_point, int(limits.min), int(limits.max))
        return np.asarray(whole, self.input.dtype)

    def runs(self, count: int) -> list[int]:
        """The rows after which the network runs."""
        return list(range(self.rows - 1, count, self.hop))

    def windows(self, entered: Array) -> Array:
        """The network's inputs, one per run."""
        found = [entered[at - self.rows + 1 : at + 1].reshape(self.input.shape) for at in self.runs(len(entered))]
        return np.stack(found) if found else np.zeros((0, *self.input.shape), entered.dtype)

    def answers(self, outputs: Array) -> Array:
        """The network's outputs as numbers from 0 on."""
        flat = outputs.reshape(len(outputs), prod(outputs.shape[1:]))
        if self.output.dtype == "float32":
            return np.clip(np.nan_to_num(flat) * np.float32(255), 0, 255).astype(np.int64)
        return flat.astype(np.int64) - np.iinfo(self.output.dtype).min

    def events(self, outputs: Array) -> Array:
        """For each run the class that was heard, or -1, and its mean."""
        listen, found = self.recipe.listen, np.full((len(outputs), 2), -1, np.int64)
        found[:, 1] = 0
        history = np.zeros((listen.mean, len(self.classes)), np.int64)
        above, cool, at = np.zeros(len(self.classes), np.int64), 0, 0
        for step, row in enumerate(self.answers(outputs)):
            if step + 1 < self.warm_up:
                continue
            history[at] = row[list(self.classes)]
            at = (at + 1) % listen.mean
            sums = history.sum(axis=0)
            above = np.where(sums > self.limit * listen.mean, above + 1, 0)
            cool = max(0, cool - 1)
            ready = np.flatnonzero(above >= listen.consecutive)
            if cool == 0 and len(ready):
                best = ready[np.argmax(sums[ready])]
                found[step] = self.classes[best], sums[best] // listen.mean
                history[:], above[:], cool = 0, 0, listen.cool_off + 1
        return found

    def digest(self, graph: str) -> str:
        """Identifies the network together with its listening settings."""
        return hashlib.sha256(f"{graph} {self.recipe.digest} {self.limit} {self.hop}".encode()).hexdigest()[:16]


def hearing_of(recipe: Recipe, graph: Graph, names: tuple[str, ...] = ()) -> Hearing:
    """`names` are those of the output's classes."""
    tensors = graph.tensors
    if len(graph.inputs) != 1:
        raise _refused(recipe, f"the model has {len(graph.inputs)} inputs.", "Take a model with one.")
    if not graph.outputs:
        raise _refused(recipe, "the model has no output.", "Take a model with one.")
    tensor, output = tensors[graph.inputs[0]], tensors[graph.outputs[0]]
    width, size = recipe.front_end.row[1], prod(tensor.shape)
    shape = tuple(n for n in tensor.shape if n != 1)
    if size % width or (len(shape) > 1 and prod(shape[1:]) != width):
        cause = f"its rows have {width} values, and the model's input has the shape {tuple(tensor.shape)}."
        step = "Rows of features are the first axis, their values the rest: change the features, or the model."
        raise _refused(recipe, cause, step)
    if tensor.dtype not in ("float32", "int8", "int16", "uint8"):
        raise _refused(recipe, f"the model's input is {tensor.dtype}.", "Take a model of floats, int8 or int16.")
    rows, listen = size // width, recipe.listen
    recipe = replace(recipe, rounding=_rounding(recipe, tensor))
    hop = listen.hop or (rows if graph.states else 1)
    if hop > rows and graph.states:
        raise _refused(recipe, f"hop = {hop} passes over rows of a model that takes {rows}.", f"Take hop = {rows}.")
    heard, limit = tuple(_classes(recipe, output, names)), _limit(recipe, output)
    return Hearing(recipe, tensor, output, rows, hop, heard, limit, graph.stream.warm_up if graph.stream else 0)


def _rounding(recipe: Recipe, tensor: Tensor) -> str:
    """The requested rounding, or by default that of programs in the field where the input's scale matches theirs."""
    quant = tensor.quant
    fits = tensor.dtype == "int8" and quant is not None and quant.zero_point == -128
    usual = fits and quant is not None and abs(quant.scale / (recipe.scale * DEVICE_RANGE / 256) - 1) < NEAR
    if recipe.rounding == "device" and quant is not None and not usual:
        cause = f'rounding = "device" gives int8 of zero point -128 and scale {recipe.scale * DEVICE_RANGE / 256:.4f}.'
        raise _refused(recipe, f"{cause} The model's input has others.", 'Take rounding = "nearest".')
    return ("device" if usual else "nearest") if recipe.rounding == "as the model" else recipe.rounding


def _classes(recipe: Recipe, output: Tensor, names: tuple[str, ...]) -> Iterator[int]:
    count, listen = prod(output.shape), recipe.listen
    for each in listen.classes or range(count):
        found = names.index(each) if each in names else each
        if not isinstance(found, int) or not 0 <= found < count:
            cause = f"[listen] classes: {each!r} is not a class of the model, which has {count}."
            raise _refused(recipe, cause, "Give their numbers from 0 on, or names of --labels.")
        yield found


def _limit(recipe: Recipe, output: Tensor) -> int:
    """The cutoff in integers of the output."""
    cutoff = recipe.listen.cutoff
    if output.quant is None:
        return int(np.clip(np.floor(cutoff * 255), 0, 255))
    limits = np.iinfo(output.dtype)
    whole = np.floor(cutoff / output.quant.scale) + output.quant.zero_point
    return int(np.clip(whole, limits.min, limits.max)) - int(limits.min)


def _refused(recipe: Recipe, cause: str, step: str) -> UsageError:
    return UsageError(str(recipe.path), cause, step)
