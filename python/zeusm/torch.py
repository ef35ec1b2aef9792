"""PyTorch's memory on Intel GPUs (``torch.xpu``) from pools of zeusm, and tensors over zeusm's arrays."""

import importlib as _importlib
import typing as _typing

from zeusm import _zeusm
from zeusm.memory import MemoryPool

__all__ = ["from_zeusm", "use"]


def use(pool: MemoryPool, *pools: MemoryPool) -> None:
    """Have PyTorch allocate memory of ``xpu:0`` from the first pool, of ``xpu:1`` from the second, and so on.

    Call it before PyTorch allocates, and once: it accepts an allocator only then. The pools' limits, statistics and histories
    are PyTorch's from then on. An allocation that fails is a ``RuntimeError`` with the pool's figures.

    Parameters
    ----------
    pool, *pools : zeusm.memory.MemoryPool
        Pools of device or shared memory in the default contexts of their devices.

    Raises
    ------
    RuntimeError
        If a pool is in no SYCL context, or PyTorch has an allocator already.
    zeusm.LevelZeroError
        On Windows, as the allocator is for Linux.
    """
    memory = _importlib.import_module("torch").xpu.memory
    _zeusm._torch_pools([pool, *pools])
    names = "zeusm_torch_allocate", "zeusm_torch_free"
    memory.change_current_allocator(memory.XPUPluggableAllocator(_zeusm.__file__, *names))


def from_zeusm(array: _zeusm.UsmArray) -> _typing.Any:
    """Make a tensor of PyTorch over an array, in place: what one writes, the other reads.

    Host and shared memory becomes a tensor of PyTorch's device ``cpu``, device memory one of ``xpu``. The work on the array is
    complete when this returns, and the tensor keeps the memory alive.

    Parameters
    ----------
    array : zeusm.UsmArray
        An array of types that PyTorch has, without negative strides.

    Returns
    -------
    torch.Tensor

    Raises
    ------
    TypeError
        For device memory, if this PyTorch has no Intel GPU.
    """
    torch = _importlib.import_module("torch")
    if any(stride < 0 for stride in array.strides):
        raise ValueError(
            "PyTorch has no negative strides: use zeusm.asarray(array, order='C', copy=True)"
        )
    if array.usm_type != "device":
        # Before 2.9, PyTorch takes the structure without a version only.
        version = (1, 3) if array.readonly else None
        return torch.from_dlpack(array.__dlpack__(dl_device=(1, 0), max_version=version))
    if torch.xpu.is_available():
        return torch.from_dlpack(array)
    raise TypeError(
        "USM-device memory is a tensor of torch.xpu only, which this PyTorch does not have: "
        "use zeusm.asarray(array, usm_type='shared'), or torch.from_numpy(array.copy_to_host())"
    )
