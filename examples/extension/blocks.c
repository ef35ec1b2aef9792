/* An extension over zeusm's C API: it describes memory objects, and makes them of a pool's blocks, which it frees. */
#include <zeusm.h>

#define BLOCK "blocks.block"

static const zeusm_api *zeusm;

/* describe(memory): the address, the size and the kind. */
static PyObject *describe(PyObject *Py_UNUSED(module), PyObject *object)
{
    zeusm_memory memory;
    if (zeusm->describe(object, &memory) != 0)
        return NULL;
    return Py_BuildValue("(NNi)", PyLong_FromVoidPtr(memory.pointer), PyLong_FromSize_t(memory.nbytes), memory.kind);
}

/* The owner of a block ends with the last object that uses the block. */
static void free_block(PyObject *owner)
{
    zeusm->free(PyCapsule_GetPointer(owner, BLOCK));
}

/* allocate(pool, nbytes): a memory object that adopts a block of the pool. */
static PyObject *allocate(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *object, *owner, *memory;
    const zeusm_pool *pool;
    Py_ssize_t nbytes;
    void *block;
    if (!PyArg_ParseTuple(arguments, "On", &object, &nbytes))
        return NULL;
    if (nbytes <= 0)
        return PyErr_Format(PyExc_ValueError, "%zd is no number of bytes", nbytes);
    pool = zeusm->pool(object);
    if (pool == NULL)
        return NULL;
    block = zeusm->allocate(pool, (size_t)nbytes, 0);
    if (block == NULL)
        return PyErr_NoMemory();
    owner = PyCapsule_New(block, BLOCK, free_block);
    if (owner == NULL) {
        zeusm->free(block);
        return NULL;
    }
    memory = zeusm->from_pointer(block, (size_t)nbytes, NULL, owner);
    Py_DECREF(owner); /* The memory object has its own reference. */
    return memory;
}

static PyMethodDef methods[] = {
    {"describe", describe, METH_O, "The address, the size and the kind of a memory object."},
    {"allocate", allocate, METH_VARARGS, "A memory object of a block of the pool."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "blocks", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_blocks(void)
{
    zeusm = zeusm_import();
    return zeusm == NULL ? NULL : PyModule_Create(&definition);
}
