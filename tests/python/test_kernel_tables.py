"""Sub-groups, local memory, barriers and atomics on the CPU runtime, compared with NumPy."""

import kernel_tables
import pytest

DEVICE = "level_zero:gpu"
pytestmark = pytest.mark.parametrize("dtype", kernel_tables.DTYPES)


@pytest.mark.parametrize("size", kernel_tables.SIZES)
def test_sub_groups(dtype, size):
    kernel_tables.sub_groups(DEVICE, dtype, size)


@pytest.mark.parametrize("group", [2, 3, 8, 16, 32, 33, 64])
def test_a_shuffle_before_a_branch(dtype, group):
    kernel_tables.shuffle_before_branch(DEVICE, dtype, group)


@pytest.mark.parametrize("is_argument", kernel_tables.ARGUMENTS)
def test_local_memory_and_barriers(dtype, is_argument):
    kernel_tables.local_memory(DEVICE, dtype, is_argument)


@pytest.mark.parametrize("storage", kernel_tables.STORAGES)
def test_atomics(dtype, storage):
    kernel_tables.atomics(DEVICE, dtype, storage)
