"""Devices beside the processor: what they are asked to do."""
