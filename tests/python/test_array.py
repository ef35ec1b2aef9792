"""UsmArray: views of memory, compared with NumPy views of the same bytes."""

import copy
import sys
import tracemalloc

import numpy as np
import pytest
import snapshots
import zeusm
import zeusm.memory
from arrays import DTYPES, mirrored, numbers
from conftest import CLASSES


class TestMaking:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_view_has_the_type(self, memory_class, dtype):
        memory = memory_class(64)
        memory.copy_from_host(bytes(range(64)) if dtype != "bool" else bytes([0, 1] * 32))
        array = memory.view(dtype)
        assert array.dtype == np.dtype(dtype)
        assert (array.ndim, array.size) == (1, 64 // np.dtype(dtype).itemsize)
        assert (array.itemsize, array.nbytes) == (np.dtype(dtype).itemsize, 64)
        assert array.copy_to_host().tobytes() == memory.tobytes()
        assert array.base is memory

    @pytest.mark.parametrize(
        "dtype", [np.float32, np.dtype("<f4"), "f4", "f", "<f4", float, int, bool, complex]
    )
    def test_types_are_spelt_as_in_numpy(self, dtype):
        assert zeusm.empty(3, dtype).dtype == np.dtype(dtype)

    @pytest.mark.parametrize(
        "dtype", [">f4", "V8", "S3", "U2", "M8[s]", "longdouble", "O", "(2,)f4", "i4,O", "i4,>f4"]
    )
    def test_other_types_are_refused(self, dtype):
        with pytest.raises(TypeError, match="not supported"):
            zeusm.empty(3, dtype)

    def test_no_type_at_all(self):
        with pytest.raises(TypeError):
            zeusm.empty(3, "float33")

    def test_view_from_an_offset(self, memory_class):
        memory = memory_class(64)
        memory.copy_from_host(bytes(range(64)))
        array = memory.view("uint16", offset=3)
        assert (array.size, array.offset) == (29, 3)
        assert array._pointer == memory._pointer + 6
        assert memory.view("u1", offset=64).size == 0

    @pytest.mark.parametrize(
        ("shape", "strides", "offset"),
        [
            ((16,), None, 0),
            ((2, 3), (8, 2), 1),
            ((4, 4), (-4, -1), 15),
            ((3, 5), (0, 3), 2),
            ((), None, 7),
            ((0, 3), None, 4),
            ((1, 3), (1 << 60, 2), 1),
        ],
    )
    def test_view_with_strides(self, memory_class, shape, strides, offset):
        memory = memory_class(64)
        memory.copy_from_host(numbers(16))
        array = memory.view("int32", shape, strides, offset)
        bytes_strides = None if strides is None else [4 * stride for stride in strides]
        wanted = np.ndarray(shape, "int32", memory.tobytes(), 4 * offset, bytes_strides)
        assert mirrored(wanted, array)
        assert array.offset == offset

    @pytest.mark.parametrize(
        ("shape", "strides", "offset"),
        [
            ((17,), None, 0),
            ((16,), None, 1),
            ((16,), None, -1),
            ((2,), (16,), 0),
            ((2,), (-1,), 0),
            ((2**62, 4), None, 0),
            ((2**40,), None, 0),
            ((-1,), None, 0),
            ((2**63,), None, 0),
            ((2,), (2**62,), 0),
            ((2,), (1, 1), 0),
            (None, None, 17),
            (None, None, -1),
        ],
    )
    def test_a_view_outside_of_the_memory_is_refused(self, memory_class, shape, strides, offset):
        with pytest.raises(ValueError, match=r"touches|shape|strides|outside|reach"):
            memory_class(64).view("int32", shape, strides, offset)

    def test_a_view_of_half_elements_is_refused(self):
        with pytest.raises(ValueError, match="whole number"):
            zeusm.memory.MemoryUSMHost(7).view("int16")

    @pytest.mark.parametrize("shape", ["3", 1.5, (1, "2"), (1, 1.5), {"a": 1}])
    def test_shapes_are_integers(self, shape):
        with pytest.raises(TypeError, match="shape"):
            zeusm.empty(shape)

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_empty(self, usm_type, order):
        array = zeusm.empty((2, 3, 4), "float32", usm_type=usm_type, order=order)
        wanted = np.empty((2, 3, 4), "float32", order)
        assert array.strides == tuple(stride // 4 for stride in wanted.strides)
        assert (array.c_contiguous, array.f_contiguous) == (order == "C", order == "F")
        assert array.usm_type == usm_type
        assert type(array.base) is CLASSES[usm_type]
        assert not array.readonly

    @pytest.mark.parametrize(
        ("keywords", "message"),
        [
            ({"usm_type": "managed"}, "usm_type"),
            ({"order": "K"}, "order"),
            ({"device": "level_zero:gpu:0", "queue": "level_zero:gpu:0"}, "either"),
        ],
    )
    def test_wrong_keywords(self, keywords, message):
        with pytest.raises((ValueError, TypeError), match=message):
            zeusm.empty(3, **keywords)

    def test_a_place_can_be_named(self, usm_type):
        dpctl = pytest.importorskip("dpctl")
        device = dpctl.SyclDevice("level_zero:gpu")
        context = dpctl.SyclContext([device])  # A list creates a new context.
        queue = dpctl.SyclQueue(context, device)
        for name in "device", "queue":
            array = zeusm.empty(3, usm_type=usm_type, **{name: queue})
            assert array.sycl_context == context
            assert array.sycl_device == queue.sycl_device
            assert array.sycl_queue == queue
        source = zeusm.asarray([1, 2, 3], usm_type=usm_type)
        moved = zeusm.asarray(source[::2], queue=queue)
        assert moved.sycl_context == context != source.sycl_context
        assert moved.copy_to_host().tolist() == [1, 3]
        with pytest.raises(ValueError, match="copy is False"):
            zeusm.asarray(source, queue=queue, copy=False)

    def test_the_place_of_another_array(self, usm_type):
        """As in the array API: `device` of an array, whosever it is, is a place for another one."""
        dpctl = pytest.importorskip("dpctl")
        dpnp = pytest.importorskip("dpnp")
        theirs = dpnp.ones(3)
        for place in theirs.device, zeusm.asarray(theirs).device, theirs:
            for ours in (
                zeusm.empty(3, usm_type=usm_type, device=place),
                zeusm.asarray(np.ones(3), usm_type=usm_type, device=place),
                zeusm.from_dlpack(np.ones(3), device=place),
            ):
                assert ours.sycl_queue == theirs.sycl_queue
                assert dpnp.ones(3, device=ours.device).sycl_queue == ours.sycl_queue
        device = dpctl.SyclDevice("level_zero:gpu")
        queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
        assert zeusm.empty(3, device=dpnp.ones(3, sycl_queue=queue).device).sycl_queue == queue
        assert zeusm.empty(3, device=queue).device == queue

    def test_a_place_in_dlpack(self, usm_type):
        source = zeusm.asarray([1, 2], usm_type="shared")
        place = source.__dlpack_device__()
        array = zeusm.asarray([1, 2], usm_type=usm_type, device=place)
        assert array.__dlpack_device__() == place
        assert zeusm.asarray(source, device=place)._pointer == source._pointer
        with pytest.raises(ValueError, match="only on a SYCL device"):
            zeusm.empty(3, device=(1, 0))

    def test_size_in_python(self, usm_type):
        sizes = [sys.getsizeof(zeusm.empty(n, "f8", usm_type=usm_type)) for n in (0, 1000)]
        assert sizes[1] - sizes[0] == 8000


class TestAsarray:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_of_numpy(self, usm_type, dtype):
        source = numbers((2, 3, 4), dtype)
        array = zeusm.asarray(source, usm_type=usm_type)
        assert array.usm_type == usm_type
        assert mirrored(source, array)
        source[...] = 0
        assert array.copy_to_host().any()

    @pytest.mark.parametrize(
        "key", [np.s_[::2], np.s_[:, ::-1], np.s_[..., 1:], np.s_[::-1, ::-1, ::-1], np.s_[:0]]
    )
    def test_of_strided_numpy(self, usm_type, key):
        source = numbers((4, 3, 4))
        for view in source[key], source.T[key], np.asfortranarray(source)[key]:
            array = zeusm.asarray(view, usm_type=usm_type)
            np.testing.assert_array_equal(array.copy_to_host(), view)
            assert all(stride >= 0 for stride in array.strides)

    def test_order_is_kept_or_made(self, usm_type):
        source = np.asfortranarray(numbers((3, 4)))
        assert zeusm.asarray(source, usm_type=usm_type).f_contiguous
        assert zeusm.asarray(source, usm_type=usm_type, order="C").c_contiguous
        array = zeusm.asarray(numbers((3, 4)), usm_type=usm_type)
        assert zeusm.asarray(array, order="K")._pointer == array._pointer
        assert zeusm.asarray(source, usm_type=usm_type, order="K").f_contiguous
        turned = zeusm.asarray(array, order="F")
        assert turned.f_contiguous
        assert turned._pointer != array._pointer
        np.testing.assert_array_equal(turned.copy_to_host(), numbers((3, 4)))

    def test_of_lists_and_scalars(self):
        assert zeusm.asarray([[1.5, 2], [3, 4]]).copy_to_host().tolist() == [[1.5, 2], [3, 4]]
        scalar = zeusm.asarray(7, dtype="uint8")
        assert (scalar.shape, scalar.copy_to_host()[()]) == ((), 7)
        assert zeusm.asarray([]).shape == (0,)
        assert zeusm.asarray([1, 2], "float32").copy_to_host().tolist() == [1.0, 2.0]

    def test_arithmetic_names_what_has_it_in_place(self):
        array = zeusm.asarray([1.0, 2.0], usm_type="shared")
        with pytest.raises(
            TypeError, match=r"dpnp\.from_dlpack\(array\) is an array over the same"
        ):
            array + 1

    def test_a_string_in_a_message_has_quotes(self):
        with pytest.raises(TypeError, match="not '3'"):
            zeusm.empty("3")

    def test_usm_is_taken_as_it_is(self, usm_type):
        array = zeusm.asarray(numbers(6), usm_type=usm_type)
        for taken in zeusm.asarray(array), zeusm.asarray(array, usm_type=usm_type, copy=False):
            assert taken._pointer == array._pointer
        bytes_of_it = zeusm.asarray(array.base)
        assert bytes_of_it.dtype == np.uint8
        assert bytes_of_it._pointer == array._pointer

    def test_usm_of_another_kind_is_copied(self, usm_type):
        array = zeusm.asarray(numbers((3, 4)), usm_type=usm_type)[:, ::2]
        for other in CLASSES:
            copy = zeusm.asarray(array, usm_type=other, copy=True)
            assert copy.usm_type == other
            assert copy._pointer != array._pointer
            assert copy.base.nbytes == array.nbytes
            np.testing.assert_array_equal(copy.copy_to_host(), numbers((3, 4))[:, ::2])
            if other != usm_type:
                with pytest.raises(ValueError, match="copy"):
                    zeusm.asarray(array, usm_type=other, copy=False)

    def test_usm_is_not_converted(self):
        with pytest.raises(TypeError, match="computing"):
            zeusm.asarray(zeusm.empty(3, "int32"), dtype="int64")

    def test_host_data_needs_a_copy(self):
        with pytest.raises(ValueError, match="copy"):
            zeusm.asarray([1, 2], copy=False)


class TestCopies:
    KEYS = (
        np.s_[:],
        np.s_[1],
        np.s_[::2],
        np.s_[:, 1:],
        np.s_[..., ::3],
        np.s_[:, ::-1, 1],
        np.s_[::-2, :, ::-1],
        np.s_[1:1],
        np.s_[0, 0, 0],
        np.s_[:, None, 2:, ...],
    )

    @pytest.mark.parametrize("key", KEYS, ids=str)
    @pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
    def test_from_host_touches_only_the_elements(self, usm_type, key, dtype):
        wanted = numbers((4, 5, 6), dtype)
        array = zeusm.asarray(wanted, usm_type=usm_type)
        new = np.asarray(255 - wanted[key], dtype)
        array[key].copy_from_host(new)
        wanted[key] = new
        np.testing.assert_array_equal(array.copy_to_host(), wanted)
        array.T[...].copy_from_host(wanted.T * 2)
        np.testing.assert_array_equal(array.copy_to_host(), wanted * 2)

    @pytest.mark.parametrize("key", KEYS, ids=str)
    def test_to_host(self, usm_type, key):
        source = numbers((4, 5, 6), "float32")
        array = zeusm.asarray(source, usm_type=usm_type)[key]
        copy = array.copy_to_host()
        np.testing.assert_array_equal(copy, source[key])
        assert copy.flags.writeable
        assert all(stride >= 0 for stride in copy.strides)
        target = np.zeros([2 * size for size in copy.shape], "float32")
        every_second = target[tuple(slice(None, None, 2) for _ in copy.shape)]
        if copy.ndim:
            assert array.copy_to_host(every_second) is every_second
            np.testing.assert_array_equal(every_second, source[key])
            assert target.sum() == every_second.sum()

    def test_fortran_order_is_one_copy_away(self, usm_type):
        array = zeusm.asarray(numbers((3, 4)), usm_type=usm_type).T
        target = np.empty((4, 3), "int32", order="F")
        array.copy_to_host(target)
        np.testing.assert_array_equal(target, numbers((3, 4)).T)
        array.copy_from_host(np.asfortranarray(target + 1))
        np.testing.assert_array_equal(array.T.copy_to_host(), numbers((3, 4)) + 1)

    def test_anything_with_a_buffer_is_a_destination(self, usm_type):
        array = zeusm.asarray(numbers(4, "uint8"), usm_type=usm_type)
        target = bytearray(4)
        assert array.copy_to_host(target) is target
        assert target == bytes([1, 2, 3, 4])

    def test_wrong_destinations(self, usm_type):
        array = zeusm.asarray(numbers((2, 3)), usm_type=usm_type)
        with pytest.raises(ValueError, match="shape"):
            array.copy_to_host(np.empty((3, 2), "int32"))
        with pytest.raises(ValueError, match="convert"):
            array.copy_to_host(np.empty((2, 3), "float32"))
        with pytest.raises(TypeError):
            array.copy_to_host([[0] * 3] * 2)
        frozen = np.zeros((2, 3), "int32")
        frozen.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            array.copy_to_host(frozen)
        assert not frozen.any()

    def test_wrong_sources(self, usm_type):
        array = zeusm.asarray(numbers((2, 3)), usm_type=usm_type)
        for source in np.zeros((3, 2), "int32"), np.zeros((2, 3)), [[0, 0, 0]], 0:
            with pytest.raises(ValueError, match=r"shape|convert"):
                array.copy_from_host(source)
        repeated = array.base.view("int32", (2, 2), (0, 1))
        with pytest.raises(ValueError, match="repeats"):
            repeated.copy_from_host(np.zeros((2, 2), "int32"))
        np.testing.assert_array_equal(array.copy_to_host(), numbers((2, 3)))

    @pytest.mark.parametrize(
        ("to", "source"),
        [
            (np.s_[::2], np.s_[:25]),
            (np.s_[:25], np.s_[::2]),
            (np.s_[25:], np.s_[::2]),
            (np.s_[::-1], np.s_[:]),
            (np.s_[1:], np.s_[:-1]),
        ],
    )
    def test_an_array_is_copied_over_a_part_of_itself(self, host_class, to, source):
        for direction in "from", "to":
            array = host_class(200).view("i4")
            array.copy_from_host(numbers(50))
            inside = np.asarray(array)
            if direction == "from":
                array[to].copy_from_host(inside[source])
            else:
                array[source].copy_to_host(inside[to])
            wanted = numbers(50)
            wanted[to] = numbers(50)[source]
            np.testing.assert_array_equal(inside, wanted)

    def test_overlapping_windows_are_read(self, usm_type):
        memory = zeusm.asarray(numbers(10), usm_type=usm_type).base
        windows = memory.view("int32", (4, 3, 3), (1, 2, 1))
        wanted = np.lib.stride_tricks.as_strided(numbers(10), (4, 3, 3), (4, 8, 4))
        np.testing.assert_array_equal(windows.copy_to_host(), wanted)

    @pytest.mark.parametrize("strides", [(0, 1), (1, 0), (1, 1)], ids=str)
    def test_repeated_elements_are_read_in_one_operation(self, strides):
        """And to NumPy's order for a copy."""
        memory = zeusm.asarray(numbers(11_000), usm_type="device").base
        array = memory.view("int32", (10_000, 100), strides)
        wanted = np.lib.stride_tricks.as_strided(
            numbers(11_000), array.shape, [4 * stride for stride in strides]
        )
        with zeusm.memory.record_history() as history:
            copies = [array.copy_to_host(), array.copy_to_host(np.empty(array.shape, "int32"))]
            usm = [copy.copy(array), zeusm.asarray(array, usm_type="shared", copy=True)]
        assert len(snapshots.rows(history.snapshot(), "operations")) <= 6
        copies += [it.copy_to_host() for it in usm]
        for it in copies:
            np.testing.assert_array_equal(it, wanted)
        assert copies[0].strides == wanted.copy("K").strides

    @pytest.mark.parametrize("order", "CF")
    def test_device_memory_is_read_without_a_staging_buffer(self, order):
        """NumPy tells tracemalloc the bytes of its arrays."""
        host = np.asarray(numbers((60, 80, 100), "float64"), order=order)
        array = zeusm.asarray(host, usm_type="device")
        for view, wanted in (array, host), (array[::2, ::2, ::2], host[::2, ::2, ::2]):
            view.copy_to_host()
            destination = np.zeros(wanted.shape, order=order)
            tracemalloc.start()
            try:
                found = view.copy_to_host()
                _, of_new = tracemalloc.get_traced_memory()
                kept = found.nbytes
                tracemalloc.reset_peak()
                assert view.copy_to_host(destination) is destination
                _, of_both = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert kept <= of_new < 1.2 * kept
            assert of_both < 1.2 * kept
            assert found.flags.owndata
            assert found.flags[f"{order}_CONTIGUOUS"]
            other = np.zeros(wanted.shape, order="F" if order == "C" else "C")
            for copied in found, destination, view.copy_to_host(other):
                np.testing.assert_array_equal(copied, wanted)

    def test_memory_objects_take_arrays(self, usm_type):
        array = zeusm.asarray(numbers(8), usm_type=usm_type)
        memory = zeusm.memory.MemoryUSMHost(16)
        memory.copy_from_device(array[2:6])
        assert memory.tobytes() == numbers(8)[2:6].tobytes()
        taken = zeusm.memory.as_usm_memory(array[1:3])
        assert (taken._pointer, taken.nbytes) == (array._pointer + 4, 8)


class TestNothing:
    """Arrays without elements."""

    @pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4), (0, 0)])
    def test_everywhere(self, usm_type, shape):
        array = zeusm.empty(shape, "float32", usm_type=usm_type)
        assert (array.shape, array.size, array.nbytes) == (shape, 0, 0)
        assert array.copy_to_host().shape == shape
        array.copy_from_host(np.empty(shape, "float32"))
        assert array.T.shape == shape[::-1]
        assert array.reshape(0, 5).shape == (0, 5)
        assert array.reshape(0, copy=True).shape == (0,)
        assert array[..., :0].size == 0
        assert zeusm.asarray(array, usm_type="host", copy=True).shape == shape
        assert zeusm.asarray(np.empty(shape), usm_type=usm_type).shape == shape
        assert zeusm.as_usm_array(array).shape == shape
        assert array.c_contiguous
        assert array.f_contiguous

    def test_in_memory_of_no_bytes(self, memory_class):
        array = memory_class(0).view("float64")
        assert array.shape == (0,)
        assert array.copy_to_host().shape == (0,)
        with pytest.raises(ValueError, match="touches"):
            memory_class(0).view("u1", (1,))


