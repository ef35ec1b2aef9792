//! The logical layer: entry points, their arguments and execution modes, specialisation constants.

use std::collections::{BTreeSet, HashMap, HashSet};

use spirv::{Capability, Decoration, ExecutionMode, ExecutionModel, Op, StorageClass};

use super::bfloat16::BFloats;
use super::functions::Exports;
use super::groups::Groups;
use super::kernel::{Argument, Kernel};
use super::shuffles::Shuffles;
use super::types::{Type, Types};
use super::words::{Edits, HEADER, Instruction, Words, encoded, extension};

/// The size of sub-groups where a kernel names none: the largest of Intel's GPUs, which XLA takes for the device's. Intel's OpenCL for
/// processors would choose 16.
const WARP: u32 = 32;

/// A module's interface, with the words in the machine's byte order.
pub struct Module {
    /// The bytes for the compiler.
    pub code: Vec<u8>,
    /// The entry points in the module's order.
    pub kernels: Vec<Kernel>,
    /// The size in bytes of each specialisation constant, by its SpecId.
    pub specialisation: HashMap<u32, usize>,
    /// Whether it has atomic operations: those on generic pointers, and on numbers of double precision, are OpenCL 2.0's.
    pub needs_opencl_2: bool,
}

impl Module {
    /// Reads the interface of a module.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let words = Words::read(bytes)?;
        let mut reader = Reader {
            bound: words.bound(),
            bfloats: BFloats::new(words.bound()),
            after_capabilities: HEADER,
            after_entries: HEADER,
            ..Reader::default()
        };
        for instruction in words.instructions() {
            reader.read(&instruction?)?;
        }
        let needs_opencl_2 = reader.has_atomics;
        let is_function = |id| reader.functions.contains_key(&id);
        let decorations = reader.exports.decorations(is_function);
        let sizes = reader.sub_group_sizes();
        let bound = reader.bfloats.bound();
        let mut edits = std::mem::take(&mut reader.edits);
        edits.insert(
            reader.after_capabilities,
            reader.declarations(!sizes.is_empty()),
        );
        edits.insert(reader.after_entries, sizes);
        if let Some((at, decorations)) = decorations {
            edits.insert(at, decorations);
        }
        let (kernels, specialisation) = reader.finish()?;
        Ok(Self {
            code: words.changed(edits, bound).to_bytes(),
            kernels,
            specialisation,
            needs_opencl_2,
        })
    }
}

/// The state of the pass over the instructions.
#[derive(Default)]
struct Reader {
    bound: u32,
    types: Types,
    spec_ids: HashMap<u32, u32>,
    packed: HashSet<u32>,
    memory_model: bool,
    /// Entry points of the model Kernel, by the id of their function, in the module's order.
    entries: Vec<(u32, Kernel)>,
    /// The parameter types of every function.
    functions: HashMap<u32, Vec<u32>>,
    /// The function that is being read.
    current: Option<u32>,
    specialisation: HashMap<u32, usize>,
    has_atomics: bool,
    exports: Exports,
    groups: Groups,
    /// Where the instruction after the last entry point is.
    after_entries: usize,
    /// Where the instruction after the last capability is.
    after_capabilities: usize,
    shuffles: Shuffles,
    bfloats: BFloats,
    edits: Edits,
}

impl Reader {
    fn read(&mut self, instruction: &Instruction) -> Result<(), String> {
        let Some(op) = instruction.op() else {
            return Ok(());
        };
        self.has_atomics |= is_atomic(op);
        self.exports.note(op, instruction);
        self.shuffles.note(op, instruction, &mut self.edits);
        self.bfloats.note(op, instruction, &mut self.edits);
        if let Some(function) = self.current {
            self.groups.note(function, op);
        }
        match op {
            Op::Capability => {
                self.after_capabilities = instruction.end();
                Ok(())
            }
            Op::MemoryModel => self.memory_model(instruction),
            Op::EntryPoint => self.entry_point(instruction),
            Op::ExecutionMode => self.execution_mode(instruction),
            Op::Decorate => self.decorate(instruction),
            Op::GroupDecorate => self.group_decorate(instruction),
            Op::Constant => self.types.note_constant(instruction),
            Op::SpecConstant | Op::SpecConstantTrue | Op::SpecConstantFalse => {
                self.spec_constant(op, instruction)
            }
            Op::Function => self.function(instruction),
            Op::FunctionEnd => {
                self.current = None;
                Ok(())
            }
            Op::FunctionCall => {
                let called = self.id(instruction, 2)?;
                if let Some(function) = self.current {
                    self.groups.note_call(function, called);
                }
                Ok(())
            }
            _ => self.types.note(instruction, &self.packed),
        }
    }

