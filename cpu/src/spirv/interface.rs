//! The logical layer: entry points, their arguments and execution modes, specialisation constants.

use std::collections::{BTreeSet, HashMap, HashSet};

use spirv::{Capability, Decoration, ExecutionMode, ExecutionModel, Op, StorageClass};

use super::Error;
use super::atomics::NewAtomics;
use super::functions::Exports;
use super::groups::Groups;
use super::kernel::{Argument, Kernel};
use super::modes::{self, Constant, ModeByConstants};
use super::shuffles::Shuffles;
use super::types::{Type, Types};
use super::words::{HEADER, Instruction, Words};

/// The size of sub-groups where a kernel names none: the largest of Intel's GPUs, which XLA takes for the device's. Intel's OpenCL for
/// processors would choose 16.
const WARP: u32 = 32;
/// The capability to name it.
const SUB_GROUP_SIZES: [u32; 2] = [
    2 << 16 | Op::Capability as u32,
    Capability::SubgroupDispatch as u32,
];

/// A module's interface, with the words in the machine's byte order.
pub struct Module {
    /// The bytes for the compiler.
    pub code: Vec<u8>,
    /// The SPIR-V version word, `0x00MMmm00`.
    pub version: u32,
    /// The entry points in the module's order.
    pub kernels: Vec<Kernel>,
    /// The size in bytes of each specialisation constant, by its SpecId.
    pub specialisation: HashMap<u32, usize>,
    /// Whether it has atomic operations on generic pointers or doubles.
    pub needs_opencl_2: bool,
    /// The modes of kernels that depend on constants.
    modes: Vec<ModeByConstants>,
}

impl Module {
    /// Reads the interface of a module.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut words = Words::read(bytes)?;
        let mut reader = Reader {
            bound: words.bound(),
            after_capabilities: HEADER,
            after_entries: HEADER,
            ..Reader::default()
        };
        for instruction in words.instructions() {
            reader.read(&instruction?)?;
        }
        let needs_opencl_2 = reader.atomics.found();
        let modes = reader.modes_by_constants();
        let is_function = |id| reader.functions.contains_key(&id);
        let decorations = reader.exports.decorations(is_function);
        let sizes = reader.sub_group_sizes();
        let shuffles = std::mem::take(&mut reader.shuffles);
        let (after_capabilities, after_entries) = (reader.after_capabilities, reader.after_entries);
        let (kernels, specialisation) = reader.finish()?;
        shuffles.replace(&mut words);
        // From the last place to the first, which an insertion moves.
        if let Some((at, decorations)) = decorations {
            words.insert(at, decorations);
        }
        let named: &[u32] = if sizes.is_empty() {
            &[]
        } else {
            &SUB_GROUP_SIZES
        };
        words.insert(after_entries, sizes);
        words.insert(
            after_capabilities,
            [named, shuffles.declarations()].concat(),
        );
        Ok(Self {
            code: words.to_bytes(),
            version: words.version(),
            kernels,
            specialisation,
            needs_opencl_2,
            modes,
        })
    }

    /// Changes the kernels as the values of specialisation constants demand, given as SpecId and bytes; the others have their
    /// default values.
    ///
    /// # Errors
    /// [`Error::Mode`] for a size that no group has.
    pub fn specialise(&mut self, values: &[(u32, Vec<u8>)]) -> Result<(), Error> {
        let mut modes = self.modes.iter();
        modes.try_for_each(|mode| mode.apply(&mut self.kernels, values))
    }
}

/// The relevant decorations by their targets.
#[derive(Clone, Copy, Debug, Default)]
struct Decorations {
    spec_id: Option<u32>,
    packed: bool,
}

/// A function being read: its position, the number of parameters of its type, and the parameters so far.
struct Function {
    at: usize,
    promised: Vec<u32>,
    parameters: Vec<u32>,
}

/// The state of the pass over the instructions.
#[derive(Default)]
struct Reader {
    bound: u32,
    types: Types,
    decorations: HashMap<u32, Decorations>,
    packed: HashSet<u32>,
    memory_model: bool,
    /// Entry points of the model Kernel, by the id of their function, in the module's order.
    entries: Vec<(u32, Kernel)>,
    /// Execution modes whose operands are ids, by the id of their function.
    modes: Vec<(u32, ExecutionMode, Vec<u32>)>,
    /// The parameter types of every finished function.
    functions: HashMap<u32, Vec<u32>>,
    current: Option<(u32, Function)>,
    /// Functions that are called, and where.
    calls: HashMap<u32, usize>,
    specialisation: HashMap<u32, usize>,
    atomics: NewAtomics,
    exports: Exports,
    groups: Groups,
    /// Where the instruction after the last entry point is.
    after_entries: usize,
    /// Where the instruction after the last capability is.
    after_capabilities: usize,
    shuffles: Shuffles,
}

