"""Creates the evidence pack of a program: builds, proves, runs, compares and counts, and writes one folder."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from nnbuild import __version__
from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import UsageError
from nnbuild.base.files import make_folder, write_together
from nnbuild.base.paths import TEMPLATES
from nnbuild.emit.emit import digest
from nnbuild.evidence import coverage, graph_json, layout, misra, origins, page, replicas, trace, vectors
from nnbuild.evidence.array_store import Store
from nnbuild.evidence.replicas import LeftOut, Replica
from nnbuild.evidence.requant_numbers import Numbers
from nnbuild.jobs.job import Place, build_program
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import Compiled, precision
from nnbuild.jobs.report_data import option_words
from nnbuild.kernels.contract import Kernel
from nnbuild.kernels.lanes.layer_sums import layer_of
from nnbuild.kernels.parts.prologue import Prologue
from nnbuild.kernels.parts.row_stream import Stream
from nnbuild.model.graph import Array, Graph, Op
from nnbuild.model.samples import SampleSet
from nnbuild.numeric.nearness import near
from nnbuild.ops.site import Site
from nnbuild.ops.tolerance import Standard, standards
from nnbuild.plan.plan import Step

SCRIPT = "verify.py"
Progress = Callable[[str], None]


@dataclass(eq=False)
class Pack:
    """All files of a pack. `open` lists open problems."""

    files: dict[str, bytes]
    facts: dict[str, Any]
    open: list[str] = field(default_factory=list)


def make(
    compiled: Compiled, samples: SampleSet | None, folder: Path, wanted: Callable[[str], bool], say: Progress
) -> Pack:
    """`folder` is for intermediate builds; `wanted` selects the other boards."""
    graph = compiled.graph
    chosen = vectors.drawn(graph) if samples is None else vectors.first(samples, vectors.most(graph))
    store, count = Store(), len(chosen)
    say("building")
    (own := folder / "program").mkdir()
    program = build_program(replicas.without_paths(compiled, own), Place(own)).read_bytes()
    say("proving")
    described = graph_json.described(graph, store)
    proofs, unplaced = _proofs(compiled, store)
    found, missing = origins.origins(compiled.imported, graph, compiled.options.model.read_bytes())
    proofs["origins"] = [_origin(each, store) for each in found]
    values = vectors.values(graph, chosen)
    ran = [*replicas.on_boards(compiled, chosen, folder, wanted, say)]
    ran += replicas.with_compilers(compiled, values, count, folder, say)
    alike = [each for each in ran if isinstance(each, Replica)]
    expected = standards(graph, chosen.inputs, graph.outputs)
    allowed = vectors.tolerances(expected)
    certificate, differences = _certificate(compiled, allowed, values, alike, store)
    say("coverage")
    covered = coverage.measure(compiled.plan, compiled.artifact, values, count, folder / "coverage")
    say("MISRA C:2012")
    found_rules = misra.findings(compiled.artifact, folder / "misra")
    facts = {
        "nnbuild": __version__,
        "name": compiled.plan.prefix,
        "board": compiled.board.name,
        "precision": precision(graph),
        "digest": digest(graph),
        "options": option_words(_without_folders(compiled.options))[1:],
        "calibration_sha256": _file_hash(compiled.options.calibrate),
        "model": f"model/{compiled.options.model.name}",
        "program": f"program/{backend_of(compiled.board).program(compiled.plan.prefix)}",
        "vectors": count,
        "carried": bool(graph.states),
        "values": {name: store.put("v", data) for name, data in sorted(values.items())},
        "allowed": allowed,
        "replicas": certificate,
        "left_out": [asdict(each) for each in ran if isinstance(each, LeftOut)],
        "not_from_the_model_file": missing,
        "not_placed": unplaced,
        "coverage": asdict(covered),
        "misra": {"tool": found_rules.version, "rules": _rules(found_rules)},
    }
    files = {f"c/{name}": content for name, content in compiled.artifact.files.items()}
    files |= {str(facts["model"]): compiled.options.model.read_bytes(), str(facts["program"]): program}
    traced = trace.traced(compiled.plan, compiled.board, program, own, count)
    files |= {"graph.json": _json(described), "proofs.json": _json(proofs), "trace.json": _json(traced)}
    files |= {"data.npz": store.content(), SCRIPT: (TEMPLATES / "evidence" / SCRIPT).read_bytes()}
    opened = [*differences, *_unlike(expected, alike)]
    opened += [f"coverage: {gap.file}, line {gap.line}: {gap.text}" for gap in covered.unexplained]
    opened += [f"MISRA C:2012 rule {rule} has no justification" for rule in found_rules.unjustified]
    facts["open"] = opened
    files["index.html"] = page.page(facts, traced, proofs).encode()
    facts["files"] = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    files["evidence.json"] = _json(facts)
    return Pack(files, facts, opened)


def refuse_folder(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            str(folder), "a pack needs an empty folder, and this one is not empty.", "Choose a new folder."
        )


def write(pack: Pack, folder: Path) -> None:
    refuse_folder(folder)
    for parent in sorted({(folder / name).parent for name in pack.files}):
        make_folder(parent)
    write_together({folder / name: content for name, content in pack.files.items()})


def refusal(folder: Path) -> list[str]:
    """What the pack's own script finds wrong with it."""
    command = [sys.executable, "-I", str(folder / SCRIPT), str(folder)]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    return [] if ran.returncode == 0 else [f"{SCRIPT}: {ran.stderr.strip()}"]