class TestLists:
    """A list of arrays in USM becomes one array."""

    def test_of_arrays(self, usm_type):
        host = np.arange(24, dtype="f4").reshape(2, 3, 4)
        rows = [zeusm.asarray(row, usm_type=usm_type) for row in host]
        array = zeusm.asarray(rows)
        assert array.usm_type == usm_type
        np.testing.assert_array_equal(array.copy_to_host(), host)
        nested = zeusm.asarray((rows, rows[::-1]), usm_type="host", order="F")
        assert nested.usm_type == "host"
        np.testing.assert_array_equal(np.asarray(nested), [host, host[::-1]])
        single = zeusm.asarray([rows[0].T[1, 2]])
        assert single.copy_to_host().tolist() == [host[0, 2, 1]]

    def test_with_another_type_fails_as_a_conversion(self):
        array = zeusm.asarray([1, 2])
        with pytest.raises(TypeError, match="not converted to float32.*dpnp.from_dlpack"):
            zeusm.asarray([array, array], "f4")
        with pytest.raises(ValueError, match="without a copy"):
            zeusm.asarray([array, array], copy=False)

    def test_of_different_shapes_is_numpys(self):
        array = zeusm.asarray([1, 2], usm_type="host")
        with pytest.raises(ValueError, match="inhomogeneous"):
            zeusm.asarray([array, array[:1]])
        assert zeusm.asarray([array[0], 3.5]).copy_to_host().tolist() == [1, 3.5]
        with pytest.raises(TypeError, match="copy_to_host"):
            zeusm.asarray([zeusm.asarray([1, 2]), [3, 4]])

    def test_of_device_memory_that_differs_names_both(self):
        """NumPy, which converts other lists, cannot read them."""
        rows = zeusm.asarray([[1.0, 2.0], [3.0, 4.0]], usm_type="device")
        for other, its in ((rows[0], r"\[2\] of float64"), (zeusm.empty((2, 2), "i4"), "int32")):
            with pytest.raises(
                ValueError, match=rf"same shape and dtype.*\[2, 2\] of float64.*{its}"
            ):
                zeusm.asarray([rows, other])

    def test_that_contains_itself(self):
        items = [zeusm.asarray([1, 2])]
        items[0] = items
        with pytest.raises(ValueError, match="sequence"):
            zeusm.asarray(items)