impl Reader {
    fn read(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let Some(op) = instruction.op() else {
            return Ok(());
        };
        self.atomics.note(op, instruction, &self.types);
        self.exports.note(op, instruction);
        self.shuffles.note(op, instruction);
        if let Some((function, _)) = self.current {
            self.groups.note(function, op);
        }
        match op {
            Op::Capability => {
                self.after_capabilities = instruction.end();
                Ok(())
            }
            Op::MemoryModel => self.memory_model(instruction),
            Op::EntryPoint => self.entry_point(instruction),
            Op::ExecutionMode | Op::ExecutionModeId => self.execution_mode(op, instruction),
            Op::Decorate => self.decorate(instruction),
            Op::GroupDecorate => self.group_decorate(instruction),
            Op::Constant => self.types.note_constant(instruction),
            Op::SpecConstant | Op::SpecConstantTrue | Op::SpecConstantFalse => {
                self.spec_constant(op, instruction)
            }
            Op::Function => self.function(instruction),
            Op::FunctionParameter => self.parameter(instruction),
            Op::FunctionEnd => self.function_end(instruction),
            Op::FunctionCall => {
                let called = self.id(instruction, 2)?;
                self.calls.insert(called, instruction.at);
                if let Some((function, _)) = self.current {
                    self.groups.note_call(function, called);
                }
                Ok(())
            }
            _ => self.types.note(instruction, &self.packed),
        }
    }

    /// The id at `index`, which must be within the header's bound.
    fn id(&self, instruction: &Instruction, index: usize) -> Result<u32, Error> {
        let id = instruction.operand(index)?;
        if id == 0 || id >= self.bound {
            return Err(Error::Id {
                id,
                at: instruction.at,
                expected: "below the header's bound",
            });
        }
        Ok(id)
    }

    fn memory_model(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let (addressing, memory) = (instruction.operand(0)?, instruction.operand(1)?);
        let wanted = (
            spirv::AddressingModel::Physical64 as u32,
            spirv::MemoryModel::OpenCL as u32,
        );
        if (addressing, memory) != wanted {
            return Err(Error::Model { addressing, memory });
        }
        self.memory_model = true;
        Ok(())
    }

    fn entry_point(&mut self, instruction: &Instruction) -> Result<(), Error> {
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
        let (mode, size) = (Op::ExecutionMode as u32, ExecutionMode::SubgroupSize as u32);
        let modes = ids.into_iter().map(|id| [4 << 16 | mode, id, size, WARP]);
        modes.flatten().collect()
    }

    fn execution_mode(&mut self, op: Op, instruction: &Instruction) -> Result<(), Error> {
        let (function, mode) = (self.id(instruction, 0)?, instruction.operand(1)?);
        let Some(mode) = ExecutionMode::from_u32(mode) else {
            return Ok(());
        };
        let operands = instruction.rest(2);
        if op == Op::ExecutionModeId {
            // The constants come later in the module.
            self.modes.push((function, mode, operands.to_vec()));
            return Ok(());
        }
        for (_, kernel) in self.entries.iter_mut().filter(|(id, _)| *id == function) {
            modes::apply(kernel, mode, operands)?;
        }
        Ok(())
    }

    /// The modes whose operands are ids, for the kernels of their functions.
    fn modes_by_constants(&self) -> Vec<ModeByConstants> {
        let constant = |id: &u32| Constant {
            value: self.types.constant(*id),
            spec_id: self.decorations.get(id).and_then(|it| it.spec_id),
        };
        let entries = self.entries.iter().enumerate();
        let modes = entries.flat_map(|(kernel, (entry, _))| {
            let own = self.modes.iter().filter(move |it| it.0 == *entry);
            own.map(move |(_, mode, operands)| ModeByConstants {
                kernel,
                mode: *mode,
                operands: operands.iter().map(constant).collect(),
            })
        });
        modes.collect()
    }

