"""Arrays of records: exchange with NumPy, fields as views, and descriptions that are no records."""

import copy
import pickle
import re

import numpy as np
import pytest
import zeusm
import zeusm.memory
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tensors import tensor

pytestmark = pytest.mark.once

PACKED = np.dtype([("x", "f4"), ("y", "i8")])
ALIGNED = np.dtype([("tag", "u1"), ("x", "f8"), ("y", "i2")], align=True)
NESTED = np.dtype([("at", [("row", "i4"), ("column", "u2")]), ("m", "c8", (2, 3)), ("on", "?")])
SPARSE = np.dtype({"names": ["b"], "formats": ["<i4"], "offsets": [8], "itemsize": 24})
DTYPES = pytest.mark.parametrize(
    "dtype", [PACKED, ALIGNED, NESTED, SPARSE], ids=["packed", "aligned", "nested", "sparse"]
)


def records(dtype, count=6):
    """Records whose fields are all different, with zeros between them."""
    made = np.zeros(count, dtype)
    for number, name in enumerate(dtype.names):
        field = made[name]
        if field.dtype.names:
            for inner in field.dtype.names:
                field[inner] = np.arange(count) + 10 * number
        else:
            field[...] = np.arange(field.size).reshape(field.shape) + 100 * number
    return made


def same(array, expected):
    """Whether an array has the type and the bytes of a NumPy array. Padding has no contents."""
    assert array.dtype == expected.dtype
    assert array.shape == expected.shape
    back = array.copy_to_host()
    assert back.dtype == expected.dtype
    np.testing.assert_array_equal(back, expected)
    return True


class TestNumPy:
    @DTYPES
    def test_copies_in_both_directions(self, dtype, usm_type):
        host = records(dtype)
        array = zeusm.asarray(host, usm_type=usm_type)
        assert array.itemsize == dtype.itemsize
        assert same(array, host)
        assert same(array[::-2], host[::-2])
        array.copy_from_host(host[::-1])
        destination = np.zeros_like(host)
        assert array.copy_to_host(destination) is destination
        np.testing.assert_array_equal(destination, host[::-1])

    @DTYPES
    def test_views_without_a_copy(self, dtype, host_class):
        array = zeusm.asarray(records(dtype), usm_type=host_class(1).get_usm_type())
        for view in (np.asarray(array), np.asarray(memoryview(array)), np.array(array, copy=False)):
            assert view.dtype == dtype
            assert view.ctypes.data == array._pointer
        np.asarray(array)[2] = np.zeros((), dtype)
        assert array[2].copy_to_host() == np.zeros((), dtype)
        assert array.__array_interface__["descr"] == dtype.descr

    def test_converts_host_data(self):
        array = zeusm.asarray([(1, 2), (3, 4)], dtype=PACKED)
        assert same(array, np.array([(1, 2), (3, 4)], PACKED))
        assert same(zeusm.asarray(np.rec.array([(1, 2)], PACKED)), np.array([(1, 2)], PACKED))

    @DTYPES
    def test_memory_is_viewed_as_records(self, dtype, memory_class):
        memory = memory_class(4 * dtype.itemsize)
        memory.copy_from_host(records(dtype, 4))
        assert same(memory.view(dtype), records(dtype, 4))
        assert same(memory.view(dtype, (2,), (2,), 1), records(dtype, 4)[1::2])

    @given(
        hnp.array_dtypes(subtype_strategy=hnp.integer_dtypes(endianness="="), allow_subarrays=True)
    )
    def test_any_record_of_numpy(self, titled):
        assume(not any({":", "\0"} & {*name} for name in titled.names))
        host = np.zeros(3, titled)
        assert (zeusm.asarray(host).copy_to_host(host) == np.zeros(3, titled)).all()
        dtype = np.dtype([(name, titled.fields[name][0]) for name in titled.names])
        host = np.zeros(3, dtype)
        host.view("u1")[...] = np.arange(host.nbytes) % 251
        array = zeusm.asarray(host, usm_type="shared")
        assert same(array, host)
        assert np.asarray(array).dtype == dtype
        for name in dtype.names:
            assert array[name].copy_to_host().tobytes() == host[name].tobytes()


