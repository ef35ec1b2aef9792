//! The types a kernel's arguments can have, and their sizes in memory.

use std::alloc::Layout;
use std::collections::{HashMap, HashSet};

use spirv::{Dim, Op};

use super::words::Instruction;

/// The part of a type that arguments depend on. Events, pipes and others without bytes of their own are none.
#[derive(Clone, Debug)]
pub enum Type {
    /// A boolean, integer or floating-point number.
    Scalar(Layout),
    /// A vector, array or structure.
    Data(Layout),
    /// A pointer with its storage class and the size of its target, if that has one.
    Pointer { class: u32, pointee: Option<usize> },
    /// A function's parameters.
    Function(Vec<u32>),
    /// An image.
    Image(Image),
    /// A sampler.
    Sampler,
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
    fn read(instruction: &Instruction) -> Result<Option<Self>, String> {
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

/// The layout of a number of `bits`: a power of two of bytes.
fn scalar(bits: u32) -> Option<Layout> {
    let size = (bits.div_ceil(8) as usize).next_power_of_two();
    Layout::from_size_align(size, size).ok()
}

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

    /// The size of a value of the type `id`; `None` for a type without one.
    pub fn layout(&self, id: u32) -> Option<Layout> {
        match self.types.get(&id)? {
            Type::Scalar(layout) | Type::Data(layout) => Some(*layout),
            Type::Pointer { .. } => Some(Layout::new::<u64>()),
            Type::Function(_) | Type::Image(_) | Type::Sampler => None,
        }
    }

    /// The size in bytes of a specialisation constant of the type `id`; `None` if no such constant has this type.
    pub fn constant_size(&self, id: u32) -> Option<usize> {
        match self.types.get(&id)? {
            Type::Scalar(layout) if layout.size() <= 8 => Some(layout.size()),
            _ => None,
        }
    }

    /// Records the constant that `instruction` declares, if it is an integer one.
    pub fn note_constant(&mut self, instruction: &Instruction) -> Result<(), String> {
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
    pub fn note(&mut self, instruction: &Instruction, packed: &HashSet<u32>) -> Result<(), String> {
        let Some(op) = instruction.op() else {
            return Ok(());
        };
        let pointer = |pointee| {
            let class = instruction.operand(1)?;
            Ok::<_, String>(Some(Type::Pointer { class, pointee }))
        };
        let declared = match op {
            Op::TypeBool => scalar(8).map(Type::Scalar),
            Op::TypeInt | Op::TypeFloat => match instruction.operand(1)? {
                bits @ 1..=4096 => scalar(bits).map(Type::Scalar),
                _ => return Err(instruction.malformed()),
            },
            Op::TypeVector => {
                // OpenCL C: a vector of three takes the room and the alignment of four.
                let count = (instruction.operand(2)? as usize).next_power_of_two();
                let size = self.element(instruction)?.size().checked_mul(count);
                let vector = size.map(|size| Layout::from_size_align(size, size.clamp(1, 128)));
                Some(data(instruction, vector.and_then(Result::ok))?)
            }
            Op::TypeArray => {
                let (element, id) = (self.element(instruction)?, instruction.operand(2)?);
                let count = self.constants.get(&id);
                let count = count
                    .ok_or_else(|| instruction.misused(id, "a constant that gives a length"))?;
                let size = element.size().checked_mul(*count as usize);
                let array = size.map(|size| Layout::from_size_align(size, element.align()));
                Some(data(instruction, array.and_then(Result::ok))?)
            }
            Op::TypeStruct => {
                let is_packed = packed.contains(&instruction.operand(0)?);
                let members = instruction
                    .rest(1)
                    .iter()
                    .map(|&member| self.layout(member));
                // One with a member without a size, an image for instance, is none.
                let members = members.collect::<Option<Vec<_>>>();
                let members = members.map(|members| structure(&members, is_packed));
                members.map(|it| data(instruction, it)).transpose()?
            }
            Op::TypePointer => {
                let pointee = self.layout(instruction.operand(2)?);
                pointer(pointee.map(|layout| layout.size()))?
            }
            // Of a forward declaration, only the size counts until the definition replaces it.
            Op::TypeUntypedPointerKHR | Op::TypeForwardPointer => pointer(None)?,
            Op::TypeFunction => Some(Type::Function(instruction.rest(2).to_vec())),
            Op::TypeImage => Image::read(instruction)?.map(Type::Image),
            Op::TypeSampler => Some(Type::Sampler),
            _ => None,
        };
        if let Some(declared) = declared {
            self.types.insert(instruction.operand(0)?, declared);
        }
        Ok(())
    }

    /// The layout of the elements that `instruction` names.
    fn element(&self, instruction: &Instruction) -> Result<Layout, String> {
        let id = instruction.operand(1)?;
        self.layout(id)
            .ok_or_else(|| instruction.misused(id, "a type with a size"))
    }
}

/// The type that `instruction` declares, with this layout unless its size is out of range.
fn data(instruction: &Instruction, layout: Option<Layout>) -> Result<Type, String> {
    let id = instruction.operand(0)?;
    let layout = layout.map(Type::Data);
    layout.ok_or_else(|| format!("the type with id {id} is larger than any memory"))
}

/// A structure of `members` in their order, as C lays it out.
fn structure(members: &[Layout], is_packed: bool) -> Option<Layout> {
    let mut all = Layout::new::<()>();
    for member in members {
        let align = if is_packed { 1 } else { member.align() };
        let member = Layout::from_size_align(member.size(), align).ok()?;
        (all, _) = all.extend(member).ok()?;
    }
    Some(all.pad_to_align())
}
