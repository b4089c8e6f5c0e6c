"""nnbuild listen: runs a model with an audio front end on sound, computed by the reference."""

from __future__ import annotations

import argparse
from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.cli.arguments import add_build_options, options_of, print_json, progress, say_notes
from nnbuild.cli.sound import event_text, events_object
from nnbuild.jobs.microphone import microphone
from nnbuild.jobs.pipeline import classes_for, compile_model
from nnbuild.jobs.sound import hearing_for, least_samples, listened, sounds, too_short


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_options(parser)
    parser.add_argument("--wav", type=Path, metavar="FILE|DIR", help="sound to listen to (default: the microphone)")
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds to record from the microphone at a time")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    if arguments.features is None:
        raise UsageError("nnbuild listen", "the model's front end is not given.", "Give it with --features FILE.toml")
    compiled = compile_model(options_of(arguments), progress("calibration sample"))
    hearing, classes = hearing_for(compiled), classes_for(compiled)
    say_notes(compiled.graph.notes)
    found, longest = [], 0
    heard = sounds(hearing, arguments.wav) if arguments.wav is not None else microphone(hearing, arguments.seconds)
    for sound in heard:
        longest = max(longest, len(sound[1]))
        for event in listened(compiled, hearing, sound, classes):
            found.append(event)
            if not arguments.json:
                print(event_text(event), flush=True)
    if arguments.wav is not None and longest < least_samples(hearing):
        raise too_short(hearing)
    if arguments.json:
        print_json({"events": events_object(found)})
    elif arguments.wav is not None:
        print(f"{len(found)} events")
    return 0
