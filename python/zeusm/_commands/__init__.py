"""The commands of `python -m zeusm`: a module each, with a name, its help, its arguments, and the call that returns the exit
status."""

from argparse import ArgumentParser, Namespace
from typing import Protocol

from zeusm._commands import bench, check, disable, doctor, enable, info, memory, run, status


class Command(Protocol):
    """A module of this package."""

    NAME: str
    HELP: str

    def add_arguments(self, parser: ArgumentParser, /) -> None: ...
    def call(self, options: Namespace, /) -> int: ...


COMMANDS: list[Command] = [run, check, enable, disable, status, doctor, info, memory, bench]
