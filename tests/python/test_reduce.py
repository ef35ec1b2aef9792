"""`__reduce__` of memory, of subclasses that override it, and of arrays."""

import copy
import pickle

import dpctl.memory
import numpy as np
import pytest
import zeusm
import zeusm.memory

pytestmark = pytest.mark.once

BYTES = bytes(range(8))


def rebuilt(cls, content, name):
    memory = cls(len(content))
    memory.copy_from_host(content)
    memory.name = name
    return memory


def tagged(package, name):
    """A subclass by the name that pickles find it by."""

    class Tagged(getattr(package, name)):
        name = None

        def __reduce__(self):
            return rebuilt, (type(self), self.tobytes(), self.name)

    Tagged.__qualname__ = f"{package.__name__}.{name}".replace(".", "_")
    return globals().setdefault(Tagged.__qualname__, Tagged)


@pytest.mark.parametrize("package", [dpctl.memory, zeusm.memory], ids=["dpctl", "zeusm"])
def test_a_subclass_has_its_own(package, memory_class):
    cls = tagged(package, memory_class.__name__)
    memory = rebuilt(cls, BYTES, "weights")
    copies = [copy.copy(memory), copy.deepcopy(memory)]
    copies += [pickle.loads(pickle.dumps(memory, n)) for n in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    for one in copies:
        assert (type(one), one.name, one.tobytes()) == (cls, "weights", BYTES)
        assert one._pointer != memory._pointer


@pytest.mark.parametrize("package", [dpctl.memory, zeusm.memory], ids=["dpctl", "zeusm"])
def test_memory_has_one(package, memory_class):
    memory = getattr(package, memory_class.__name__)(len(BYTES))
    memory.copy_from_host(BYTES)
    rebuild, state = memory.__reduce__()
    copied = rebuild(*state)
    assert (type(copied), copied.tobytes()) == (type(memory), BYTES)


def test_a_subclass_can_extend_the_one_of_memory(memory_class):
    class Extended(memory_class):
        def __reduce__(self):
            rebuild, state = super().__reduce__()
            return rebuild, state, "more"

    memory = Extended(4)
    assert memory.__reduce_ex__(4) == (*memory_class.__reduce__(memory), "more")
    assert memory_class.__reduce__(memory) == memory_class(memory).__reduce_ex__(2)


def test_arrays_have_one(usm_type):
    array = zeusm.asarray(np.arange(6.0).reshape(2, 3), usm_type=usm_type)
    rebuild, state = array.__reduce__()
    assert rebuild(*state).copy_to_host().tolist() == array.copy_to_host().tolist()