def _without_folders(options: Options) -> Options:
    """Files by name only: their folders are not part of the build."""
    calibrate = Path(options.calibrate.name) if options.calibrate is not None else None
    return replace(options, model=Path(options.model.name), calibrate=calibrate)


def _file_hash(path: Path | None) -> str:
    """The hash of a file, or of a folder's files in name order."""
    inside = [] if path is None else sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return hashlib.sha256(b"".join(each.read_bytes() for each in inside)).hexdigest() if inside else ""


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def sites_of(step: Step) -> list[tuple[Site, Kernel]]:
    """The operations of a step, with their kernels: a stream has several. Operations ahead of a convolution have no
    sums."""
    kernel = step.versions[0].choice.kernel
    owner = getattr(kernel.demand, "__self__", None)
    if isinstance(owner, Prologue):
        return [(owner.parts(cast(Any, step.site))[0].inner, owner.kernel)]
    return [(p.site, p.kernel) for p in owner.parts] if isinstance(owner, Stream) else [(step.site, kernel)]


def _proofs(compiled: Compiled, store: Store) -> tuple[dict[str, Any], dict[str, str]]:
    """The numbers of every layer with integer sums, and their positions and those of the weights in the program."""
    layers, places, unplaced = [], [], {}
    packed = {
        name: store.put("p", data) for name, data in compiled.plan.constants.items() if not compiled.plan.swappable
    }
    for step in compiled.plan.steps:
        names = step.versions[0].names.packed
        for number, (site, kernel) in enumerate(sites_of(step)):
            if "kernel" not in site.constants or site.dtypes not in ({"int8"}, {"int16"}) or site.op.kind not in LAYERS:
                continue
            found = layout.find(site, kernel)
            if found is None:
                unplaced[site.op.name] = "its kernel scales sums by numbers that are not among its constants"
                continue
            numbers, place = found
            layers.append(_proof(site, numbers, store))
            inside = {role: packed.get(_named(names, role, number), "") for role in kernel.demand(site).packed}
            if place is not None and all(inside.values()):
                places.append(_place(site, place, inside, store))
            if place is None or not place.complete or not all(inside.values()):
                unplaced[site.op.name] = TRANSFORMED
    known = {*unplaced, *(layer["op"] for layer in layers)}
    unplaced |= {op.name: MERGED for op in _with_sums(compiled.graph) if op.name not in known}
    return {"layers": layers, "places": places, "packed": packed}, unplaced


