"""Common parts of packages for other build systems: the C under src/, and files around it that name its sources."""

from __future__ import annotations

from collections.abc import Mapping

from nnbuild import __version__
from nnbuild.base.template import fill
from nnbuild.emit.artifact import Artifact
from nnbuild.outputs.example import example
from nnbuild.plan.plan import Plan


def component(plan: Plan, artifact: Artifact, texts: Mapping[str, str], source: str, **more: str) -> dict[str, bytes]:
    """`texts` maps each file around the C to its template; `source` is the line for each C source, with a placeholder
    for its name. Assembly that includes a .bin is a source, too."""
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
