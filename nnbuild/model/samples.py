"""Sample files: `.npz` archives with inputs, and optionally golden outputs and labels; also writes outputs.

A `.npy` file holds the samples of a model's only input. Inputs are in the model's own units. There is one array per
input, named like the input, or `x` (`x0`, `x1` ... if there are several); its first axis counts the samples. Golden
outputs are `y` (`y0`, `y1` ...).
"""

from __future__ import annotations

import io
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from nnbuild.base.errors import UsageError
from nnbuild.base.files import write_whole
from nnbuild.base.sanitize import escape_name

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]
UNSOUND = (
    *(ValueError, EOFError, KeyError, NotImplementedError, MemoryError, RuntimeError, OverflowError, TypeError),
    *(zipfile.BadZipFile, zlib.error, SyntaxError, tokenize.TokenError),
)
"""What numpy and Python raise for damaged or encrypted archives; array headers are parsed as Python literals."""


MOST_CLASSES = 2**31
RESHAPE = "Reshape it; the first axis counts the samples."
LARGEST = 8 << 30
"""Bytes that a file of samples may unpack to."""


class Port(Protocol):
    """An input or output of a model; `shape` is that of one sample."""

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]: ...


@dataclass(frozen=True, eq=False)
class SampleSet:
    """Samples of one model. `golden` has one array per output, or is None; `labels` may be None. `drawn` samples are
    random. `beside` names the other arrays of the file."""

    inputs: Mapping[str, FloatArray]
    golden: tuple[FloatArray, ...] | None = None
    labels: Array | None = None
    notes: tuple[str, ...] = ()
    drawn: bool = False
    beside: tuple[str, ...] = ()

    def __len__(self) -> int:
        return min((len(values) for values in self.inputs.values()), default=0)

    def __iter__(self) -> Iterator[dict[str, FloatArray]]:
        for index in range(len(self)):
            yield {name: values[index] for name, values in self.inputs.items()}


def load_samples(
    path: str | Path,
    inputs: Sequence[Port],
    outputs: Sequence[Port] = (),
    missing: Collection[str] = (),
    notes: Sequence[str] = (),
) -> SampleSet:
    """Reads a sample file and checks it against the model. `missing`: the inputs that may have missing values, NaN;
    `notes`: those on the model, of which a refusal repeats what explains an input without an array."""
    arrays = _read(Path(path))
    names = _input_names(path, arrays, inputs, notes)
    values = {
        port.name: _values(path, name, arrays[name], port.shape, port.name in missing)
        for name, port in zip(names, inputs, strict=True)
    }
    count = _same_count(path, {name: len(array) for name, array in values.items()})
    golden = _golden(path, {name: array for name, array in arrays.items() if name not in names}, outputs, count)
    golden_names = _numbered_in(arrays, "y", len(outputs)) if outputs else []
    beside = tuple(sorted({*arrays} - {*names, *golden_names, "labels"}))
    notes = _left_aside(path, beside, golden_names)
    if "labels" in arrays and arrays["labels"].dtype.kind in "US":
        notes += (f"{path}: its array 'labels' holds names, not the samples' classes, and is left aside",)
        return SampleSet(values, golden, None, notes, beside=beside)
    return SampleSet(values, golden, _labels(path, arrays, count), notes, beside=beside)


def _left_aside(path: str | Path, beside: Sequence[str], golden: Sequence[str]) -> tuple[str, ...]:
    """Names the arrays that are nothing to a check, so that none seems to be compared that is not."""
    rest = [f"'{escape_name(name)}'" for name in beside]
    if not golden or not rest:
        return ()
    which = f"its array {rest[0]} is" if len(rest) == 1 else f"its arrays {', '.join(rest)} are"
    return (f"{path}: {which} left aside; golden outputs are named {', '.join(golden)}, classes 'labels'",)


