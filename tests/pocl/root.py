"""Commands in the Debian root that has PoCL, with this project and its Python in it (root)."""

import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
# Debian's loader of OpenCL; PoCL's own library lacks a function of the API.
OPENCL = "/usr/lib/x86_64-linux-gnu/libOpenCL.so.1"


def python_files():
    """The interpreters behind the environments, and their libraries; of the system's those that the root has of no other version."""
    files = set()
    for command in PROJECT.glob(".venv*/bin/python"):
        python = command.resolve(strict=True)
        prefix = python.parents[1]
        files |= {python, prefix / "lib" / python.name} if prefix == Path("/usr") else {prefix}
    return sorted(files)


class Root:
    """The root, with what its commands share: `modules` is the folder of built modules."""

    def __init__(self, folder, modules):
        self.folder = folder.resolve()
        self.variables = {
            "ZEUSM_OPENCL_LIBRARY": OPENCL,
            "ZEUSM_RUNTIME": "cpu",
            "ZEUSM_CACHE_DIR": str(modules),
            "OCL_ICD_VENDORS": "/etc/OpenCL/vendors",
        }

    def command(self, *command, folder=PROJECT, **variables):
        """What runs a command there, in a folder of the project."""
        pairs = [f"{name}={value}" for name, value in (self.variables | variables).items()]
        enter = ["sh", PROJECT / "tools" / "in_root.sh", self.folder, PROJECT, *python_files()]
        return [*map(str, [*enter, "--", folder, *pairs, *command])]

    def version(self):
        """PoCL's version, by its package."""
        command = self.command("dpkg-query", "-W", "-f", "PoCL ${Version}", "libpocl2t64")
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
