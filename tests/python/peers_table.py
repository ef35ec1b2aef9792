"""The table "What each peer takes" of docs/exchange.md, and what happens for each of its cells."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import zeusm

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/exchange.md"
N = 6

ALIGNED = np.dtype([("x", "f4"), ("y", "f8")], align=True)
PACKED = np.dtype([("x", "f4"), ("y", "f8")])


def numbers(usm_type):
    return zeusm.asarray(np.arange(N, dtype="f8"), usm_type=usm_type)


# Each row's object; those of the host's memory are tried in both kinds.
ROWS = {
    "array of device memory": lambda: [numbers("device")],
    "array of shared or host memory": lambda: [numbers("shared"), numbers("host")],
    "strided, `array[::2]`": lambda: [numbers(kind)[::2] for kind in ("shared", "host")],
    "records": lambda: [zeusm.asarray(np.zeros(N, ALIGNED), usm_type="shared")],
    'field of records, `array["y"]`': lambda: [
        zeusm.asarray(np.zeros(N, ALIGNED), usm_type="shared")["y"]
    ],
    "the same of packed records": lambda: [
        zeusm.asarray(np.zeros(N, PACKED), usm_type="shared")["y"]
    ],
}


def where(ours, theirs):
    return "in place" if ours == theirs else "copy"


def of_numpy(array):
    return where(array._pointer, np.asarray(array).ctypes.data)


def of_tensor(array):
    try:
        from dpctl import tensor
    except ImportError:  # dpctl's later releases moved it to dpnp.
        from dpnp import tensor

    return where(array._pointer, tensor.asarray(array)._pointer)


def of_dpnp(array):
    import dpnp

    return where(array._pointer, dpnp.from_dlpack(array).get_array()._pointer)


def of_dlpack_on_the_host(array):
    taken = np.from_dlpack(Reexported(array.__dlpack__(dl_device=(1, 0))))
    return where(array._pointer, taken.ctypes.data)


class Reexported:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_keywords):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def of_numba(array):
    import numba

    @numba.njit
    def first(x):
        return x.ctypes.data

    return where(array._pointer, first(array))


def of_numba_dpex(array):
    import numba_dpex

    @numba_dpex.kernel
    def fill(item, x):
        x[item.get_id(0)] = 7

    numba_dpex.call_kernel(fill, numba_dpex.Range(array.size), array)
    return "in place" if (array.copy_to_host() == 7).all() else "copy"


def of_pandas(array):
    import pandas

    return where(array._pointer, pandas.Series(array).to_numpy().ctypes.data)


def of_pyarrow(array):
    import pyarrow

    return where(array._pointer, pyarrow.array(array).buffers()[1].address)


def of_h5py(array):
    import h5py

    with h5py.File("none", "w", driver="core", backing_store=False) as file:
        file["numbers"] = array
        np.testing.assert_array_equal(file["numbers"][...], array.copy_to_host())
    return "written"


def of_sklearnex(array):
    from sklearnex.decomposition import PCA

    PCA(1).fit(array.reshape(-1, 1))
    return "computed"


def of_mpi(array):
    from mpi4py import MPI

    here, received = MPI.COMM_SELF, bytearray(array.nbytes)
    receipt = here.Irecv([received, MPI.BYTE], 0)
    try:
        here.Send(array, 0)
    except Exception:
        receipt.Cancel()
        receipt.Wait()
        raise
    receipt.Wait()
    assert received == array.copy_to_host().tobytes()
    return "sent"


def of_dask(array):
    from distributed.protocol import deserialize, serialize

    header, (frame,) = serialize(array)
    received = deserialize(header, [frame])
    np.testing.assert_array_equal(received.copy_to_host(), array.copy_to_host())
    return where(array._pointer, np.frombuffer(frame, "u1").ctypes.data)


def of_ray(array):
    import ray

    if not ray.is_initialized():
        ray.init(num_cpus=1, include_dashboard=False, object_store_memory=100 << 20)
    stored = ray.get(ray.put(array))
    np.testing.assert_array_equal(stored.copy_to_host(), array.copy_to_host())
    return where(array._pointer, stored._pointer)


def of_torch(array):
    import torch

    tensor = torch.from_dlpack(array.__dlpack__(dl_device=(1, 0)))
    assert tensor.tolist() == array.copy_to_host().tolist()
    return where(array._pointer, tensor.data_ptr())


# The package of each column, and its function.
COLUMNS = {
    "`numpy.asarray`": ("numpy", of_numpy),
    "`tensor.asarray`": ("dpnp", of_tensor),
    "`dpnp.from_dlpack`": ("dpnp", of_dpnp),
    "DLPack on the host": ("numpy", of_dlpack_on_the_host),
    "numba-dpex": ("numba_dpex", of_numba_dpex),
    "`numba.njit`": ("numba", of_numba),
    "pandas": ("pandas", of_pandas),
    "pyarrow": ("pyarrow", of_pyarrow),
    "h5py": ("h5py", of_h5py),
    "scikit-learn-intelex": ("sklearnex", of_sklearnex),
    "mpi4py": ("mpi4py", of_mpi),
    "Dask": ("dask", of_dask),
    "Ray": ("ray", of_ray),
    "PyTorch": ("torch", of_torch),
}
# The columns that only tests/peers and tests/torch test: they start processes, or their packages are large.
OF_PEERS = {"mpi4py", "Dask", "Ray", "PyTorch"}


def section(title):
    """The text of a section of the page."""
    return DOCUMENT.read_text().split(f"## {title}\n", 1)[1].split("\n#", 1)[0]


def table(title="What each peer takes"):
    """The cells of the table in that section: the text by row and column."""
    text = section(title)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    split = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    columns = split[0][1:]
    return {row[0]: dict(zip(columns, row[1:], strict=True)) for row in split[2:]}


def is_installed(column):
    """Whether this environment has the peer. With numba-dpex, `numba.njit` has its types for arrays."""
    has = importlib.util.find_spec
    package = COLUMNS[column][0]
    return has(package) is not None and not (package == "numba" and has("numba_dpex"))


def outcome(row, column):
    """The outcome in this environment, in the words of the table."""
    found = set()
    for array in ROWS[row]():
        try:
            found.add(COLUMNS[column][1](array))
        except Exception as error:  # Any: the class is the result.
            found.add(f"`{re.sub('.*Error', lambda name: name[0], type(error).__name__)}`")
    assert len(found) == 1, found
    return found.pop()
