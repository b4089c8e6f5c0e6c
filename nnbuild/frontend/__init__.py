"""Reads trained models. Nothing in a model file is ever imported, evaluated or run.

The reader of a format is imported when a file has it: most commands read one file.
"""

from __future__ import annotations

from pathlib import Path

from nnbuild.base.errors import ModelError, UsageError
from nnbuild.base.names import of_file
from nnbuild.frontend import hdf5_format
from nnbuild.frontend.import_options import DEFAULTS, ImportOptions
from nnbuild.frontend.safe_names import with_shown_names
from nnbuild.model.graph import Graph
from nnbuild.model.verify import verify

GIVE = "Give a .h5 or .keras file written by model.save(), or a .tflite or .onnx file."
SAVED_MODEL = "saved_model.pb"
KERAS_MAGIC = b"PK\x03\x04"
"""The start of a zip archive."""
TFLITE_IDENTIFIER = b"TFL3"
"""File identifier, after the first four bytes."""
LARGEST_ONNX_VERSION = 64


def load(path: Path, name: str | None = None, options: ImportOptions = DEFAULTS) -> Graph:
    """Reads a model file, whose content determines its format; `name` is the graph's name, by default the file's."""
    prefix = of_file(path.stem) if name is None else name
    return with_shown_names(verify(_read(path, prefix, options)))


def _read(path: Path, prefix: str, options: ImportOptions) -> Graph:
    if path.is_dir() or path.name == SAVED_MODEL:
        raise _folder(path)
    try:
        with path.open("rb") as file:
            start = file.read(512)
    except OSError as error:
        raise UsageError(str(path), f"it cannot be read ({error.strerror}).", "Check the path.") from None
    if _looks_like_onnx(start) or (start and path.suffix.lower() == ".onnx"):
        from nnbuild.frontend import onnx

        return onnx.load(path, prefix, options)
    if options.layout != DEFAULTS.layout:
        raise UsageError("--io-layout", f"{path.name} is not an ONNX file.", "Leave it out.")
    if start.startswith(hdf5_format.SIGNATURE):
        from nnbuild.frontend import keras_h5

        return keras_h5.load(path, prefix, options)
    if start.startswith(KERAS_MAGIC):
        from nnbuild.frontend import keras_zip

        return keras_zip.load(path, prefix, options)
    if start[4:8] == TFLITE_IDENTIFIER:
        from nnbuild.frontend import tflite

        return tflite.load(path, prefix, options)
    raise ModelError(path.name, _unknown(start), GIVE)


def _looks_like_onnx(start: bytes) -> bool:
    """Whether the bytes start a protobuf message whose first field is a version, as exporters write it."""
    return len(start) > 2 and start[0] == 8 and 0 < start[1] < LARGEST_ONNX_VERSION


def _folder(path: Path) -> ModelError:
    from nnbuild.frontend import keras_zip

    folder = path.parent if path.name == SAVED_MODEL else path
    if (folder / SAVED_MODEL).is_file():
        name = folder.resolve().name
        return ModelError(
            str(folder),
            "it is a SavedModel folder; nnbuild does not read TensorFlow's own graph format.",
            "Save the model itself with model.save('model.keras'); or in Python: open('model.tflite', 'wb').write("
            f"tf.lite.TFLiteConverter.from_saved_model({name!r}).convert()).",
        )
    if (folder / keras_zip.CONFIG).is_file():
        return ModelError(
            str(folder),
            "it is an unpacked .keras file.",
            f"Pack it again: cd {folder.name} && zip -0 ../model.keras *",
        )
    if next(folder.glob("*.index"), None) or (folder / "checkpoint").is_file():
        return ModelError(
            str(folder),
            "it is a folder of checkpoints: the weights of a model, without its architecture.",
            "Load them into their model in Python, and save it: model.save('model.keras').",
        )
    return ModelError(str(folder), "it is a folder, not a model.", GIVE)


def _unknown(start: bytes) -> str:
    if not start:
        return "it is empty."
    if start.startswith(b"\x93NUMPY"):
        return "it is an array of NumPy, as samples are, and not a model."
    if start.lstrip().startswith(b"{"):
        return "it is text, as model.to_json() writes it: an architecture without weights."
    return "it is not a model: neither HDF5, nor a Keras zip, nor TensorFlow Lite, nor ONNX."
