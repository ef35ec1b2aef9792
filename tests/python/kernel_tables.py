"""Tables of what kernels can do together, each entry with NumPy's answer: sub-groups, local memory, barriers, atomics."""

import itertools

import dpctl
import dpctl.memory
import dpctl.program
import numpy as np
import spirv

# Work-items of a group, and of all.
GROUP, ITEMS = 48, 192
DTYPES = ["i4", "i8", "f4", "f8"]
SUB_GROUP = 3  # The scope.
# Of sub-groups, 0 for the compiler's choice.
SIZES = [0, 8, 16, 32]
STORAGES = ["global", "local", "generic"]
# dpctl 0.17 passes no local memory to kernels.
ARGUMENTS = [False, True] if hasattr(dpctl, "LocalAccessor") else [False]
REDUCE, INCLUSIVE, EXCLUSIVE = range(3)
LEAST = {"i4": -(2**31), "i8": -(2**63), "f4": -np.inf, "f8": -np.inf}
GREATEST = {"i4": 2**31 - 1, "i8": 2**63 - 1, "f4": np.inf, "f8": np.inf}


class Launcher:
    """Runs the kernels of a module on a device."""

    def __init__(self, device, module):
        self.queue = dpctl.SyclQueue(device)
        # By default OpenCL builds for version 1.2, without atomic operations on doubles and generic pointers.
        options = "-cl-std=CL2.0" if device.startswith("opencl") else ""
        build = dpctl.program.create_program_from_spirv
        self.program = build(self.queue, module.bytes(), options)

    def __call__(self, name, *arrays, local=(), items=ITEMS, group=GROUP):
        """Runs a kernel, and returns what the arrays are then."""
        memories = []
        for array in arrays:
            memory = dpctl.memory.MemoryUSMDevice(array.nbytes, queue=self.queue)
            memory.copy_from_host(array.view("u1"))
            memories.append(memory)
        kernel = self.program.get_sycl_kernel(name)
        self.queue.submit(kernel, [*memories, *local], [items], [group]).wait()
        self.queue.wait()
        return [
            np.frombuffer(bytes(memory.copy_to_host()), array.dtype)
            for memory, array in zip(memories, arrays, strict=True)
        ]


def some_numbers(dtype, count=ITEMS):
    """Small whole numbers, whose sums are exact in every type."""
    return np.random.default_rng(5).integers(-50, 50, count).astype(dtype)


# --- sub-groups -----------------------------------------------------------------------------------


def group_operation(name, operation):
    def body(m, value, lane):
        prefix = "F" if m.dtype[0] == "f" else "I" if name == "Add" else "S"
        return m.op(f"Group{prefix}{name}", m.number, m.constant(SUB_GROUP), operation, value)

    def reference(values):
        function = {"Add": np.add, "Min": np.minimum, "Max": np.maximum}[name]
        dtype = values.dtype
        running = function.accumulate(values, dtype=dtype)
        if operation == REDUCE:
            return np.full_like(values, running[-1])
        if operation == INCLUSIVE:
            return running
        code = dtype.str[1:]
        first = {"Add": 0, "Min": GREATEST[code], "Max": LEAST[code]}[name]
        return np.concatenate([np.array([first], dtype), running[:-1]])

    return body, reference


def vote(name):
    def body(m, value, lane):
        limit = m.op("ULessThan", m.bool, lane, m.constant(5))
        voted = m.op(f"Group{name}", m.bool, m.constant(SUB_GROUP), limit)
        return m.op("Select", m.number, voted, m.constant(1, m.number), m.constant(0, m.number))

    def reference(values):
        below = np.arange(len(values)) < 5
        return np.full_like(values, below.all() if name == "All" else below.any())

    return body, reference


def broadcast(lane):
    def body(m, value, _):
        operands = m.constant(SUB_GROUP), value, m.constant(lane)
        return m.op("GroupBroadcast", m.number, *operands)

    return body, lambda values: np.full_like(values, values[lane])


def shuffle_xor(mask):
    def body(m, value, lane):
        return m.op("SubgroupShuffleXorINTEL", m.number, value, m.constant(mask))

    return body, lambda values: values[np.arange(len(values)) ^ mask]


