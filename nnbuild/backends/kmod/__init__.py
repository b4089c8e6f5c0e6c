"""Kernel modules: what is printed around a model, where kernels come from, building for them, and booting them."""

COMMANDS = {"module": ("build the kernel module of a generated folder", "nnbuild.backends.kmod.command")}
