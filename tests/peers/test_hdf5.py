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


@pytest.mark.parametrize("usm_type", ["shared", "host"])
def test_records(tmp_path, usm_type):
    records = np.zeros(5, [("x", "f4"), ("y", "i8")])
    records["y"] = range(5)
    source = zeusm.asarray(records, usm_type=usm_type)
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file.create_dataset("records", data=source)
    target = zeusm.empty(5, dtype=records.dtype, usm_type=usm_type)
    with h5py.File(tmp_path / "file.h5") as file:
        file["records"].read_direct(np.asarray(target))
    np.testing.assert_array_equal(target.copy_to_host(), records)


def test_device_memory_is_written_as_a_copy_and_read_in_parts(tmp_path):
    numbers = np.arange(1000, dtype="f4")
    source = zeusm.asarray(numbers, usm_type="device")
    with h5py.File(tmp_path / "file.h5", "w") as file:
        with pytest.raises(TypeError, match="copy_to_host"):
            file.create_dataset("refused", data=source)
        file.create_dataset("numbers", data=source.copy_to_host())
    target = zeusm.empty(1000, "f4")
    with h5py.File(tmp_path / "file.h5") as file:
        assert (zeusm.asarray(file["numbers"][...]).copy_to_host() == numbers).all()
        for start in range(0, 1000, 300):
            target[start : start + 300] = file["numbers"][start : start + 300]
    assert (target.copy_to_host() == numbers).all()
