"""The check: compares a device's outputs with the expected ones and gives a verdict.

`judge` is a pure function from evidence and gates to a report; it knows no board, no transport and no file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.device.gates import (
    Array,
    CheckReport,
    Comparison,
    Evidence,
    GateResult,
    Gates,
    Output,
    OutputReport,
    Stack,
)
from nnbuild.device.layers import LayerDifference, steps
from nnbuild.device.metrics import (
    accuracy,
    agreement,
    compare,
    confusion_matrix,
    fewest,
    statistics,
)
from nnbuild.numeric.nearness import along_samples, lost_values, near, values_of
from nnbuild.numeric.reach import cut_outputs

FAR_GOLDEN = 1 / 100
"""From golden outputs to the float model's, as a share of the largest: more than frameworks differ by."""


def first_wrong(outputs: Sequence[Output], gates: Gates) -> int:
    """The first sample with an output that differs from the reference, whose layers are worth comparing; 0 if all
    are right."""
    wrong: list[int] = []
    for output in outputs:
        found, wanted = output.raw, output.reference
        if wanted is None or found.shape != wanted.shape or not found.size:
            continue
        right = near(wanted, found, _allowed(output, gates))
        places = np.flatnonzero(~right.reshape(len(found), -1).all(axis=1))
        wrong += places[:1].tolist()
    return min(wrong, default=0)


def _allowed(output: Output, gates: Gates) -> Array | float:
    """The device's tolerance against the reference, in the units of raw."""
    given = None if output.raw.dtype.kind in "iu" else gates.float_tolerance
    return output.tolerance if given is None else given


def _slack(output: Output) -> Array | float:
    """The difference below which two values may swap order: each may be off in its own direction."""
    return np.asarray(output.tolerance) * (2 * output.step)


def judge(evidence: Evidence, gates: Gates | None = None) -> CheckReport:
    """Applies the gates to the evidence."""
    gates = gates or Gates()
    samples = min((len(output.raw) for output in evidence.outputs), default=0)
    results = [_samples_gate(samples, evidence)]
    labelled = next((output for output in evidence.outputs if output.classifier), next(iter(evidence.outputs), None))
    reports = []
    for output in evidence.outputs:
        report = _report_output(output, evidence.labels if output is labelled else None)
        results += [*_output_gates(output, report, gates), *_no_numbers(output)]
        reports.append(report)
    results += _without_evidence(evidence, gates)
    results += _layer_gates(evidence.differences)
    if evidence.stack is not None:
        results += _stack_gates(evidence.stack, gates)
    results += _flash_gates(evidence)
    return CheckReport(
        model=evidence.model,
        model_hash=evidence.model_hash,
        board=evidence.board,
        quantize=evidence.quantize,
        unit=evidence.unit,
        hertz=evidence.hertz,
        samples=samples,
        outputs=tuple(reports),
        duration=statistics(np.array(evidence.ticks)) if len(evidence.ticks) else None,
        init_ticks=evidence.init_ticks,
        macs=sum(layer.macs for layer in evidence.layers),
        stack=evidence.stack,
        layers=tuple(evidence.layers),
        differences=tuple(evidence.differences),
        looked_at=evidence.looked_at,
        memory=dict(evidence.memory),
        results=tuple(results),
    )


def _no_numbers(output: Output) -> Iterator[GateResult]:
    """Says so where values are NaN, which equal the reference's NaN; where all are, nothing was compared."""
    missing = int(np.isnan(output.y).sum())
    if missing:
        detail = f"{missing:,} of {output.y.size:,} values are not numbers (NaN), in the reference, too"
        yield GateResult(f"output '{output.name}'", "numbers", missing < output.y.size, detail)


