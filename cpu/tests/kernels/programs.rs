//! SPIR-V modules to test with, assembled here.

use rspirv::binary::Assemble as _;
use rspirv::dr::{Builder, InsertPoint, Instruction, Operand};
use spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel,
    FunctionControl, MemoryAccess, MemoryModel, Op, StorageClass, Word,
};

/// A builder with the common parts of all kernels.
pub struct Program {
    pub b: Builder,
    pub void: Word,
    pub int: Word,
    pub long: Word,
    pub global: Word,
    /// The variable behind `get_global_id`.
    pub id: Word,
    /// The variables of all kernels.
    inputs: Vec<Word>,
}

impl Program {
    pub fn new() -> Self {
        let mut b = Builder::new();
        b.set_version(1, 0);
        for capability in [Capability::Addresses, Capability::Kernel, Capability::Int64] {
            b.capability(capability);
        }
        b.memory_model(AddressingModel::Physical64, MemoryModel::OpenCL);
        let (void, int, long) = (b.type_void(), b.type_int(32, 0), b.type_int(64, 0));
        let global = b.type_pointer(None, StorageClass::CrossWorkgroup, int);
        let triple = b.type_vector(long, 3);
        let mut program = Self {
            b,
            void,
            int,
            long,
            global,
            id: 0,
            inputs: Vec::new(),
        };
        program.id = program.input(triple, BuiltIn::GlobalInvocationId);
        program
    }

    /// Declares another variable that has a value for each work-item, for the kernels that follow.
    fn input(&mut self, kind: Word, builtin: BuiltIn) -> Word {
        let pointer = self.b.type_pointer(None, StorageClass::Input, kind);
        let variable = self.b.variable(pointer, None, StorageClass::Input, None);
        let builtin = Operand::BuiltIn(builtin);
        self.b.decorate(variable, Decoration::BuiltIn, [builtin]);
        self.b.decorate(variable, Decoration::Constant, []);
        self.inputs.push(variable);
        variable
    }

    /// Begins a kernel; returns it and its parameters.
    pub fn kernel(&mut self, name: &str, parameters: &[Word]) -> (Word, Vec<Word>) {
        let signature = self.b.type_function(self.void, parameters.to_vec());
        let kernel = self
            .b
            .begin_function(self.void, None, FunctionControl::NONE, signature)
            .unwrap();
        let ids = parameters
            .iter()
            .map(|kind| self.b.function_parameter(*kind).unwrap())
            .collect();
        let inputs = self.inputs.clone();
        self.b
            .entry_point(ExecutionModel::Kernel, kernel, name, inputs);
        self.b.begin_block(None).unwrap();
        (kernel, ids)
    }

    pub fn end(&mut self) {
        self.b.ret().unwrap();
        self.b.end_function().unwrap();
    }

    /// The work-item's number in the first dimension.
    pub fn index(&mut self) -> Word {
        let triple = self.b.type_vector(self.long, 3);
        let all = self.b.load(triple, None, self.id, None, []).unwrap();
        self.b.composite_extract(self.long, None, all, [0]).unwrap()
    }

    /// The address of `pointer[index]`.
    pub fn at(&mut self, pointer: Word, index: Word) -> Word {
        self.b
            .in_bounds_ptr_access_chain(self.global, None, pointer, index, [])
            .unwrap()
    }

    pub fn load(&mut self, address: Word) -> Word {
        self.b.load(self.int, None, address, None, []).unwrap()
    }

    pub fn store(&mut self, address: Word, value: Word) {
        self.b.store(address, value, None, []).unwrap();
    }

    pub fn bytes(self) -> Vec<u8> {
        self.b
            .module()
            .assemble()
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect()
    }
}

/// The SpecId of the constant in [`module`].
pub const CONSTANT: u32 = 42;

