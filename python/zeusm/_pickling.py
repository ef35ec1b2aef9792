"""Pickling: of memory its bytes, its alignment, its root device by the filter string, and its kind; of an array the memory object
that holds the elements, and the layout in it."""

from zeusm._zeusm import MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared, UsmArray, _Memory

TYPE_CHECKING = False  # The import of zeusm does without typing.
if TYPE_CHECKING:
    from typing import Any
else:  # Annotations can be evaluated.
    Any = object

#: The version of the pickled states.
VERSION = 1
#: The first protocol with out-of-band buffers.
OUT_OF_BAND = 5
#: Without SYCL, and of a device that this machine lacks. Others may be of a handler of a signal.
NO_DEVICE = (ImportError, RuntimeError, ValueError)
CLASSES = {"device": MemoryUSMDevice, "shared": MemoryUSMShared, "host": MemoryUSMHost}


def reduce_memory(memory: Any, protocol: int, alignment: int, usm_type: str) -> tuple[Any, ...]:
    """Return the function that unpickles, and its arguments."""
    if protocol < OUT_OF_BAND:
        content = memory.tobytes()
    else:
        from pickle import PickleBuffer

        # The memory itself if the host can access it: with out-of-band buffers, no byte is copied.
        content = PickleBuffer(memory.copy_to_host() if usm_type == "device" else memory)
    return _from_pickle, (VERSION, content, alignment, filter_string(memory), usm_type)


def filter_string(memory: Any) -> Any:
    """The filter string of the root device. A sub-device has none; without SYCL there is none."""
    try:
        device = memory.sycl_device
        while device.parent_device is not None:
            device = device.parent_device
        return device.filter_string
    except NO_DEVICE:
        return None


def check_version(of: str, found: int) -> None:
    if found != VERSION:
        raise ValueError(
            f"the pickle of {of} has version {found}, and this zeusm reads version {VERSION}: use the zeusm that wrote it, or a "
            "newer one"
        )


def _from_pickle(version: int, *state: Any) -> _Memory:
    """Allocate memory with these bytes, on the named device if it exists, else on the default device."""
    check_version("a memory object", version)
    content, alignment, device, usm_type = state
    if usm_type not in CLASSES:
        raise ValueError(f"usm_type must be 'device', 'shared' or 'host', not {usm_type!r}")
    size = memoryview(content).nbytes
    try:
        memory = CLASSES[usm_type](size, alignment=alignment, queue=device)
    except NO_DEVICE:
        if device is None:
            raise
        # Any other error occurs again without the device.
        memory = CLASSES[usm_type](size, alignment=alignment)
    memory.copy_from_host(content)
    return memory


def _array_from_pickle(version: int, *state: Any) -> UsmArray:
    """A view of the unpickled memory, which checks the layout."""
    check_version("an array", version)
    memory, dtype, *layout = state
    if isinstance(dtype, list):
        from numpy.lib.format import descr_to_dtype

        dtype = descr_to_dtype(dtype)
    array: UsmArray = memory.view(dtype, *layout)
    return array


# Pickles refer to them by these modules.
_from_pickle.__module__ = "zeusm.memory"
_array_from_pickle.__module__ = "zeusm"
