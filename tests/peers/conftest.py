"""Shared fixtures of the tests with other processes and libraries."""

import contextlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

# As in a user's program, before all packages that look for SYCL devices; Ray is one.
import zeusm

with contextlib.suppress(zeusm.LevelZeroError):  # Another runtime serves.
    zeusm.set_cpu_devices(1, cpu=True)  # for oneDAL

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
PURELIB = sysconfig.get_path("purelib")


@pytest.fixture(scope="session")
def run():
    """Runs a command with an environment of only the given variables, and returns its output."""

    def run(*command, fails=False, timeout=270, **env):
        paths = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        result = subprocess.run(
            [*map(str, command)],
            env=paths | env,
            cwd="/",  # Relative paths must not find files of the source tree.
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        told = f"exit {result.returncode}\n{result.stdout}\n{result.stderr}"
        assert (result.returncode != 0) == fails, told
        return result

    return run


@pytest.fixture(scope="module")
def ray_cluster():
    """Ray imports dpctl in each worker before any task; the workers have the environment of `zeusm run`."""
    import ray
    from zeusm._commands.run import environment_for

    with pytest.MonkeyPatch.context() as environment:
        for name, value in environment_for(zeusm.runtime()).items():
            environment.setenv(name, value)
        ray.init(
            num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False
        )
        yield
        ray.shutdown()


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """Python of an environment of its own, with the packages of this one, in which zeusm is enabled."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python3.*/site-packages")
    (site / "packages.pth").write_text(f"{PURELIB}\n")
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "zeusm", "enable"], check=True, capture_output=True)
    return python
