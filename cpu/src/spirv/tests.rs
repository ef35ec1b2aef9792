#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rspirv::binary::Assemble as _;
use rspirv::dr::{Builder, Operand};
use spirv::{
    AddressingModel, Capability, Decoration, ExecutionMode, ExecutionModel, FunctionControl,
    FunctionParameterAttribute, MemoryModel, Op, StorageClass,
};

use super::{Argument, Kernel, Module};

/// A module with one kernel, `everything`, that has an argument of each kind, and one specialisation constant.
fn module() -> Vec<u8> {
    let mut b = Builder::new();
    b.set_version(1, 0);
    b.capability(Capability::Kernel);
    b.capability(Capability::Addresses);
    b.memory_model(AddressingModel::Physical64, MemoryModel::OpenCL);
    let (void, byte, int, long) = (
        b.type_void(),
        b.type_int(8, 0),
        b.type_int(32, 0),
        b.type_int(64, 0),
    );
    let float = b.type_float(32, None);
    let three = b.type_vector(float, 3);
    let global = b.type_pointer(None, StorageClass::CrossWorkgroup, float);
    let local = b.type_pointer(None, StorageClass::Workgroup, float);
    let length = b.constant_bit32(int, 5);
    let array = b.type_array(int, length);
    let plain = b.type_struct([byte, long, array, byte]);
    let packed = b.type_struct_id(None, [byte, long]);
    b.decorate(packed, Decoration::CPacked, []);
    let (by_value, by_value_packed) = (
        b.type_pointer(None, StorageClass::Function, plain),
        b.type_pointer(None, StorageClass::Function, packed),
    );
    let sampler = b.type_sampler();
    let switch = b.spec_constant_bit32(int, 7);
    b.decorate(switch, Decoration::SpecId, [Operand::LiteralBit32(42)]);
    let parameters = [
        global,
        local,
        int,
        three,
        by_value,
        by_value_packed,
        sampler,
    ];
    let signature = b.type_function(void, parameters);
    let kernel = b
        .begin_function(void, None, FunctionControl::NONE, signature)
        .unwrap();
    for (index, kind) in parameters.into_iter().enumerate() {
        let parameter = b.function_parameter(kind).unwrap();
        if (4..6).contains(&index) {
            let attribute = Operand::FunctionParameterAttribute(FunctionParameterAttribute::ByVal);
            b.decorate(parameter, Decoration::FuncParamAttr, [attribute]);
        }
    }
    b.begin_block(None).unwrap();
    b.ret().unwrap();
    b.end_function().unwrap();
    b.entry_point(ExecutionModel::Kernel, kernel, "everything", []);
    b.execution_mode(kernel, ExecutionMode::LocalSize, [8, 4, 1]);
    b.execution_mode(kernel, ExecutionMode::SubgroupSize, [16]);
    b.module()
        .assemble()
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect()
}

#[test]
fn arguments_are_what_the_module_says() {
    let parsed = Module::parse(&module()).unwrap();
    let arguments = vec![
        Argument::Pointer,
        Argument::Local,
        Argument::Value(Some(4)),
        Argument::Value(Some(16)),
        // A byte, padding to 8, 8 bytes, 5 * 4 bytes, a byte, padding to 8.
        Argument::Value(Some(40)),
        Argument::Value(Some(9)),
        Argument::Sampler,
    ];
    let expected = Kernel {
        name: "everything".to_owned(),
        arguments,
        required_group_size: Some([8, 4, 1]),
        required_sub_group_size: Some(16),
        ..Kernel::default()
    };
    assert_eq!(parsed.kernels, [expected]);
    assert_eq!(
        parsed.specialisation.into_iter().collect::<Vec<_>>(),
        [(42, 4)]
    );
}