/// One module with every kernel that the tests need:
///
/// - `add(a, b, c)`: `c[i] = a[i] + b[i]`
/// - `increase(x, by, pair)`: `x[i] += by + pair.second`, where `pair` is a structure passed by value
/// - `shared_memory(x, scratch)`: `scratch[0] = i; x[i] = scratch[0]`, in groups of one
/// - `constant(x)`: `x[i]` = the specialisation constant, 7 unless it is set
/// - `eights(x)`: `x[i] = i`, in groups of 8 only
/// - `work(x, rounds)`: `x[i]` is changed `rounds` times, so that it takes a while
/// - `meet(x)`: sets `x[0]`, and ends when the host has set `x[1]`
pub fn module() -> Vec<u8> {
    let mut p = Program::new();
    let (int, long, global) = (p.int, p.long, p.global);

    let (_, arguments) = p.kernel("add", &[global, global, global]);
    let i = p.index();
    let (a, b, c) = (
        p.at(arguments[0], i),
        p.at(arguments[1], i),
        p.at(arguments[2], i),
    );
    let (a, b) = (p.load(a), p.load(b));
    let sum = p.b.i_add(int, None, a, b).unwrap();
    p.store(c, sum);
    p.end();

    let pair = p.b.type_struct([int, int]);
    let by_value = p.b.type_pointer(None, StorageClass::Function, pair);
    let member = p.b.type_pointer(None, StorageClass::Function, int);
    let one = p.b.constant_bit32(int, 1);
    let (_, arguments) = p.kernel("increase", &[global, int, by_value]);
    let attribute = Operand::FunctionParameterAttribute(spirv::FunctionParameterAttribute::ByVal);
    p.b.decorate(arguments[2], Decoration::FuncParamAttr, [attribute]);
    let i = p.index();
    let x = p.at(arguments[0], i);
    let zero = p.b.constant_bit32(int, 0);
    let second =
        p.b.in_bounds_ptr_access_chain(member, None, arguments[2], zero, [one])
            .unwrap();
    let (old, second) = (p.load(x), p.load(second));
    let new = p.b.i_add(int, None, old, arguments[1]).unwrap();
    let new = p.b.i_add(int, None, new, second).unwrap();
    p.store(x, new);
    p.end();

    let local = p.b.type_pointer(None, StorageClass::Workgroup, int);
    let (_, arguments) = p.kernel("shared_memory", &[global, local]);
    let i = p.index();
    let narrow = p.b.u_convert(int, None, i).unwrap();
    p.store(arguments[1], narrow);
    let x = p.at(arguments[0], i);
    let value = p.load(arguments[1]);
    p.store(x, value);
    p.end();

    let constant = p.b.spec_constant_bit32(int, 7);
    p.b.decorate(
        constant,
        Decoration::SpecId,
        [Operand::LiteralBit32(CONSTANT)],
    );
    let (_, arguments) = p.kernel("constant", &[global]);
    let i = p.index();
    let x = p.at(arguments[0], i);
    p.store(x, constant);
    p.end();

    let (kernel, arguments) = p.kernel("eights", &[global]);
    let i = p.index();
    let narrow = p.b.u_convert(int, None, i).unwrap();
    let x = p.at(arguments[0], i);
    p.store(x, narrow);
    p.end();
    p.b.execution_mode(kernel, ExecutionMode::LocalSize, [8, 1, 1]);

    work(&mut p, int, long, global);
    meet(&mut p, &[global]);
    p.bytes()
}

/// `meet`, of whose parameters it uses the first.
pub fn meet(p: &mut Program, parameters: &[Word]) {
    let (int, long) = (p.int, p.long);
    let boolean = p.b.type_bool();
    let (unset, set) = (p.b.constant_bit32(int, 0), p.b.constant_bit32(int, 1));
    let (first, second) = (p.b.constant_bit64(long, 0), p.b.constant_bit64(long, 1));
    let (_, arguments) = p.kernel("meet", parameters);
    let (head, end) = (p.b.id(), p.b.id());
    let (ours, theirs) = (p.at(arguments[0], first), p.at(arguments[0], second));
    let volatile = Some(MemoryAccess::VOLATILE);
    p.b.store(ours, set, volatile, []).unwrap();
    p.b.branch(head).unwrap();
    p.b.begin_block(Some(head)).unwrap();
    let found = p.b.load(int, None, theirs, volatile, []).unwrap();
    let again = p.b.i_equal(boolean, None, found, unset).unwrap();
    p.b.branch_conditional(again, head, end, []).unwrap();
    p.b.begin_block(Some(end)).unwrap();
    p.end();
}

