"""`zeusm memory`: pictures of an allocation history, other formats of it, and its allocations again."""

import sys
from argparse import ArgumentParser, Namespace
from importlib import import_module
from pathlib import Path

from zeusm._commands.run import failure
from zeusm._pictures.file import HistoryError, load
from zeusm._pictures.replay import replay

NAME = "memory"
HELP = "Show an allocation history, as saved by zeusm.memory.record_history()."
#: The modules of the formats, and the suffixes of their files.
FORMATS = {"perfetto": ".trace.json", "pytorch": ".pickle", "flamegraph": ".svg"}


def add_arguments(parser: ArgumentParser) -> None:
    parser.set_defaults(output=None, status=0)
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    about = "Write one HTML page, which loads nothing: memory over time, blocks, slabs, the peak, failures."
    report = actions.add_parser("report", help=about, description=about)
    report.set_defaults(action=write_report)
    about = (
        "Write the history for another viewer: Perfetto's (ui.perfetto.dev), PyTorch's (pytorch.org/memory_viz), or a flame graph "
        "of the live bytes, as SVG, or as folded stacks if FILE ends with .txt."
    )
    export = actions.add_parser("export", help=about, description=about)
    export.add_argument("--to", required=True, choices=FORMATS, help="the viewer")
    export.add_argument(
        "--at",
        choices=("end", "peak"),
        help="the moment of a flame graph; by default the end",
    )
    export.set_defaults(action=write_export)
    about = "Print the figures of the recording, who held the memory at the peak, and what failed."
    text = actions.add_parser("summary", help=about, description=about)
    text.set_defaults(action=summarise)
    about = (
        "Run the allocations and frees of the history by zeusm's allocator, in pools that are empty at first. Print the first one that "
        "fails, and the fragmentation of each pool; the exit status is 1 if one failed."
    )
    again = actions.add_parser("replay", help=about, description=about)
    add_replay_arguments(again)
    again.set_defaults(action=replay_events)
    for action in (report, export, text, again):
        action.add_argument("history", metavar="HISTORY", type=Path, help="the file of the history")
    for action in (report, export):
        action.add_argument(
            "-o", "--output", metavar="FILE", type=Path, help="by default beside the history"
        )


def add_replay_arguments(parser: ArgumentParser) -> None:
    limits = parser.add_mutually_exclusive_group()
    limits.add_argument("--limit", metavar="BYTES", type=int, help="the limit of each pool")
    limits.add_argument(
        "--smallest-limit", action="store_true", help="find the smallest limit of each pool"
    )
    kinds, pools = ("host", "device", "shared"), ("recorded", "one", "none")
    parser.add_argument("--kind", choices=kinds, help="the kind of all memory")
    parser.add_argument(
        "--pool", choices=pools, default="recorded", help="by default the pools of the recording"
    )
    parser.add_argument("--device", metavar="FILTER", help="by default zeusm's default device")


def call(options: Namespace) -> int:
    if getattr(options, "at", None) and options.to != "flamegraph":
        return failure(NAME, "--at is for flame graphs: the other formats have all moments", 2)
    if getattr(options, "pool", None) == "none" and (options.limit or options.smallest_limit):
        return failure(NAME, "a limit is a pool's, and --pool none has none", 2)
    try:
        options.tree = load(options.history)
        options.found = replay(options.tree)
        text = options.action(options)
    except HistoryError as error:
        return failure(NAME, f"{options.history}: {error}", 2)
    except BrokenPipeError:
        raise  # The reader of the output wants no more.
    except OSError as error:
        file = error.filename or options.output or options.history
        return failure(NAME, f"{file}: {error.strerror or error}", 2)
    for dropped, what in (
        (options.tree.dropped, "events"),
        (options.tree.dropped_operations, "operations"),
    ):
        if dropped:
            note = (
                f"{dropped} {what} were dropped, the oldest first (max_events of record_history())"
            )
            print(f"zeusm {NAME}: {note}", file=sys.stderr)
    print(text)
    return int(options.status)


def place_output(options: Namespace) -> None:
    """Choose the output's name if none was given, and refuse that of the history."""
    # Only a path with a name can be loaded, so there is a name beside it.
    options.output = options.output or beside(options)
    if options.output.exists() and options.output.samefile(options.history):
        raise HistoryError("the output would overwrite the history: give it another name by -o")


def summarise(options: Namespace) -> str:
    from zeusm._pictures.summary import summary

    return "\n".join(summary(options.found))


def replay_events(options: Namespace) -> str:
    from zeusm._pictures.allocator import report

    try:
        lines, passed = report(options.found, options)
    except (
        AttributeError,
        ValueError,
    ) as error:  # Of the device, the limit or the history's kinds.
        raise HistoryError(f"it cannot be replayed: {error}") from error
    options.status = int(not passed)
    return "\n".join(lines)


def write_report(options: Namespace) -> str:
    from zeusm._pictures.page import page

    place_output(options)
    options.output.write_text(page(options.found), encoding="utf-8")
    return f"wrote {options.output}"


def write_export(options: Namespace) -> str:
    place_output(options)
    keywords = {"at_peak": options.at == "peak"} if options.to == "flamegraph" else {}
    write = import_module(f"zeusm._pictures.{options.to}").write
    write(options.found, options.output, **keywords)
    return f"wrote {options.output}"


def beside(options: Namespace) -> Path:
    """The name of the history's file with the output's suffix in place of its own."""
    path: Path = options.history
    stem = path.name.removesuffix(".gz").removesuffix(".json")
    return path.with_name(stem + (FORMATS[options.to] if "to" in options else ".html"))
