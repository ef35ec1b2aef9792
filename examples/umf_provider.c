/* A memory provider of UMF (Unified Memory Framework) over a pool of zeusm: a module of Python whose function `provider` takes a
 * zeusm.memory.MemoryPool and returns UMF's handle in a capsule, which keeps the pool.
 *
 * Compile it with the folders of zeusm.get_include() and of UMF's headers, and link libumf. */
#include <zeusm.h>

#include <umf.h>
#include <umf/memory_provider.h>
#include <umf/memory_provider_ops.h>

static const zeusm_api *zeusm;
static const char HANDLE[] = "umf_memory_provider_handle_t";

static umf_result_t initialize(const void *pool, void **provider)
{
    *provider = (void *)pool;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t finalize(void *pool)
{
    (void)pool; /* The capsule keeps it. */
    return UMF_RESULT_SUCCESS;
}

static umf_result_t allocate(void *pool, size_t size, size_t alignment, void **pointer)
{
    *pointer = zeusm->allocate((const zeusm_pool *)pool, size, alignment);
    return *pointer != NULL || size == 0 ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}

static umf_result_t release(void *pool, void *pointer, size_t size)
{
    (void)pool;
    (void)size;
    return zeusm->free(pointer) == 0 ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

static umf_result_t last_native_error(void *pool, const char **message, int32_t *error)
{
    (void)pool;
    *message = "the pool is at its limit, or the driver has no memory";
    *error = 0;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t recommended_page_size(void *pool, size_t size, size_t *page)
{
    (void)pool;
    (void)size;
    *page = 4096;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t min_page_size(void *pool, const void *pointer, size_t *page)
{
    (void)pointer;
    return recommended_page_size(pool, 0, page);
}

static umf_result_t name(void *pool, const char **name)
{
    (void)pool;
    *name = "zeusm";
    return UMF_RESULT_SUCCESS;
}

static const umf_memory_provider_ops_t OPERATIONS = {
    .version = UMF_MAKE_VERSION(1, 0), /* The later members are not set. */
    .initialize = initialize,
    .finalize = finalize,
    .alloc = allocate,
    .free = release,
    .get_last_native_error = last_native_error,
    .get_recommended_page_size = recommended_page_size,
    .get_min_page_size = min_page_size,
    .get_name = name,
};

static void end(PyObject *capsule)
{
    umfMemoryProviderDestroy(PyCapsule_GetPointer(capsule, HANDLE));
    Py_DECREF((PyObject *)PyCapsule_GetContext(capsule));
}

static PyObject *provider(PyObject *self, PyObject *object)
{
    umf_memory_provider_handle_t handle;
    PyObject *capsule;
    const zeusm_pool *pool = zeusm->pool(object);
    (void)self;
    if (pool == NULL)
        return NULL;
    if (umfMemoryProviderCreate(&OPERATIONS, pool, &handle) != UMF_RESULT_SUCCESS)
        return PyErr_Format(PyExc_RuntimeError, "UMF makes no provider");
    capsule = PyCapsule_New(handle, HANDLE, end);
    if (capsule == NULL) {
        umfMemoryProviderDestroy(handle);
        return NULL;
    }
    Py_INCREF(object);
    PyCapsule_SetContext(capsule, object);
    return capsule;
}

static PyMethodDef FUNCTIONS[] = {{"provider", provider, METH_O, NULL}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "umf_provider", NULL, -1, FUNCTIONS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_umf_provider(void)
{
    zeusm = zeusm_import();
    return zeusm == NULL ? NULL : PyModule_Create(&MODULE);
}