def shuffle_reversed():
    def body(m, value, lane):
        size = m.built_in(spirv.SUB_GROUP_SIZE, m.int)
        last = m.op("ISub", m.int, size, m.constant(1))
        return m.op("SubgroupShuffleINTEL", m.number, value, m.op("ISub", m.int, last, lane))

    return body, lambda values: values[::-1]


def shuffle_up(by):
    def body(m, value, lane):
        zero = m.constant(0, m.number)
        return m.op("SubgroupShuffleUpINTEL", m.number, zero, value, m.constant(by))

    return body, lambda values: np.concatenate([np.zeros_like(values[:by]), values[:-by]])


def shuffle_down(by):
    def body(m, value, lane):
        zero = m.constant(0, m.number)
        return m.op("SubgroupShuffleDownINTEL", m.number, value, zero, m.constant(by))

    return body, lambda values: np.concatenate([values[by:], np.zeros_like(values[:by])])


SUB_GROUPS = {
    **{
        f"{name} {kind}": group_operation(name, operation)
        for name in ["Add", "Min", "Max"]
        for operation, kind in enumerate(["reduced", "inclusive", "exclusive"])
    },
    "all": vote("All"),
    "any": vote("Any"),
    "broadcast 0": broadcast(0),
    "broadcast 3": broadcast(3),
    "shuffle xor 1": shuffle_xor(1),
    "shuffle xor 2": shuffle_xor(2),
    "shuffle reversed": shuffle_reversed(),
    "shuffle up": shuffle_up(1),
    "shuffle down": shuffle_down(1),
}


