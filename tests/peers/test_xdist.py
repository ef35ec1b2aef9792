"""The workers of pytest-xdist find zeusm's device."""

import sys

TEST = """
import os
import pytest

@pytest.mark.parametrize("_", range(2))
def test_the_device_is_found(_):
    import dpctl
    assert "PYTEST_XDIST_WORKER" in os.environ
    assert dpctl.get_num_devices(backend="level_zero") > 0
"""
PYTEST = ["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"]


def test_workers_find_the_device(run, environment, tmp_path):
    (tmp_path / "test_device.py").write_text(TEST)
    enabled = run(environment, *PYTEST, tmp_path)
    assert "2 passed" in enabled.stdout
    started = run(sys.executable, "-m", "zeusm", "run", sys.executable, *PYTEST, tmp_path)
    assert "2 passed" in started.stdout