/// `work`: a loop that a compiler cannot optimise away, as each round depends on memory.
fn work(p: &mut Program, int: Word, long: Word, global: Word) {
    let boolean = p.b.type_bool();
    let (zero, one) = (p.b.constant_bit64(long, 0), p.b.constant_bit64(long, 1));
    let (factor, addend) = (
        p.b.constant_bit32(int, 1_664_525),
        p.b.constant_bit32(int, 1_013_904_223),
    );
    let (_, arguments) = p.kernel("work", &[global, long]);
    let (head, body, end) = (p.b.id(), p.b.id(), p.b.id());
    let i = p.index();
    let x = p.at(arguments[0], i);
    let first = p.load(x);
    let start = p.b.id();
    p.b.branch(start).unwrap();
    p.b.begin_block(Some(start)).unwrap();
    p.b.branch(head).unwrap();
    p.b.begin_block(Some(head)).unwrap();
    let (next_round, next_value) = (p.b.id(), p.b.id());
    let round =
        p.b.phi(long, None, [(zero, start), (next_round, body)])
            .unwrap();
    let value =
        p.b.phi(int, None, [(first, start), (next_value, body)])
            .unwrap();
    let more = p.b.u_less_than(boolean, None, round, arguments[1]).unwrap();
    p.b.branch_conditional(more, body, end, []).unwrap();
    p.b.begin_block(Some(body)).unwrap();
    let product = p.b.i_mul(int, None, value, factor).unwrap();
    p.b.i_add(int, Some(next_value), product, addend).unwrap();
    p.b.i_add(long, Some(next_round), round, one).unwrap();
    p.b.branch(head).unwrap();
    p.b.begin_block(Some(end)).unwrap();
    p.store(x, value);
    p.end();
}

/// One kernel, `dimensions(x)`: `x[0] = get_work_dim()`.
pub fn dimensions() -> Vec<u8> {
    let mut p = Program::new();
    let (int, long, global) = (p.int, p.long, p.global);
    let first = p.b.constant_bit64(long, 0);
    let dimensions = p.input(int, BuiltIn::WorkDim);
    let (_, arguments) = p.kernel("dimensions", &[global]);
    let value = p.load(dimensions);
    let x = p.at(arguments[0], first);
    p.store(x, value);
    p.end();
    p.bytes()
}

/// One kernel, `count(x)`, which adds 1 to `x[0]` by an atomic operation on a generic pointer.
pub fn generic_atomics() -> Vec<u8> {
    let mut p = Program::new();
    p.b.capability(Capability::GenericPointer);
    let (int, global) = (p.int, p.global);
    let generic = p.b.type_pointer(None, StorageClass::Generic, int);
    let one = p.b.constant_bit32(int, 1);
    let relaxed = p.b.constant_bit32(int, 0);
    let (_, arguments) = p.kernel("count", &[global]);
    let pointer =
        p.b.ptr_cast_to_generic(generic, None, arguments[0])
            .unwrap();
    p.b.atomic_i_add(int, None, pointer, one, relaxed, one)
        .unwrap();
    p.end();
    p.bytes()
}

