"""Signals of programs that use zeusm."""

import pytest

pytestmark = pytest.mark.once

FIRST_USE = """
import signal, time
import zeusm.memory as zm

zm.MemoryUSMShared(64).memset(1)
"""


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGTERM", "SIGHUP", "SIGXFSZ"])
def test_handlers_of_before_the_first_use_are_called(fresh, name):
    """LLVM in Intel's OpenCL runtime sets handlers of its own when it is loaded."""
    before = f"""
import signal
calls = []
signal.signal(signal.{name}, lambda number, _: calls.append(number))
"""
    after = f"""
signal.raise_signal(signal.{name})
assert calls == [signal.{name}]
"""
    fresh(before + FIRST_USE + after)


def test_handlers_of_after_the_first_use_outlive_an_interrupt(fresh):
    """LLVM's handler of an interrupt sets the actions that LLVM has found."""
    after = """
calls = []
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, lambda number, _: calls.append(number))
try:
    signal.raise_signal(signal.SIGINT)
    time.sleep(10)
except KeyboardInterrupt:
    pass
signal.raise_signal(signal.SIGTERM)
assert calls == [signal.SIGTERM]
"""
    fresh(FIRST_USE + after)


def test_a_signal_without_a_handler_ends_the_program(fresh):
    result = fresh(FIRST_USE + "signal.raise_signal(signal.SIGUSR1)", crashes=True)
    assert result.returncode == -10


def test_modules_are_built_beside_interrupts(fresh):
    """Ctrl-C in a terminal is a signal to all processes of the program's group."""
    pytest.importorskip("dpnp")
    fresh("""
        import os, signal, subprocess
        import numpy as np
        import zeusm
        import dpnp

        os.setpgid(0, 0)
        interrupts = []
        signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
        sender = "trap '' INT; while sleep 0.02; do kill -INT 0; done"
        numbers = np.arange(100, dtype="f4")
        with subprocess.Popen(["sh", "-c", sender]) as sending:
            try:
                for name in "sqrt", "cos", "square", "arctan":
                    result = dpnp.asnumpy(getattr(dpnp, name)(dpnp.asarray(numbers)))
                    assert np.allclose(result, getattr(np, name)(numbers), 1e-3, 1e-3), name
            finally:
                sending.kill()
        assert interrupts
    """)
