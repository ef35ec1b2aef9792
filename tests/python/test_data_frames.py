"""pandas and pyarrow take arrays that the host can access."""

import numpy as np
import pytest
import zeusm

pytestmark = pytest.mark.once

REASON = "pandas and pyarrow are in .venv only"
pandas = pytest.importorskip("pandas", reason=REASON)
pyarrow = pytest.importorskip("pyarrow", reason=REASON)

VALUES = np.arange(5, dtype="f4")
CONVERSIONS = {
    "Series": pandas.Series,
    "Index": pandas.Index,
    "DataFrame": lambda array: pandas.DataFrame({"column": array})["column"],
    "arrow": pyarrow.array,
}


@pytest.mark.parametrize("name", CONVERSIONS)
@pytest.mark.parametrize("key", np.s_[:, ::2, ::-1], ids=str)
def test_one_dimension(usm_type, name, key):
    array = zeusm.asarray(VALUES, usm_type=usm_type)[key]
    if usm_type == "device":
        with pytest.raises(TypeError, match="copy_to_host"):
            CONVERSIONS[name](array)
        return
    result = CONVERSIONS[name](array)
    assert str(result.type if name == "arrow" else result.dtype) in ("float32", "float")
    np.testing.assert_array_equal(np.asarray(result), VALUES[key])


def test_arrow_uses_the_memory():
    array = zeusm.asarray(VALUES, usm_type="shared")
    values = pyarrow.array(array)
    assert values.buffers()[1].address == array._pointer
    assert pyarrow.array(array, type=pyarrow.int8()).type == pyarrow.int8()


def test_two_dimensions():
    array = zeusm.asarray(VALUES, usm_type="host").reshape(5, 1)
    assert pandas.DataFrame(array).shape == (5, 1)
    for convert in pandas.Series, pyarrow.array:
        with pytest.raises(ValueError, match="dimension"):
            convert(array)
