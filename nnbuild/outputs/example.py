"""Example programs: they run the model on the sample beside them and print the answer."""

from __future__ import annotations

from math import prod

from nnbuild.emit.artifact import Artifact
from nnbuild.model.graph import Graph
from nnbuild.ops.convert import Convert
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.softmax import Softmax
from nnbuild.plan.plan import Plan

BEST = """\
    for (int i = 1; i < @U_OUTPUT0_SIZE; ++i) {
        best = answer[i] > answer[best] ? i : best;
    }
"""
ANSWERS = {
    "class": f"""\
    int best = 0;
{BEST}    printf("It is: %s (%g)\\n", @_class((unsigned)best), (double)answer[best]);
""",
    "number": f"""\
    int best = 0;
{BEST}    printf("output %d of %d is the largest (%g)\\n", best, @U_OUTPUT0_SIZE, (double)answer[best]);
""",
    "values": """\
    for (int i = 0; i < @U_OUTPUT0_SIZE; ++i) {
        printf("output %d: %g\\n", i, (double)answer[i]);
    }
""",
}
SKETCH_ANSWERS = {
    "class": f"""\
    int best = 0;
{BEST}    Serial.print("It is: ");
    Serial.print(@_class((unsigned)best));
    Serial.print(", score ");
    Serial.println(answer[best], 4);
""",
    "number": f"""\
    int best = 0;
{BEST}    Serial.print("The largest is output ");
    Serial.print(best);
    Serial.print(", score ");
    Serial.println(answer[best], 4);
""",
    "values": """\
    for (int i = 0; i < @U_OUTPUT0_SIZE; ++i) {
        Serial.println(answer[i], 4);
    }
""",
}
PRINTED = {
    "class": "It is: .+",
    "number": "output [0-9]+ of [0-9]+ is the largest",
    "values": "output [0-9]+: .+",
}
"""What a test of the example waits for."""


def example(plan: Plan, artifact: Artifact) -> dict[str, str]:
    """Values of the placeholders of a C example and of a sketch."""
    p, kind, inputs = plan.prefix, meaning(plan, artifact), range(len(plan.graph.inputs))
    answer, sketch = (texts[kind].replace("@U", p.upper()).replace("@", p) for texts in (ANSWERS, SKETCH_ANSWERS))
    given = [f"    {p}_quantize_input(&model, {i}, sample{i});\n" for i in inputs]
    return {
        "SET_INPUTS": "".join(given),
        "SET_SKETCH_INPUTS": "".join(given).replace("    ", "  "),
        "OWN_SAMPLES": "".join(f"static float sample{i}[{p.upper()}_INPUT{i}_SIZE]; /* your data */\n" for i in inputs),
        "ANSWER": answer,
        "SKETCH_ANSWER": sketch.replace("    ", "  "),
        "PRINTED": PRINTED[kind],
    }


def meaning(plan: Plan, artifact: Artifact) -> str:
    """Whether the first output is a named class, a numbered class, or plain values."""
    shape = plan.tensor(plan.graph.outputs[0]).shape
    if prod(shape) == 1:
        return "values"
    if f"#define {plan.prefix.upper()}_CLASSES ".encode() in artifact.files[f"{plan.prefix}.h"]:
        return "class"
    return "number" if prod(shape) == shape[-1] and _ends_in_softmax(plan.graph) else "values"


def _ends_in_softmax(graph: Graph) -> bool:
    """Whether the output is a softmax, possibly converted or reshaped."""
    makers = {name: op for op in graph.ops for name in op.outputs}
    op = makers.get(graph.outputs[0])
    while op is not None and isinstance(op.attributes, Convert | Reshape):
        op = makers.get(op.inputs[0])
    return op is not None and isinstance(op.attributes, Softmax)
