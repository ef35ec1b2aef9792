"""Intel's driver does not support forked children: zeusm reports an error in the child, and the parent continues."""

import pytest
from on_the_simulator import MACHINE, MOVING


def test_a_child_is_told_and_the_parent_goes_on(program):
    out = program(
        """
        import os
        import warnings
        import zeusm
        import zeusm.memory as zm

        warnings.simplefilter("ignore", DeprecationWarning)
        memory = zm.MemoryUSMDevice(1 << 20)
        memory.memset(1)
        child = os.fork()
        if child == 0:
            told = 0
            for step in (lambda: memory.memset(2), memory.copy_to_host, lambda: zm.MemoryUSMDevice(1 << 20)):
                try:
                    step()
                except (zeusm.LevelZeroError, zm.USMAllocationError) as error:
                    told += "was forked from one that uses the Level Zero driver" in str(error)
            os._exit(told)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        print(bytes(memory.copy_to_host()[:2]))
        """
    )
    assert out.splitlines() == ["3", repr(bytes([1, 1]))]


@pytest.mark.skipif(
    MACHINE not in MOVING, reason="shared memory of an integrated GPU does not migrate"
)
@pytest.mark.parametrize("size", [64, 300_001])
def test_shared_memory_that_the_device_used_is_refused_in_a_child(program, size):
    """The driver aborted the child when it could not migrate the memory."""
    out = program(
        f"""
        import os
        import pickle
        import warnings
        import numpy
        import zeusm
        import zeusm.memory as zm

        warnings.simplefilter("ignore", DeprecationWarning)
        memory = zm.MemoryUSMShared({size})
        memory.memset_async(7).wait()
        child = os.fork()
        if child == 0:
            told = 0
            for step in (
                lambda: memoryview(memory),
                lambda: numpy.asarray(memory),
                lambda: memory[:5].tobytes(),
                lambda: memory.copy_from_host(b"abcd"),
                lambda: pickle.dumps(memory),
                lambda: zm.MemoryUSMHost(memory, copy=True),
            ):
                try:
                    step()
                except Exception as error:
                    told += "was forked from one that uses the Level Zero driver" in str(error)
            os._exit(told)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        print(set(memory.tobytes()))
        """
    )
    assert out.split() == ["6", "{7}"]
