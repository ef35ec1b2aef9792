"""Calls that terminate the process in Intel's driver, which zeusm refuses before."""

import pytest


@pytest.mark.parametrize("pool", ["1", "0"])
@pytest.mark.parametrize("kind", ["Host", "Device", "Shared"])
def test_sizes_beyond_the_memory(program, kind, pool):
    """With relaxed limits, the driver crashes or aborts for 2**44 bytes of host memory and more."""
    out = program(
        f"""
        import sys
        import zeusm.memory as zm

        for size in 1 << 44, 1 << 46, 1 << 62, sys.maxsize:
            try:
                zm.MemoryUSM{kind}(size)
            except zm.USMAllocationError as error:
                print("more than the memory" in str(error))
        memory = zm.MemoryUSM{kind}(64)
        memory.memset(7)
        assert memory.tobytes() == bytes([7]) * 64
        """,
        ZEUSM_POOL=pool,
    )
    assert out.splitlines() == ["True"] * 4
