"""The command `zeusm`, which is `python -m zeusm`, too."""

import argparse
import io
import os
import sys
from collections.abc import Sequence

from zeusm import __version__
from zeusm._commands import COMMANDS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="zeusm", description="USM memory for Intel GPUs, and a Level Zero runtime on the CPU."
    )
    parser.add_argument("--version", action="version", version=f"zeusm {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        own = commands.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        command.add_arguments(own)
        own.set_defaults(call=command.call)
    # A process may be started without these files.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    # Names of files and devices may have characters that the output's encoding lacks.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    options = parser.parse_args(arguments)
    try:
        status: int = options.call(options)
        sys.stdout.flush()
    except OSError as error:
        # The reader of a closed pipe wants no more.
        if not isinstance(error, BrokenPipeError):
            print(f"zeusm: {error}", file=sys.stderr)
        try:
            sys.stdout.flush()
        except OSError:
            # The interpreter flushes what is left at its exit, and would fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
