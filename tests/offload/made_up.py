"""A device that does not exist: one memory, sums of 24 bits, power-of-two scales, floors. It is only a table, a Python
file and a driver in C that computes the tasks; nothing of it is known to the package."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parents[2] / "examples" / "made-up-device"


def made_up(folder: Path, **changes: str) -> Path:
    """The folder of the device; in its table each text that is a key becomes the value."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in HERE.iterdir():
        if file.is_file():
            (folder / file.name).write_text(file.read_text())
    table = folder / "device.toml"
    text = table.read_text()
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    table.write_text(text)
    return folder
