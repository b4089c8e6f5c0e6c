"""What packages of other builds have in common: the C under src/, and texts around it that name its sources."""

from __future__ import annotations

from collections.abc import Mapping

from nnbuild import __version__
from nnbuild.base.template import fill
from nnbuild.emit.artifact import Artifact
from nnbuild.outputs.example import example
from nnbuild.plan.plan import Plan


def component(plan: Plan, artifact: Artifact, texts: Mapping[str, str], source: str, **more: str) -> dict[str, bytes]:
    """`texts` gives the template of every file around the C; `source` is a line for each of the C's own, with a place
    for its name. Assembly that takes in a .bin is a source, too."""
    names = [name for name in artifact.files if name.endswith((".c", ".S"))]
    values = {
        "PREFIX": plan.prefix,
        "UPPER": plan.prefix.upper(),
        "VERSION": __version__,
        "ARENA": f"{plan.arena + plan.state:,}",
        "SOURCES": "".join(f"{source.format(name=f'src/{name}')}\n" for name in names),
        **example(plan, artifact),
        **more,
    }
    around = {name: fill(template, values).encode() for name, template in texts.items()}
    return {f"src/{name}": content for name, content in artifact.files.items()} | around