def sub_groups(device, dtype, size):
    """Compares every operation in sub-groups of `size` work-items (0: the compiler chooses); returns the sizes found."""
    module = spirv.Module(dtype, ["Groups", "SubgroupDispatch", "SubgroupShuffleINTEL"])
    number = module.pointer(spirv.CROSS_WORKGROUP, module.number)
    integer = module.pointer(spirv.CROSS_WORKGROUP, module.int)

    def kernel(operation):
        def body(source, target, size, group, lane):
            item = module.index(spirv.GLOBAL_ID)
            places = [(size, spirv.SUB_GROUP_SIZE), (group, spirv.SUB_GROUP_ID)]
            for place, built_in in [*places, (lane, spirv.SUB_GROUP_LANE)]:
                found = module.built_in(built_in, module.int)
                module.op("Store", module.at(place, item, module.int), found)
            value = module.op("Load", module.number, module.at(source, item))
            result = operation(module, value, found)
            module.op("Store", module.at(target, item), result)

        return body

    names = {entry: f"k{index}" for index, entry in enumerate(SUB_GROUPS)}
    for entry, (body, _) in SUB_GROUPS.items():
        module.kernel(names[entry], [number] * 2 + [integer] * 3, kernel(body), size)
    launch, source = Launcher(device, module), some_numbers(dtype)
    sizes = set()
    # Whole sub-groups only: the shuffles read lanes that a part does not have.
    group = 64
    for entry, (_, reference) in SUB_GROUPS.items():
        nothing = np.zeros(ITEMS, "u4")
        operands = source, np.zeros_like(source), nothing, nothing, nothing
        _, target, found, groups, lanes = launch(names[entry], *operands, group=group)
        if size:
            assert set(found) == {size}, (entry, set(found))
        sizes |= set(found.tolist())
        own = found[0]
        places = np.arange(ITEMS) % group
        assert np.array_equal(groups, places // own), entry
        assert np.array_equal(lanes, places % own), entry
        expected = np.concatenate([reference(part) for part in source.reshape(-1, own)])
        assert np.array_equal(target, expected), (device, entry, dtype, size, target, expected)
    return sizes


def shuffle_before_branch(device, dtype, group):
    """Only the first work-item of a sub-group uses the value that each of them gets from the next one, as in XLA's reductions."""
    module = spirv.Module(dtype, ["SubgroupDispatch", "GroupNonUniformShuffleRelative"])
    number = module.pointer(spirv.CROSS_WORKGROUP, module.number)

    def body(source, target):
        item = module.index(spirv.GLOBAL_ID)
        value = module.op("Load", module.number, module.at(source, item))
        by, scope = module.constant(1), module.constant(SUB_GROUP)
        following = module.op("GroupNonUniformShuffleDown", module.number, scope, value, by)
        is_first = module.op("ULessThan", module.bool, module.index(spirv.LOCAL_ID), by)
        then, end = module.id(), module.id()
        module.op("BranchConditional", is_first, then, end)
        module.label(then)
        module.op("Store", module.at(target, item), following)
        module.op("Branch", end)
        module.label(end)

    module.kernel("k", [number] * 2, body)
    source = some_numbers(dtype, group * 3)
    _, target = Launcher(device, module)(
        "k", source, np.zeros_like(source), items=len(source), group=group
    )
    expected = np.zeros_like(source)
    expected[::group] = source[1::group]
    assert np.array_equal(target, expected), (device, dtype, group, target, expected)


# --- local memory and barriers --------------------------------------------------------------------


def local_memory(device, dtype, is_argument):
    """Each work-item's number moves on by one place in each round, through local memory, between barriers."""
    rounds = 7
    module = spirv.Module(dtype)
    number = module.pointer(spirv.CROSS_WORKGROUP, module.number)
    local = module.pointer(spirv.WORKGROUP, module.number)
    array = None if is_argument else module.static(GROUP)

    def body(source, target, given=None):
        item, own = module.index(spirv.GLOBAL_ID), module.index(spirv.LOCAL_ID)
        is_first = module.op("ULessThan", module.bool, own, module.constant(1))
        before = module.op("ISub", module.int, own, module.constant(1))
        before = module.op("Select", module.int, is_first, module.constant(GROUP - 1), before)

        def place(index):
            if is_argument:
                return module.at(given, index, storage=spirv.WORKGROUP)
            return module.at_static(array, index)

        value = module.op("Load", module.number, module.at(source, item))
        work_group, ordered = module.constant(2), module.constant(0x100 | 0x10)
        for _ in range(rounds):
            module.op("Store", place(own), value)
            module.op("ControlBarrier", work_group, work_group, ordered)
            value = module.op("Load", module.number, place(before))
            module.op("ControlBarrier", work_group, work_group, ordered)
        module.op("Store", module.at(target, item), value)

    module.kernel("rotate", [number, number, *[local] * is_argument], body)
    source = some_numbers(dtype)
    given = [dpctl.LocalAccessor(dtype, (GROUP,))] if is_argument else []
    _, target = Launcher(device, module)("rotate", source, np.zeros_like(source), local=given)
    assert np.array_equal(target, np.roll(source.reshape(-1, GROUP), rounds, axis=1).ravel())


# --- atomics --------------------------------------------------------------------------------------

SCOPES = {"all devices": 0, "device": 1, "work-group": 2}
ORDERS = {"relaxed": 0, "acquire": 2, "release": 4, "both": 8, "sequential": 16}
START = 3


def folded(function):
    """The final number, for operations whose order does not matter."""
    return lambda values: function.reduce(values, initial=values.dtype.type(START))


# The numbers that the work-items pass, and the final number.
ATOMICS = {
    "AtomicIAdd": folded(np.add),
    "AtomicISub": lambda values: values.dtype.type(START) - values.sum(dtype=values.dtype),
    "AtomicIIncrement": lambda values: START + len(values),
    "AtomicIDecrement": lambda values: START - len(values),
    "AtomicSMin": folded(np.minimum),
    "AtomicSMax": folded(np.maximum),
    "AtomicUMin": lambda values: folded(np.minimum)(values.view(f"u{values.itemsize}")),
    "AtomicUMax": lambda values: folded(np.maximum)(values.view(f"u{values.itemsize}")),
    "AtomicAnd": folded(np.bitwise_and),
    "AtomicOr": folded(np.bitwise_or),
    "AtomicXor": folded(np.bitwise_xor),
    "AtomicExchange": None,
    "AtomicFAddEXT": folded(np.add),
    "AtomicFMinEXT": folded(np.minimum),
    "AtomicFMaxEXT": folded(np.maximum),
}
UNARY = {"AtomicIIncrement", "AtomicIDecrement"}
# Each of these returns a different number if it is atomic.
CHAINS = {"AtomicIIncrement": 1, "AtomicIDecrement": -1}


def atomics(device, dtype, storage):
    """Compares every operation on one number in global or local memory, or by a generic pointer."""
    is_float = dtype[0] == "f"
    bits = int(dtype[1]) * 8
    capabilities = [f"AtomicFloat{bits}AddEXT", f"AtomicFloat{bits}MinMaxEXT"] if is_float else []
    extensions = ["SPV_EXT_shader_atomic_float_add", "SPV_EXT_shader_atomic_float_min_max"]
    if dtype[1] == "8":
        capabilities.append("Int64Atomics")
    if storage == "generic":
        capabilities.append("GenericPointer")
    module = spirv.Module(dtype, capabilities, extensions if is_float else [])
    number = module.pointer(spirv.CROSS_WORKGROUP, module.number)
    array = module.static(1) if storage == "local" else None
    names = [name for name in ATOMICS if name.startswith("AtomicF") == is_float]
    if is_float:
        names.append("AtomicExchange")
    # Every operation in every order, and in turn in every scope.
    scopes = itertools.cycle(SCOPES)
    pairs = itertools.product(names, ORDERS)
    cases = {f"k{index}": (name, next(scopes), order) for index, (name, order) in enumerate(pairs)}

    def kernel(name, scope, order):
        def body(source, target, old):
            item = module.index(spirv.GLOBAL_ID)
            group, ordered = module.constant(2), module.constant(0x100 | 0x10)
            scope_id = module.constant(SCOPES[scope])
            order_id = module.constant(
                ORDERS[order] | (0x100 if array else 0x200) * (ORDERS[order] > 0)
            )
            zero = module.constant(0)
            if array:
                place = module.at_static(array, zero)
                relaxed = module.constant(0)
                start = module.op("Load", module.number, module.at(target, zero))
                module.op("AtomicStore", place, group, relaxed, start)
                module.op("ControlBarrier", group, group, ordered)
            else:
                place = module.at(target, zero)
            if storage == "generic":
                kind = module.pointer(spirv.GENERIC, module.number)
                place = module.op("PtrCastToGeneric", kind, place)
            value = module.op("Load", module.number, module.at(source, item))
            operands = [] if name in UNARY else [value]
            before = module.op(name, module.number, place, scope_id, order_id, *operands)
            module.op("Store", module.at(old, item), before)
            if array:
                module.op("ControlBarrier", group, group, ordered)
                after = module.op("AtomicLoad", module.number, place, group, module.constant(0))
                module.op("Store", module.at(target, item), after)

        return body

    for kernel_name, case in cases.items():
        module.kernel(kernel_name, [number] * 3, kernel(*case))
    launch = Launcher(device, module)
    # One work-group if the number is in its local memory, or the scope ends there.
    for kernel_name, (name, scope, order) in cases.items():
        alone = array is not None or scope == "work-group"
        items = GROUP if alone else ITEMS
        source = some_numbers(dtype, items)
        start = np.full(items, START, dtype)
        _, target, old = launch(kernel_name, source, start, start, items=items)
        told = device, dtype, storage, name, scope, order
        if name == "AtomicExchange":
            # Each number is returned once, but for the last one.
            expected = sorted([*source.tolist(), START])
            assert sorted([*old.tolist(), target[0]]) == expected, told
            continue
        final = np.asarray(ATOMICS[name](source)).astype(dtype)
        assert target[0] == final, (*told, target[0], final)
        if step := CHAINS.get(name):
            assert sorted(old * step) == sorted((START + step * np.arange(items)) * step), told


def everything(device):
    """All tables on one device, in groups of the sizes that kernels ask for most."""
    for dtype in DTYPES:
        for size in SIZES:
            sub_groups(device, dtype, size)
        for is_argument in ARGUMENTS:
            local_memory(device, dtype, is_argument)
        for storage in STORAGES:
            atomics(device, dtype, storage)
