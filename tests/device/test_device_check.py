"""Every gate of the check: it passes on sound evidence, and one spoilt thing trips exactly its gate."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from check_cases import FLOAT_Y, LABELS, RAW, Y, evidence, float_output, integer_output, layer

from nnbuild.base.errors import UsageError
from nnbuild.device.check import first_wrong, judge
from nnbuild.device.descriptor import ModelInfo, StepInfo, TensorInfo
from nnbuild.device.gates import Evidence, Gates, Stack
from nnbuild.device.layers import LayerCost, compare_layers, layer_costs
from nnbuild.frontend.other_arithmetic import DYNAMIC_RANGE


def other_classes(share: float) -> np.ndarray:
    """Outputs of which a share names another class."""
    changed = FLOAT_Y.copy()
    count = int(len(changed) * share)
    changed[:count] = 1 - changed[:count]
    return changed


def one_integer_off() -> np.ndarray:
    raw = RAW.copy()
    raw[4, 2] += 1
    return raw


def one_value_off() -> np.ndarray:
    values = FLOAT_Y.copy()
    values[7, 1] += 5e-5
    return values


def golden(value: float) -> np.ndarray:
    return (FLOAT_Y * np.float32(value)).astype(np.float32)


SPOILT: list[tuple[str, str, Evidence, Gates]] = [
    ("reference", "1 of 200 integers differ", evidence(integer_output(reference=one_integer_off())), Gates()),
    ("reference", "error against the reference is", evidence(float_output(reference=golden(1.0001))), Gates()),
    ("reference", "error against the reference is", evidence(float_output(reference=one_value_off())), Gates()),
    ("agreement", "top-1 agreement with float is 0.9", evidence(integer_output(float_y=other_classes(0.1))), Gates()),
    ("golden", "error against the golden output", evidence(float_output(golden_y=golden(1.0002))), Gates()),
    ("golden", "TFLite also rounds the inputs", evidence(float_output(golden_y=golden(1.0002), unlike=DYNAMIC_RANGE)),
        Gates()),
    ("golden", "1e-06 allowed there", evidence(float_output(golden_y=golden(1.00001))), Gates(golden_tolerance=1e-6)),
    ("reference", "1e-09 allowed there", evidence(float_output()), Gates(float_tolerance=1e-9)),
    ("reference", "differ from the reference by more than a step, 0 allowed", evidence(integer_output(
        reference=RAW ^ 2, tolerance=np.ones(50))), Gates()),
    ("reference", "1 of 200 numbers differ", evidence(float_output(
        raw=one_value_off(), reference=FLOAT_Y, golden_y=None, tolerance=np.zeros(50))), Gates()),
    (
        "golden",
        "top-1 agreement with the golden",
        evidence(float_output(golden_y=other_classes(0.1), quantized=True, classifier=True)),
        Gates(),
    ),
    ("golden", "top-1 agreement with the golden", evidence(integer_output(golden_y=other_classes(0.1))), Gates()),
    ("golden", "cosine with the golden", evidence(float_output(golden_y=1 - FLOAT_Y, rounded=True)), Gates()),
    ("golden", "1e-06 allowed there", evidence(float_output(golden_y=golden(1.01), rounded=True)),
        Gates(golden_tolerance=1e-6)),
    ("golden", "cosine with the golden", evidence(integer_output(golden_y=1 - FLOAT_Y, classifier=False)), Gates()),
    ("golden", "0.001 allowed there", evidence(
        integer_output(golden_y=other_classes(0.1), own=True)), Gates(golden_tolerance=1e-3)),
    ("rmse", "rmse against float is", evidence(), Gates(max_rmse=1e-6)),
    ("mae", "mae against float is", evidence(), Gates(max_mae=1e-6)),
    ("l2r", "l2r against float is", evidence(), Gates(max_l2r=1e-6)),
    ("nse", "nse against float is", evidence(), Gates(min_nse=0.9999999)),
    ("cosine", "cosine against float is", evidence(), Gates(min_cosine=0.9999999)),
    ("accuracy", "accuracy is 0", evidence(labels=(LABELS + 1) % 4), Gates(min_accuracy=0.9)),
    ("size", "4,096 of 4,096 bytes used", evidence(stack=Stack(4096, 4096)), Gates()),
    ("bound", "1,200 bytes used, static bound 600", evidence(stack=Stack(1200, 4096, 600)), Gates()),
    ("budget", "700 of 699 bytes used by the model, 300 of them for code", evidence(
        memory={"flash_code": 300, "flash_weights": 400}, flash=699), Gates()),
    ("layers", "the first layer that differs from the reference is 'dense' (Dense): 3 of 4", evidence(
        differences=(layer(True, "conv"), layer(False), layer(False, "last"))), Gates()),
    ("present", "there are no samples", evidence(integer_output(
        raw=RAW[:0], y=Y[:0], reference=RAW[:0], float_y=FLOAT_Y[:0], golden_y=None)), Gates()),
    ("compared", "there is nothing to compare with", evidence(integer_output(
        reference=None, float_y=None, golden_y=None)), Gates()),
    ("reference", "error against the reference is inf", evidence(float_output(raw=golden(np.nan))), Gates()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("gate", "detail", "spoilt", "gates"), SPOILT, ids=[f"{case[0]}-{number}" for number, case in enumerate(SPOILT)]
)
def test_each_gate_is_tripped_by_its_own_fault(gate: str, detail: str, spoilt: Evidence, gates: Gates) -> None:
    report = judge(spoilt, gates)
    assert [miss.gate for miss in report.misses] == [gate]
    assert detail in report.misses[0].detail
    assert not report.passed


def test_an_accuracy_drop_trips_its_gate() -> None:
    worse = other_classes(0.02)
    raw = np.clip(np.round(worse * 256) - 128, -128, 127).astype(np.int8)
    spoilt = integer_output(raw=raw, y=(raw.astype(np.float32) + 128) / 256, reference=raw, float_y=FLOAT_Y)
    report = judge(evidence(spoilt, labels=LABELS), Gates(max_accuracy_drop=0.01))
    assert [miss.gate for miss in report.misses] == ["accuracy drop"]
    assert report.misses[0].detail == "accuracy lost against float is 0.02, at most 0.01 allowed"
    assert judge(evidence(spoilt, labels=LABELS), Gates(max_accuracy_drop=0.03)).passed


def test_every_gate_has_a_test_that_trips_it() -> None:
    """A field added to Gates needs a case here."""
    tested = {"integer_mismatches", "float_tolerance", "agreement", "golden_tolerance", "golden_agreement"}
    tested |= {"golden_cosine", "max_rmse", "max_mae", "max_l2r", "min_nse", "min_cosine", "min_accuracy"}
    tested |= {"max_accuracy_drop", "stack_slack"}
    assert {field.name for field in dataclasses.fields(Gates)} == tested


@pytest.mark.parametrize("sound", [evidence(), evidence(float_output()), evidence(integer_output(), float_output())])
def test_sound_evidence_passes(sound: Evidence) -> None:
    report = judge(sound)
    assert report.passed and report.misses == ()
    assert report.samples == 50


@pytest.mark.parametrize(("apart", "said"), [(0.0, False), (0.005, False), (0.05, True)])
def test_golden_outputs_of_another_model_are_recognized(apart: float, said: bool) -> None:
    """A cosine is near 1 wherever outputs have a large mean in common."""
    wanted = FLOAT_Y + 1
    output = integer_output(y=wanted, float_y=wanted, golden_y=wanted + np.float32(2 * apart), classifier=False)
    (result,) = (each for each in judge(evidence(output)).results if each.gate == "golden")
    assert result.passed and ("it were another model's" in result.detail) is said


def test_golden_outputs_of_weights_that_were_rounded_are_those_of_the_whole_weights() -> None:
    assert not judge(evidence(float_output(golden_y=golden(1.01)))).passed
    assert judge(evidence(float_output(golden_y=golden(1.01), rounded=True))).passed


def test_what_a_quantized_file_lost_before_is_told_and_is_no_fault_of_the_program() -> None:
    report = judge(evidence(integer_output(golden_y=other_classes(0.1), float_y=None, own=True)))
    told = next(result for result in report.results if result.gate == "golden")
    assert report.passed
    assert told.detail.startswith(
        "top-1 agreement with the golden output is 0.9 (45 of 50 samples): the file is already quantized"
    )
    assert not judge(evidence(integer_output(golden_y=other_classes(0.1)))).passed
    values = judge(evidence(integer_output(golden_y=1 - FLOAT_Y, float_y=None, classifier=False, own=True)))
    assert values.passed and any("cosine with the golden output is" in result.detail for result in values.results)


def test_defaults_are_the_promised_ones() -> None:
    gates = Gates()
    assert (gates.integer_mismatches, gates.float_tolerance, gates.agreement) == (0, None, 0.98)


def test_the_first_difference_is_named() -> None:
    report = judge(evidence(integer_output(reference=one_integer_off())))
    raw = RAW[4, 2]
    assert report.misses[0].detail == (
        f"1 of 200 integers differ from the reference, 0 allowed; "
        f"the first at sample 4, index [2]: {raw} instead of {raw + 1}"
    )


def test_the_layers_of_the_first_wrong_sample_are_looked_at() -> None:
    gates, loose = Gates(), Gates(float_tolerance=1.0)
    assert first_wrong([integer_output(), float_output()], gates) == 0
    assert first_wrong([integer_output(reference=one_integer_off())], gates) == 4
    assert first_wrong([float_output(reference=one_value_off())], gates) == 7
    both = [float_output(reference=one_value_off()), integer_output(reference=one_integer_off())]
    assert first_wrong(both, loose) == 4
    broken = FLOAT_Y.copy()
    broken[9, 0] = np.nan
    assert first_wrong([float_output(raw=broken)], gates) == 9
    assert first_wrong([integer_output(reference=None)], gates) == 0


def test_figures_of_a_report() -> None:
    report = judge(evidence(labels=LABELS))
    assert report.macs == 50_000
    assert report.duration is not None and report.duration.mean == 100_000
    assert report.cost_per_mac == 2
    output = report.outputs[0]
    assert output.accuracy is not None and output.float_accuracy == 1
    assert output.confusion is not None and sum(map(sum, output.confusion)) == 50
    assert [comparison.against for comparison in output.comparisons] == ["reference", "float", "golden"]


def test_labels_that_do_not_fit_are_told() -> None:
    with pytest.raises(UsageError) as caught:
        judge(evidence(labels=LABELS[:3]))
    assert str(caught.value) == (
        "labels: Labels of shape (3,) do not fit outputs of shape (50,). "
        "Give one class number per sample, or one-hot rows."
    )


MODEL = ModelInfo(
    "m", "0", "1", (), (),
    (
        StepInfo("conv", "Conv2D", "c", 10, TensorInfo("t0", (3,), "int8", 0.1)),
        StepInfo("flat", "Reshape", "none", 0, None),
        StepInfo("act", "Tanh", "c", 0, TensorInfo("t1", (3,), "float32")),
        StepInfo("hidden", "Tanh", "c", 0, TensorInfo("t2", (3,), "float32")),
    ),
    {},
)  # fmt: skip


def test_layers_are_compared_by_tensor_name() -> None:
    found = [
        (0, np.array([1, 2, 3], np.int8)),
        (2, np.array([1, 2, 3], np.float32)),
        (3, np.array([1, 2, 3], np.float32)),
    ]
    reference = {"t0": (np.array([1, 2, 4], np.int8), 0.0), "t1": (np.array([1, 2, 3.00001], np.float32), 1.5e-5)}
    integers, floats = compare_layers(MODEL, found, reference)
    assert not integers.agrees
    assert integers.detail == "1 of 3 integers differ, the first at index [2]: 3 instead of 4"
    assert floats.agrees and floats.layer == "act"
    assert integers.statistics.max == np.float32(0.3) and floats.statistics.max == 3, "in real units"
    (wrong,) = compare_layers(MODEL, [(2, np.array([1, 2, 3.1], np.float32))], reference)
    assert not wrong.agrees and wrong.detail == "largest error 0.09999, 1.5e-05 allowed"
    (other_shape,) = compare_layers(MODEL, [(2, np.zeros(2, np.float32))], reference)
    assert not other_shape.agrees and other_shape.detail == "shape (2,) instead of (3,)"
    step = {"t0": (np.array([1, 2, 4], np.int8), 1.0)}
    assert compare_layers(MODEL, found, step)[0].agrees, "a step is allowed where a float comes before"


def test_a_profile_gets_names() -> None:
    assert layer_costs(MODEL, [5, 6, 7, 8])[0] == LayerCost("conv", "Conv2D", "c", 10, 5)
    with pytest.raises(ValueError, match="shorter"):
        layer_costs(MODEL, [5])


def test_float_outputs_of_a_quantized_model_are_not_held_to_float_precision() -> None:
    """What integers lose lies between the golden outputs and these, whatever the type of the edge."""
    output = float_output(golden_y=golden(1.01), quantized=True)
    assert judge(evidence(output), Gates()).passed


def test_values_that_are_no_numbers_are_told_and_prove_nothing() -> None:
    told = []
    for missing in (1, FLOAT_Y.size):
        y = FLOAT_Y.copy()
        y.reshape(-1)[:missing] = np.nan
        given = dataclasses.replace(float_output(), raw=y, y=y, reference=y, float_y=y, golden_y=None)
        report = judge(dataclasses.replace(evidence(), outputs=(given,), labels=None))
        told.append([(r.passed, r.detail) for r in report.results if r.gate == "numbers"])
    size = FLOAT_Y.size
    assert told == [
        [(n < size, f"{n:,} of {size:,} values are not numbers (NaN), in the reference, too")] for n in (1, size)
    ]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (Gates(min_accuracy=0.1), "the samples have no labels"),
        (Gates(max_accuracy_drop=0.1), "the samples have no labels"),
        (Gates(golden_tolerance=1e-3), "the samples have no golden outputs"),
        (Gates(agreement=0.999), "no output has classes"),
    ],
)
def test_a_gate_that_was_asked_for_needs_evidence(asked: Gates, told: str) -> None:
    plain = dataclasses.replace(float_output(), golden_y=None, classifier=False)
    given = dataclasses.replace(evidence(), outputs=(plain,), labels=None)
    assert judge(given).passed
    report = judge(given, asked)
    assert not report.passed and any(told in result.detail for result in report.results)


def test_an_output_that_never_changes_is_marked() -> None:
    """It agrees with the reference whatever was computed before it."""
    constant = np.repeat(RAW[:1], len(RAW), axis=0)
    first, second = judge(evidence(integer_output(), integer_output(raw=constant, reference=constant))).outputs
    assert (first.same, second.same) == (False, True)
    (one,) = judge(
        evidence(integer_output(raw=RAW[:1], reference=RAW[:1], y=Y[:1], float_y=None, golden_y=None))
    ).outputs
    assert not one.same, "of one sample"