class TestFields:
    @DTYPES
    def test_reads_and_writes(self, dtype, usm_type):
        host = records(dtype)
        array = zeusm.asarray(host, usm_type=usm_type)
        for name in dtype.names:
            assert same(array[name], host[name])
            assert same(array[name][1::2], host[name][1::2])
            assert same(array[::-1][name], host[::-1][name])
            assert same(array[2][name], np.asarray(host[2][name]))
            array[name] = host[name][::-1]
            host[name] = host[name][::-1].copy()
            assert same(array, host)  # No other field has changed.
            array[name][0] = host[name][-1]
            host[name][0] = host[name][-1]
            assert same(array, host)

    def test_nested_fields(self, usm_type):
        host = records(NESTED)
        array = zeusm.asarray(host, usm_type=usm_type)
        assert same(array["at"]["column"], host["at"]["column"])
        array["at"]["row"] = 5
        host["at"]["row"] = 5
        array["m"][:, 1, ::2] = 7
        host["m"][:, 1, ::2] = 7
        assert same(array, host)

    def test_records_are_assigned(self, usm_type):
        host = records(PACKED)
        array = zeusm.asarray(host, usm_type=usm_type)
        array[1] = host[1] = (2.5, -1)
        array[2:4] = host[2:4] = [(1, 2), (3, 4)]
        array[4:] = host[4:] = np.array((9, 8), PACKED)
        array[0] = zeusm.asarray(host[1], usm_type=usm_type)
        host[0] = host[1]
        assert same(array, host)
        with pytest.raises(ValueError, match="needs to be converted"):
            array[:2] = zeusm.asarray(records(ALIGNED, 2))

    def test_strides_count_elements_where_they_can(self):
        array = zeusm.empty(3, dtype=[("x", "f4"), ("y", "i8"), ("z", "i4")])
        assert (array["x"].strides, array["x"].offset, array["x"].base is array.base) == (
            (4,),
            0,
            True,
        )
        assert (array["y"].strides, array["z"].offset) == ((2,), 3)
        uneven = zeusm.empty(3, dtype=PACKED)["y"]
        for attribute in ("strides", "offset"):
            with pytest.raises(ValueError, match="no multiple of the 8 bytes of an element"):
                getattr(uneven[1:], attribute)

    def test_names(self):
        array = zeusm.empty(3, dtype=PACKED)
        with pytest.raises(IndexError, match="no field 'z', only 'x', 'y'"):
            array["z"]
        with pytest.raises(IndexError, match="of float64 and have no field 'x'"):
            zeusm.empty(3)["x"]
        with pytest.raises(IndexError, match="one field name at a time"):
            array[["x", "y"]]
        with pytest.raises(IndexError, match="one field name at a time"):
            array[["x", "y"]] = 1


class TestObjects:
    @DTYPES
    def test_copies_and_pickles(self, dtype, usm_type):
        host = records(dtype)
        array = zeusm.asarray(host, usm_type=usm_type)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert same(pickle.loads(pickle.dumps(array, protocol)), host)
        assert same(copy.copy(array), host)
        assert same(copy.deepcopy(array[::3]), host[::3])
        for name in dtype.names:
            assert same(pickle.loads(pickle.dumps(array[name])), host[name])
            copied = copy.copy(array[name])
            assert same(copied, host[name])
            assert copied.c_contiguous
        buffers = []
        data = pickle.dumps(array, 5, buffer_callback=buffers.append)
        assert same(pickle.loads(data, buffers=buffers), host)

    def test_text(self):
        array = zeusm.empty(3, dtype=SPARSE)
        assert "dtype [('', '|V8'), ('b', '<i4'), ('', '|V12')]" in repr(array)

    @DTYPES
    def test_changes_of_shape(self, dtype):
        host = records(dtype)
        array = zeusm.asarray(host)
        assert same(array.reshape(2, 3).T, host.reshape(2, 3).T)
        for name in dtype.names:
            for order in "CF":
                view = array[name].reshape(-1, order=order)
                np.testing.assert_array_equal(
                    view.copy_to_host(), host[name].reshape(-1, order=order)
                )