#[test]
fn both_byte_orders_are_read_and_the_compiler_gets_this_machine_s() {
    let native = module();
    let swapped: Vec<u8> = native
        .as_chunks::<4>()
        .0
        .iter()
        .flat_map(|&[a, b, c, d]| [d, c, b, a])
        .collect();
    let parsed = Module::parse(&swapped).unwrap();
    assert_eq!(parsed.kernels, Module::parse(&native).unwrap().kernels);
    assert_eq!(parsed.code, native);
}

#[test]
fn what_is_no_module_is_refused_in_words() {
    let refused = |bytes: &[u8]| Module::parse(bytes).err().unwrap();
    assert!(refused(&[]).starts_with("0 bytes are not a SPIR-V module"));
    let cut = &module()[..module().len() - 2];
    assert!(refused(cut).starts_with(&format!("{} bytes are", cut.len())));
    let text = refused(b"this is a text and no module at all.");
    assert!(
        text.starts_with("not SPIR-V: the first word is 0x73696874"),
        "{text}"
    );
    let with_word = |at: usize, value: u32| {
        let mut bytes = module();
        bytes[at * 4..at * 4 + 4].copy_from_slice(&value.to_ne_bytes());
        refused(&bytes)
    };
    assert!(with_word(3, 0).ends_with("is not below the header's bound"));
    let malformed = "the instruction at word 5 (opcode 0) is cut short or malformed";
    assert_eq!(with_word(5, 0), malformed);
}

#[test]
fn a_graphics_module_is_refused() {
    let mut b = Builder::new();
    b.memory_model(AddressingModel::Logical, MemoryModel::GLSL450);
    let bytes: Vec<u8> = b
        .module()
        .assemble()
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let refused = Module::parse(&bytes).err().unwrap();
    let expected = "the module is not for OpenCL on 64 bits: addressing model 0, memory model 1";
    assert_eq!(refused, expected);
}

#[test]
fn a_huge_type_is_an_error() {
    let mut b = Builder::new();
    b.capability(Capability::Linkage);
    b.memory_model(AddressingModel::Physical64, MemoryModel::OpenCL);
    let mut kind = b.type_int(64, 0);
    let int = b.type_int(32, 0);
    let length = b.constant_bit32(int, u32::MAX);
    for _ in 0..3 {
        kind = b.type_array(kind, length);
    }
    let bytes: Vec<u8> = b
        .module()
        .assemble()
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let refused = Module::parse(&bytes).err().unwrap();
    assert!(refused.ends_with("is larger than any memory"), "{refused}");
}

/// Cut between two instructions before the first entry point, it is a module without kernels.
#[test]
fn a_module_cut_anywhere_is_refused_or_has_no_kernels() {
    let bytes = module();
    let taken: Vec<usize> = (0..bytes.len())
        .filter(|end| match Module::parse(&bytes[..*end]) {
            Ok(parsed) => {
                assert!(parsed.kernels.is_empty(), "{end} of {}", bytes.len());
                true
            }
            Err(_) => false,
        })
        .collect();
    assert!(taken.len() <= 1, "{taken:?}");
}

proptest! {
    /// Any bytes give a module or an error, never a panic.
    #[test]
    fn changed_bytes_never_panic(changes in prop::collection::vec((0usize..4096, any::<u8>()), 1..8)) {
        let mut bytes = module();
        let size = bytes.len();
        for (at, value) in changes {
            bytes[at % size] = value;
        }
        let _ = Module::parse(&bytes);
    }

    #[test]
    fn noise_never_panics(noise in prop::collection::vec(any::<u32>(), 0..256)) {
        let mut words = vec![spirv::MAGIC_NUMBER, 0x0001_0000, 0, 1000, 0];
        words.extend(noise.iter().map(|word| word & 0x0003_ffff | 0x0001_0000));
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let _ = Module::parse(&bytes);
    }

    /// Words that mean something elsewhere in the module, or nothing anywhere, and instructions that are there twice, not
    /// at all or elsewhere: types that hold themselves, sizes beyond all memory, parameters without functions.
    #[test]
    fn rearranged_modules_never_panic(
        words in prop::collection::vec((any::<prop::sample::Index>(), odd_word()), 0..8),
        moves in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..3), 0..6),
    ) {
        let (header, mut instructions) = split(&module());
        for (from, to, what) in moves {
            let from = from.index(instructions.len());
            let moved = if what == 2 { instructions[from].clone() } else { instructions.remove(from) };
            if what > 0 {
                instructions.insert(to.index(instructions.len() + 1), moved);
            }
            prop_assume!(!instructions.is_empty());
        }
        for (at, word) in words {
            // The first word has the instruction's length, which `changed_bytes_never_panic` changes.
            let of = at.index(instructions.len());
            let length = instructions[of].len();
            if length > 1 {
                instructions[of][1 + at.index(length - 1)] = word;
            }
        }
        let words = header.into_iter().chain(instructions.into_iter().flatten());
        let bytes: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
        if let Err(error) = Module::parse(&bytes) {
            prop_assert!(!error.is_empty());
        }
    }
}

