"""SYCL's Unified Runtime records graphs on the CPU runtime natively, as SYCL does for graphs with that property."""

import sys
from pathlib import Path

import pytest
import zeusm

LIBRARY = Path(sys.prefix) / "lib/libur_loader.so.0"

pytestmark = [
    pytest.mark.skipif(zeusm.runtime().kind != "cpu", reason="not every driver has the extension"),
    pytest.mark.skipif(not LIBRARY.exists(), reason="the Unified Runtime comes with dpctl"),
]

#: Two queues are recorded, the second one of which forks from the first one by an event and is joined by another.
PROGRAM = """
    import ctypes
    import sys
    import zeusm

    library = ctypes.CDLL(sys.argv[1])

    def call(name, *arguments):
        code = getattr(library, name)(*arguments)
        assert code == 0, (name, code)

    def made(name, *arguments, kind=ctypes.c_void_p):
        value = kind()
        call(name, *arguments, ctypes.byref(value))
        return value

    def listed(name, *arguments):
        count = made(name, *arguments, 0, None, kind=ctypes.c_uint32).value
        found = (ctypes.c_void_p * count)()
        call(name, *arguments, count, found, None)
        return [ctypes.c_void_p(it) for it in found]

    def events(*all):
        return len(all), (ctypes.c_void_p * len(all))(*(event.value for event in all))

    call("urLoaderInit", 0, None)
    platforms = [it for adapter in listed("urAdapterGet") for it in listed("urPlatformGet", adapter)]
    (device,) = [it for platform in platforms for it in listed("urDeviceGet", platform, 3)]
    context = made("urContextCreate", 1, ctypes.byref(device), None)
    queues = [made("urQueueCreate", context, device, None) for _ in range(2)]
    size = ctypes.c_size_t(64)
    first, second = (
        made("urUSMSharedAlloc", context, device, None, None, size) for _ in range(2)
    )
    one, no = ctypes.c_size_t(1), ctypes.c_bool(False)
    call("urQueueBeginGraphCaptureExp", queues[0])
    forked = made("urEnqueueUSMFill", queues[0], first, one, b"\\7", size, 0, None)
    joined = made("urEnqueueUSMMemcpy", queues[1], no, second, first, size, *events(forked))
    is_forked = made("urQueueIsGraphCaptureEnabledExp", queues[1], kind=ctypes.c_bool)
    assert is_forked.value
    call("urEnqueueEventsWait", queues[0], *events(joined), None)
    graph = made("urQueueEndGraphCaptureExp", queues[0])
    executable = made("urGraphInstantiateGraphExp", graph)
    for _ in range(10):
        for memory in first, second:
            ctypes.memset(memory, 0, 64)
        call("urEnqueueGraphExp", queues[0], executable, 0, None, None)
        call("urQueueFinish", queues[0])
        for memory in first, second:
            assert ctypes.string_at(memory, 64) == b"\\7" * 64
    call("urGraphExecutableGraphDestroyExp", executable)
    call("urGraphDestroyExp", graph)
    print("recorded")
"""


def test_two_queues_are_recorded(fresh):
    if b"urQueueBeginGraphCaptureExp" not in LIBRARY.read_bytes():
        pytest.skip("this Unified Runtime records no graphs")
    output = fresh(PROGRAM, LIBRARY, env={"ZEUSM_RUNTIME": "cpu"}).stdout
    assert output.splitlines()[-1] == "recorded"
