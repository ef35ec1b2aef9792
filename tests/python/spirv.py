"""An assembler of SPIR-V modules: as much of it as the tests of kernels need."""

import struct

OPCODES = {
    "Extension": 10,
    "MemoryModel": 14,
    "EntryPoint": 15,
    "ExecutionMode": 16,
    "Capability": 17,
    "TypeVoid": 19,
    "TypeBool": 20,
    "TypeInt": 21,
    "TypeFloat": 22,
    "TypeVector": 23,
    "TypeArray": 28,
    "TypePointer": 32,
    "TypeFunction": 33,
    "Constant": 43,
    "Function": 54,
    "FunctionParameter": 55,
    "FunctionEnd": 56,
    "Variable": 59,
    "Load": 61,
    "Store": 62,
    "InBoundsPtrAccessChain": 70,
    "Decorate": 71,
    "CompositeExtract": 81,
    "UConvert": 113,
    "PtrCastToGeneric": 121,
    "IAdd": 128,
    "ISub": 130,
    "Select": 169,
    "INotEqual": 171,
    "ULessThan": 176,
    "BitwiseXor": 198,
    "ControlBarrier": 224,
    "AtomicLoad": 227,
    "AtomicStore": 228,
    "AtomicExchange": 229,
    "AtomicCompareExchange": 230,
    "AtomicIIncrement": 232,
    "AtomicIDecrement": 233,
    "AtomicIAdd": 234,
    "AtomicISub": 235,
    "AtomicSMin": 236,
    "AtomicUMin": 237,
    "AtomicSMax": 238,
    "AtomicUMax": 239,
    "AtomicAnd": 240,
    "AtomicOr": 241,
    "AtomicXor": 242,
    "Label": 248,
    "Branch": 249,
    "BranchConditional": 250,
    "Return": 253,
    "GroupAll": 261,
    "GroupAny": 262,
    "GroupBroadcast": 263,
    "GroupIAdd": 264,
    "GroupFAdd": 265,
    "GroupFMin": 266,
    "GroupSMin": 268,
    "GroupFMax": 269,
    "GroupSMax": 271,
    "GroupNonUniformShuffleDown": 348,
    "SubgroupShuffleINTEL": 5571,
    "SubgroupShuffleDownINTEL": 5572,
    "SubgroupShuffleUpINTEL": 5573,
    "SubgroupShuffleXorINTEL": 5574,
    "AtomicFMinEXT": 5614,
    "AtomicFMaxEXT": 5615,
    "AtomicFAddEXT": 6035,
}
CAPABILITIES = {
    "Addresses": 4,
    "Kernel": 6,
    "Float64": 10,
    "Int64": 11,
    "Int64Atomics": 12,
    "Groups": 18,
    "GenericPointer": 38,
    "SubgroupDispatch": 58,
    "GroupNonUniformShuffleRelative": 66,
    "SubgroupShuffleINTEL": 5568,
    "AtomicFloat32MinMaxEXT": 5612,
    "AtomicFloat64MinMaxEXT": 5613,
    "AtomicFloat32AddEXT": 6033,
    "AtomicFloat64AddEXT": 6034,
}
INPUT, WORKGROUP, CROSS_WORKGROUP, GENERIC = 1, 4, 5, 8
LOCAL_ID, GLOBAL_ID = 27, 28
SUB_GROUP_SIZE, SUB_GROUP_ID, SUB_GROUP_LANE = 36, 40, 41
# With the results of these, the first operand is no type.
WITHOUT_RESULT = {
    "Store",
    "ControlBarrier",
    "AtomicStore",
    "Branch",
    "BranchConditional",
    "Return",
    "FunctionEnd",
}