def _without_evidence(evidence: Evidence, gates: Gates) -> Iterator[GateResult]:
    """Fails gates that were asked for and that the samples have nothing for."""
    if evidence.labels is None and (gates.min_accuracy, gates.max_accuracy_drop) != (None, None):
        yield GateResult("samples", "accuracy", False, "accuracy was asked for, and the samples have no labels")
    if gates.golden_tolerance is not None and all(output.golden_y is None for output in evidence.outputs):
        yield GateResult("samples", "golden", False, "a tolerance was given, and the samples have no golden outputs")
    if gates.agreement > Gates.agreement and not any(output.classifier for output in evidence.outputs):
        detail = "agreement was asked for, and no output has classes to compare (generated samples have none)"
        yield GateResult("samples", "agreement", False, detail)


def _samples_gate(samples: int, evidence: Evidence) -> GateResult:
    """Fails without samples, or without anything to compare them with."""
    known = ((output.reference, output.float_y, output.golden_y) for output in evidence.outputs)
    standards = [standard for each in known for standard in each if standard is not None]
    if samples == 0:
        return GateResult("samples", "present", False, "there are no samples: nothing was checked")
    if not standards:
        return GateResult("samples", "compared", False, "there is nothing to compare with: nothing was checked")
    return GateResult("samples", "present", True, f"{samples} samples")


def _report_output(output: Output, labels: Array | None) -> OutputReport:
    comparisons = []
    if output.reference is not None:
        differ = int(np.count_nonzero(output.reference != output.raw)) if output.raw.dtype.kind in "iu" else None
        same = agreement(output.reference, output.raw, 2 * np.asarray(output.tolerance)) if output.classifier else None
        comparisons.append(Comparison("reference", compare(output.reference, output.raw), differ, same))
    for against, standard in (("float", output.float_y), ("golden", output.golden_y)):
        if standard is not None:
            same = agreement(standard, output.y, _slack(output)) if output.classifier else None
            comparisons.append(Comparison(against, compare(standard, output.y), None, same))
    same = len(output.raw) > 1 and bool((output.raw == output.raw[:1]).all())
    plain = OutputReport(output.name, tuple(comparisons), statistics(output.y), values=values_of(output.y), same=same)
    if output.quantized and not (output.own or output.classifier) and output.float_y is not None:
        cut = cut_outputs(output.float_y, output.y, output.raw, output.step)
        plain = replace(plain, lost=lost_values(output.float_y, output.y), cut=cut)
    if labels is None:
        return plain
    try:
        matrix = confusion_matrix(labels, output.y)
    except ValueError as error:
        cause = f"{str(error)[0].upper()}{str(error)[1:]}."
        raise UsageError("labels", cause, "Give one class number per sample, or one-hot rows.") from None
    before = accuracy(labels, output.float_y) if output.float_y is not None else None
    counts = tuple(tuple(map(int, row)) for row in matrix)
    return replace(plain, accuracy=accuracy(labels, output.y), float_accuracy=before, confusion=counts)


def _output_gates(output: Output, report: OutputReport, gates: Gates) -> list[GateResult]:
    where = f"output '{output.name}'"
    results: list[GateResult] = []
    for comparison in report.comparisons:
        if comparison.against == "reference":
            results.append(_reference_gate(where, output, gates))
        elif comparison.against == "float":
            results += _float_gates(where, output, comparison, gates)
        else:
            results.append(_golden_gate(where, output, comparison, gates))
    return results + _accuracy_gates(where, report, gates)


def _reference_gate(where: str, output: Output, gates: Gates) -> GateResult:
    assert output.reference is not None
    allowed = _allowed(output, gates)
    if output.raw.dtype.kind not in "iu" and np.any(allowed):
        return _within(where, "reference", "the reference", output.reference, output.raw, allowed)
    right = near(output.reference, output.raw, allowed)
    count, total = int(np.count_nonzero(~right)), output.raw.size
    unit = "integers" if output.raw.dtype.kind in "iu" else "numbers"
    most = steps(float(np.max(allowed)))
    more = f" by more than {most}" if np.min(allowed) > 0 else f" by more than their sample allows (up to {most})"
    more = more if np.any(allowed) else ""
    limit = gates.integer_mismatches if unit == "integers" else 0
    detail = f"{count} of {total} {unit} differ from the reference{more}, {limit} allowed"
    if count:
        place = tuple(int(index) for index in np.argwhere(~right)[0])
        given, wanted = output.raw[place], output.reference[place]
        detail += f"; the first at sample {place[0]}, index {list(place[1:])}: {given} instead of {wanted}"
    return GateResult(where, "reference", count <= limit, detail)


