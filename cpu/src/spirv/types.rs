//! The types a kernel's arguments can have, and their sizes in memory.

use std::collections::{HashMap, HashSet};

use spirv::{Dim, Op};

use super::Error;
use super::words::Instruction;

/// The part of a type that arguments depend on.
#[derive(Clone, Debug)]
pub enum Type {
    /// A boolean, integer or floating-point number.
    Scalar(Layout),
    /// A vector, array or structure.
    Data(Layout),
    /// A pointer with its storage class and the size of its target, if that has one.
    Pointer { class: u32, pointee: Option<u64> },
    /// A function's parameters.
    Function(Vec<u32>),
    /// An image.
    Image(Image),
    /// A sampler.
    Sampler,
    /// An event, a pipe: something that has no bytes of its own.
    Opaque(&'static str),
}

/// The dimensions of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Those of one image.
    pub dimensions: Dim,
    /// Whether it is an array of such images.
    pub arrayed: bool,
}

impl Image {
    /// `None` for images with depth or several samples.
    fn read(instruction: &Instruction) -> Result<Option<Self>, Error> {
        let [dimensions, depth, arrayed, samples] = [
            instruction.operand(2)?,
            instruction.operand(3)?,
            instruction.operand(4)?,
            instruction.operand(5)?,
        ];
        let image = Dim::from_u32(dimensions).map(|dimensions| Self {
            dimensions,
            arrayed: arrayed == 1,
        });
        Ok(image.filter(|_| depth != 1 && samples == 0))
    }
}

/// Size and alignment in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub size: u64,
    align: u64,
}

impl Layout {
    /// The size of a number of `bits`: a power of two of bytes.
    fn scalar(bits: u32) -> Self {
        let size = u64::from(bits.div_ceil(8)).next_power_of_two();
        Self { size, align: size }
    }

    fn repeated(self, count: u64) -> Option<Self> {
        Some(Self {
            size: self.size.checked_mul(count)?,
            align: self.align,
        })
    }

    /// Adds a member behind the others, at its alignment.
    fn followed_by(self, member: Self) -> Option<Self> {
        let start = self.size.checked_next_multiple_of(member.align)?;
        Some(Self {
            size: start.checked_add(member.size)?,
            align: self.align.max(member.align),
        })
    }

    /// The structure's own padding at its end, so that an array of them stays aligned.
    fn padded(self) -> Option<Self> {
        Some(Self {
            size: self.size.checked_next_multiple_of(self.align)?,
            align: self.align,
        })
    }
}

/// An address in the only addressing model that is supported.
const POINTER: Layout = Layout { size: 8, align: 8 };

/// The types and integer constants met so far; SPIR-V declares each before its use.
#[derive(Default)]
pub struct Types {
    types: HashMap<u32, Type>,
    constants: HashMap<u32, u64>,
}

impl Types {
    pub fn get(&self, id: u32) -> Option<&Type> {
        self.types.get(&id)
    }

    /// The value of an integer constant.
    pub fn constant(&self, id: u32) -> Option<u64> {
        self.constants.get(&id).copied()
    }

    /// The size of a value of the type `id`; `None` for a type without one.
    pub fn layout(&self, id: u32) -> Option<Layout> {
        match self.types.get(&id)? {
            Type::Scalar(layout) | Type::Data(layout) => Some(*layout),
            Type::Pointer { .. } => Some(POINTER),
            Type::Function(_) | Type::Image(_) | Type::Sampler | Type::Opaque(_) => None,
        }
    }

    /// The size in bytes of a specialisation constant of the type `id`; `None` if no such constant has this type.
    pub fn constant_size(&self, id: u32) -> Option<usize> {
        match self.types.get(&id)? {
            Type::Scalar(layout) if layout.size <= 8 => usize::try_from(layout.size).ok(),
            _ => None,
        }
    }

    /// Records the constant that `instruction` declares, if it is an integer one.
    pub fn note_constant(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let id = instruction.operand(1)?;
        let low = u64::from(instruction.operand(2)?);
        let high = instruction
            .operands
            .get(3)
            .map_or(0, |&word| u64::from(word));
        self.constants.insert(id, high << 32 | low);
        Ok(())
    }

