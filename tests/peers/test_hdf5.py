"""HDF5 reads and writes host-accessible memory without a copy of its own."""

import h5py
import numpy as np
import pytest
import zeusm


@pytest.mark.parametrize("usm_type", ["shared", "host"])
def test_a_dataset_is_written_from_memory_and_read_into_it(tmp_path, usm_type):
    numbers = np.arange(1000, dtype="f4").reshape(10, 100)
    source = zeusm.asarray(numbers, usm_type=usm_type)
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file.create_dataset("numbers", data=source)

    target = zeusm.empty(numbers.shape, dtype="f4", usm_type=usm_type)
    with h5py.File(tmp_path / "file.h5") as file:
        file["numbers"].read_direct(np.asarray(target))
    assert (target.copy_to_host() == numbers).all()
