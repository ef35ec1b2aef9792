"""DLPack capsules: who calls the deleter, and when the memory is freed."""

import ctypes
import gc
import threading
import weakref

import pytest
import zeusm
import zeusm.memory
from arrays import numbers
from dlpack_abi import (
    CPU,
    DELETER,
    Exporter,
    Producer,
    Unversioned,
    Versioned,
    api,
    lost,
    structure_in,
)

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("forget_exporters")]


class TestLifetime:
    @pytest.mark.parametrize("max_version", [None, (1, 0)])
    def test_a_capsule_that_is_not_consumed(self, usm_type, max_version):
        array = zeusm.asarray(numbers(9), usm_type=usm_type)
        memory = weakref.ref(array.base)
        capsule = array.__dlpack__(max_version=max_version)
        del array
        assert not lost(memory)
        del capsule
        assert lost(memory)

    @pytest.mark.parametrize("max_version", [None, (1, 0)])
    def test_a_capsule_that_is_consumed(self, usm_type, max_version):
        array = zeusm.asarray(numbers(9), usm_type=usm_type)
        memory = weakref.ref(array.base)
        capsules = [array.__dlpack__(max_version=max_version)]
        capsule = capsules[0]
        taken = zeusm.from_dlpack(Producer(capsules.pop, array.__dlpack_device__()))
        assert api.PyCapsule_GetName(capsule).startswith(b"used_dltensor")
        del array, capsule
        assert not lost(memory)
        view = taken[3:]
        del taken
        assert not lost(memory)
        assert view.copy_to_host().tolist() == [4, 5, 6, 7, 8, 9]
        del view
        assert lost(memory)

    def test_any_thread_may_call_the_deleter(self, usm_type):
        array = zeusm.asarray(numbers(9), usm_type=usm_type)
        memory = weakref.ref(array.base)
        capsule = array.__dlpack__()
        structure = structure_in(capsule)
        api.PyCapsule_SetName(capsule, b"used_dltensor")
        del array
        # ctypes releases the GIL around the call, so the deleter has to acquire it.
        thread = threading.Thread(
            target=lambda: structure.deleter(ctypes.addressof(structure)), daemon=True
        )
        thread.start()
        thread.join()
        assert lost(memory)
        del capsule

    def test_a_foreign_deleter_that_releases_the_gil_may_call_it(self, usm_type):
        """As PyTorch's does at the end of its tensor over an array of zeusm."""
        array = zeusm.asarray(numbers(9), usm_type=usm_type)
        alive, capsule = weakref.ref(array), array.__dlpack__()
        inner = structure_in(capsule)
        api.PyCapsule_SetName(capsule, b"used_dltensor")
        address = ctypes.addressof(inner)
        # The call of a function of C releases the GIL.
        outer = Exporter(array, deleter=DELETER(lambda _: inner.deleter(address)))
        outer.array = None
        taken = zeusm.from_dlpack(outer)
        del array
        assert not lost(alive)
        del taken
        assert lost(alive)

    @pytest.mark.parametrize("form", [Versioned, Unversioned])
    def test_a_foreign_deleter_is_called_once(self, array, form):
        exporter = Exporter(array, form)
        taken = zeusm.from_dlpack(exporter)
        views = [taken[0], taken.T, taken.base]
        del taken
        gc.collect()
        assert exporter.deleted == 0
        views.clear()
        gc.collect()
        assert exporter.deleted == 1
        with pytest.raises(ValueError, match="used before"):
            zeusm.from_dlpack(exporter)
        assert exporter.deleted == 1

    @pytest.mark.parametrize("form", [Versioned, Unversioned])
    def test_no_deleter(self, array, form):
        exporter = Exporter(array, form, deleter=DELETER())
        assert zeusm.from_dlpack(exporter)._pointer == array._pointer

    def test_host_memory_is_released_after_the_copy(self):
        exporter = Exporter(numbers(5), dl_device=(CPU, 0))
        taken = zeusm.from_dlpack(exporter)
        assert exporter.deleted == 1
        assert taken.copy_to_host().tolist() == [1, 2, 3, 4, 5]

    def test_memory_is_not_closed_under_arrays_and_capsules(self, memory_class):
        memory = memory_class(64)
        array = memory.view("u1")
        with pytest.raises(BufferError, match=r"memoryviews, arrays .* \(1 do\)"):
            memory.close()
        capsule = array[3:].__dlpack__()
        del array
        with pytest.raises(BufferError, match=r"memoryviews, arrays .* \(1 do\)"):
            memory.close()
        del capsule
        memory.close()
        with pytest.raises(ValueError, match="closed"):
            memory.view("u1")
        with pytest.raises(ValueError, match="closed"):
            memory.__dlpack__()

    def test_many(self, usm_type):
        array = zeusm.asarray(numbers(9), usm_type=usm_type)
        memory = weakref.ref(array.base)
        for number in range(2000):
            capsule = array.__dlpack__(max_version=(1, 0) if number % 2 else None)
            if number % 3:
                zeusm.from_dlpack(array)
        del capsule, array
        assert lost(memory)
