//! Why a module was refused.

use thiserror::Error;

/// The reason why bytes are not a SPIR-V module that can be built here. Positions are in 32-bit words from the start.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// The first word is the magic number in neither byte order.
    #[error("not SPIR-V: the first word is {found:#010x}, not the magic number 0x07230203")]
    Magic {
        /// The first word as read in this machine's byte order.
        found: u32,
    },
    /// The module does not even hold a header, or is not made of whole words.
    #[error(
        "{bytes} bytes are not a SPIR-V module: it has a header of 20 bytes and is made of 4-byte words"
    )]
    Size {
        /// The length that was given, in bytes.
        bytes: usize,
    },
    /// A field of the header has a value that the specification does not allow.
    #[error("the SPIR-V header's {field} is {value}")]
    Header {
        /// The name of the field.
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// The last instruction needs more words than there are, or an instruction has too few or none.
    #[error("the instruction at word {at} (opcode {opcode}) is cut short or malformed")]
    Instruction {
        /// Where the instruction starts.
        at: usize,
        /// Its opcode.
        opcode: u16,
    },
    /// A literal string has no end or is not UTF-8.
    #[error("the string at word {at} has no end or is not UTF-8")]
    Text {
        /// Where the instruction with the string starts.
        at: usize,
    },
    /// An id is not one that the header's bound allows, or not what its user needs it to be.
    #[error("id {id}, used at word {at}, is not {expected}")]
    Id {
        /// The id.
        id: u32,
        /// Where it is used.
        at: usize,
        /// The property that it lacks.
        expected: &'static str,
    },
    /// An execution mode has too few operands, or sizes that no group has.
    #[error("the execution mode {mode} has the operands {operands:?}")]
    Mode {
        /// The mode's name.
        mode: String,
        /// The values of its operands.
        operands: Vec<u32>,
    },
    /// The module ends inside a function or lacks a part that every kernel module has.
    #[error("the module has no {part}")]
    Missing {
        /// The missing part.
        part: &'static str,
    },
    /// The module is for another environment, for instance Vulkan.
    #[error(
        "the module is not for OpenCL on 64 bits: addressing model {addressing}, memory model {memory}"
    )]
    Model {
        /// The operand of OpMemoryModel; 2 is Physical64.
        addressing: u32,
        /// The operand of OpMemoryModel; 2 is OpenCL.
        memory: u32,
    },
    /// A type has more bytes than fit in 64 bits.
    #[error("the type with id {id} is larger than any memory")]
    TypeSize {
        /// The id of the type.
        id: u32,
    },
}
