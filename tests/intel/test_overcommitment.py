"""Requests of two processes for more device memory than there is end in errors, and the device is never lost."""

import os
import subprocess
import sys
import textwrap

import pytest
from on_the_simulator import MACHINE, MOVING

pytestmark = pytest.mark.skipif(
    MACHINE not in MOVING, reason="an integrated GPU has no memory of its own"
)

PROGRAM = """
    import random
    import sys

    import zeusm
    import zeusm.memory as zm

    choose = random.Random(int(sys.argv[1]))
    pool = zm.MemoryPool("device")
    held, refused, driver, operations = [], 0, 0, 0
    # The driver crashes in a first operation on a full device (docs/gpus.md).
    pool.malloc(1).memset(1)
    print("ready", flush=True)
    input()


    def request(value):
        size = choose.choice([1 << 16, 1 << 20, choose.randrange(1, 48 << 20)])
        memory = zm.MemoryUSMDevice(size, pool=choose.choice([True, False, pool]))
        memory.memset_async(value)
        if held:
            source, before = choose.choice(held)
            part = min(size, source.nbytes, 4096)
            memory[:part].copy_from_device_async(source[:part])
            assert memory[:part].tobytes() == bytes([before]) * part
            memory.memset_async(value)
        held.append((memory, value))


    for number in range(int(sys.argv[2])):
        try:
            request(number % 251)
        except zm.USMAllocationError as error:
            told = str(error)
            assert "OUT_OF_DEVICE_MEMORY" in told, told
            refused += "exceed what is free of the device's memory" in told
            driver += "zeMemAlloc" in told
        except zeusm.LevelZeroError as error:  # The driver's own memory for commands.
            assert "OUT_OF_DEVICE_MEMORY" in str(error), error
            operations += 1
        else:
            continue
        for _ in range(choose.randrange(1 + len(held))):
            held.pop(choose.randrange(len(held)))
    for memory, value in held:
        assert memory.tobytes()[-1:] == bytes([value])
    print(refused, driver, operations)
"""


def test_random_requests_beside_copies(tmp_path):
    """The kernel refuses what zeusm lets through: requests at the same moment, and the driver's memory for commands."""
    used = tmp_path / "used"
    used.write_bytes(bytes(8))
    variables = {"XE_SIM_VRAM": str(1 << 30), "XE_SIM_VRAM_USED": str(used)}
    # The probe of the driver ends without giving its memory back. Its result is kept.
    subprocess.run([sys.executable, "-c", "import zeusm; zeusm.runtime()"], check=True)
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    processes = [
        subprocess.Popen(
            [*command, str(number), "5000"],
            env=os.environ | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    ends = [process.communicate(timeout=280) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ends
    assert all(int(out.split()[0]) > 0 for out, _ in ends), ends
