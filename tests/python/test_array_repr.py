"""`repr` of arrays: their elements as NumPy shows them, of which only those are copied that are shown."""

import numpy as np
import pytest
import zeusm
import zeusm.memory as zm
from zeusm._host import ends

pytestmark = pytest.mark.once
ARRAYS = {
    "short": np.arange(5.0),
    "number": np.float32(3),
    "strided": np.arange(24).reshape(2, 3, 4)[:, ::-1],
    "empty": np.zeros((0, 3)),
    "records": np.zeros(3, [("a", "i4"), ("b", "f8")]),
    "longest": np.arange(1000),
    "long": np.arange(1001),
    "backwards": np.arange(5000)[::-2],
    "cube": np.arange(70000).reshape(7, 100, 100),
    "narrow": np.arange(21000).reshape(3000, 1, 7) * 1j,
    "many dimensions": np.arange(8**5).reshape(8, 8, 8, 8, 8) % 3 == 0,
}


@pytest.mark.parametrize("kind", ["device", "shared"])
@pytest.mark.parametrize("name", ARRAYS)
def test_elements_are_shown_as_numpys(name, kind):
    elements = ARRAYS[name]
    array = zeusm.asarray(elements, usm_type=kind)
    head, text = repr(array).split(":\n", 1)
    dtype = np.asarray(elements).dtype.name if elements.dtype.names is None else ""
    assert head.startswith(f"<zeusm array of shape {elements.shape} and dtype {dtype}")
    assert text == np.array2string(np.asarray(elements), separator=", ") + ">"


def test_numpys_options_hold():
    elements = np.arange(600.0).reshape(60, 10) / 7
    with np.printoptions(threshold=50, edgeitems=2, precision=3):
        shown = repr(zeusm.asarray(elements, usm_type="device"))
        assert shown.endswith(np.array2string(elements, separator=", ") + ">")


def test_what_is_not_shown_is_not_copied():
    array = zeusm.asarray(np.arange(1 << 20), usm_type="device")
    assert repr(array).endswith("..., 1048573, 1048574, 1048575]>")
    assert ends(array, 0, 3).tolist() == [0, 1, 2, 3, 1048573, 1048574, 1048575]


def test_an_array_that_cannot_be_read_says_why():
    pool = zm.MemoryPool("device", suspendable=True)
    array = zeusm.asarray(pool.malloc(64))
    pool.suspend()
    assert "the memory's pool is suspended" in repr(array)
    pool.resume()
    # A type that NumPy has not.
    shown = repr(zeusm.empty(3, "float4_e2m1fn_x2"))
    assert "float4_e2m1fn_x2" in shown
    assert "\n" not in shown