def words(text):
    """A string as SPIR-V has it: null-terminated, in whole words."""
    data = text.encode() + b"\0"
    return struct.unpack(f"<{-(-len(data) // 4)}I", data.ljust(-(-len(data) // 4) * 4, b"\0"))


def instruction(name, *operands):
    return [(len(operands) + 1) << 16 | OPCODES[name], *operands]


class Module:
    """A module whose kernels take pointers to numbers of `dtype`, and one of them also to 32-bit integers."""

    def __init__(self, dtype, capabilities=(), extensions=()):
        self.last, self.known = 0, {}
        self.heads, self.names, self.modes, self.decorations = [], [], [], []
        self.globals, self.code, self.inputs = [], [], {}
        for capability in ["Addresses", "Kernel", "Int64", *capabilities]:
            self.heads += instruction("Capability", CAPABILITIES[capability])
        if dtype == "f8":
            self.heads += instruction("Capability", CAPABILITIES["Float64"])
        for extension in extensions:
            self.heads += instruction("Extension", *words(extension))
        self.heads += instruction("MemoryModel", 2, 2)
        self.dtype = dtype
        self.void = self.type("TypeVoid")
        self.bool = self.type("TypeBool")
        self.int, self.long = self.type("TypeInt", 32, 0), self.type("TypeInt", 64, 0)
        bits = int(dtype[1]) * 8
        self.number = (
            self.type("TypeFloat", bits) if dtype[0] == "f" else self.type("TypeInt", bits, 0)
        )

    def id(self):
        self.last += 1
        return self.last

    def type(self, name, *operands):
        """A type; the same for equal operands."""
        key = (name, *operands)
        if key not in self.known:
            self.known[key] = self.id()
            self.globals += instruction(name, self.known[key], *operands)
        return self.known[key]

    def constant(self, value, kind=None):
        """A constant of type `kind`, 32-bit integers unless it is given."""
        kind = kind or self.int
        data = struct.pack("<i", value)
        if kind == self.long:
            data = struct.pack("<q", value)
        elif kind == self.number:
            formats = {"i4": "<i", "i8": "<q", "f4": "<f", "f8": "<d"}
            data = struct.pack(formats[self.dtype], value)
        key = ("constant", kind, data)
        if key not in self.known:
            self.known[key] = self.id()
            operands = struct.unpack(f"<{len(data) // 4}I", data)
            self.globals += instruction("Constant", kind, self.known[key], *operands)
        return self.known[key]

    def pointer(self, storage, kind):
        return self.type("TypePointer", storage, kind)

    def static(self, count):
        """An array in the local memory of each work-group; the result is a pointer to its first element."""
        array = self.type("TypeArray", self.number, self.constant(count))
        variable = self.id()
        kind = self.pointer(WORKGROUP, array)
        self.globals += instruction("Variable", kind, variable, WORKGROUP)
        return variable

    def built_in(self, number, kind):
        """The value of a built-in variable."""
        if number not in self.inputs:
            self.inputs[number] = variable = self.id()
            pointer = self.pointer(INPUT, kind)
            self.globals += instruction("Variable", pointer, variable, INPUT)
            self.decorations += instruction("Decorate", variable, 11, number)
        return self.op("Load", kind, self.inputs[number])

    def index(self, number):
        """The first component of an index, as 32-bit integer."""
        triple = self.built_in(number, self.type("TypeVector", self.long, 3))
        return self.op("UConvert", self.int, self.op("CompositeExtract", self.long, triple, 0))

    def op(self, name, *operands):
        """Appends an instruction; the result is its id, if it has one."""
        if name in WITHOUT_RESULT:
            self.code += instruction(name, *operands)
            return None
        kind, *rest = operands
        result = self.id()
        self.code += instruction(name, kind, result, *rest)
        return result

    def at(self, pointer, index, kind=None, storage=CROSS_WORKGROUP):
        """The address of an element."""
        kind = self.pointer(storage, kind or self.number)
        return self.op("InBoundsPtrAccessChain", kind, pointer, index)

    def at_static(self, array, index):
        """The address of an element of an array in local memory."""
        kind = self.pointer(WORKGROUP, self.number)
        return self.op("InBoundsPtrAccessChain", kind, array, self.constant(0), index)

    def kernel(self, name, parameters, body, sub_group_size=None):
        """A kernel; `body` gets its parameters, whose types are given."""
        function = self.id()
        signature = self.type("TypeFunction", self.void, *parameters)
        self.code += instruction("Function", self.void, function, 0, signature)
        arguments = [self.op("FunctionParameter", kind) for kind in parameters]
        self.code += instruction("Label", self.id())
        body(*arguments)
        self.op("Return")
        self.op("FunctionEnd")
        self.names.append((function, name))
        if sub_group_size:
            self.modes += instruction("ExecutionMode", function, 35, sub_group_size)

    def label(self, label):
        """The begin of a block."""
        self.code += instruction("Label", label)

    def bytes(self):
        entries = []
        for function, name in self.names:
            entries += instruction("EntryPoint", 6, function, *words(name), *self.inputs.values())
        head = [0x07230203, 0x00010100, 0, self.last + 1, 0]
        parts = [self.heads, entries, self.modes, self.decorations, self.globals, self.code]
        everything = head + [word for part in parts for word in part]
        return struct.pack(f"<{len(everything)}I", *everything)
