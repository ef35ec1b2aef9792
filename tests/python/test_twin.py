"""`zeusm.memory` has each public name of `dpctl.memory`, with its arguments, results and exceptions."""

import inspect

import dpctl
import dpctl.memory
import pytest
import zeusm
import zeusm.memory

# The IPC names, which only the development head of dpctl has. MEMORY lists the members of memory objects in dpctl 0.22;
# dpctl 0.17 lacks some of them.
DEVELOPMENT_HEAD = {
    "IPCMemoryHandle": {
        "is_available": [],
        "to_bytes": ["self"],
        "open": ["handle_bytes", "device", "nbytes"],
        "close_mapping": ["usm_memory"],
        "close": ["self"],
    },
    "MemoryIPCDevice": {"is_closed": None},
    "SyclIPCGetMemHandle": ["usm_memory"],
    "SyclIPCOpenMemHandle": ["handle_bytes", "device", "nbytes"],
    "SyclIPCCloseMemHandle": ["usm_memory"],
}
MEMORY = {
    "nbytes": None,
    "size": None,
    "_pointer": None,
    "_context": None,
    "_queue": None,
    "reference_obj": None,
    "sycl_context": None,
    "sycl_device": None,
    "sycl_queue": None,
    "__sycl_usm_array_interface__": None,
    "__len__": ["self"],
    "__bytes__": ["self"],
    "__sizeof__": ["self"],
    "get_usm_type": ["self", "syclobj"],
    "get_usm_type_enum": ["self", "syclobj"],
    "copy_to_host": ["self", "obj"],
    "copy_from_host": ["self", "obj"],
    "copy_from_device": ["self", "sycl_usm_ary"],
    "memset": ["self", "val"],
    "tobytes": ["self"],
}
CLASSES = ["MemoryUSMDevice", "MemoryUSMHost", "MemoryUSMShared"]


