"""The reports as JSON: one object, with every figure of the text report and more."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from nnbuild.device.gates import CheckReport
from nnbuild.device.layers import LayerCost, shares
from nnbuild.device.profile import Profile
from nnbuild.device.run_time import time_of


def as_object(report: CheckReport) -> dict[str, Any]:
    """The report as plain values; non-finite numbers become null."""
    facts: dict[str, Any] = {
        "verdict": "pass" if report.passed else "fail",
        **asdict(report),
        "layers": layer_rows(report.layers),
        "misses": [asdict(miss) for miss in report.misses],
        "total": report.duration.mean if report.duration is not None else None,
        "cost_per_mac": report.cost_per_mac,
        **_time(report),
    }
    plain: dict[str, Any] = _plain(facts)
    return plain


def profile_object(profile: Profile) -> dict[str, Any]:
    """A profile as plain values."""
    facts: dict[str, Any] = {
        **asdict(profile),
        "total": profile.total,
        "macs": profile.macs,
        "cost_per_mac": profile.cost_per_mac,
        "layers": layer_rows(profile.layers),
        **_time(profile),
    }
    plain: dict[str, Any] = _plain(facts)
    return plain


def _time(report: CheckReport | Profile) -> dict[str, Any]:
    """Milliseconds of one run, and whether measured or estimated."""
    mean = report.duration.mean if report.duration is not None else None
    time = time_of(report.unit, mean, report.hertz, report.modelled)
    return {"milliseconds": time and time.milliseconds, "milliseconds_are": time and time.kind}


def layer_rows(layers: Sequence[LayerCost]) -> list[dict[str, Any]]:
    """The cost of each layer, with its share and the running sum."""
    return [
        {**asdict(layer), "cost_per_mac": layer.cost_per_mac, "percent": percent, "percent_so_far": so_far}
        for layer, (percent, so_far) in zip(layers, shares(layers), strict=True)
    ]


def to_json(report: CheckReport) -> str:
    return json.dumps(as_object(report), indent=2, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
