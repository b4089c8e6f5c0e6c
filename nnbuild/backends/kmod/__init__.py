"""Kernel modules: the files around a model, kernel packages, building, and booting."""

COMMANDS = {"module": ("build the kernel module of a generated folder", "nnbuild.backends.kmod.command")}