class TestInterface:
    @DTYPES
    def test_records_pass_through_the_interface(self, dtype, usm_type):
        array = zeusm.asarray(records(dtype), usm_type=usm_type)
        description = array.__sycl_usm_array_interface__
        assert description["typestr"] == dtype.str
        assert description["typedescr"] == description["descr"] == dtype.descr
        again = zeusm.as_usm_array(array[::2])
        assert same(again, records(dtype)[::2])
        assert again._pointer == array._pointer
        del description["descr"]
        assert same(zeusm.from_sycl_usm_array_interface(description, owner=array), records(dtype))

    def test_fields_that_are_even_reach_peers_in_place(self, usm_type):
        host = np.zeros(5, [("x", "f4"), ("z", "c8"), ("n", "i4"), ("m", "i8", (2,))])
        array = zeusm.asarray(host, usm_type=usm_type)
        for name in host.dtype.names:
            for convert in (tensor.asarray, tensor.from_dlpack):
                peer = convert(array[name])
                peer[...] = 3
                peer.sycl_queue.wait()
                host[name] = 3
                assert same(array, host)
                array[name] = host[name] = 0

    @pytest.mark.parametrize(
        ("dtype", "name", "message"),
        [
            ([("x", "f4"), ("y", "i8")], "x", None),
            ([("x", "f4"), ("y", "i8")], "y", "no multiple of (the )?8"),
            ([("y", "i8"), ("x", "f4")], "y", "12 bytes is no multiple of the 8 bytes"),
            ([("t", "u1"), ("x", "f4"), ("u", "u1", (3,))], "x", "no multiple of 4"),
        ],
    )
    def test_fields_that_are_uneven_are_refused(self, dtype, name, message):
        array = zeusm.asarray(np.ones(5, dtype), usm_type="shared")[name]
        assert np.asarray(array).ctypes.data % 4 in (0, 1)
        assert (np.asarray(array) == 1).all()
        if message is None:
            assert tensor.asarray(array).shape == (5,)
            return
        with pytest.raises(ValueError, match=message):
            array.__sycl_usm_array_interface__  # noqa: B018
        with pytest.raises(BufferError, match=message):
            tensor.from_dlpack(array)
        assert tensor.from_dlpack(copy.copy(array)).shape == (5,)

    def test_peers_refuse_records(self):
        array = zeusm.empty(3, dtype=PACKED, usm_type="shared")
        for device in (None, (1, 0)):
            with pytest.raises(BufferError, match="no records: export a field, one of 'x', 'y'"):
                array.__dlpack__(dl_device=device)
        # The interface can say records, and dpctl refuses them.
        with pytest.raises(ValueError, match=re.escape("|V12")):
            tensor.asarray(array)


BAD = [
    ([("x", "<f4")], "describes 4 bytes where 'typestr' says 12"),
    ([("x", "<f4"), ("y", "<i8"), ("z", "|u1")], "describes 13 bytes"),
    ([("x", "<f4"), ("x", "<i8")], "two fields of the name 'x'"),
    ([("x", "<f4", -1), ("y", "<i8")], "must be (name, type)"),
    ([("x", "<f4", (3, -1))], "must be (name, type)"),
    ([("x", "<f8", 2**62), ("y", "<f4")], "larger than any memory"),
    ([("x", "<f8", 2**70)], "must be (name, type)"),
    ([("x", "<f4", (1,) * 65), ("y", "<i8")], "65 dimensions"),
    ([("x", "|O")], "the kind is none of"),
    ([("x", "<f4"), ("y", "|V8")], "not supported"),
    ([("x", ">f4"), ("y", "<i8")], "not supported"),
    ([("x:y", "<f4"), ("y", "<i8")], "has a ':'"),
    ([("x", [("y", "<f4", 0)]), ("z", "<f4", 3)], "a record of 0 bytes"),
    ([("x",)], "must be (name, type)"),
    ([(1, "<f4")], "must be (name, type)"),
    ([["x", "<f4"]], "must be (name, type)"),
    ("<f4", "must be a list of fields"),
    ({"x": "<f4"}, "must be a list of fields"),
]