def _within(where: str, gate: str, what: str, wanted: Array, found: Array, allowed: Array | float) -> GateResult:
    """Reports the value that is worst relative to its tolerance."""
    if not found.size:
        return GateResult(where, gate, True, f"there are no values to compare with {what}")
    right = near(wanted, found, allowed)
    limits = np.broadcast_to(along_samples(np.asarray(allowed, np.float64), found.ndim), found.shape)
    with np.errstate(all="ignore"):
        error = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
        error = np.where(np.isfinite(error), error, np.where(right, 0.0, np.inf))
        share = np.where(error > 0, error / limits, 0.0)
    worst = np.unravel_index(int(np.argmax(share)), share.shape)
    largest, limit = error[worst], limits[worst]
    detail = f"error against {what} is {largest:.4g} at sample {int(worst[0])}, {limit:.4g} allowed there"
    return GateResult(where, gate, bool(right.all()), detail)


def _float_gates(where: str, output: Output, comparison: Comparison, gates: Gates) -> list[GateResult]:
    results = []
    if comparison.agreement is not None:
        results.append(_agreeing(where, "agreement", "float", output, comparison.agreement, gates.agreement))
    for name, limit in (("rmse", gates.max_rmse), ("mae", gates.max_mae), ("l2r", gates.max_l2r)):
        if limit is not None:
            results.append(_at_most(where, name, f"{name} against float", getattr(comparison.metrics, name), limit))
    for name, limit in (("nse", gates.min_nse), ("cosine", gates.min_cosine)):
        if limit is not None:
            results.append(_at_least(where, name, f"{name} against float", getattr(comparison.metrics, name), limit))
    return results


def _golden_gate(where: str, output: Output, comparison: Comparison, gates: Gates) -> GateResult:
    result = _compared_with_golden(where, output, comparison, gates)
    explained = output.unlike and gates.golden_tolerance is None and not result.passed
    return replace(result, detail=f"{result.detail}. {output.unlike}") if explained else result


def _compared_with_golden(where: str, output: Output, comparison: Comparison, gates: Gates) -> GateResult:
    """Golden outputs of a float model are also rounded, in other steps, so the tolerance doubles, and perhaps to steps
    of their own. Where weights were rounded, they are those of the weights before."""
    assert output.golden_y is not None
    given = gates.golden_tolerance
    if given is not None or not (output.raw.dtype.kind in "iu" or output.quantized or output.rounded):
        allowed = 2 * (np.asarray(output.tolerance) + output.golden_unit) if given is None else given
        return _within(where, "golden", "the golden output", output.golden_y, output.y, allowed)
    if output.own and output.reference is not None:
        return _told(where, output, comparison)
    if comparison.agreement is not None:
        same = comparison.agreement
        result = _agreeing(where, "golden", "the golden output", output, same, gates.golden_agreement)
    else:
        found = comparison.metrics.cosine
        result = _at_least(where, "golden", "cosine with the golden output", found, gates.golden_cosine)
    return replace(result, detail=result.detail + _of_another_model(output))


