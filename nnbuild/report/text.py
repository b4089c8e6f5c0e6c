"""Text reports: comparisons, costs of layers, and a check's verdict in the last lines."""

from __future__ import annotations

from collections.abc import Sequence

from nnbuild.device.accelerator import AcceleratorUse, layer_cells, use_lines
from nnbuild.device.gates import CheckReport, Comparison, OutputReport
from nnbuild.device.layers import LayerCost, LayerDifference, shares
from nnbuild.device.profile import Profile
from nnbuild.report.table import render

_WIDEST_CONFUSION = 20  # classes; a larger matrix is only in the JSON report


def to_text(report: CheckReport) -> str:
    """The whole report."""
    title = f"check of {report.model} ({report.model_hash[:12]}) on {report.board}, {report.quantize}"
    parts = [title, *(_output_part(output) for output in report.outputs)]
    if report.differences:
        parts.append(f"layers of sample {report.looked_at}\n{_difference_table(report.differences)}")
    if report.layers:
        parts.append(layer_table(report.layers, report.unit))
    figures = _figures(report)
    if figures:
        parts.append("\n".join(figures))
    parts.append(_verdict(report))
    return "\n\n".join(parts) + "\n"


def layer_table(layers: Sequence[LayerCost], unit: str) -> str:
    """The cost of every layer, with its share and the running sum."""
    rows = []
    for layer, (percent, so_far) in zip(layers, shares(layers), strict=True):
        cost = [f"{layer.macs:,}" if layer.macs else "", f"{layer.cost:,}"]
        per_mac = _per_mac(layer.cost, layer.macs)
        rows.append([layer.name, layer.op, layer.kernel, *cost, f"{percent:.1f}", f"{so_far:.1f}", per_mac])
    total = sum(layer.cost for layer in layers)
    macs = sum(layer.macs for layer in layers)
    foot = ["total", "", "", f"{macs:,}", f"{total:,}", "", "", _per_mac(total, macs)]
    return render(["layer", "op", "kernel", "MACs", unit, "%", "sum %", "per MAC"], rows, 3, foot)


def _per_mac(cost: int, macs: int) -> str:
    return f"{cost / macs:.2f}" if macs else ""


def _output_part(output: OutputReport) -> str:
    heads = [f"output {output.name}", "differ", "rmse", "mae", "l2r", "mean", "std", "nse", "cosine", "max", "top-1"]
    lines = [render(heads, [_comparison_row(comparison) for comparison in output.comparisons], 1)]
    if output.accuracy is not None:
        against = f", float model {output.float_accuracy:.2%}" if output.float_accuracy is not None else ""
        lines.append(f"accuracy {output.accuracy:.2%}{against}")
    if output.confusion is not None and len(output.confusion) <= _WIDEST_CONFUSION:
        lines.append(_confusion_table(output.confusion))
    return "\n".join(lines)


def _comparison_row(comparison: Comparison) -> list[str]:
    metrics = comparison.metrics
    numbers = [metrics.rmse, metrics.mae, metrics.l2r, metrics.mean, metrics.std]
    unit = ", in integers" if comparison.mismatches is not None else ""
    return [
        f"against {comparison.against}{unit}",
        str(comparison.mismatches) if comparison.mismatches is not None else "",
        *(_short(number) for number in numbers),
        *(f"{number:.5f}" for number in (metrics.nse, metrics.cosine)),
        _short(metrics.max_error),
        f"{comparison.agreement:.2%}" if comparison.agreement is not None else "",
    ]


def _short(number: float) -> str:
    return "0" if number == 0 else f"{number:.2e}"


def _confusion_table(matrix: Sequence[Sequence[int]]) -> str:
    heads = ["label \\ class", *(str(index) for index in range(len(matrix)))]
    rows = [[str(index), *(str(count) if count else "." for count in row)] for index, row in enumerate(matrix)]
    return render(heads, rows, 1)


def _difference_table(differences: Sequence[LayerDifference]) -> str:
    rows = []
    for layer in differences:
        values = layer.statistics
        numbers = [f"{number:.4g}" for number in (values.min, values.max, values.mean, values.std)]
        verdict = "agrees" if layer.agrees else f"DIFFERS: {layer.detail}"
        rows.append([layer.layer, layer.op, verdict, *numbers])
    return render(["layer", "op", "against reference", "min", "max", "mean", "std"], rows, 3)