/// The ids of [`module`], and numbers at the ends of their ranges.
fn odd_word() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => 0u32..64,
        1 => prop::sample::select(vec![0x7fff_ffff, 0x8000_0000, u32::MAX, u32::MAX - 1, 1 << 16, 1 << 30]),
        1 => any::<u32>(),
    ]
}

/// A module's header, and its instructions.
fn split(bytes: &[u8]) -> (Vec<u32>, Vec<Vec<u32>>) {
    let words: Vec<u32> = bytes
        .chunks_exact(4)
        .map(|word| u32::from_ne_bytes(word.try_into().unwrap()))
        .collect();
    let (header, mut rest) = words.split_at(5);
    let mut instructions = Vec::new();
    while let Some(first) = rest.first() {
        let (instruction, others) = rest.split_at((first >> 16) as usize);
        instructions.push(instruction.to_vec());
        rest = others;
    }
    (header.to_vec(), instructions)
}

/// A module with a kernel that has nothing but a mode.
#[test]
fn a_group_without_items_is_refused() {
    let module = |mode: ExecutionMode, sizes: [u32; 3]| {
        let mut b = Builder::new();
        b.capability(Capability::Kernel);
        b.memory_model(AddressingModel::Physical64, MemoryModel::OpenCL);
        let kernel = empty_kernel(&mut b, "empty");
        b.execution_mode(kernel, mode, sizes);
        Module::parse(&bytes_of(b)).err()
    };
    for sizes in [[0, 1, 1], [1, 0, 1], [8, 4, 0]] {
        let refused = module(ExecutionMode::LocalSize, sizes).unwrap();
        let expected = format!("the execution mode LocalSize has the operands {sizes:?}");
        assert_eq!(refused, expected);
        assert_eq!(module(ExecutionMode::LocalSizeHint, sizes), None);
    }
    assert_eq!(module(ExecutionMode::LocalSize, [1, 1, 1]), None);
}

/// The caller of `zeModuleCreate` gives a pointer to the value, of which as many bytes are read as the type has.
#[test]
fn specialisation_constants_have_the_size_of_a_number() {
    let module = |kind: fn(&mut Builder) -> u32| {
        let mut b = Builder::new();
        b.capability(Capability::Linkage);
        b.memory_model(AddressingModel::Physical64, MemoryModel::OpenCL);
        let kind = kind(&mut b);
        let constant = b.spec_constant_true(kind);
        b.decorate(constant, Decoration::SpecId, [Operand::LiteralBit32(3)]);
        Module::parse(&bytes_of(b)).map(|module| module.specialisation[&3])
    };
    assert_eq!(module(|b| b.type_bool()), Ok(1));
    assert_eq!(module(|b| b.type_int(64, 0)), Ok(8));
    let large: [fn(&mut Builder) -> u32; 5] = [
        |b| b.type_int(128, 0),
        |b| b.type_void(),
        |b| {
            let float = b.type_float(32, None);
            b.type_vector(float, 2)
        },
        |b| {
            let int = b.type_int(32, 0);
            b.type_struct([int])
        },
        |b| {
            let (byte, int) = (b.type_int(8, 0), b.type_int(64, 0));
            let length = b.constant_bit64(int, 1 << 62);
            b.type_array(byte, length)
        },
    ];
    for kind in large {
        let refused = module(kind).unwrap_err();
        let expected = "a type of numbers of at most 64 bits";
        assert!(refused.ends_with(expected), "{refused}");
    }
}