def _of_another_model(output: Output) -> str:
    """Integers explain why a program differs from golden outputs, but not why the float model does."""
    if output.float_y is None or output.golden_y is None or not output.golden_y.size:
        return ""
    with np.errstate(all="ignore"):
        away = np.nanmax(np.abs(output.float_y.astype(np.float64) - output.golden_y))
        share = away / np.nanmax(np.abs(output.golden_y))
    if not share > FAR_GOLDEN:
        return ""
    return f"; but the float model is up to {away:.3g} from it, as if it were another model's or of other samples"


def _told(where: str, output: Output, comparison: Comparison) -> GateResult:
    """A file that was already quantized is compared only with its own integers."""
    found, what = comparison.metrics.cosine, "cosine"
    if comparison.agreement is not None:
        found, what = comparison.agreement, "top-1 agreement"
    detail = f"{what} with the golden output is {found:.4g}"
    if comparison.agreement is not None and found < 1:
        count = math.prod(output.y.shape[:-1])
        detail += f" ({round(found * count)} of {count} samples)"
    detail += ": the file is already quantized; this is the accuracy of its integers"
    return GateResult(where, "golden", True, detail)


def _accuracy_gates(where: str, report: OutputReport, gates: Gates) -> list[GateResult]:
    results = []
    if report.accuracy is not None and gates.min_accuracy is not None:
        results.append(_at_least(where, "accuracy", "accuracy", report.accuracy, gates.min_accuracy))
    if report.accuracy is not None and report.float_accuracy is not None and gates.max_accuracy_drop is not None:
        drop = report.float_accuracy - report.accuracy
        results.append(_at_most(where, "accuracy drop", "accuracy lost against float", drop, gates.max_accuracy_drop))
    return results


def _layer_gates(differences: Sequence[LayerDifference]) -> list[GateResult]:
    """One result for all layers: after the first layer that differs, the others follow from it."""
    if not differences:
        return []
    wrong = next((layer for layer in differences if not layer.agrees), None)
    if wrong is None:
        return [GateResult("layers", "layers", True, f"all {len(differences)} layers agree with the reference")]
    detail = f"the first layer that differs from the reference is '{wrong.layer}' ({wrong.op}): {wrong.detail}"
    return [GateResult("layers", "layers", False, detail)]


def _stack_gates(stack: Stack, gates: Gates) -> list[GateResult]:
    results = []
    if stack.size:
        detail = f"{stack.used:,} of {stack.size:,} bytes used"
        results.append(GateResult("stack", "size", stack.used < stack.size, detail))
    if stack.bound is not None and stack.size:
        limit = stack.bound + gates.stack_slack
        detail = f"{stack.used:,} bytes used, static bound {stack.bound:,} and {gates.stack_slack:,} for the link"
        results.append(GateResult("stack", "bound", stack.used <= limit, detail))
    return results


def _flash_gates(evidence: Evidence) -> list[GateResult]:
    """The built size against the budget: the search had only estimates of the code's size."""
    if evidence.flash is None or "flash_code" not in evidence.memory:
        return []
    code, weights = evidence.memory["flash_code"], evidence.memory["flash_weights"]
    detail = f"{code + weights:,} of {evidence.flash:,} bytes used by the model, {code:,} of them for code"
    return [GateResult("flash", "budget", code + weights <= evidence.flash, detail)]


def _agreeing(where: str, gate: str, what: str, output: Output, found: float, share: float) -> GateResult:
    count = math.prod(output.y.shape[:-1])
    wanted = fewest(count, share)
    detail = (
        f"top-1 agreement with {what} is {found:.4g}, at least {share:g} wanted: {wanted} of {count} samples are enough"
    )
    return GateResult(where, gate, round(found * count) >= wanted, detail)


def _at_most(where: str, gate: str, what: str, found: float, limit: float) -> GateResult:
    return GateResult(where, gate, found <= limit, f"{what} is {found:.4g}, at most {limit:g} allowed")


def _at_least(where: str, gate: str, what: str, found: float, limit: float) -> GateResult:
    return GateResult(where, gate, found >= limit, f"{what} is {found:.4g}, at least {limit:g} wanted")
