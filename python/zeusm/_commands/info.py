"""`zeusm info`: versions, the runtime, devices, memory and pools."""

import importlib.metadata
import json
import os
import platform
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, Literal

import zeusm
import zeusm.memory as zm
from zeusm import _zeusm
from zeusm._commands.run import LOADER, failure
from zeusm._pictures.text import size

NAME = "info"
HELP = "Print the versions, the runtime that serves and why, the devices, their memory, and the default pools."

#: Packages whose versions matter, if they are installed.
PACKAGES = ("dpctl", "dpnp", "numba-dpex", "numpy", "numba", "dask", "torch")
KINDS: tuple[Literal["device", "shared", "host"], ...] = ("device", "shared", "host")


def add_arguments(parser: ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, for programs and issues")
    form.add_argument(
        "--driver",
        action="store_true",
        help="print the path of zeusm's own Level Zero runtime, for ZE_ENABLE_ALT_DRIVERS; no runtime is initialised",
    )


def call(options: Namespace) -> int:
    if options.driver:
        own = Path(zeusm.__file__).with_name("lib") / LOADER
        print(Path(os.environ.get("ZEUSM_CPU_LIBRARY", own)).absolute())
        return 0
    try:
        found = gather()
    except (zeusm.LevelZeroError, ValueError) as error:
        return failure(NAME, error, 1)
    if options.json:
        json.dump(found, sys.stdout, indent=2)
        print()
    else:
        report(found)
    return 0


def gather() -> dict[str, Any]:
    """Return what is known, as numbers, strings and lists."""
    runtime = zeusm.runtime()
    return {
        "zeusm": zeusm.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": {name: version for name in PACKAGES if (version := installed(name))},
        "runtime": {
            "kind": runtime.kind,
            "path": str(runtime.path),
            "reason": runtime.reason,
        },
        "devices": [device(index, name) for index, name in enumerate(runtime.device_names)],
        "pools": [pool(kind) for kind in KINDS],
    }


def installed(name: str) -> str | None:
    """Return a package's version; the package is not imported."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def device(index: int, name: str) -> dict[str, Any]:
    """Return a device's name and memory, or why its driver does not report that."""
    try:
        free, total = _zeusm._device_memory(index)
    except zeusm.LevelZeroError as error:
        return {"index": index, "name": name, "free": None, "total": None, "reason": str(error)}
    return {"index": index, "name": name, "free": free, "total": total}


def pool(kind: Literal["device", "shared", "host"]) -> dict[str, Any]:
    """Return the figures of the default pool of a kind, which this process has just made."""
    statistics = zm.get_pool(kind).statistics()
    return {
        "kind": kind,
        "used_bytes": statistics.used_bytes,
        "total_bytes": statistics.total_bytes,
        "limit": statistics.limit,
    }


def report(found: dict[str, Any]) -> None:
    """Print what was gathered, a line each."""
    packages = ", ".join(f"{name} {version}" for name, version in found["packages"].items())
    line("zeusm", found["zeusm"])
    line("python", f"{found['python']}, {found['system']}")
    line("packages", packages or "none that zeusm works with")
    runtime = found["runtime"]
    line("runtime", f"{runtime['kind']}: {runtime['path']}")
    line("", runtime["reason"])
    for entry in found["devices"]:
        line(f"device {entry['index']}", entry["name"])
        if entry["free"] is None:
            line("", entry["reason"])
        else:
            line("", f"{size(entry['free'])} free of {size(entry['total'])}")
    for entry in found["pools"]:
        limit = "no limit" if entry["limit"] is None else f"at most {size(entry['limit'])}"
        held = f"{size(entry['used_bytes'])} in use of {size(entry['total_bytes'])} held, {limit}"
        line(f"pool: {entry['kind']}", held)


def line(title: str, text: str) -> None:
    print(f"{title:14} {text}")
