"""The SCons builders: from a model file to C, to a program, to a check.

    env = Environment(tools=["default", nnbuild.scons.generate])
    env.NNModel("kws.h5")                       # the C files, to compile into your own program
    env.NNLibrary("kws.h5")                     # the same as a static library
    env.NNProgram("kws.h5", board="linux")      # a program that serves the model over the link
    env.NNApplication("main.c", "kws.h5", board="stm32")  # your own program on a bare chip

All files are built in build/<board>/<model>/. A file is rebuilt when the model's content, the options or nnbuild itself
change, whatever the timestamps.
"""

from __future__ import annotations

import difflib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from nnbuild.backends.backend import Backend, Chosen, OwnBuild
from nnbuild.backends.firmware.program import OWN_PROGRAM
from nnbuild.backends.object_audit import helper_frames, model_objects, stack_entry, stack_stems
from nnbuild.backends.recipe import Recipe, own_objects, raise_if_full
from nnbuild.backends.registry import backend_of, backends, choices, named, refuse_choices
from nnbuild.base.errors import NnbuildError, UsageError
from nnbuild.base.paths import generator_files
from nnbuild.board.board import Board
from nnbuild.board.tables import find
from nnbuild.emit.files import file_names
from nnbuild.features.files import hearing_names
from nnbuild.jobs.command_line import arguments_of, place_arguments
from nnbuild.jobs.options import Options, board_of, prefix_of
from nnbuild.jobs.pipeline import weights_form
from nnbuild.jobs.scons_options import file_of, files_of, identity, options_of, plain, real_path, within
from nnbuild.offload.table import device_inputs, find_device

SHORT = {
    "CCCOMSTR": "$CC $SOURCE",
    "ASPPCOMSTR": "$CC $SOURCE",
    "LINKCOMSTR": "$LINK $TARGET",
}
"""The line that SCons prints for a command unless `verbose` is set."""
_ASKED: dict[str, tuple[dict[str, Any], list[Any]]] = {}
"""Builds requested so far, by folder: their options and files."""
SEARCHED = ("PATH", "HOME", "XDG_CACHE_HOME", "TMPDIR")
"""Environment variables that compilers need: to find programs and for caches."""
LIBRARY_FLAGS = ("-O2", "-ffp-contract=off", "-ffunction-sections", "-fdata-sections")
"""For models in the user's programs; the environment's flags come after these."""
APART = "Give one of them its own name= or folder=."
PACKAGE = Path(__file__).resolve().parent


def exists(env: Any) -> bool:
    return True


def generate(env: Any, **_: Any) -> None:
    env.AddMethod(_in_words(nn_model), "NNModel")
    env.AddMethod(_in_words(nn_library), "NNLibrary")
    env.AddMethod(_in_words(nn_program), "NNProgram")
    env.AddMethod(_in_words(nn_application), "NNApplication")
    env.AddMethod(_in_words(nn_monitor), "NNMonitor")
    env.AddMethod(_in_words(nn_check), "NNCheck")
    env.AddMethod(_in_words(nn_flash), "NNFlash")
    env.AddMethod(_in_words(nn_size), "NNSize")
    env.AddMethod(_in_words(nn_audit), "NNAudit")
    env.AddMethod(_in_words(nn_report), "NNReport")


