"""The C API, used by a C extension that the tests compile."""

import ctypes
import gc
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import weakref
from types import SimpleNamespace

import dpctl
import dpctl.memory
import pytest
import zeusm
import zeusm.memory
from conftest import ROOT

N = 4096
SOURCE = r"""
#include <zeusm.h>

static const zeusm_api *zeusm;

static PyObject *check(PyObject *self, PyObject *object)
{
    return PyBool_FromLong(zeusm->check(object));
}

static PyObject *describe(PyObject *self, PyObject *object)
{
    zeusm_memory memory;
    if (zeusm->describe(object, &memory) != 0)
        return NULL;
    return Py_BuildValue("(KKiiKKK)", (unsigned long long)memory.pointer, (unsigned long long)memory.nbytes,
                         memory.kind, memory.read_only, (unsigned long long)memory.ze_context,
                         (unsigned long long)memory.ze_device, (unsigned long long)memory.sycl_context);
}

static PyObject *from_pointer(PyObject *self, PyObject *arguments)
{
    unsigned long long pointer, nbytes, context;
    PyObject *owner;
    if (!PyArg_ParseTuple(arguments, "KKKO", &pointer, &nbytes, &context, &owner))
        return NULL;
    return zeusm->from_pointer((void *)pointer, nbytes, (struct DPCTLOpaqueSyclContext *)context, owner == Py_None ? NULL : owner);
}

static PyObject *allocate(PyObject *self, PyObject *arguments)
{
    PyObject *object;
    unsigned long long size, alignment;
    const zeusm_pool *pool;
    if (!PyArg_ParseTuple(arguments, "OKK", &object, &size, &alignment))
        return NULL;
    pool = zeusm->pool(object);
    return pool == NULL ? NULL : PyLong_FromVoidPtr(zeusm->allocate(pool, size, alignment));
}

static PyObject *release(PyObject *self, PyObject *pointer)
{
    return PyLong_FromLong(zeusm->free(PyLong_AsVoidPtr(pointer)));
}

/* What a call that has failed returns, given on without a look at it. */
static PyObject *null(PyObject *self, PyObject *exception)
{
    zeusm_memory memory;
    if (zeusm->check(NULL) != 0 || zeusm->allocate(NULL, 1, 0) != NULL || zeusm->free(NULL) != 0 || PyErr_Occurred())
        Py_RETURN_NONE;
    if (zeusm->describe(NULL, &memory) != -1 || !PyErr_ExceptionMatches(PyExc_TypeError))
        Py_RETURN_NONE;
    PyErr_SetNone(exception);
    if (zeusm->pool(NULL) != NULL || !PyErr_ExceptionMatches(exception))
        Py_RETURN_NONE;
    return NULL;
}

static PyObject *version(PyObject *self, PyObject *nothing)
{
    return Py_BuildValue("(iii)", (int)zeusm->major, (int)zeusm->minor, zeusm->size == sizeof(zeusm_api));
}

static PyMethodDef methods[] = {
    {"check", check, METH_O, NULL},
    {"describe", describe, METH_O, NULL},
    {"from_pointer", from_pointer, METH_VARARGS, NULL},
    {"allocate", allocate, METH_VARARGS, NULL},
    {"free", release, METH_O, NULL},
    {"null", null, METH_O, NULL},
    {"version", version, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "uses_zeusm", NULL, -1, methods};

PyMODINIT_FUNC PyInit_uses_zeusm(void)
{
    zeusm = zeusm_import();
    return zeusm == NULL ? NULL : PyModule_Create(&definition);
}
"""