/// A module of nothing.
pub fn empty() -> Vec<u8> {
    let mut builder = Builder::new();
    builder.set_version(1, 0);
    builder.capability(Capability::Addresses);
    builder.capability(Capability::Kernel);
    builder.memory_model(AddressingModel::Physical64, MemoryModel::OpenCL);
    builder
        .module()
        .assemble()
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

/// A kernel `lanes(x)`: `x[i] = i`, whose sub-groups have 16 work-items.
#[cfg(target_os = "linux")]
pub fn lanes() -> Vec<u8> {
    let mut program = Program::new();
    program.b.capability(Capability::SubgroupDispatch);
    let (kernel, parameters) = program.kernel("lanes", &[program.global]);
    program
        .b
        .execution_mode(kernel, ExecutionMode::SubgroupSize, [16]);
    let index = program.index();
    let address = program.at(parameters[0], index);
    let value = program.b.u_convert(program.int, None, index).unwrap();
    program.store(address, value);
    program.end();
    program.bytes()
}

/// A kernel `call(function, x)`: `x[0]` = the value of `function(x[0])`, a function's address; an exported function
/// `increment`, which no kernel refers to; and an exported variable `counter`.
pub fn function_pointers() -> Vec<u8> {
    let mut p = Program::new();
    p.b.extension("SPV_INTEL_function_pointers");
    p.b.capability(Capability::FunctionPointersINTEL);
    p.b.capability(Capability::Linkage);
    let (int, long, global) = (p.int, p.long, p.global);
    let signature = p.b.type_function(int, [int]);
    let increment =
        p.b.begin_function(int, None, FunctionControl::NONE, signature);
    let increment = increment.unwrap();
    let value = p.b.function_parameter(int).unwrap();
    p.b.begin_block(None).unwrap();
    let one = p.b.constant_bit32(int, 1);
    let sum = p.b.i_add(int, None, value, one).unwrap();
    p.b.ret_value(sum).unwrap();
    p.b.end_function().unwrap();
    let storage = StorageClass::CrossWorkgroup;
    let pointer = p.b.type_pointer(None, storage, int);
    let counter = p.b.variable(pointer, None, storage, Some(one));
    for (id, name) in [(increment, "increment"), (counter, "counter")] {
        let export = [
            Operand::LiteralString(name.to_owned()),
            Operand::LinkageType(spirv::LinkageType::Export),
        ];
        p.b.decorate(id, Decoration::LinkageAttributes, export);
    }

    let (_, arguments) = p.kernel("call", &[long, global]);
    let pointer = p.b.type_pointer(None, StorageClass::Function, signature);
    let function = p.b.convert_u_to_ptr(pointer, None, arguments[0]).unwrap();
    let x = p.load(arguments[1]);
    let result = p.b.id();
    let operands = vec![Operand::IdRef(function), Operand::IdRef(x)];
    let call = Instruction::new(
        Op::FunctionPointerCallINTEL,
        Some(int),
        Some(result),
        operands,
    );
    p.b.insert_into_block(InsertPoint::End, call).unwrap();
    p.store(arguments[1], result);
    p.end();
    p.bytes()
}

/// Two modules that must be linked: the kernel `whole(x)` of the first calls a function of the second, which gives
/// `value`.
pub fn halves(value: u32) -> [Vec<u8>; 2] {
    let linkage = |kind| {
        [
            Operand::LiteralString("half".to_owned()),
            Operand::LinkageType(kind),
        ]
    };
    let mut caller = Program::new();
    caller.b.capability(Capability::Linkage);
    let (int, global) = (caller.int, caller.global);
    let signature = caller.b.type_function(int, []);
    let half = caller
        .b
        .begin_function(int, None, FunctionControl::NONE, signature)
        .unwrap();
    caller.b.end_function().unwrap();
    caller.b.decorate(
        half,
        Decoration::LinkageAttributes,
        linkage(spirv::LinkageType::Import),
    );
    let (_, arguments) = caller.kernel("whole", &[global]);
    let i = caller.index();
    let x = caller.at(arguments[0], i);
    let result = caller.b.function_call(int, None, half, []).unwrap();
    caller.store(x, result);
    caller.end();

    let mut callee = Builder::new();
    callee.set_version(1, 0);
    for capability in [
        Capability::Addresses,
        Capability::Kernel,
        Capability::Linkage,
    ] {
        callee.capability(capability);
    }
    callee.memory_model(AddressingModel::Physical64, MemoryModel::OpenCL);
    let int = callee.type_int(32, 0);
    let signature = callee.type_function(int, []);
    let value = callee.constant_bit32(int, value);
    let half = callee
        .begin_function(int, None, FunctionControl::NONE, signature)
        .unwrap();
    callee.begin_block(None).unwrap();
    callee.ret_value(value).unwrap();
    callee.end_function().unwrap();
    callee.decorate(
        half,
        Decoration::LinkageAttributes,
        linkage(spirv::LinkageType::Export),
    );
    let callee = callee
        .module()
        .assemble()
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    [caller.bytes(), callee]
}