    /// The id at `index`, which must be within the header's bound.
    fn id(&self, instruction: &Instruction, index: usize) -> Result<u32, String> {
        let id = instruction.operand(index)?;
        if id == 0 || id >= self.bound {
            return Err(instruction.misused(id, "below the header's bound"));
        }
        Ok(id)
    }

    fn memory_model(&mut self, instruction: &Instruction) -> Result<(), String> {
        let (addressing, memory) = (instruction.operand(0)?, instruction.operand(1)?);
        let wanted = (
            spirv::AddressingModel::Physical64 as u32,
            spirv::MemoryModel::OpenCL as u32,
        );
        if (addressing, memory) != wanted {
            return Err(format!(
                "the module is not for OpenCL on 64 bits: addressing model {addressing}, memory model {memory}"
            ));
        }
        self.memory_model = true;
        Ok(())
    }

    fn entry_point(&mut self, instruction: &Instruction) -> Result<(), String> {
        if instruction.operand(0)? == ExecutionModel::Kernel as u32 {
            let kernel = Kernel {
                name: instruction.text(2)?,
                ..Kernel::default()
            };
            self.entries.push((self.id(instruction, 1)?, kernel));
        }
        self.after_entries = instruction.end();
        Ok(())
    }

    /// The sub-group size of each kernel that uses sub-groups and names none, as execution modes.
    fn sub_group_sizes(&self) -> Vec<u32> {
        let unnamed = self.entries.iter().filter(|(id, kernel)| {
            kernel.required_sub_group_size.is_none() && self.groups.use_sub_groups_in(*id)
        });
        let ids: BTreeSet<u32> = unnamed.map(|(id, _)| *id).collect();
        let size = ExecutionMode::SubgroupSize as u32;
        let modes = ids
            .into_iter()
            .map(|id| encoded(Op::ExecutionMode, &[id, size, WARP]));
        modes.flatten().collect()
    }

    /// What is declared in addition, behind the module's capabilities: what names sizes of sub-groups, and what replaces shuffles and
    /// bfloat16.
    fn declarations(&self, named_sizes: bool) -> Vec<u32> {
        let (shuffles, bfloats) = (self.shuffles.found, self.bfloats.found());
        let capabilities = [
            (named_sizes, Capability::SubgroupDispatch),
            (shuffles, Capability::SubgroupShuffleINTEL),
            (bfloats, Capability::BFloat16ConversionINTEL),
        ];
        let extensions = [
            (shuffles, "SPV_INTEL_subgroups"),
            (bfloats, "SPV_INTEL_bfloat16_conversion"),
        ];
        let capabilities = capabilities.iter().filter(|it| it.0);
        let extensions = extensions.iter().filter(|it| it.0);
        let capabilities = capabilities.map(|it| encoded(Op::Capability, &[it.1 as u32]));
        capabilities
            .chain(extensions.map(|it| extension(it.1)))
            .flatten()
            .collect()
    }

    /// Notes the sizes of groups. Modes whose operands are constants (`OpExecutionModeId`) are left to the compiler.
    fn execution_mode(&mut self, instruction: &Instruction) -> Result<(), String> {
        let (function, mode) = (self.id(instruction, 0)?, instruction.operand(1)?);
        let Some(mode) = ExecutionMode::from_u32(mode) else {
            return Ok(());
        };
        let operands = instruction.rest(2);
        let refused = || format!("the execution mode {mode:?} has the operands {operands:?}");
        let three = || operands.first_chunk().copied().ok_or_else(refused);
        let first = || operands.first().copied().ok_or_else(refused);
        for (_, kernel) in self.entries.iter_mut().filter(|(id, _)| *id == function) {
            match mode {
                ExecutionMode::LocalSize => {
                    let size: [u32; 3] = three()?;
                    if size.contains(&0) {
                        return Err(refused());
                    }
                    kernel.required_group_size = Some(size);
                }
                ExecutionMode::LocalSizeHint => kernel.group_size_hint = Some(three()?),
                ExecutionMode::SubgroupSize => kernel.required_sub_group_size = Some(first()?),
                ExecutionMode::SubgroupsPerWorkgroup => kernel.required_sub_groups = Some(first()?),
                _ => {}
            }
        }
        Ok(())
    }

