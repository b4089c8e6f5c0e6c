"""Times a linked Cortex-M program: runs it in an emulator and applies documented timing rules."""
