"""The command `zeusm`, which is `python -m zeusm`, too."""

import argparse
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
    options = parser.parse_args(arguments)
    status: int = options.call(options)
    return status


if __name__ == "__main__":
    sys.exit(main())
