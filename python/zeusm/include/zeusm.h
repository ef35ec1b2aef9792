/* zeusm's memory for programs in C, C++ and Cython.
 *
 *     const zeusm_api *zeusm = zeusm_import();   // once, with the GIL held; NULL with a Python error
 *     zeusm_memory memory;
 *     if (zeusm->describe(object, &memory) == 0) ... memory.pointer, memory.nbytes ...
 *
 * Add the directory that zeusm.get_include() returns to the include path. The major version changes with the ABI; the
 * minor version changes when members are added at the end.
 */
#ifndef ZEUSM_H
#define ZEUSM_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ZEUSM_API_MAJOR 1
#define ZEUSM_API_MINOR 1
#define ZEUSM_API_CAPSULE "zeusm._C_API"

/* The kinds of USM, by SYCL's numbers. */
enum { ZEUSM_DEVICE = 1, ZEUSM_SHARED = 2, ZEUSM_HOST = 3 };

/* The types behind Level Zero's and dpctl's handles, which need neither's headers. */
struct _ze_context_handle_t;
struct _ze_device_handle_t;
struct DPCTLOpaqueSyclContext;

/* The pool of a MemoryPool. */
typedef struct zeusm_pool zeusm_pool;

/* The description of a memory object. All pointers are borrowed: valid while the object is alive and not closed. */
typedef struct {
    void *pointer;                                /* the first byte; NULL without bytes */
    size_t nbytes;                                /* the size in bytes */
    int kind;                                     /* ZEUSM_DEVICE, ZEUSM_SHARED or ZEUSM_HOST */
    int read_only;                                /* 1 when writing is forbidden */
    struct _ze_context_handle_t *ze_context;      /* Level Zero's ze_context_handle_t */
    struct _ze_device_handle_t *ze_device;        /* Level Zero's ze_device_handle_t */
    struct DPCTLOpaqueSyclContext *sycl_context;  /* dpctl's DPCTLSyclContextRef; NULL without a SYCL context */
} zeusm_memory;

/* The functions require the GIL, and set a Python error when they fail, where nothing else is said. */
typedef struct {
    uint16_t major, minor; /* ZEUSM_API_MAJOR, ZEUSM_API_MINOR of the library */
    uint32_t size;         /* of this structure, in bytes */

    /* Whether the object is a MemoryUSMShared, MemoryUSMDevice or MemoryUSMHost of zeusm: 1 or 0. */
    int (*check)(PyObject *object);

    /* Fills in the description of a memory object. Returns 0, or -1 (TypeError for other objects, ValueError when closed). */
    int (*describe)(PyObject *object, zeusm_memory *memory);

    /* Wraps `nbytes` bytes at `pointer`, which must be USM of the SYCL context that the DPCTLSyclContextRef refers to
     * (NULL: the default context), in an object of the class of the memory's kind. The object keeps `owner` alive,
     * which owns the memory. Returns a new reference, or NULL (ValueError) when the memory is not such USM. A context of Level
     * Zero is no SYCL context: `ze_context` of a description has another type than `sycl_context`. */
    PyObject *(*from_pointer)(void *pointer, size_t nbytes, struct DPCTLOpaqueSyclContext *sycl_context, PyObject *owner);

    /* The pool of a zeusm.memory.MemoryPool, borrowed: valid while the object is alive. NULL (TypeError) for other objects. */
    const zeusm_pool *(*pool)(PyObject *object);

    /* Allocates from the pool, at an alignment of 0 (the pool's) or a power of two. Any thread may call it, with the GIL or
     * without. Returns NULL without bytes, and when the allocation fails; no Python error is set. */
    void *(*allocate)(const zeusm_pool *pool, size_t nbytes, size_t alignment);

    /* Frees memory of `allocate` or NULL; the caller has waited for the work on it. Any thread may call it, with the GIL or
     * without. Returns 0, or -1 for other pointers, which it leaves alone: in a fork's child also those of its parent. */
    int (*free)(void *pointer);
} zeusm_api;

/* Returns the functions, or NULL with a Python error when zeusm is not installed or too old. */
static inline const zeusm_api *zeusm_import(void)
{
    const zeusm_api *api = (const zeusm_api *)PyCapsule_Import(ZEUSM_API_CAPSULE, 0);
    int major, minor; /* Signed, as a comparison of an unsigned number with 0 is a warning of compilers. */
    if (api == NULL)
        return NULL;
    major = api->major;
    minor = api->minor;
    if (major != ZEUSM_API_MAJOR || minor < ZEUSM_API_MINOR) {
        PyErr_Format(PyExc_ImportError, "zeusm has version %d.%d of its C API; %d.%d is needed", major, minor,
                     ZEUSM_API_MAJOR, ZEUSM_API_MINOR);
        return NULL;
    }
    return api;
}

#ifdef __cplusplus
}
#endif

#endif