def _with_sums(graph: Graph) -> list[Op]:
    """The operations that a pack proves, or names."""
    whole = ({"int8"}, {"int16"})
    ends = [(op, {graph.tensors[name].dtype for name in (*op.inputs, *op.outputs)}) for op in graph.ops]
    return [op for op, dtypes in ends if op.kind in LAYERS and dtypes in whole]


MERGED = "its kernel computes it together with others, or on a device; vectors stand for it"


TRANSFORMED = (
    "the program holds its weights transformed: the numbers that scale its sums are found; vectors and the bytes of "
    "its constants stand for the rest"
)
LAYERS = ("conv2d", "depthwise_conv2d", "dense", "conv2d_transpose")


def _named(names: Any, role: str, number: int) -> str:
    return str(names.get(role, names.get(f"{role}{number}", "")))


def _proof(site: Site, numbers: Numbers, store: Store) -> dict[str, Any]:
    layer = layer_of(site)
    return {
        "op": site.op.name,
        "rule": numbers.rule,
        "form": numbers.form,
        "rounded": numbers.rounded,
        "reach": store.put("r", np.stack([layer.low.astype(np.float64), layer.high.astype(np.float64), layer.reals])),
        "columns": {role: store.put("n", values) for role, values in numbers.columns.items()},
    }


def _place(site: Site, place: layout.Place, packed: dict[str, str], store: Store) -> dict[str, Any]:
    return {
        "op": site.op.name,
        "lifted": place.lifted,
        "raised": place.raised,
        "roles": list(place.roles),
        "parts": [
            {
                "data": packed[part.role],
                "bits": part.bits,
                "units": store.put("u", part.units),
                "first": store.put("a", part.first),
                "second": store.put("b", part.second),
            }
            for part in place.parts
        ],
    }


def _origin(origin: origins.Origin, store: Store) -> dict[str, Any]:
    spot = origin.spot
    return {
        "constant": origin.constant,
        "member": spot.member,
        "offset": spot.offset,
        "dtype": spot.dtype,
        "shape": list(spot.shape),
        "axes": list(spot.axes),
        "ratio": store.put("f", origin.ratio) if origin.ratio is not None else None,
    }


def _certificate(
    compiled: Compiled, allowed: dict[str, float], values: dict[str, Array], ran: list[Replica], store: Store
) -> tuple[list[dict[str, Any]], list[str]]:
    """The inputs and outputs of each target. Floats are compared with the first target's."""
    graph = compiled.graph
    for name in graph.outputs:
        if name not in values and ran:
            values[name] = ran[0].outputs[name]
    rows, differences = [], []
    for replica in ran:
        held = {name: values[name] for name in graph.inputs} | replica.outputs
        for name in graph.outputs:
            same = np.array_equal(replica.outputs[name], values[name])
            by = np.abs(replica.outputs[name].astype(np.float64) - values[name])
            if not same and not (by <= allowed[name]).all():
                differences.append(f"{replica.target}: output {name} differs")
        rows.append(
            replicas.as_object(replica)
            | {
                "same_bits": all(np.array_equal(replica.outputs[name], values[name]) for name in graph.outputs),
                "inputs_sha256": _hash([values[name] for name in graph.inputs]),
                "outputs_sha256": _hash([replica.outputs[name] for name in graph.outputs]),
                "values": {name: store.put("t", data) for name, data in sorted(held.items())},
            }
        )
    return rows, differences


def _unlike(wanted: dict[str, Standard], ran: list[Replica]) -> list[str]:
    """Outputs that differ from the reference: those of all targets may be wrong alike."""
    return [
        f"{replica.target}: output {name} differs from the reference"
        for replica in ran
        for name, standard in wanted.items()
        if not near(standard.values, replica.outputs[name], standard.tolerance).all()
    ]


def _hash(arrays: list[Array]) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(data).tobytes() for data in arrays)).hexdigest()


def _rules(found: misra.Misra) -> list[dict[str, Any]]:
    return [
        {"rule": rule, "count": count, "why": misra.DEVIATIONS.get(rule, ""), "places": found.places[rule]}
        for rule, count in found.counts.items()
    ]