/// Adds a kernel that does nothing.
fn empty_kernel(b: &mut Builder, name: &str) -> u32 {
    let void = b.type_void();
    let signature = b.type_function(void, []);
    let control = FunctionControl::NONE;
    let kernel = b.begin_function(void, None, control, signature).unwrap();
    b.begin_block(None).unwrap();
    b.ret().unwrap();
    b.end_function().unwrap();
    b.entry_point(ExecutionModel::Kernel, kernel, name, []);
    kernel
}

fn bytes_of(builder: Builder) -> Vec<u8> {
    let words = builder.module().assemble();
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// A module with one kernel, which shuffles a number and a truth value; with the sub-group size, if one is given.
fn shuffling(size: Option<u32>) -> Vec<u8> {
    let mut b = Builder::new();
    b.set_version(1, 3);
    b.capability(Capability::Kernel);
    b.capability(Capability::GroupNonUniformShuffle);
    b.capability(Capability::GroupNonUniformShuffleRelative);
    b.memory_model(AddressingModel::Physical64, MemoryModel::OpenCL);
    let (void, int, truth) = (b.type_void(), b.type_int(32, 0), b.type_bool());
    let [one, scope] = [1, 3].map(|value| b.constant_bit32(int, value));
    let yes = b.constant_true(truth);
    let signature = b.type_function(void, []);
    let kernel = b
        .begin_function(void, None, FunctionControl::NONE, signature)
        .unwrap();
    b.begin_block(None).unwrap();
    b.group_non_uniform_shuffle(int, None, scope, one, one)
        .unwrap();
    b.group_non_uniform_shuffle_xor(int, None, scope, one, one)
        .unwrap();
    b.group_non_uniform_shuffle_up(int, None, scope, one, one)
        .unwrap();
    b.group_non_uniform_shuffle_down(int, None, scope, one, one)
        .unwrap();
    b.group_non_uniform_shuffle(truth, None, scope, yes, one)
        .unwrap();
    b.ret().unwrap();
    b.end_function().unwrap();
    b.entry_point(ExecutionModel::Kernel, kernel, "shuffling", []);
    if let Some(size) = size {
        b.execution_mode(kernel, ExecutionMode::SubgroupSize, [size]);
    }
    let words = b.module().assemble();
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn shuffles_are_those_of_intels_extension_and_sub_groups_have_a_size() {
    for (given, mode) in [(None, 32), (Some(8), 8)] {
        let parsed = Module::parse(&shuffling(given)).unwrap();
        assert_eq!(parsed.kernels[0].required_sub_group_size, given);
        let module = rspirv::dr::load_bytes(&parsed.code).unwrap();
        let modes: Vec<_> = module
            .execution_modes
            .iter()
            .map(|mode| mode.operands[2].unwrap_literal_bit32())
            .collect();
        assert_eq!(modes, [mode]);
        let declared = |wanted| {
            module
                .capabilities
                .iter()
                .any(|it| it.operands[0].unwrap_capability() == wanted)
        };
        assert!(declared(Capability::SubgroupShuffleINTEL));
        assert!(given.is_some() || declared(Capability::SubgroupDispatch));
        assert_eq!(
            module.extensions[0].operands[0].unwrap_literal_string(),
            "SPV_INTEL_subgroups"
        );
        let found: Vec<_> = module
            .all_inst_iter()
            .map(|it| it.class.opcode)
            .filter(|op| format!("{op:?}").contains("Shuffle"))
            .collect();
        let shuffles = [
            Op::SubgroupShuffleINTEL,
            Op::SubgroupShuffleXorINTEL,
            Op::SubgroupShuffleUpINTEL,
            Op::SubgroupShuffleDownINTEL,
            Op::GroupNonUniformShuffle,
        ];
        assert_eq!(found, shuffles);
    }
}

#[test]
fn bfloat16_is_an_integer_that_is_converted() {
    let mut b = Builder::new();
    b.set_version(1, 4);
    b.capability(Capability::Kernel);
    b.capability(Capability::BFloat16TypeKHR);
    b.extension("SPV_KHR_bfloat16");
    let set = b.ext_inst_import("OpenCL.std");
    b.memory_model(AddressingModel::Physical64, MemoryModel::OpenCL);
    let encoding = Some(spirv::FPEncoding::BFloat16KHR);
    let (void, int, bfloat) = (b.type_void(), b.type_int(32, 0), b.type_float(16, encoding));
    let (float, truth) = (b.type_float(32, None), b.type_bool());
    let three = b.constant_bit32(int, 3);
    let signature = b.type_function(void, [bfloat]);
    let kernel = b
        .begin_function(void, None, FunctionControl::NONE, signature)
        .unwrap();
    let parameter = b.function_parameter(bfloat).unwrap();
    b.begin_block(None).unwrap();
    let wide = b.f_convert(float, None, parameter).unwrap();
    b.f_convert(bfloat, None, wide).unwrap();
    let counted = b.convert_s_to_f(bfloat, None, three).unwrap();
    b.f_ord_less_than(truth, None, counted, parameter).unwrap();
    b.f_add(float, None, wide, wide).unwrap();
    // Its number is that of a value, but no id.
    b.ext_inst(bfloat, None, set, parameter, [Operand::IdRef(counted)])
        .unwrap();
    b.ret().unwrap();
    b.end_function().unwrap();
    b.entry_point(ExecutionModel::Kernel, kernel, "converting", []);
    let words = b.module().assemble();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();

    let parsed = Module::parse(&bytes).unwrap();
    assert_eq!(parsed.kernels[0].arguments, [Argument::Value(Some(2))]);
    let module = rspirv::dr::load_bytes(&parsed.code).unwrap();
    let body: Vec<_> = module.functions[0].blocks[0]
        .instructions
        .iter()
        .map(|it| (it.class.opcode, it.result_type, it.result_id))
        .collect();
    let (one, other) = (
        bfloat,
        module.functions[0].blocks[0].instructions[2]
            .result_type
            .unwrap(),
    );
    let opcodes = [
        Op::ConvertBF16ToFINTEL,
        Op::ConvertFToBF16INTEL,
        Op::ConvertSToF,
        Op::ConvertFToBF16INTEL,
        Op::ConvertBF16ToFINTEL,
        Op::ConvertBF16ToFINTEL,
        Op::FOrdLessThan,
        Op::FAdd,
        Op::ConvertBF16ToFINTEL,
        Op::ExtInst,
        Op::ConvertFToBF16INTEL,
        Op::Return,
    ];
    assert_eq!(body.iter().map(|it| it.0).collect::<Vec<_>>(), opcodes);
    let kinds = [
        float, one, other, one, other, other, truth, float, other, other, one,
    ]
    .map(Some);
    assert_eq!(body.iter().map(|it| it.1).collect::<Vec<_>>()[..11], kinds);
    assert_eq!(body[3].2, Some(counted));
    let bound = module.header.unwrap().bound;
    assert!(body.iter().all(|it| it.2.is_none_or(|id| id < bound)));
    let written = format!("{:?}", module.extensions);
    assert!(written.contains("SPV_INTEL_bfloat16_conversion") && !written.contains("SPV_KHR"));
    let declared: Vec<_> = module
        .capabilities
        .iter()
        .map(|it| it.operands[0].unwrap_capability())
        .collect();
    let wanted = [
        Capability::Kernel,
        Capability::Int16,
        Capability::BFloat16ConversionINTEL,
    ];
    assert_eq!(declared, wanted);
}