def _in_words(builder: Callable[..., Any]) -> Callable[..., Any]:
    """Reports a mistake in an SConstruct as a plain message instead of a traceback."""

    @wraps(builder)
    def build(env: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return builder(env, *arguments, **options)
        except NnbuildError as error:
            return _refuse(env, error)

    return build


def nn_model(env: Any, source: Any, *, folder: str | None = None, **options: Any) -> list[Any]:
    """The generated files of a model; add their folder to CPPPATH to include the header."""
    chosen = options_of(env, source, options)
    names = [*_printed(chosen), *hearing_names(chosen.features, prefix_of(chosen))]
    return [node for node in _generated(env, source, chosen, folder) if node.name in names]


def _printed(chosen: Options) -> list[str]:
    """The names of the model's files, including those for a device."""
    device = find_device(chosen.device).with_driver(board_of(chosen).kinds) if chosen.device is not None else None
    return file_names(prefix_of(chosen), weights_form(chosen), device)


def nn_library(env: Any, source: Any, *, folder: str | None = None, **options: Any) -> list[Any]:
    """The model as a static library for the user's program, compiled with the environment's compiler.

    Its header's folder is added to the environment's CPPPATH. Files needed by a device's driver follow the library.
    """
    files = nn_model(env, source, folder=folder, **options)
    place, prefix = files[0].dir, prefix_of(options_of(env, source, options))
    others = env.get("NN_LIBRARIES", {})
    if others.get(prefix, place.abspath) != place.abspath:
        cause = f"another library of this environment has the same functions, {prefix}_…, in {others[prefix]}."
        raise UsageError(f"model {source}", cause, "Give one of them its own name=, or programs their own env.Clone().")
    env["NN_LIBRARIES"] = {**others, prefix: place.abspath}
    env.AppendUnique(CPPPATH=[place])
    own = env.Clone(CCFLAGS=[*LIBRARY_FLAGS, *env.Flatten(env["CCFLAGS"])])
    sources = [node for node in files if node.name.endswith((".c", ".S"))]
    # Separate from the objects of the check's program, which have other flags.
    objects = [own.Object(place.File(f"library/{node.name}.o"), node) for node in sources]
    own.Depends(objects, [node for node in files if node.name.endswith(".bin")])
    library: list[Any] = own.StaticLibrary(place.File(f"lib{Path(files[0].name).stem}.a"), objects)
    beside, _ = _linked(board_of(options_of(env, source, options)).link_flags)
    return library + [env.File(path) for path in beside]


def _linked(flags: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits link flags into files and options: a linker reads files in order."""
    files = [flag for flag in flags if Path(flag).is_absolute()]
    return files, [flag for flag in flags if flag not in files]


def _generated(env: Any, source: Any, chosen: Options, folder: str | None = None) -> list[Any]:
    """All files generated for a model and its board; repeated requests return the same nodes."""
    place, model = folder or model_folder(chosen), file_of(env, source, "model")
    board = board_of(chosen)
    prefix = prefix_of(chosen)
    names = [*_printed(chosen), *backend_of(board).file_names(board, prefix)]
    names += hearing_names(chosen.features, prefix)
    key, wanted = env.Dir(place).abspath, identity(chosen)
    if key in _ASKED:
        before, known = _ASKED[key]
        if before["model"] != wanted["model"]:
            raise UsageError(f"model {model}", f"{before['model']} is built under the same name, {prefix}.", APART)
        if before != wanted:
            raise UsageError(f"model {model}", "it is built twice with different options.", APART)
        return known
    command = ["compile", *arguments_of(chosen), "-o", _path(env.Dir(place)), "--link"]
    files: list[Any] = env.Command(
        [f"{place}/{name}" for name in names], model, _nnbuild(env, command, f"nnbuild compile {model}")
    )
    beside = [path.resolve() for path in device_inputs(chosen.device)] if chosen.device is not None else []
    parts = [board.firmware.folder] if board.firmware is not None else []
    for each in (*beside, *board.tables, *parts):
        if each is not None:
            env.Depends(files, [env.File(str(path)) for path in within(each)])
    _depend_on_files(env, files, chosen)
    env.Depends(files, [env.Value(json.dumps(plain(chosen))), *_generator_files(env)])
    _ASKED[key] = wanted, files
    return files


def _depend_on_files(env: Any, made: Any, chosen: Options) -> None:
    """On those that options name."""
    for given in (chosen.calibrate, chosen.labels, chosen.features):
        if given is not None:
            env.Depends(made, [env.File(str(path)) for path in within(given)])


def nn_program(env: Any, source: Any, **options: Any) -> list[Any]:
    """The program that serves the model on its board; options of the back end's build are keyword arguments, too."""
    given = {name: options.pop(name, None) for name in [choice.name for choice in choices()]}
    chosen = options_of(env, source, options)
    board, wanted = board_of(chosen), {name: value for name, value in given.items() if value}
    refuse_choices(board, wanted)
    files = _generated(env, source, chosen)
    own = backend_of(board).own_build
    return _program(env, chosen, board, files) if own is None else _built_by_itself(env, chosen, own, files, wanted)


def _built_by_itself(env: Any, chosen: Options, own: OwnBuild, files: list[Any], given: Chosen) -> list[Any]:
    """A folder with its own build, run by the command line; the same step audits it."""
    board, place = board_of(chosen), model_folder(chosen)
    name = backend_of(board).program(prefix_of(chosen))
    paths = {choice.name for choice in choices() if choice.is_path}
    whole = {key: str(Path(value).resolve()) if key in paths else value for key, value in given.items()}
    command = own.command(board, _path(env.Dir(place)), whole)
    made: list[Any] = env.Command(f"{place}/{name}", files, _nnbuild(env, command, f"nnbuild {command[0]} {name}"))
    env.Depends(made, env.Value(json.dumps(given)))
    return made


def nn_application(env: Any, sources: Any, source: Any, **options: Any) -> list[Any]:
    """The user's own program, from C sources and the model, with the board's start-up code; then its images."""
    chosen = options_of(env, source, options)
    board = board_of(chosen)
    recipe_of = backend_of(board).application
    if recipe_of is None:
        cause = "the system's own compiler builds your programs for it."
        raise UsageError(f"board {board.name!r}", cause, "Use env.NNLibrary and env.Program.")
    files = _generated(env, source, chosen)
    written = files_of(env, sources, "source")
    recipe = recipe_of(board, [node.name for node in files], [Path(_path(each)) for each in written])
    place = f"{model_folder(chosen)}/application"
    own, objects = _compiled(env, chosen, board, recipe, files, place)
    theirs = own.Clone(CCFLAGS=list(recipe.own_flags), CPPPATH=[*own["CPPPATH"], *env.get("CPPPATH", [])])
    objects += [
        _object(theirs, recipe, f"{place}/{Path(name).with_suffix('')}", each)
        for name, each in zip(own_objects(recipe.own), written, strict=True)
    ]
    program: list[Any] = own.Program(f"{place}/{recipe.program}", objects, SPAWN=_link)
    own.Depends(program, [n for n in files if n.name == recipe.script])
    return program + _finished(own, program, backend_of(board))


def nn_monitor(env: Any, program: Any, *, port: str | None = None, **options: Any) -> Any:
    """Shows the output of the user's own program."""
    program = files_of(env, program, "program")
    if not options.get("board"):
        raise UsageError("NNMonitor", "it does not say on which board the program runs.", 'Give it, as board="stm32".')
    command = ["monitor", _path(program[0]), "--board", options["board"]]
    command += ["--baud", str(options["baud"])] if options.get("baud") else []
    command += ["--port", port] if port else []
    return _always(env, f"monitor-{program[0]}", program, _nnbuild(env, command, f"nnbuild monitor {program[0]}"))


def _compiled(
    env: Any, chosen: Options, board: Board, recipe: Recipe, files: list[Any], where: str
) -> tuple[Any, list[Any]]:
    """An environment with the recipe's tools, and the objects of everything but the user's sources."""
    generated = model_folder(chosen)
    script = ["-T", f"{_path(env.Dir(generated))}/{recipe.script}"] if recipe.script else []
    beside, options = _linked(recipe.link_flags)
    own = env.Clone(
        NN_BACKEND=board.output,
        ENV={**env["ENV"], **{name: os.environ[name] for name in SEARCHED if name in os.environ}},
        CC=list(recipe.compiler),
        CXX=list(recipe.compiler),
        CXXFLAGS=[],
        LINK=list(recipe.compiler),
        CCFLAGS=list(recipe.flags),
        ASPPFLAGS=list(recipe.flags),
        LINKFLAGS=[*recipe.flags, *options, *script],
        LIBS=[*map(env.File, beside), *recipe.libraries],
        CPPPATH=[env.Dir(generated), *map(str, recipe.includes)],
        **({} if env.get("verbose") else SHORT),
    )
    sources = {f"{where}/{Path(name).stem}": f"{generated}/{name}" for name in recipe.generated}
    sources |= {f"{where}/{path.stem}": str(path) for path in recipe.firmware}
    objects = [_object(own, recipe, stem, source) for stem, source in sources.items()]
    own.Depends(objects, [node for node in files if node.name.endswith(".bin")])
    return own, objects


def _object(env: Any, recipe: Recipe, stem: str, source: Any) -> list[Any]:
    """The object of a source; the tables beside it are made, cached and cleared away with it."""
    return list(env.Object([stem + suffix for suffix in recipe.made_of(str(source))], source))[:1]


def _program(env: Any, chosen: Options, board: Board, files: list[Any]) -> list[Any]:
    """The program, followed by the files made from it."""
    where, backend = model_folder(chosen), backend_of(board)
    recipe = backend.recipe(board, [node.name for node in files])
    own, objects = _compiled(env, chosen, board, recipe, files, where)
    program: list[Any] = own.Program(f"{where}/{recipe.program}", objects, SPAWN=_link)
    own.Depends(program, [_audit(env, chosen, recipe, objects), *(n for n in files if n.name == recipe.script)])
    bound = _bound(env, chosen, where, program)
    images = _finished(own, program, backend)
    own.Depends(images, bound)
    return program + images + bound


def _bound(env: Any, chosen: Options, where: str, program: list[Any]) -> list[Any]:
    """Writes bound.json only if the program stays within the instruction budget; one that does not is removed."""
    board, shown = board_of(chosen), f"nnbuild bound {program[0]}"
    if board.instruction_budget is None:
        return []
    command = ["bound", _path(program[0]), "--board", chosen.board, "--max-instructions", str(board.instruction_budget)]
    return _gate(env, board, f"{where}/bound.json", program[0], command, shown, program[0].name)


def _gate(env: Any, board: Board, target: str, source: Any, command: list[str], shown: str, program: str) -> list[Any]:
    """Writes what it found into its target, or fails and removes it, the program and its images: once the options are
    as before, SCons takes what is left as made with them."""
    refused = [Path(target).name, program, *(path.name for path in backend_of(board).images(Path(program)))]
    action = _nnbuild(env, [*command, "--json", _path(env.File(target))], shown, refused)
    made: list[Any] = env.Command(target, source, action)
    env.Depends(made, env.Value(json.dumps(command)))
    return made


def _link(shell: str, escape: Any, command: str, words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs the linker; explains a full memory in plain words after the linker's own message."""
    line = [shell, "-c", " ".join(words)]
    done = subprocess.run(
        line, env=environment, stderr=subprocess.PIPE, encoding="utf-8", errors="replace", check=False
    )
    sys.stderr.write(done.stderr)
    if done.returncode != 0:
        try:
            raise_if_full("program", done.stderr)
        except NnbuildError as error:
            return explain(error)
    return done.returncode


def _finished(env: Any, program: list[Any], backend: Backend) -> list[Any]:
    """Files made from the linked program, beside it and with its name."""
    names = [program[0].dir.File(path.name) for path in backend.images(Path(program[0].name))]
    if not names:
        return []
    made: list[Any] = env.Command(names, program[0], env.Action(_finish, f"nnbuild image {program[0]}"))
    return made


def _finish(target: Any, source: Any, env: Any) -> None:
    """Must not be a closure: SCons would treat it as part of the action and find it changed each time."""
    named(env["NN_BACKEND"]).finish(Path(source[0].abspath))


def _audit(env: Any, chosen: Options, recipe: Recipe, objects: list[Any]) -> Any:
    """The step between compiling and linking; a refused model leaves no program of an earlier build."""
    where, prefix, board = Path(_path(objects[0][0])).parent, prefix_of(chosen), board_of(chosen)
    command = ["audit", *map(str, model_objects(prefix, where)), "--policy", board.audit_policy]
    command += [str(where / f"{stem}{recipe.stack_table}") for stem in stack_stems(board, prefix, recipe.stems)]
    flash = chosen.of_weights.flash
    limits = [f"stack={board.stack_budget}", *([f"flash={flash}"] if flash is not None else [])]
    command += ["--stack-entry", stack_entry(board, prefix), "--budget", ",".join(limits)]
    for name, size in helper_frames(board).items():
        command += ["--stack-frame", f"{name}={size}"]
    target = f"{model_folder(chosen)}/audit.json"
    made = _gate(env, board, target, objects, command, f"nnbuild audit {prefix}", recipe.program)
    own = Path(board.audit_policy)  # a file, or one of nnbuild's
    env.Depends(made, [env.File(str(own.resolve()))] if own.is_file() else [])
    return made


def nn_check(
    env: Any, source: Any, program: Any, *, inputs: str | None = None, port: str | None = None, **options: Any
) -> Any:
    """Runs the program and compares; the JSON and JUnit reports lie beside it."""
    program = files_of(env, program, "program")
    chosen = options_of(env, source, options)
    where = Path(_path(program[0])).parent
    command = ["check", *arguments_of(chosen), "--program", _path(program[0])]
    command += ["--json", str(where / "check.json")]
    command += ["--junit", str(where / "check.xml")] if chosen.features is None else []
    command += ["--inputs", str(real_path(env.File(inputs)))] if inputs else []
    command += place_arguments(chosen, port)
    made = _always(env, f"check-{where}", program, _nnbuild(env, command, f"nnbuild check {source}"))
    env.Clean(made, [str(where / f"check.{ending}") for ending in ("json", "xml")])
    return made


def nn_report(
    env: Any, source: Any, program: Any, *, inputs: str | None = None, port: str | None = None, **options: Any
) -> Any:
    """Writes the report page, and its data as JSON for nnbuild diff, beside the program."""
    program = files_of(env, program, "program")
    page, facts = (program[0].dir.File(f"report.{ending}") for ending in ("html", "json"))
    chosen = options_of(env, source, options)
    command = ["report", *arguments_of(chosen), "--program", _path(program[0]), *place_arguments(chosen, port)]
    command += ["-o", _path(page), "--json", _path(facts)]
    command += ["--inputs", str(real_path(env.File(inputs)))] if inputs else []
    made = env.Command([page, facts], program, _nnbuild(env, command, f"nnbuild report {source}"))
    _depend_on_files(env, made, chosen)
    if inputs:
        env.Depends(made, env.File(inputs))
    env.Depends(made, [env.Value(json.dumps(command)), *_generator_files(env)])
    return made


def nn_flash(env: Any, source: Any, program: Any, *, port: str | None = None, **options: Any) -> Any:
    """Writes the program to the flash of the connected board."""
    program = files_of(env, program, "program")
    chosen = options_of(env, source, options)
    command = ["flash", *arguments_of(chosen), "--program", _path(program[0]), *place_arguments(chosen, port)]
    command += ["--application"] if program[0].name == OWN_PROGRAM else []
    return _always(env, f"flash-{program[0]}", program, _nnbuild(env, command, f"nnbuild flash {source}"))


def nn_size(env: Any, source: Any, program: Any, *, port: str | None = None, **options: Any) -> Any:
    """Prints the model's memory use on its board and the cost of each layer."""
    program = files_of(env, program, "program")
    chosen = options_of(env, source, options)
    command = ["profile", *arguments_of(chosen), "--program", _path(program[0]), *place_arguments(chosen, port)]
    return _always(env, f"size-{program[0]}", program, _nnbuild(env, command, f"nnbuild profile {source}"))


def nn_audit(env: Any, program: Any, policy: str) -> Any:
    """Checks the linked program for forbidden contents; a program with its own build is audited by that build."""
    program = files_of(env, program, "program")
    command = ["audit", _path(program[0]), "--policy", policy]
    for backend in backends():
        if backend.own_build is not None and str(program[0]).endswith(backend.own_build.ending):
            command = backend.own_build.audit_command(str(Path(_path(program[0])).parent))
    return _always(env, f"audit-{program[0]}", program, _nnbuild(env, command, f"nnbuild audit {program[0]}"))


def _path(node: Any) -> str:
    """A path relative to the SConstruct, where commands run; str() of a node is relative to the SConscript."""
    path: str = node.get_internal_path()
    return path


def _always(env: Any, name: str, sources: Any, action: Any) -> Any:
    alias = env.Alias(name, sources, action)
    env.AlwaysBuild(alias)
    return alias


def model_folder(options: Options) -> str:
    return f"build/{find(options.board).name}/{prefix_of(options)}"


def _generator_files(env: Any) -> Sequence[Any]:
    """All files of nnbuild that can change the generated C."""
    return [env.File(str(path)) for path in generator_files()]


def _nnbuild(env: Any, arguments: Sequence[str], shown: str, refused: Sequence[str] = ()) -> Any:
    """An action that runs the command line in its own process, so that several run in parallel. If it fails, it removes
    the `refused` files beside its source."""

    def act(target: Any, source: Any, env: Any) -> int:
        search = os.pathsep.join([str(PACKAGE.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
        command = [sys.executable, "-m", "nnbuild", *arguments]
        status = subprocess.run(command, env={**os.environ, "PYTHONPATH": search}, check=False).returncode
        for name in refused if status else ():
            Path(source[0].abspath).with_name(name).unlink(missing_ok=True)
        return status

    return env.Action(act, shown)


def _refuse(env: Any, error: NnbuildError) -> None:
    env.Exit(explain(error))


def explain(error: NnbuildError) -> int:
    print(f"nnbuild: {error}", file=sys.stderr)
    return error.exit_code


def expect_variables(given: Iterable[str], known: Iterable[str], others: str) -> None:
    """Ends a build whose command line sets an unknown variable, with a suggestion; `others` says where the rest is
    listed."""
    read = list(known)
    for name in sorted(set(given) - set(read)):
        near = difflib.get_close_matches(name, read, 1)
        hint = f"did you mean {near[0]}=? " if near else ""
        print(f"nnbuild: there is no variable {name}=; {hint}{others}", file=sys.stderr)
        sys.exit(2)