def parameters(function):
    """The names of the parameters, and whether each is optional."""
    return [
        (parameter.name, parameter.default is not parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
    ]


def public_members(thing):
    """The members of a class. Special ones do not concern USM, except the interface."""
    return [
        name
        for name in dir(thing)
        if not name.startswith("__") or name == "__sycl_usm_array_interface__"
    ]


@pytest.mark.parametrize("name", dpctl.memory.__all__)
def test_each_name_of_dpctls_is_there(name):
    theirs, ours = getattr(dpctl.memory, name), getattr(zeusm.memory, name)
    assert name in zeusm.memory.__all__
    assert isinstance(theirs, type) == isinstance(ours, type)
    if not isinstance(theirs, type):
        assert parameters(ours) == parameters(theirs)
        return
    if issubclass(theirs, Exception):
        assert issubclass(ours, Exception)
        return
    for member in public_members(theirs):
        one, other = (inspect.getattr_static(kind, member) for kind in (theirs, ours))
        assert inspect.isdatadescriptor(one) == inspect.isdatadescriptor(other), member
        if callable(one):
            assert parameters(getattr(ours, member)) == parameters(getattr(theirs, member)), member


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("member", MEMORY)
def test_each_member_of_a_memory_object(name, member):
    """The list includes members that introspection of dpctl's compiled classes may not find."""
    for package in dpctl.memory, zeusm.memory:
        found = inspect.getattr_static(getattr(package, name), member)
        assert inspect.isdatadescriptor(found) == (MEMORY[member] is None)
    wanted = MEMORY[member]
    if wanted is not None:
        assert (
            list(inspect.signature(getattr(getattr(zeusm.memory, name), member)).parameters)
            == wanted
        )


@pytest.mark.parametrize("name", DEVELOPMENT_HEAD)
def test_each_name_of_dpctls_development_head(name):
    wanted, ours = DEVELOPMENT_HEAD[name], getattr(zeusm.memory, name)
    assert name in zeusm.memory.__all__
    if isinstance(wanted, list):
        assert list(inspect.signature(ours).parameters) == wanted
        return
    for member, names in wanted.items():
        if names is None:
            assert inspect.isdatadescriptor(inspect.getattr_static(ours, member))
        else:
            assert list(inspect.signature(getattr(ours, member)).parameters) == names
    if name == "MemoryIPCDevice":
        assert issubclass(ours, zeusm.memory.MemoryUSMDevice)


@pytest.mark.parametrize("name", CLASSES)
def test_properties_and_results_are_of_the_same_types(name):
    theirs, ours = (getattr(package, name)(64) for package in (dpctl.memory, zeusm.memory))
    for member, arguments in MEMORY.items():
        if arguments is None:
            assert type(getattr(ours, member)) is type(getattr(theirs, member)), member
    assert set(ours.__sycl_usm_array_interface__) >= set(theirs.__sycl_usm_array_interface__)
    for syclobj in [None, theirs.sycl_queue, theirs.sycl_context]:
        assert ours.get_usm_type(syclobj) == theirs.get_usm_type(syclobj)
        assert ours.get_usm_type_enum(syclobj) == theirs.get_usm_type_enum(syclobj)
    for call, arguments in [
        ("memset", ()),
        ("memset", (7,)),
        ("memset", (255,)),
        ("copy_from_host", (b"abc",)),
        ("copy_from_device", (theirs,)),
        ("tobytes", ()),
        ("__bytes__", ()),
        ("__len__", ()),
        ("copy_to_host", (bytearray(64),)),
    ]:
        one, other = (getattr(memory, call)(*arguments) for memory in (theirs, ours))
        assert type(one) is type(other)
        assert one == other
        assert bytes(ours) == bytes(theirs)
    one, other = theirs.copy_to_host(), ours.copy_to_host()
    assert (type(one), one.dtype, one.shape) == (type(other), other.dtype, other.shape)


@pytest.mark.parametrize("name", CLASSES)
def test_reference_obj(name):
    """Objects over the package's own allocation have none; those over foreign memory refer to the imported object."""

    def owners(package, other):
        kind = getattr(package, name)
        own, foreign = kind(64), getattr(other, name)(64)
        taken = kind(foreign)
        shares = [kind(own), package.as_usm_memory(own), kind(own, copy=True)]
        return [
            own.reference_obj is None,
            taken.reference_obj is foreign,
            kind(taken).reference_obj is foreign,
            package.as_usm_memory(foreign).reference_obj is foreign,
            *(share.reference_obj is None for share in shares),
        ]

    ours = owners(zeusm.memory, dpctl.memory)
    assert all(ours)
    # dpctl 0.17 refers to the other object that shares the allocation.
    if not dpctl.__version__.startswith("0.17"):
        assert owners(dpctl.memory, zeusm.memory) == ours


def raised(call, *arguments):
    """The exception that a call raises."""
    try:
        call(*arguments)
    except Exception as error:
        return error
    pytest.fail("nothing was raised")


FAILURES = {
    "no size": lambda kind: kind(),
    "negative size": lambda kind: kind(-1),
    "a string for a size": lambda kind: kind("a"),
    "a float for a size": lambda kind: kind(1.5),
    "too large": lambda kind: kind(2**62),
    "no interface": lambda kind: kind([1]),
    "queue of a wrong type": lambda kind: kind(64, queue=5),
    "alignment of a wrong type": lambda kind: kind(64, alignment="a"),
    "unknown keyword": lambda kind: kind(64, bananas=1),
    "copy of a large buffer": lambda kind: kind(4).copy_from_host(b"12345"),
    "copy to a small buffer": lambda kind: kind(4).copy_to_host(bytearray(3)),
    "copy of no buffer": lambda kind: kind(4).copy_from_host(5),
    "copy to no buffer": lambda kind: kind(4).copy_to_host(5),
    "copy of no USM": lambda kind: kind(4).copy_from_device(b"1"),
    "copy of too much USM": lambda kind: kind(4).copy_from_device(kind(5)),
    "memset with a string": lambda kind: kind(4).memset("a"),
    "type by something else": lambda kind: kind(4).get_usm_type(5),
    "enum by something else": lambda kind: kind(4).get_usm_type_enum(5),
    "too many arguments": lambda kind: kind(4).memset(1, 2),
}


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("failure", FAILURES)
def test_failures_are_of_the_same_classes(name, failure):
    """A handler of dpctl's exceptions catches zeusm's."""
    theirs, ours = (
        raised(FAILURES[failure], getattr(package, name))
        for package in (dpctl.memory, zeusm.memory)
    )
    wanted = type(theirs)
    if wanted is dpctl.memory.USMAllocationError:
        wanted = zeusm.memory.USMAllocationError
    assert isinstance(ours, wanted), (ours, theirs)


def test_as_usm_memory_fails_alike():
    for value in [None, 5, b"abc", [1]]:
        theirs = raised(dpctl.memory.as_usm_memory, value)
        assert isinstance(raised(zeusm.memory.as_usm_memory, value), type(theirs))


def test_events_have_what_dpctls_times_have():
    names = {name for name in dir(dpctl.SyclEvent) if not name.startswith("_")}
    wanted = {"wait", "execution_status"} | {name for name in names if "profiling" in name}
    assert wanted <= set(dir(zeusm.Event))
    assert "profiling_info_submit" in wanted