class TestBadDescriptions:
    @pytest.mark.parametrize("key", ["typedescr", "descr"])
    @pytest.mark.parametrize(("fields", "message"), BAD)
    def test_typed_errors(self, key, fields, message):
        array = zeusm.empty(4, dtype=PACKED)
        description = array.__sycl_usm_array_interface__
        del description["typedescr"], description["descr"]
        description[key] = fields
        with pytest.raises(ValueError, match=re.escape(message)):
            zeusm.from_sycl_usm_array_interface(description, owner=array)

    def test_a_list_that_contains_itself(self):
        array = zeusm.empty(4, dtype=PACKED)
        endless = []
        endless.append(("x", endless))
        description = array.__sycl_usm_array_interface__ | {"descr": endless}
        with pytest.raises(ValueError, match="more than 32 deep"):
            zeusm.from_sycl_usm_array_interface(description, owner=array)

    def test_a_description_of_padding_alone_is_none(self):
        array = zeusm.empty(4, dtype=PACKED)
        description = array.__sycl_usm_array_interface__ | {"descr": [("", "|V12")]}
        with pytest.raises(ValueError, match=re.escape("'|V12' are not supported")):
            zeusm.from_sycl_usm_array_interface(description, owner=array)
        description |= {"syclobj": array.sycl_queue}
        memory = zeusm.memory.as_usm_memory(Described(description, array))
        assert memory.nbytes == 48

    @given(
        st.recursive(
            st.sampled_from(["<f4", "|u1", "|V2", "<i8", "x"]),
            lambda item: st.lists(
                st.tuples(st.sampled_from("abc"), item)
                | st.just(("", "|V2"))
                | st.tuples(
                    st.sampled_from("abc"),
                    item,
                    st.sampled_from([-1, 0, 2]) | st.tuples(st.integers(0, 3)),
                ),
                max_size=4,
            ),
            max_leaves=8,
        )
    )
    def test_every_description_is_read_or_refused(self, fields):
        array = zeusm.empty(1, dtype=[("a", "u1", (64,))])
        try:
            size = np.lib.format.descr_to_dtype(fields).itemsize if isinstance(fields, list) else 1
        except (TypeError, ValueError):
            size = 64
        if size > 64:
            return
        description = array.__sycl_usm_array_interface__ | {"typestr": f"|V{size}", "descr": fields}
        try:
            found = zeusm.from_sycl_usm_array_interface(description, owner=array)
        except ValueError:
            return
        assert found.itemsize == size
        assert found.dtype == np.lib.format.descr_to_dtype(fields)

    @pytest.mark.parametrize(
        "dtype",
        [
            [("x", "O")],
            [("x", "S4"), ("y", "f4")],
            [("x", "M8[s]")],
            [("x", ">i4")],
            [("x", "V4")],
            [],
            [("x", "f4", (0,))],
            [("x", "f4"), ("y", [])],
            {"names": ["x", "y"], "formats": ["f4", "f4"], "offsets": [0, 2]},
            {"names": ["x", "y"], "formats": ["f4", "f4"], "offsets": [4, 0]},
        ],
    )
    def test_types_that_are_no_records_here(self, dtype):
        with pytest.raises(TypeError, match="not supported"):
            zeusm.empty(3, dtype=dtype)
        with pytest.raises(TypeError, match="not supported"):
            zeusm.memory.MemoryUSMShared(64).view(dtype)
        with pytest.raises(TypeError, match="not supported"):
            zeusm.asarray(np.zeros(3, dtype))

    def test_a_pickle_with_other_fields_is_refused(self):
        rebuild, state = zeusm.asarray(records(PACKED)).__reduce_ex__(4)
        state = list(state)
        state[2] = [("x", "<f8"), ("y", "<f8")]
        with pytest.raises(ValueError, match="the allocation is 72 bytes"):
            rebuild(*state)
        state[2] = [("x", "|O")]
        with pytest.raises(TypeError, match="not supported"):
            rebuild(*state)


class Described:
    def __init__(self, description, owner):
        self.__sycl_usm_array_interface__ = description
        self.owner = owner
