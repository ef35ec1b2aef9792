"""Sub-groups, local memory, barriers and atomics on both devices of the CPU runtime, compared with NumPy."""

import kernel_tables
import pytest

DEVICES = ["level_zero:gpu", "level_zero:cpu"]
pytestmark = [
    pytest.mark.parametrize("device", DEVICES),
    pytest.mark.parametrize("dtype", kernel_tables.DTYPES),
]


@pytest.mark.parametrize("size", kernel_tables.SIZES)
def test_sub_groups(device, dtype, size):
    kernel_tables.sub_groups(device, dtype, size)


@pytest.mark.parametrize("group", [2, 3, 8, 16, 32, 33, 64])
def test_a_shuffle_before_a_branch(device, dtype, group):
    kernel_tables.shuffle_before_branch(device, dtype, group)


@pytest.mark.parametrize("is_argument", kernel_tables.ARGUMENTS)
def test_local_memory_and_barriers(device, dtype, is_argument):
    kernel_tables.local_memory(device, dtype, is_argument)


@pytest.mark.parametrize("storage", kernel_tables.STORAGES)
def test_atomics(device, dtype, storage):
    kernel_tables.atomics(device, dtype, storage)