def _read(path: Path) -> dict[str, Array]:
    kind = path.suffix.lower()
    if kind not in (".npz", ".npy"):
        cause = "Samples come in a .npz file, or those of one input in a .npy file."
        raise UsageError(str(path), cause, "Write one with numpy.savez(path, x=inputs).")
    try:
        if kind == ".npy":
            return {"x": np.load(path, mmap_mode="r", allow_pickle=False)}
        with zipfile.ZipFile(path) as archive:
            refuse_bomb(str(path), archive)
            _refuse_twins(path, [name.removesuffix(".npy") for name in archive.namelist()])
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except FileNotFoundError:
        raise UsageError(str(path), "There is no such file.", "Check the path.") from None
    except OSError as error:
        raise UsageError(str(path), f"It cannot be read ({error.strerror or error}).", "Check the file.") from None
    except UNSOUND as error:
        raise UsageError(
            str(path),
            f"It is no sound {kind} file of plain numbers ({type(error).__name__}).",
            f"Write it again with numpy.save{kind[-1]}(path, x=inputs).".replace("savey(path, x=", "save(path, "),
        ) from None


def refuse_bomb(where: str, archive: zipfile.ZipFile) -> None:
    """Refuses archives that unpack to more than LARGEST; zipfile never returns more bytes than the archive declares."""
    size = sum(member.file_size for member in archive.infolist())
    if size > LARGEST:
        cause = f"It unpacks to {size:,} bytes, more than the {LARGEST:,} that are read."
        raise UsageError(where, cause, "Give fewer samples, or float32 in the place of float64.")


def _refuse_twins(path: Path, names: Sequence[str]) -> None:
    twin = next((name for name in names if names.count(name) > 1), None)
    if twin is not None:
        cause = f"It holds two arrays named '{escape_name(twin)}'."
        raise UsageError(str(path), cause, "Leave one of them out.")


def _numbered(prefix: str, count: int) -> list[str]:
    return [prefix] if count == 1 else [f"{prefix}{index}" for index in range(count)]


def _numbered_in(arrays: Collection[str], prefix: str, count: int) -> list[str]:
    """The same; of a single one also the name with a number, where that is in the file."""
    single = count == 1 and prefix not in arrays and f"{prefix}0" in arrays
    return [f"{prefix}0"] if single else _numbered(prefix, count)


def names_of_inputs(arrays: Collection[str], inputs: Sequence[str]) -> list[str] | None:
    """The arrays that hold the inputs: those of their names, x or x0, x1 …, or all that numpy.savez got without any."""
    named, numbered = list(inputs), _numbered_in(arrays, "x", len(inputs))
    if all(name in arrays for name in named):
        return named
    if all(name in arrays for name in numbered) and f"x{len(inputs)}" not in arrays:
        return numbered
    unnamed = [f"arr_{index}" for index in range(len(inputs))]
    return unnamed if {name for name in arrays if name.startswith("arr_")} == {*unnamed} else None


def _input_names(
    path: str | Path, arrays: Mapping[str, Array], inputs: Sequence[Port], notes: Sequence[str]
) -> list[str]:
    by_name = [port.name for port in inputs]
    found_names = names_of_inputs(arrays, by_name)
    if found_names is not None:
        return found_names
    missing = [name for name in by_name if name not in arrays]
    found = ", ".join(map(escape_name, sorted(arrays))) or "nothing"
    cause = f"There is no array for input '{missing[0]}'; it holds {found}.{about_inputs(missing, notes)}"
    raise UsageError(str(path), cause, how_to_name(by_name))


def about_inputs(names: Sequence[str], notes: Sequence[str]) -> str:
    """What the notes on a model say about these inputs, such as that the model did not have them."""
    return "".join(f" {note}" for note in notes if any(note.startswith(f"The input {name!r} ") for name in names))


def how_to_name(inputs: Sequence[str]) -> str:
    ways = dict.fromkeys((", ".join(inputs), ", ".join(_numbered("x", len(inputs)))))
    return f"Name the array{'s' * (len(inputs) > 1)} {', or '.join(ways)}."


def one_a_row(array: Array, shape: tuple[int, ...]) -> Array:
    """One number a sample, as joining other programs' outputs leaves it, in the shape of the input."""
    return array.reshape(-1, *shape) if array.ndim == 1 and prod(shape) == 1 else array


