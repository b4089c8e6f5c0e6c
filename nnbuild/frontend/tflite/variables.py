"""Variables: values that persist between runs, read and assigned by operators and initialized by a first subgraph.

A variable is identified by its container and its shared name. Operators take effect in order: a value already read does
not change when the variable is assigned, and a later read gives the new value. The value at the end of a run is the
graph's state; the subgraph of CALL_ONCE sets the initial state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nnbuild.frontend.assembly import Assembly
from nnbuild.frontend.tflite.call import BATCH_ONE, Call, form
from nnbuild.frontend.tflite.folding import folded
from nnbuild.frontend.tflite.records import CONVERT_AGAIN, Model, Operator, Quantization, Tensor, called_once
from nnbuild.model.graph import Array, Shape

Key = tuple[str, str]
HANDLE, CALL, READ, ASSIGN = "VAR_HANDLE", "CALL_ONCE", "READ_VARIABLE", "ASSIGN_VARIABLE"
KINDS = (CALL, HANDLE, READ, ASSIGN)
SET_FIRST = "Give it a value in the graph that CALL_ONCE calls, or assign it before it is read."
ONE_FORM = "Give the variable one type and one shape in the model, and convert it again."


@dataclass
class _Variable:
    """`before` is the state at the start of a run, `current` its latest value in this run."""

    dtype: str
    shape: Shape
    quantization: Quantization | None = None
    initial: Array | None = None
    before: str | None = None
    current: str | None = None


class Variables:
    """The variables of one model, while its operators are read in order."""

    def __init__(self, assembly: Assembly, model: Model) -> None:
        self._assembly = assembly
        self._once = model.once
        self._called: set[int] = set()
        self._held: dict[Key, _Variable] = {}
        self._handles = _handles(model)
        self._assigned = {self._handles.get(_index(each)) for each in model.operators if each.kind == ASSIGN}

    def take(self, call: Call) -> None:
        """Applies one operator that works on variables."""
        call.expect(call.batch == 1, "its variables belong to several samples.", BATCH_ONE)
        {HANDLE: _nothing, CALL: self._begin, READ: self._read, ASSIGN: self._assign}[call.operator.kind](call)

    def finish(self) -> None:
        for variable in self._held.values():
            if variable.before is not None:
                self._assembly.keep(variable.before, variable.current or variable.before)

    def _key(self, call: Call) -> Key:
        key = self._handles.get(_index(call.operator))
        if key is None:
            raise call.error("its variable is unknown: its handle does not come from VAR_HANDLE.")
        return key

    def _begin(self, call: Call) -> None:
        """Applies a subgraph's effects, once however many operators call it."""
        number = called_once(call.operator)
        if number is None or number not in self._once:
            raise call.error("it does not name the subgraph that it calls.")
        if number in self._called:
            return
        self._called.add(number)
        graph, found = self._once[number], dict[int, Tensor]()
        handles = _handles(graph)
        for operator in graph.operators:
            if operator.kind == HANDLE:
                continue
            inner = Call(self._assembly, operator, {}, found, 1)
            if operator.kind == ASSIGN:
                key = handles.get(_index(operator))
                inner.expect(key is not None and inner.is_constant(1), "it assigns a value that is not a constant.")
                assert key is not None
                self._set(inner, key)
            elif not folded(inner):
                raise inner.error(
                    f"nnbuild reads subgraph {number}, which CALL_ONCE calls before the first run, only where it "
                    "assigns constants.",
                    "Give the variables constants as initial values, and convert the model again.",
                )

    def _set(self, call: Call, key: Key) -> None:
        variable = self._formed(call, key)
        if variable.before is not None or variable.current is not None:
            raise call.error(
                f"the variable {_shown(key)} is read or assigned before CALL_ONCE sets it, so its first run differs "
                "from all others.",
                "Move CALL_ONCE first.",
            )
        variable.initial = call.stored(1).values().reshape(variable.shape)

    def _formed(self, call: Call, key: Key) -> _Variable:
        """The variable, checked against the type and shape of the assigned value."""
        stored = call.stored(1)
        variable = self._held.setdefault(key, _Variable(stored.dtype, stored.shape))
        if (stored.dtype, stored.shape) != (variable.dtype, variable.shape):
            raise call.error(
                f"the variable {_shown(key)} is assigned {stored.dtype} {list(stored.shape)} here, and elsewhere "
                f"{variable.dtype} {list(variable.shape)}.",
                ONE_FORM,
            )
        return variable

    def _assign(self, call: Call) -> None:
        key = self._key(call)
        name = call.value(1)
        variable = self._formed(call, key)
        self._scaled(call, key, variable, call.stored(1))
        variable.current = name

    def _read(self, call: Call) -> None:
        key, out = self._key(call), call.output()
        variable = self._held.get(key)
        if variable is None or (variable.current is None and variable.initial is None):
            raise call.error(f"the variable {_shown(key)} is read before it is assigned.", SET_FIRST)
        known = out.shape and not out.open
        if out.dtype != variable.dtype or (known and out.shape != variable.shape):
            raise call.error(
                f"the variable {_shown(key)} is read as {out.dtype} {list(out.shape)}, but is {variable.dtype} "
                f"{list(variable.shape)}.",
                ONE_FORM,
            )
        out = replace(out, shape=variable.shape, open=())
        self._scaled(call, key, variable, out)
        if variable.current is None and variable.initial is not None:
            if key not in self._assigned:
                call.fold(variable.initial, quantization=out.quantization)
                return
            like = form(out, 1)
            variable.before = self._assembly.state(like, variable.initial.astype(like.dtype).reshape(like.shape))
            variable.current = variable.before
        assert variable.current is not None
        call.passes(variable.current, out)

    def _scaled(self, call: Call, key: Key, variable: _Variable, stored: Tensor) -> None:
        """A variable stores integers: their scale must be the same at every use."""
        known = variable.quantization
        if known is not None and stored.quantization != known:
            raise call.error(
                f"the variable {_shown(key)} has different scales or zero points in the model.",
                CONVERT_AGAIN,
            )
        variable.quantization = stored.quantization


def _nothing(call: Call) -> None:
    """A handle is identified by its tensor, which was looked up beforehand."""


def _handles(model: Model) -> dict[int, Key]:
    """The variable of each handle, by the number of the handle's tensor."""
    return {each.outputs[0].index: _key_of(each) for each in model.operators if each.kind == HANDLE and each.outputs}


def _key_of(operator: Operator) -> Key:
    options = operator.options if operator.options_kind == "VarHandleOptions" else None
    if options is None:
        return "", ""
    return _text(options.Container()), _text(options.SharedName())


def _text(raw: bytes | None) -> str:
    return (raw or b"")[:1000].decode("utf-8", "backslashreplace")


def _index(operator: Operator) -> int:
    first = operator.inputs[0] if operator.inputs else None
    return first.index if first is not None else -1


def _shown(key: Key) -> str:
    container, name = (ascii(part)[1:-1][:80] for part in key)
    return f"'{container}/{name}'" if container else f"'{name}'"