    /// Records the type that `instruction` declares, if it declares one. `packed` holds the structures without padding.
    pub fn note(&mut self, instruction: &Instruction, packed: &HashSet<u32>) -> Result<(), Error> {
        let declared = instruction.op().map(|op| match op {
            Op::TypeVector => self.vector(instruction).map(Some),
            Op::TypeArray => self.array(instruction).map(Some),
            Op::TypeStruct => self.structure(instruction, packed).map(Some),
            _ => self.other(op, instruction),
        });
        if let Some(declared) = declared.transpose()?.flatten() {
            let id = instruction.operands.first().copied().unwrap_or(0);
            self.types.insert(id, declared);
        }
        Ok(())
    }

    /// The layout of the type that operand `index` names.
    fn element(&self, instruction: &Instruction, index: usize) -> Result<Layout, Error> {
        let id = instruction.operand(index)?;
        self.layout(id).ok_or(Error::Id {
            id,
            at: instruction.at,
            expected: "a type with a size",
        })
    }

    fn vector(&self, instruction: &Instruction) -> Result<Type, Error> {
        // OpenCL C: a vector of three takes the room and the alignment of four.
        let count = u64::from(instruction.operand(2)?).next_power_of_two();
        let vector = self.element(instruction, 1)?.repeated(count);
        let aligned = |all: Layout| Layout {
            align: all.size.clamp(1, 128),
            ..all
        };
        data(instruction, vector.map(aligned))
    }

    fn array(&self, instruction: &Instruction) -> Result<Type, Error> {
        let element = self.element(instruction, 1)?;
        let id = instruction.operand(2)?;
        let count = self.constant(id).ok_or(Error::Id {
            id,
            at: instruction.at,
            expected: "a constant that gives a length",
        })?;
        data(instruction, element.repeated(count))
    }

    /// A structure, which an opaque member, an image for instance, makes opaque.
    fn structure(&self, instruction: &Instruction, packed: &HashSet<u32>) -> Result<Type, Error> {
        let members = instruction.rest(1).iter();
        let members: Option<Vec<Layout>> = members.map(|&member| self.layout(member)).collect();
        let Some(members) = members else {
            return Ok(Type::Opaque("structure without a size"));
        };
        let is_packed = packed.contains(&instruction.operand(0)?);
        data(instruction, structure(&members, is_packed))
    }

    /// A type that has no elements or members; `None` for other instructions.
    fn other(&self, op: Op, instruction: &Instruction) -> Result<Option<Type>, Error> {
        Ok(Some(match op {
            Op::TypeBool => Type::Scalar(Layout::scalar(8)),
            Op::TypeInt | Op::TypeFloat => match instruction.operand(1)? {
                bits @ 1..=4096 => Type::Scalar(Layout::scalar(bits)),
                _ => return Err(instruction.malformed()),
            },
            Op::TypePointer => Type::Pointer {
                class: instruction.operand(1)?,
                pointee: self
                    .layout(instruction.operand(2)?)
                    .map(|layout| layout.size),
            },
            // Of a forward declaration, only the size counts until the definition replaces it.
            Op::TypeUntypedPointerKHR | Op::TypeForwardPointer => Type::Pointer {
                class: instruction.operand(1)?,
                pointee: None,
            },
            Op::TypeFunction => Type::Function(instruction.rest(2).to_vec()),
            Op::TypeImage => Image::read(instruction)?.map_or(
                Type::Opaque("image with depth or several samples"),
                Type::Image,
            ),
            Op::TypeSampler => Type::Sampler,
            Op::TypeSampledImage
            | Op::TypeOpaque
            | Op::TypeEvent
            | Op::TypeDeviceEvent
            | Op::TypeReserveId
            | Op::TypeQueue
            | Op::TypePipe => Type::Opaque("opaque object"),
            _ => return Ok(None),
        }))
    }
}

/// The type that `instruction` declares, with this layout unless its size is out of range.
fn data(instruction: &Instruction, layout: Option<Layout>) -> Result<Type, Error> {
    let id = instruction.operand(0)?;
    layout.map(Type::Data).ok_or(Error::TypeSize { id })
}

/// A structure of `members` in their order, as C lays it out.
fn structure(members: &[Layout], packed: bool) -> Option<Layout> {
    let empty = Layout { size: 0, align: 1 };
    members
        .iter()
        .map(|member| {
            if packed {
                Layout {
                    align: 1,
                    ..*member
                }
            } else {
                *member
            }
        })
        .try_fold(empty, Layout::followed_by)?
        .padded()
}
