"""Intel's driver does not support forked children: zeusm reports an error in the child, and the parent continues."""


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