def _values(path: str | Path, name: str, array: Array, shape: tuple[int, ...], missing: bool = False) -> FloatArray:
    where = f"{path}, array '{name}'"
    if array.dtype.kind not in "fiub":  # booleans are 0 and 1
        raise UsageError(where, f"Its type is {array.dtype}, which holds no plain numbers.", "Save it as float32.")
    array = one_a_row(array, shape)
    if array.ndim == 0 or array.shape[1:] != tuple(shape):
        raise UsageError(
            where,
            f"Its shape is {array.shape}, the model takes ({', '.join(['samples', *map(str, shape)])}).",
            RESHAPE,
        )
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(array, np.float32)
    broken = ~(np.isfinite(values) | (missing & np.isnan(values)))
    if broken.any():
        place = tuple(int(index) for index in np.argwhere(broken)[0])
        raise UsageError(
            where,
            f"{int(broken.sum())} of its values are no finite float32, the first at {place}: {array[place]}.",
            "Remove or repair these samples.",
        )
    return values


def _same_count(path: str | Path, counts: Mapping[str, int]) -> int:
    count = next(iter(counts.values()), 0)
    if any(other != count for other in counts.values()):
        listing = ", ".join(f"{name} {number}" for name, number in counts.items())
        raise UsageError(str(path), f"The inputs have different numbers of samples: {listing}.", "Give each the same.")
    if count == 0:
        raise UsageError(str(path), "It holds no samples.", "Give at least one; the first axis counts them.")
    return count


def _golden(
    path: str | Path, arrays: Mapping[str, Array], outputs: Sequence[Port], count: int
) -> tuple[FloatArray, ...] | None:
    names = _numbered_in(arrays, "y", len(outputs))
    present = [name for name in names if name in arrays]
    beyond = [name for name in ("y", "y0", f"y{len(outputs)}") if name in arrays and name not in names]
    if outputs and beyond:
        raise UsageError(
            str(path),
            f"It has {', '.join(beyond)}, but golden outputs of this model are named {', '.join(names)}.",
            "Name them so, or leave them out.",
        )
    if not outputs or not present:
        return None
    if len(present) < len(names):
        missing = next(name for name in names if name not in arrays)
        raise UsageError(
            str(path),
            f"It has {', '.join(present)} but no {missing}.",
            "Give a golden output for every output, or none.",
        )
    pairs = zip(names, outputs, strict=True)
    golden = tuple(_values(path, name, arrays[name], port.shape) for name, port in pairs)
    for name, values in zip(names, golden, strict=True):
        _matching(f"{path}, array '{name}'", len(values), count)
    return golden


def _labels(path: str | Path, arrays: Mapping[str, Array], count: int) -> Array | None:
    labels = arrays.get("labels")
    return None if labels is None else checked_labels(f"{path}, array 'labels'", labels, count)


def checked_labels(where: str, labels: Array, count: int) -> Array:
    """Labels as integers, one per sample, or one-hot rows."""
    if labels.ndim == 0 or labels.dtype.kind not in "iufb":
        raise UsageError(where, "Labels are whole numbers, one per sample, or one-hot rows.", "Save them as int64.")
    _matching(where, len(labels), count)
    broken = ~np.isfinite(labels) | (labels != np.trunc(labels))
    if broken.any():
        cause = f"Labels are whole numbers, one per sample, or one-hot rows, and {_first(labels, broken)}."
        raise UsageError(where, cause, "Save them as int64.")
    if (labels < 0).any():
        raise UsageError(where, f"A label is negative ({labels.min()}).", "Number the classes from 0.")
    beyond = labels > MOST_CLASSES
    if beyond.any():
        cause = f"There are at most {MOST_CLASSES:,} classes, and {_first(labels, beyond)}."
        raise UsageError(where, cause, "Number the classes from 0.")
    return np.asarray(labels, np.int64)


def _first(labels: Array, wrong: Array) -> str:
    place = [int(index) for index in np.argwhere(wrong)[0]]
    return f"the label at {place} is {labels[tuple(place)]}"


def _matching(where: str, found: int, count: int) -> None:
    if found != count:
        raise UsageError(where, f"It has {found} rows for {count} samples.", "Give one row per sample.")


def save_outputs(path: str | Path, y: Sequence[FloatArray], q: Sequence[Array | None] = ()) -> None:
    """Writes outputs as `y` (`y0`, `y1` ...) and the raw integers of a quantized model as `q` (`q0` ...).

    The file is written atomically.
    """
    arrays: dict[str, Array] = dict(zip(_numbered("y", len(y)), y, strict=True))
    raw = zip(_numbered("q", len(y)), q, strict=True) if q else ()
    arrays.update({name: values for name, values in raw if values is not None})
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]  # numpy's stub takes the names for its own options
    write_whole(Path(path), content.getvalue())