    fn decorate(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let target = self.id(instruction, 0)?;
        match Decoration::from_u32(instruction.operand(1)?) {
            Some(Decoration::SpecId) => {
                self.decorations.entry(target).or_default().spec_id = Some(instruction.operand(2)?);
            }
            Some(Decoration::CPacked) => {
                self.decorations.entry(target).or_default().packed = true;
                self.packed.insert(target);
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies the decorations of a group to each of its targets.
    fn group_decorate(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let Some(&group) = self.decorations.get(&self.id(instruction, 0)?) else {
            return Ok(());
        };
        for &target in instruction.rest(1) {
            self.decorations.insert(target, group);
            if group.packed {
                self.packed.insert(target);
            }
        }
        Ok(())
    }

    fn spec_constant(&mut self, op: Op, instruction: &Instruction) -> Result<(), Error> {
        let (kind, id) = (self.id(instruction, 0)?, self.id(instruction, 1)?);
        if op == Op::SpecConstant {
            // An array's length may depend on it; the type then has the length of the default value.
            self.types.note_constant(instruction)?;
        }
        if let Some(number) = self
            .decorations
            .get(&id)
            .and_then(|decorations| decorations.spec_id)
        {
            let unknown = Error::Id {
                id: kind,
                at: instruction.at,
                expected: "a type of numbers of at most 64 bits",
            };
            let size = self.types.constant_size(kind).ok_or(unknown)?;
            self.specialisation.insert(number, size);
        }
        Ok(())
    }

    fn function(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let (id, kind) = (self.id(instruction, 1)?, self.id(instruction, 3)?);
        let promised = match self.types.get(kind) {
            Some(Type::Function(parameters)) => parameters.clone(),
            _ => {
                return Err(Error::Id {
                    id: kind,
                    at: instruction.at,
                    expected: "a function type",
                });
            }
        };
        let function = Function {
            at: instruction.at,
            promised,
            parameters: Vec::new(),
        };
        match self.current.replace((id, function)) {
            None => Ok(()),
            Some(_) => Err(Error::Missing {
                part: "end of a function before the next one starts",
            }),
        }
    }

    fn parameter(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let kind = self.id(instruction, 0)?;
        let (_, function) = self
            .current
            .as_mut()
            .ok_or_else(|| instruction.malformed())?;
        function.parameters.push(kind);
        Ok(())
    }

    fn function_end(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let (id, function) = self.current.take().ok_or_else(|| instruction.malformed())?;
        if function.parameters != function.promised {
            return Err(Error::Id {
                id,
                at: function.at,
                expected: "a function with its type's parameters",
            });
        }
        self.functions.insert(id, function.parameters);
        Ok(())
    }

    /// Combines entry points and functions, once every instruction has been read. A module without an entry point has no
    /// kernels; that the specification wants the Linkage capability for it is left to the compiler.
    fn finish(self) -> Result<(Vec<Kernel>, HashMap<u32, usize>), Error> {
        if self.current.is_some() {
            return Err(Error::Missing {
                part: "end of its last function",
            });
        }
        if !self.memory_model {
            return Err(Error::Missing {
                part: "OpMemoryModel",
            });
        }
        if let Some((&id, &at)) = self
            .calls
            .iter()
            .find(|(id, _)| !self.functions.contains_key(id))
        {
            return Err(Error::Id {
                id,
                at,
                expected: "a function of this module",
            });
        }
        let kernels: Result<Vec<Kernel>, Error> = self
            .entries
            .into_iter()
            .map(|(id, kernel)| {
                let parameters = self.functions.get(&id);
                let parameters = parameters.ok_or(Error::Missing {
                    part: "function for one of its entry points",
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

/// The kind of argument for a parameter of the type `kind`.
fn argument(types: &Types, kind: u32) -> Argument {
    match types.get(kind) {
        Some(Type::Scalar(layout) | Type::Data(layout)) => Argument::Value(Some(layout.size)),
        Some(Type::Pointer { class, pointee }) => match StorageClass::from_u32(*class) {
            Some(StorageClass::Workgroup) => Argument::Local,
            // A structure passed by value is a pointer to a copy that belongs to the call.
            Some(StorageClass::Function) => Argument::Value(*pointee),
            Some(
                StorageClass::CrossWorkgroup
                | StorageClass::UniformConstant
                | StorageClass::Generic,
            ) => Argument::Pointer,
            _ => Argument::Opaque("pointer into a storage class of an extension"),
        },
        Some(Type::Image(image)) => Argument::Image(*image),
        Some(Type::Sampler) => Argument::Sampler,
        Some(Type::Opaque(what)) => Argument::Opaque(what),
        Some(Type::Function(_)) | None => Argument::Opaque("type of an extension"),
    }
}