    fn decorate(&mut self, instruction: &Instruction) -> Result<(), String> {
        let target = self.id(instruction, 0)?;
        match Decoration::from_u32(instruction.operand(1)?) {
            Some(Decoration::SpecId) => {
                self.spec_ids.insert(target, instruction.operand(2)?);
            }
            Some(Decoration::CPacked) => {
                self.packed.insert(target);
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies the decorations of a group to each of its targets.
    fn group_decorate(&mut self, instruction: &Instruction) -> Result<(), String> {
        let group = self.id(instruction, 0)?;
        for &target in instruction.rest(1) {
            if let Some(&number) = self.spec_ids.get(&group) {
                self.spec_ids.insert(target, number);
            }
            if self.packed.contains(&group) {
                self.packed.insert(target);
            }
        }
        Ok(())
    }

    fn spec_constant(&mut self, op: Op, instruction: &Instruction) -> Result<(), String> {
        let (kind, id) = (self.id(instruction, 0)?, self.id(instruction, 1)?);
        if op == Op::SpecConstant {
            // An array's length may depend on it; the type then has the length of the default value.
            self.types.note_constant(instruction)?;
        }
        if let Some(&number) = self.spec_ids.get(&id) {
            let unknown = || instruction.misused(kind, "a type of numbers of at most 64 bits");
            let size = self.types.constant_size(kind).ok_or_else(unknown)?;
            self.specialisation.insert(number, size);
        }
        Ok(())
    }

    fn function(&mut self, instruction: &Instruction) -> Result<(), String> {
        let (id, kind) = (self.id(instruction, 1)?, self.id(instruction, 3)?);
        let Some(Type::Function(parameters)) = self.types.get(kind) else {
            return Err(instruction.misused(kind, "a function type"));
        };
        self.functions.insert(id, parameters.clone());
        self.current = Some(id);
        Ok(())
    }

    /// Combines entry points and functions, once every instruction has been read. A module without an entry point has no
    /// kernels; that the specification wants the Linkage capability for it is left to the compiler.
    fn finish(self) -> Result<(Vec<Kernel>, HashMap<u32, usize>), String> {
        if self.current.is_some() {
            return Err("the module has no end of its last function".to_owned());
        }
        if !self.memory_model {
            return Err("the module has no OpMemoryModel".to_owned());
        }
        let kernels: Result<Vec<Kernel>, String> = self
            .entries
            .into_iter()
            .map(|(id, kernel)| {
                let parameters = self.functions.get(&id);
                let parameters = parameters.ok_or_else(|| {
                    "the module has no function for one of its entry points".to_owned()
                })?;
                let arguments = parameters
                    .iter()
                    .map(|&kind| argument(&self.types, kind))
                    .collect();
                Ok(Kernel {
                    arguments,
                    has_barriers: self.groups.wait_in(id),
                    ..kernel
                })
            })
            .collect();
        Ok((kernels?, self.specialisation))
    }
}

/// Whether it is an atomic operation.
fn is_atomic(op: Op) -> bool {
    let integers = Op::AtomicLoad as u32..=Op::AtomicXor as u32;
    let flags_and_floats = [
        Op::AtomicFlagTestAndSet,
        Op::AtomicFlagClear,
        Op::AtomicFAddEXT,
        Op::AtomicFMinEXT,
        Op::AtomicFMaxEXT,
    ];
    integers.contains(&(op as u32)) || flags_and_floats.contains(&op)
}

/// The kind of argument for a parameter of the type `kind`.
fn argument(types: &Types, kind: u32) -> Argument {
    match types.get(kind) {
        Some(Type::Scalar(layout) | Type::Data(layout)) => Argument::Value(Some(layout.size())),
        Some(Type::Pointer { class, pointee }) => match StorageClass::from_u32(*class) {
            Some(StorageClass::Workgroup) => Argument::Local,
            // A structure passed by value is a pointer to a copy that belongs to the call.
            Some(StorageClass::Function) => Argument::Value(*pointee),
            Some(
                StorageClass::CrossWorkgroup
                | StorageClass::UniformConstant
                | StorageClass::Generic,
            ) => Argument::Pointer,
            // A pointer into a storage class of an extension.
            _ => Argument::Opaque,
        },
        Some(Type::Image(image)) => Argument::Image(*image),
        Some(Type::Sampler) => Argument::Sampler,
        Some(Type::Function(_)) | None => Argument::Opaque,
    }
}
