# zeusm's C API for Cython: `from zeusm cimport zeusm_api, zeusm_import, zeusm_memory`. zeusm.h says what each function does; the
# folder of zeusm.get_include() has to be in the include path.
from libc.stdint cimport uint16_t, uint32_t

cdef extern from "zeusm.h":
    enum:
        ZEUSM_DEVICE
        ZEUSM_SHARED
        ZEUSM_HOST

    struct _ze_context_handle_t
    struct _ze_device_handle_t
    struct DPCTLOpaqueSyclContext

    ctypedef struct zeusm_pool:
        pass

    ctypedef struct zeusm_memory:
        void *pointer
        size_t nbytes
        int kind
        int read_only
        _ze_context_handle_t *ze_context
        _ze_device_handle_t *ze_device
        DPCTLOpaqueSyclContext *sycl_context

    ctypedef struct zeusm_api:
        uint16_t major, minor
        uint32_t size
        int (*check)(object)
        int (*describe)(object, zeusm_memory *) except -1
        object (*from_pointer)(void *, size_t, DPCTLOpaqueSyclContext *, object)
        const zeusm_pool *(*pool)(object) except NULL
        void *(*allocate)(const zeusm_pool *, size_t, size_t) noexcept nogil
        int (*free)(void *) noexcept nogil

    const zeusm_api *zeusm_import() except NULL