def profile_text(profile: Profile) -> str:
    figures = [*_figures(profile), *_cores(profile)]
    parts = [layer_table(profile.layers, profile.unit)]
    parts += [_device_table(profile.beside)] if profile.beside is not None and profile.beside.layers else []
    return "\n\n".join([*parts, "\n".join(figures)]) + "\n"


def _device_table(found: AcceleratorUse) -> str:
    """The accelerator's cost of each layer, by its own table."""
    table = render([f"layers of {found.name}", "tasks", "cycles", "use", "bytes copied"], layer_cells(found), 1)
    return "\n".join([table, *(f"{layer}: not on the device, {reason}" for layer, reason in found.refused)])


def _cores(profile: Profile) -> list[str]:
    """Each core's share of a run, and the plan's estimate."""
    lines = []
    if profile.critical_path is not None:
        each = ", ".join(f"{own:,}" for own in profile.cores)
        lines.append(f"cores      {each} {profile.unit}; {profile.critical_path:,} in the slowest core of each step")
    if any(profile.copying):
        lines.append(f"copying    {', '.join(f'{own:,}' for own in profile.copying)} of that")
    if profile.estimate is not None:
        found = profile.estimate
        each = ", ".join(f"{own:,.0f}" for own in found.cores)
        copies = f" and {found.copies:,.0f} for copies" if found.copies else ""
        lines.append(
            f"estimated  {each} cycles; {found.critical_path:,.0f} with {found.forks:,.0f} to distribute work{copies}"
        )
    return lines


def _figures(report: CheckReport | Profile) -> list[str]:
    lines = []
    time = report.duration
    if time is not None:
        spread = f"min {time.min:,.0f}, max {time.max:,.0f}, std {time.std:,.1f}"
        emulated = "emulated; " if report.unit == "instructions" else ""
        lines.append(f"one run    {time.mean:,.0f} {report.unit} ({emulated}{spread}){_in_time(time.mean, report)}")
    lines += _modelled(report)
    lines += use_lines(report.beside) if report.beside is not None else []
    if report.cost_per_mac is not None:
        lines.append(f"per MAC    {report.cost_per_mac:.2f} {report.unit} ({report.macs:,} MACs)")
    if report.init_ticks is not None:
        lines.append(f"start      {report.init_ticks:,} {report.unit}")
    if report.stack is not None and report.stack.size:
        bound = f", static bound of a run {report.stack.bound:,}" if report.stack.bound is not None else ""
        lines.append(f"stack      {report.stack.used:,} of {report.stack.size:,} bytes used, including the link{bound}")
    if report.memory:
        lines.append("memory     " + ", ".join(f"{name} {size:,}" for name, size in report.memory.items()) + " bytes")
    return lines


def _modelled(report: CheckReport | Profile) -> list[str]:
    """The estimated time, and a note where a device measured otherwise."""
    found, time = report.modelled, report.duration
    if found is None:
        return []
    if found.at_least:
        return [f"estimated  {found.milliseconds()}"]
    lines = [f"estimated  {found.cycles:,} cycles of a {found.core} = {found.milliseconds()}"]
    said = found.against(time.mean) if time is not None and report.unit == "cycles" else ""
    return [*lines, f"           {said}"] if said else lines


def _in_time(ticks: float, report: CheckReport | Profile) -> str:
    """An emulator's instructions are not time; cycles and nanoseconds are."""
    if report.unit == "instructions" or not report.hertz:
        return ""
    seconds = ticks / report.hertz
    time = f"{seconds * 1e3:,.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.1f} µs"
    return f" = {time}" + (f" at {report.hertz / 1e6:g} MHz" if report.unit == "cycles" else "")


def _verdict(report: CheckReport) -> str:
    """Every gate with its limit, then the overall result."""
    gates = [f"{'passed' if gate.passed else 'missed'}  {gate.where}: {gate.detail}" for gate in report.results]
    total = f"{len(report.results)} gate{'s' * (len(report.results) != 1)}"
    if report.passed:
        return "\n".join([*gates, "", f"PASS: {report.samples} samples, {total}"])
    missed = [f"  {miss.where}: {miss.detail}" for miss in report.misses]
    return "\n".join([*gates, "", f"FAIL: {len(missed)} of {total} missed", *missed])