def compiled(folder, compiler, source):
    (folder / source).write_text(SOURCE)
    library = folder / ("uses_zeusm" + sysconfig.get_config_var("EXT_SUFFIX"))
    include = [zeusm.get_include(), sysconfig.get_path("include")]
    command = [
        *compiler,
        "-Wall",
        "-Wextra",
        "-Wno-unused-parameter",
        "-Wno-missing-field-initializers",
        "-Wtype-limits",
        "-Werror",
        "-shared",
        "-fPIC",
        *(f"-I{path}" for path in include),
    ]
    subprocess.run([*command, folder / source, "-o", library], check=True)
    spec = importlib.util.spec_from_file_location("uses_zeusm", library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    compiler = shlex.split(os.environ.get("CC", "cc"))
    return compiled(tmp_path_factory.mktemp("c"), compiler, "uses_zeusm.c")


def test_the_version_is_the_headers(c):
    assert c.version() == (1, 1, True)


def test_memory_is_described(c, memory_class, usm_type):
    x = memory_class(N)
    pointer, nbytes, kind, read_only, context, device, sycl_context = c.describe(x)
    assert (pointer, nbytes, read_only) == (x._pointer, N, 0)
    assert kind == x.get_usm_type_enum()
    assert context
    assert device
    assert sycl_context
    # Memory of the same context and device has the same handles.
    assert c.describe(memory_class(64))[4:] == (context, device, sycl_context)
    assert c.describe(memory_class(0))[:2] == (0, 0)


def test_what_is_no_memory(c, memory_class):
    assert c.check(memory_class(4))
    for other in (None, 5, b"abc", dpctl.memory.MemoryUSMShared(4)):
        assert not c.check(other)
        with pytest.raises(TypeError, match=type(other).__name__):
            c.describe(other)


def test_closed_memory_is_not_described(c, memory_class):
    x = memory_class(N)
    x.close()
    with pytest.raises(ValueError, match="closed"):
        c.describe(x)


class Owner:
    """An owner of dpctl's memory, which stands for an extension's own memory."""

    def __init__(self, usm_type):
        self.memory = getattr(dpctl.memory, f"MemoryUSM{usm_type.title()}")(N)


@pytest.mark.parametrize("named", [True, False])
def test_memory_is_made_from_a_pointer(c, usm_type, named):
    owner = Owner(usm_type)
    theirs = owner.memory
    context = theirs.sycl_context.addressof_ref() if named else 0
    x = c.from_pointer(theirs._pointer + 16, N - 16, context, owner)
    assert type(x) is getattr(zeusm.memory, f"MemoryUSM{usm_type.title()}")
    assert (x._pointer, x.nbytes) == (theirs._pointer + 16, N - 16)
    assert x.reference_obj is owner
    assert x.sycl_context == theirs.sycl_context
    x.memset(7)
    assert bytes(theirs)[16:] == b"\7" * (N - 16)
    gone = weakref.ref(owner)
    del owner, theirs
    gc.collect()
    assert gone() is not None
    del x
    gc.collect()
    assert gone() is None


def test_memory_that_is_not_what_it_is_said_to_be(c, usm_type):
    owner = Owner(usm_type)
    pointer = owner.memory._pointer
    block = zeusm.memory.as_usm_memory(owner.memory)
    with pytest.raises(ValueError, match="owner"):
        c.from_pointer(pointer, N, 0, None)
    with pytest.raises(ValueError, match=str(2**40)):
        c.from_pointer(pointer, 2**40, 0, owner)
    with pytest.raises(ValueError, match="0xdead0000"):
        c.from_pointer(0xDEAD0000, 1, 0, owner)
    with pytest.raises(ValueError, match=hex(id(owner))):
        c.from_pointer(id(owner), 1, 0, owner)
    assert block.nbytes == N


def test_a_level_zero_context_is_no_sycl_context(c, memory_class):
    """Its address in the place of a DPCTLSyclContextRef ended in a SIGSEGV."""
    x = memory_class(N)
    ze_context = c.describe(x)[4]
    for owner in (x, object()):
        with pytest.raises(ValueError, match="Level Zero context"):
            c.from_pointer(x._pointer, N, ze_context, owner)


def test_contexts_have_types_of_their_own(tmp_path):
    source = tmp_path / "mistaken.c"
    source.write_text(
        "#include <zeusm.h>\n"
        "PyObject *make(const zeusm_api *z, zeusm_memory m, PyObject *o)\n"
        "{ return z->from_pointer(m.pointer, m.nbytes, m.ze_context, o); }\n"
    )
    include = [zeusm.get_include(), sysconfig.get_path("include")]
    flags = ["-Werror", "-fsyntax-only", *(f"-I{path}" for path in include)]
    compiler = shlex.split(os.environ.get("CC", "cc"))
    run = subprocess.run(
        [*compiler, *flags, source],
        capture_output=True,
        text=True,
        env=os.environ | {"LC_ALL": "C"},
    )
    assert run.returncode != 0
    assert "incompatible" in run.stderr


def test_the_header_is_for_cpp_too(tmp_path):
    source = tmp_path / "empty.cpp"
    source.write_text("#include <zeusm.h>\nconst zeusm_api *api() { return zeusm_import(); }\n")
    include = [zeusm.get_include(), sysconfig.get_path("include")]
    flags = [
        "-x",
        "c++",
        "-Wall",
        "-Wextra",
        "-Wtype-limits",
        "-Werror",
        "-fsyntax-only",
        *(f"-I{path}" for path in include),
    ]
    compiler = shlex.split(os.environ.get("CC", "cc"))
    subprocess.run([*compiler, *flags, source], check=True)


def test_cython_compiles_what_the_page_shows(tmp_path):
    pytest.importorskip("Cython", reason="Cython is not in this environment; .venv has it")
    page = (ROOT / "docs" / "c_api.md").read_text()
    (tmp_path / "cython_uses_zeusm.pyx").write_text(
        re.search(r"```cython\n(.*?)```", page, re.S)[1]
    )
    subprocess.run(
        [sys.executable, "-m", "cython", "-3", "cython_uses_zeusm.pyx"], cwd=tmp_path, check=True
    )
    library = tmp_path / ("cython_uses_zeusm" + sysconfig.get_config_var("EXT_SUFFIX"))
    include = [f"-I{path}" for path in (zeusm.get_include(), sysconfig.get_path("include"))]
    compiler = shlex.split(os.environ.get("CC", "cc"))
    source = tmp_path / "cython_uses_zeusm.c"
    subprocess.run([*compiler, "-shared", "-fPIC", *include, source, "-o", library], check=True)
    spec = importlib.util.spec_from_file_location("cython_uses_zeusm", library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    memory = zeusm.memory.MemoryUSMShared(N)
    assert module.first_address(memory) == (memory._pointer, N)
    with pytest.raises(TypeError, match="memory object"):
        module.first_address(5)


class TestCython:
    """The functions that `dpctl.memory` exports for Cython."""

    @pytest.fixture
    def functions(self):
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype, pointer_of.argtypes = (
            ctypes.c_void_p,
            [ctypes.py_object, ctypes.c_char_p],
        )
        memory = "(struct Py_MemoryObject *)"
        types = {
            "GetUsmPointer": (f"DPCTLSyclUSMRef {memory}", ctypes.c_void_p),
            "GetOpaquePointer": (f"void *{memory}", ctypes.c_void_p),
            "GetContextRef": (f"DPCTLSyclContextRef {memory}", ctypes.c_void_p),
            "GetQueueRef": (f"DPCTLSyclQueueRef {memory}", ctypes.c_void_p),
            "GetNumBytes": (f"size_t {memory}", ctypes.c_size_t),
        }
        capsules = zeusm.memory.__pyx_capi__
        functions = SimpleNamespace()
        for name, (signature, result) in types.items():
            address = pointer_of(capsules[f"Memory_{name}"], signature.encode())
            setattr(functions, name, ctypes.PYFUNCTYPE(result, ctypes.py_object)(address))
        signature = b"PyObject *(DPCTLSyclUSMRef, size_t, DPCTLSyclQueueRef, PyObject *)"
        make = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.py_object
        )
        functions.Make = make(pointer_of(capsules["Memory_Make"], signature))
        return functions

    @pytest.fixture(params=["shared queue", "own queue"])
    def memory(self, request, memory_class):
        queue = dpctl.SyclQueue() if request.param == "own queue" else None
        return memory_class(100, queue=queue)

    def test_getters(self, functions, memory):
        assert functions.GetUsmPointer(memory) == memory._pointer
        assert functions.GetNumBytes(memory) == 100
        assert functions.GetContextRef(memory) == memory._context.addressof_ref()
        assert functions.GetQueueRef(memory) == memory.sycl_queue.addressof_ref()
        assert functions.GetOpaquePointer(memory) is None

    def test_make(self, functions, memory):
        made = functions.Make(memory._pointer + 10, 50, memory.sycl_queue.addressof_ref(), memory)
        assert type(made) is type(memory)
        assert (made._pointer, made.nbytes) == (memory._pointer + 10, 50)
        assert made.reference_obj is memory
        assert made.sycl_queue == memory.sycl_queue

    def test_errors(self, functions, memory):
        with pytest.raises(TypeError, match="USM memory object"):
            functions.GetUsmPointer(b"text")
        with pytest.raises(ValueError, match="100 bytes from there"):
            functions.Make(memory._pointer, 101, memory.sycl_queue.addressof_ref(), memory)
        with pytest.raises(ValueError, match="NULL"):
            functions.Make(memory._pointer, 1, None, memory)
        closed = type(memory)(8)
        closed.close()
        with pytest.raises(ValueError, match="closed"):
            functions.GetUsmPointer(closed)


def test_no_bytes_have_no_address(c):
    owner = zeusm.memory.MemoryUSMShared(8)
    nothing = c.from_pointer(owner._pointer, 0, 0, owner)
    assert c.describe(nothing)[:2] == (0, 0)


def test_null_is_no_object_and_keeps_the_exception(c):
    with pytest.raises(KeyError):
        c.null(KeyError)


def test_memory_of_a_pool(c):
    pool = zeusm.memory.MemoryPool("shared", limit=1 << 20)
    pointer = c.allocate(pool, 1000, 4096)
    assert pointer % 4096 == 0
    assert zeusm.pointer_attributes(pointer).usm_type == "shared"
    assert pool.statistics().requested_bytes == 1000
    assert c.allocate(pool, 1 << 21, 0) == 0
    assert c.free(pointer) == 0
    assert pool.used_bytes() == 0
    assert (c.free(pointer), c.free(0)) == (-1, 0)
    with pytest.raises(TypeError, match="MemoryPool is needed"):
        c.allocate(3, 64, 0)
