"""UMF's pools over pools of zeusm, by examples/umf_provider.c."""

import ctypes
import importlib.util
import os
import shlex
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

import pytest
import zeusm
import zeusm.memory as zm

ROOT = Path(__file__).resolve().parents[2]
PREFIX = Path(sys.prefix)
OUT_OF_MEMORY = 1  # UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY
OWNS_NOTHING = 0  # UMF_POOL_CREATE_FLAG_NONE: the pool does not destroy the provider.


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    library = tmp_path_factory.mktemp("umf") / (
        "umf_provider" + sysconfig.get_config_var("EXT_SUFFIX")
    )
    include = [zeusm.get_include(), PREFIX / "include", sysconfig.get_path("include")]
    command = [
        *shlex.split(os.environ.get("CC", "cc")),
        *("-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"),
        *(f"-I{folder}" for folder in include),
        ROOT / "examples/umf_provider.c",
        *(f"-L{PREFIX / 'lib'}", "-lumf", f"-Wl,-rpath,{PREFIX / 'lib'}", "-o", library),
    ]
    subprocess.run(command, check=True)
    spec = importlib.util.spec_from_file_location("umf_provider", library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def umf():
    umf = ctypes.CDLL(str(PREFIX / "lib/libumf.so.1"))
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    for name, result, *arguments in [
        ("umfProxyPoolOps", pointer),
        ("umfDisjointPoolOps", pointer),
        ("umfPoolMalloc", pointer, pointer, size),
        ("umfPoolFree", ctypes.c_int, pointer, pointer),
        ("umfPoolDestroy", ctypes.c_int, pointer),
        ("umfMemoryProviderAlloc", ctypes.c_int, pointer, size, size, pointer),
        ("umfMemoryProviderFree", ctypes.c_int, pointer, pointer, size),
        ("umfMemoryProviderGetName", ctypes.c_int, pointer, ctypes.POINTER(ctypes.c_char_p)),
        ("umfPoolCreate", ctypes.c_int, pointer, pointer, pointer, ctypes.c_int, pointer),
        ("umfDisjointPoolParamsCreate", ctypes.c_int, pointer),
        ("umfDisjointPoolParamsDestroy", ctypes.c_int, pointer),
    ]:
        function = getattr(umf, name)
        function.restype, function.argtypes = result, arguments
    return umf


def handle_of(capsule):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, b"umf_memory_provider_handle_t")


def pool_of(umf, kind, provider):
    made, parameters = ctypes.c_void_p(), ctypes.c_void_p()
    if kind == "Disjoint":
        assert umf.umfDisjointPoolParamsCreate(ctypes.byref(parameters)) == 0
    operations = getattr(umf, f"umf{kind}PoolOps")()
    made_by = (operations, handle_of(provider), parameters, OWNS_NOTHING, ctypes.byref(made))
    assert umf.umfPoolCreate(*made_by) == 0
    if parameters:
        umf.umfDisjointPoolParamsDestroy(parameters)
    return made


@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
def test_the_provider_allocates_from_the_pool(module, umf, usm_type):
    pool = zm.MemoryPool(usm_type, limit=1 << 20)
    provider = module.provider(pool)
    handle, pointer, name = handle_of(provider), ctypes.c_void_p(), ctypes.c_char_p()
    assert umf.umfMemoryProviderGetName(handle, ctypes.byref(name)) == 0
    assert name.value == b"zeusm"
    assert umf.umfMemoryProviderAlloc(handle, 5000, 4096, ctypes.byref(pointer)) == 0
    assert pointer.value % 4096 == 0
    assert zeusm.pointer_attributes(pointer.value).usm_type == usm_type
    assert pool.used_bytes() >= 5000
    big = ctypes.c_void_p()
    refused = umf.umfMemoryProviderAlloc(handle, 1 << 21, 0, ctypes.byref(big))
    assert refused == OUT_OF_MEMORY
    assert umf.umfMemoryProviderFree(handle, pointer, 5000) == 0
    assert pool.used_bytes() == 0


@pytest.mark.parametrize("kind", ["Proxy", "Disjoint"])
def test_threads_use_a_pool_of_umf_over_it(module, umf, kind):
    below = zm.MemoryPool("shared")
    provider = module.provider(below)
    pool, failed = pool_of(umf, kind, provider), []

    def work(value):
        pointers = [umf.umfPoolMalloc(pool, 64 << (i % 6)) for i in range(300)]
        for pointer in pointers:
            ctypes.memset(pointer, value, 64)
        for pointer in pointers:
            if ctypes.string_at(pointer, 64) != bytes([value]) * 64:
                failed.append(pointer)
            umf.umfPoolFree(pool, pointer)

    threads = [threading.Thread(target=work, args=(value,)) for value in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failed
    assert below.statistics().allocations > 0
    assert umf.umfPoolDestroy(pool) == 0
    assert below.used_bytes() == 0


def test_the_provider_keeps_the_pool(module, umf):
    provider = module.provider(zm.MemoryPool("host"))
    pool = pool_of(umf, "Proxy", provider)
    pointer = umf.umfPoolMalloc(pool, 100)
    assert zeusm.pointer_attributes(pointer).usm_type == "host"
    assert umf.umfPoolFree(pool, pointer) == 0
    assert umf.umfPoolDestroy(pool) == 0


def test_another_object_is_refused(module):
    with pytest.raises(TypeError, match="MemoryPool"):
        module.provider(5)
