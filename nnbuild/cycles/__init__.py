"""How long a linked program of a Cortex-M takes: its run in an emulator, timed by documented rules."""
