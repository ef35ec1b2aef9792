//! The 64 bytes of a handle.

use std::ffi::c_char;

use level_zero_sys as sys;

use crate::abi::result::{ZeResult, ensure};

/// The decoded handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The file's descriptor: of `process`, or of the opening process if the program replaced the number.
    pub descriptor: i32,
    /// The process that made the handle.
    pub process: u32,
    /// The file's inode, which tells whether the number still refers to the same file.
    pub inode: u64,
    /// What of the file it names: the descriptor's position, or the index of an event.
    pub place: u64,
    /// The id in the file's record, of memory.
    pub id: u64,
}

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An allocation.
    Memory,
    /// An event pool.
    EventPool,
    /// A signal of a counter-based event.
    CounterEvent,
}

impl Subject {
    /// The last of the handle's fields.
    fn magic(self) -> u64 {
        u64::from_le_bytes(match self {
            Self::Memory => *b"zeusmipc",
            Self::EventPool => *b"zeusmevp",
            Self::CounterEvent => *b"zeusmcbe",
        })
    }
}

impl Handle {
    /// That of a file of this process.
    pub fn new(descriptor: i32, inode: u64, place: u64, id: u64) -> Self {
        Self {
            descriptor,
            process: std::process::id(),
            inode,
            place,
            id,
        }
    }

    /// As the API passes it.
    pub fn encode(&self, subject: Subject) -> [c_char; 64] {
        let head = u64::from(self.descriptor.cast_unsigned()) | u64::from(self.process) << 32;
        let mut data = [0; 64];
        let fields = [head, self.inode, self.place, self.id, subject.magic()];
        let bytes = fields.iter().flat_map(|field| field.to_le_bytes());
        for (to, byte) in data.iter_mut().zip(bytes) {
            *to = byte as c_char;
        }
        data
    }

    /// The descriptor of a handle that holds nothing else.
    pub fn bare(data: &[c_char; 64]) -> Option<i32> {
        let (descriptor, rest) = data.split_first_chunk::<4>()?;
        let descriptor = i32::from_le_bytes(descriptor.map(|byte| byte as u8));
        rest.iter().all(|byte| *byte == 0).then_some(descriptor)
    }

    /// Reads a handle.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when it is none of this runtime's for such a `subject`.
    pub fn decode(data: &[c_char; 64], subject: Subject) -> ZeResult<Self> {
        let bytes = data.map(|byte| byte as u8);
        let (words, _) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().unwrap_or(0);
        let (head, inode, place, id, magic) = (next(), next(), next(), next(), next());
        ensure(
            magic == subject.magic() && words.all(|word| word == 0),
            sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
        )?;
        Ok(Self {
            descriptor: (head as u32).cast_signed(),
            process: (head >> 32) as u32,
            inode,
            place,
            id,
        })
    }
}
