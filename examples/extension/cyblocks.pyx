# cython: language_level=3
"""The same extension in Cython."""

from zeusm cimport zeusm_api, zeusm_import, zeusm_memory

cdef const zeusm_api *zeusm = zeusm_import()


cdef class Block:
    """The owner of a block, which ends with the last object that uses the block."""

    cdef void *pointer

    def __dealloc__(self):
        zeusm.free(self.pointer)


def describe(memory):
    cdef zeusm_memory found
    zeusm.describe(memory, &found)
    return <size_t>found.pointer, found.nbytes, found.kind


def allocate(pool, size_t nbytes):
    cdef Block owner = Block()
    owner.pointer = zeusm.allocate(zeusm.pool(pool), nbytes, 0)
    if owner.pointer is NULL:
        raise MemoryError
    return zeusm.from_pointer(owner.pointer, nbytes, NULL, owner)
