"""PyTorch for CPUs: `zeusm.torch.from_zeusm`, `zeusm.from_dlpack` of tensors, and PyTorch's column in docs/exchange.md."""

import gc
import json
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
import zeusm
import zeusm.memory as zm
import zeusm.torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import peers_table

ROOT = Path(__file__).resolve().parents[2]
NAMES = [f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)]
NAMES += ["bool", "float16", "float32", "float64", "complex32", "complex64", "complex128"]
NAMES += ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]
NAMES += ["float8_e8m0fnu"]


@pytest.fixture(params=["host", "shared"])
def array(request):
    return zeusm.asarray(np.arange(12, dtype="f4").reshape(3, 4), usm_type=request.param)


@pytest.mark.parametrize("key", np.s_[:, 1, 1:, :, ::2, (2, 3), 0:0], ids=str)
def test_the_tensor_is_the_same_memory(array, key):
    part = array[key]
    tensor = zeusm.torch.from_zeusm(part)
    assert tensor.device.type == "cpu"
    assert tuple(tensor.shape) == part.shape
    assert not tensor.numel() or (tensor.stride(), tensor.data_ptr()) == (
        part.strides,
        part._pointer,
    )
    assert tensor.tolist() == part.copy_to_host().tolist()


def test_what_one_writes_the_other_reads(array):
    tensor = zeusm.torch.from_zeusm(array.T)
    tensor[1, 2] = 50
    assert array.copy_to_host()[2, 1] == 50
    array[0, 3] = 60
    assert tensor[3, 0] == 60


@pytest.mark.parametrize("name", NAMES)
def test_types(name):
    array = zeusm.empty(3, name, usm_type="shared")
    tensor = zeusm.torch.from_zeusm(array)
    assert (tensor.dtype, tensor.data_ptr()) == (getattr(torch, name), array._pointer)
    back = zeusm.from_dlpack(tensor)
    assert (back.dtype, back._pointer) == (array.dtype, array._pointer)


def test_it_waits_for_the_work_on_the_array():
    memory = zm.MemoryUSMShared(64 << 20)
    event = memory.memset_async(3)
    tensor = zeusm.torch.from_zeusm(memory.view("u1"))
    assert event.is_complete
    assert tensor[-1] == 3


def test_the_tensor_keeps_the_memory():
    array = zeusm.asarray(np.arange(4.0), usm_type="shared")
    tensor, alive = zeusm.torch.from_zeusm(array), weakref.ref(array)
    back = zeusm.from_dlpack(tensor)
    del array, tensor
    gc.collect()
    assert alive() is not None
    assert back.copy_to_host().tolist() == [0, 1, 2, 3]
    del back  # PyTorch calls zeusm's deleter without the GIL here.
    gc.collect()
    assert alive() is None


def test_a_read_only_array():
    frozen = np.asarray(zeusm.asarray(np.arange(3.0), usm_type="host"))
    frozen.flags.writeable = False
    view = zeusm.from_dlpack(frozen)
    assert view.readonly
    assert zeusm.torch.from_zeusm(view).tolist() == [0, 1, 2]


def test_what_pytorch_has_not(array):
    with pytest.raises(ValueError, match="negative strides"):
        zeusm.torch.from_zeusm(array[::-1])
    with pytest.raises(BufferError):
        zeusm.torch.from_zeusm(zeusm.empty(3, "float8_e3m4", usm_type="host"))
    if not torch.xpu.is_available():
        with pytest.raises(TypeError, match="usm_type='shared'"):
            zeusm.torch.from_zeusm(zeusm.asarray(array, usm_type="device"))


def test_a_tensor_in_usm_has_a_handle(array):
    tensor = zeusm.torch.from_zeusm(array)
    handle = zeusm.from_dlpack(tensor[1]).base.ipc_handle()
    with zm.IPCMemoryHandle.open(handle) as memory:
        assert memory.view("f4").copy_to_host().tolist() == [4, 5, 6, 7]


def test_numpys_view_is_a_tensor_in_place(array):
    assert torch.from_numpy(np.asarray(array)).data_ptr() == array._pointer


def test_memory_of_pytorch_is_copied():
    theirs = torch.arange(6).reshape(2, 3).T
    mine = zeusm.from_dlpack(theirs)
    assert mine.usm_type == "device"
    assert mine.copy_to_host().tolist() == [[0, 3], [1, 4], [2, 5]]
    with pytest.raises(BufferError, match="copy"):
        zeusm.from_dlpack(theirs, copy=False)


@pytest.mark.parametrize("row", peers_table.ROWS)
def test_a_cell(row):
    assert peers_table.outcome(row, "PyTorch") == peers_table.table()[row]["PyTorch"]


def test_tvm_ffi_takes_an_array_as_fast_as_a_tensor():
    """By DLPack's table of functions, in the same run; of the three kinds of memory that which other programs disturbed least."""
    command = [sys.executable, ROOT / "benches/exchange.py"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    print(output)
    records = [json.loads(line) for line in output.splitlines()]
    passed = [each["values"] for each in records if each["group"].startswith("pass to a function")]
    assert len(passed) == 3
    assert min(values["zeusm"] / values["PyTorch"] for values in passed) <= 1
