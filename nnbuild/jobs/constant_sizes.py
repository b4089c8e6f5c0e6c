"""Compares the stored constants of every step with its parameters."""

from __future__ import annotations

from nnbuild.model.graph import Constant
from nnbuild.plan.plan import Plan, Step
from nnbuild.report.constant_sizes import MUCH, ConstantSizes


def constant_sizes(plan: Plan) -> tuple[ConstantSizes, ...]:
    return tuple(_stored(step) for step in plan.steps)


def _stored(step: Step) -> ConstantSizes:
    sites = (step.site, *step.site.tail)
    parameters = sum(_bytes(constant) for site in sites for constant in site.constants.values())
    taken = step.choice.price
    others = [offer for offer in step.choice.offers if offer.price.weights < taken.weights]
    within = [offer for offer in others if offer.price.weights <= MUCH * parameters]
    instead = min(within, key=lambda offer: offer.price.cycles, default=None) or min(
        others, key=lambda offer: (offer.price.weights, offer.price.cycles), default=None
    )
    name, gained = (instead.kernel.name, instead.price.cycles - taken.cycles) if instead else ("", 0.0)
    return ConstantSizes(step.layer, step.kernel_name, parameters, taken.weights, name, gained)


def _bytes(constant: Constant) -> int:
    """Bytes of a constant, with one float per weight channel for its scale, as in model files; scales of biases
    follow from these."""
    scaled = constant.quant is not None and constant.quant.axis is not None and constant.data.dtype.itemsize < 4
    return constant.data.nbytes + (4 * len(constant.quant.scales) if constant.quant is not None and scaled else 0)
