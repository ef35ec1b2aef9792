"""DLPack's structures, and exporters that use them."""

import ctypes
import gc
from typing import ClassVar

import numpy as np

CPU, CUDA, ONEAPI = 1, 2, 14
READ_ONLY, IS_COPIED, IS_PADDED = 1, 2, 4
NUMPY_2 = int(np.__version__.split(".")[0]) >= 2


class Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Unversioned(ctypes.Structure):
    name = b"dltensor"
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER))


class Versioned(ctypes.Structure):
    name = b"dltensor_versioned"
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


api = ctypes.pythonapi
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_GetName.argtypes = [ctypes.py_object]
api.PyCapsule_GetName.restype = ctypes.c_char_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


def structure_in(capsule):
    """The structure that a capsule points to."""
    name = api.PyCapsule_GetName(capsule)
    form = {form.name: form for form in (Versioned, Unversioned)}[name]
    structure = form.from_address(api.PyCapsule_GetPointer(capsule, name))
    structure.capsule = capsule  # The capsule's destructor would free the structure.
    return structure


def lost(reference):
    """Whether the object of a weak reference is freed."""
    gc.collect()
    return reference() is None


class Exporter:
    """An exporter with its own structure, which counts the calls of the deleter."""

    alive: ClassVar = []  # Keeps the structures until their deleters are called.

    def __init__(self, array, form=Versioned, dl_device=(ONEAPI, 0), **fields):
        self.alive.append(self)
        self.array, self.form, self.dl_device, self.deleted = array, form, dl_device, 0
        layout = array.__array_interface__ if isinstance(array, np.ndarray) else None
        strides = array.strides if layout is None else [x // array.itemsize for x in array.strides]
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.strides = (ctypes.c_int64 * array.ndim)(*strides)
        self.structure = structure = form()
        if form is Versioned:
            structure.major, structure.minor = fields.pop("version", (1, 0))
            structure.flags = fields.pop("flags", 0)
        self.delete = structure.deleter = fields.pop("deleter", DELETER(self.count))
        inner = structure.tensor
        inner.data = layout["data"][0] if layout else array._pointer
        inner.device = Device(*dl_device)
        inner.ndim = array.ndim
        kind, size = array.dtype.kind, array.dtype.itemsize
        inner.dtype = DataType({"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}[kind], 8 * size, 1)
        inner.shape, inner.strides = self.shape, self.strides
        for name, value in fields.items():
            setattr(inner, name, value)
        self.capsule = api.PyCapsule_New(ctypes.addressof(structure), form.name, None)

    def count(self, structure):
        assert structure == ctypes.addressof(self.structure)
        self.deleted += 1

    def __dlpack__(self, **keywords):
        self.keywords = keywords
        return self.capsule

    def __dlpack_device__(self):
        return self.dl_device


class Producer:
    """An object whose `__dlpack__` is the function passed."""

    def __init__(self, export, device=(ONEAPI, 0)):
        self.export, self.device = export, device

    def __dlpack__(self, **_):
        return self.export()

    def __dlpack_device__(self):
        return self.device


class ExchangeApi(ctypes.Structure):
    """The table of a class, whose functions are called with the GIL, as C extensions call them."""

    place = ctypes.POINTER(ctypes.c_void_p)
    set_error = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        (
            "allocate",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.POINTER(Tensor), place, ctypes.c_void_p, set_error
            ),
        ),
        ("from_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, place)),
        ("to_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, place)),
        (
            "describe",
            ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor)),
        ),
        ("work_stream", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, place)),
    )

    @classmethod
    def of(cls, exporter):
        capsule = exporter.__dlpack_c_exchange_api__
        return cls.from_address(api.PyCapsule_GetPointer(capsule, b"dlpack_exchange_api"))

    def exported(self, exporter):
        """The structure of an object, and the function that calls its deleter."""
        out = ctypes.c_void_p()
        assert self.from_object(exporter, out) == 0
        structure = Versioned.from_address(out.value)
        return structure, lambda: structure.deleter(out.value)

    def imported(self, structure):
        """The object of a structure, which it takes."""
        out = ctypes.c_void_p()
        assert self.to_object(structure, out) == 0
        taken = ctypes.cast(out, ctypes.py_object).value
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(taken))  # The caller owns a reference.
        return taken

    def stream(self, device):
        out = ctypes.c_void_p()
        assert self.work_stream(*device, out) == 0
        return out.value
