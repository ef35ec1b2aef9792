"""The commands of `python -m zeusm`: a module each, with a name, its help, its arguments if it has any, and the call that
returns the exit status."""

from types import ModuleType

from zeusm._commands import bench, check, disable, doctor, enable, info, memory, run, status

COMMANDS: list[ModuleType] = [run, check, enable, disable, status, doctor, info, memory, bench]
