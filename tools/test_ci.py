"""Runs the lines of docs/howto/ci.md in a new Debian root: `test_ci.py ROOT PAGE WHEEL` (root).

GitLab's lines run there, as Debian's images have no sudo; GitHub's must be the same but for that. Those of JAX run if
ZEUSM_TEST_CI_JAX is set, as its packages have 3.5 GB.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

PROJECT = Path("root/project")
# Where `make install` has put the runtime.
PKG_CONFIG = "PKG_CONFIG_PATH=/opt/installed/lib/pkgconfig"


def jobs(page):
    """The lines of GitHub's job, of JAX, of GitLab's job, and of the installed runtime."""
    text = page.read_text()

    def blocks(language):
        return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)

    github, gitlab, jax = map(yaml.safe_load, blocks("yaml"))
    (github,) = github["jobs"].values()
    (gitlab,) = gitlab.values()
    runs = [[step["run"] for step in steps if "run" in step] for steps in (github["steps"], jax)]
    (installed,) = blocks("sh")
    return *runs, gitlab["script"], f"export {PKG_CONFIG}; {installed}"


def main(root, page, wheel):
    github, jax, gitlab, installed = jobs(page)
    assert [line.removeprefix("sudo ") for line in github] == gitlab[1:], "the two jobs differ"
    shutil.rmtree(root / PROJECT, ignore_errors=True)
    shutil.copytree("examples", root / PROJECT / "examples")
    shutil.copy(wheel, root / PROJECT)
    lines = [*gitlab, installed] + (jax if os.environ.get("ZEUSM_TEST_CI_JAX") else [])
    for line in lines:
        print(f"== {line}", flush=True)
        variables = [
            "DEBIAN_FRONTEND=noninteractive",
            "PIP_CERT=/etc/ssl/certs/ca-certificates.crt",
            f"ZEUSM=./{wheel.name}",
        ]
        command = [
            "sh",
            "tools/in_root.sh",
            root,
            "--",
            f"/{PROJECT}",
            *variables,
            "sh",
            "-ec",
            line,
        ]
        subprocess.run(command, check=True, timeout=1800)
    print(f"{len(lines)} lines ran, each with status 0")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
