"""The command `nnbuild audit`: reads its arguments, runs the audit and the stack bound, prints, returns the exit
code."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nnbuild.audit.findings import AuditReport, Budget
from nnbuild.audit.needs import library_sources
from nnbuild.audit.policy import load_policy
from nnbuild.audit.report import explain_symbol, render_text, report_json
from nnbuild.audit.run import audit_files
from nnbuild.audit.stack import StackReport, render_stack, stack_bound, stack_json
from nnbuild.base.errors import NnbuildError, UsageError

STACK_TABLES = (".ci", ".su")
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help=".o, .a, .ko or linked ELF; .ci, .su")
    names = "kernel, mcu, hosted, or a TOML file (default: %(default)s)"
    parser.add_argument("--policy", default="hosted", metavar="NAME", help=names)
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the report as JSON")
    parser.add_argument(
        "--budget", metavar="flash=N,ram=N,stack=N", help="the board's limits in bytes; K and M suffixes are allowed"
    )
    parser.add_argument("--why", metavar="SYMBOL", help="only tell what needs this symbol")
    parser.add_argument(
        "--allow-fp", action="append", metavar="GLOB", help="objects and functions that may contain floating point"
    )
    parser.add_argument(
        "--model-objects", action="append", metavar="GLOB", help="the generated objects; others may contain data"
    )
    parser.add_argument(
        "--libm", type=Path, metavar="DIR", help="folder of sources that supply symbols, such as firmware/libm"
    )
    parser.add_argument(
        "--supply", action="append", default=[], metavar="SYMBOL=FILE", help="a source file that supplies a symbol"
    )
    parser.add_argument("--stack-entry", metavar="FUNCTION", help="bound the stack under this function")
    parser.add_argument(
        "--stack-frame",
        action="append",
        default=[],
        metavar="FUNCTION=N",
        help="stack bytes of a function, including its callees",
    )
    parser.add_argument(
        "--stack-calls",
        action="append",
        default=[],
        metavar="FUNCTION=A,B",
        help="functions that a function can call through pointers",
    )


def run(args: argparse.Namespace) -> int:
    """Prints the report. 0: clean, 1: a violation, 2: an unusable file or option, 3: capstone is missing."""
    try:
        return _run(args)
    except NnbuildError as problem:
        print(f"nnbuild audit: {problem}", file=sys.stderr)
        return problem.exit_code


def _run(args: argparse.Namespace) -> int:
    budget = parse_budget(args.budget)
    objects = [path for path in args.files if path.suffix not in STACK_TABLES]
    if not objects and not args.stack_entry:
        raise UsageError("nnbuild audit", "only stack tables were given.", "Name a function with --stack-entry.")
    policy = load_policy(args.policy).with_overrides(may_use_fp=args.allow_fp, model_objects=args.model_objects)
    supplied = library_sources(args.libm) if args.libm is not None else {}
    supplied.update({name: Path(value) for name, value in _pairs(args.supply, "--supply")})
    report = None
    if objects:
        explain = [args.why] if args.why else []
        report = audit_files(objects, policy, supplied=supplied, budget=budget, explain=explain)
    if args.why:
        if report is None:
            raise UsageError(
                "--why", "needs objects; stack tables do not name symbols.", "Give .o, .a, .ko or ELF files."
            )
        print(explain_symbol(report, args.why))
        return 0
    stack = _stack(args, budget) if args.stack_entry else None
    _print(args.json, report, stack)
    return 0 if (report is None or report.clean) and (stack is None or stack.clean) else 1


def _stack(args: argparse.Namespace, budget: Budget) -> StackReport:
    frames = {name: parse_size(value, "--stack-frame") for name, value in _pairs(args.stack_frame, "--stack-frame")}
    calls = {name: value.split(",") for name, value in _pairs(args.stack_calls, "--stack-calls")}
    return stack_bound(args.files, args.stack_entry, budget.stack, frames=frames, may_call=calls)


def _print(target: str | None, report: AuditReport | None, stack: StackReport | None) -> None:
    text = render_text(report, len(stack.errors) if stack else 0) if report is not None else ""
    text += render_stack(stack) if stack is not None else ""
    if target != "-":
        sys.stdout.write(text)
    if target is None:
        return
    value: dict[str, Any] = report_json(report) if report is not None else {}
    if stack is not None:
        value["stack"] = stack_json(stack)
        value["clean"] = bool(value.get("clean", True)) and stack.clean
    written = json.dumps(value, indent=2) + "\n"
    if target == "-":
        sys.stdout.write(written)
        return
    try:
        Path(target).write_text(written, "utf-8")
    except OSError as problem:
        raise UsageError(target, f"cannot be written ({problem.strerror}).", "Give another path to --json.") from None


def _pairs(values: Iterable[str], option: str) -> Sequence[tuple[str, str]]:
    pairs = []
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name or not text:
            raise UsageError(option, f"cannot read {value!r}.", "Write NAME=VALUE.")
        pairs.append((name, text))
    return pairs


def parse_size(text: str, option: str) -> int:
    """`4096`, `4K` or `1M` as bytes."""
    match = re.fullmatch(r"(\d{1,15})([KM]?)", text.strip(), re.ASCII)
    if match is None:
        raise UsageError(option, f"cannot read the size {text!r}.", "Write bytes, as 4096 or 4K.")
    return int(match[1]) * UNITS[match[2]]


def parse_budget(text: str | None) -> Budget:
    if text is None:
        return Budget()
    limits: Mapping[str, int] = {}
    for name, value in _pairs(text.split(","), "--budget"):
        if name not in ("flash", "ram", "stack"):
            raise UsageError("--budget", f"knows no {name!r}.", "Use flash, ram and stack.")
        limits = {**limits, name: parse_size(value, "--budget")}
    return Budget(**limits)
