//! Decoding of the commands that Intel's driver emits for Xe2.
//!
//! Names, numbers and fields: Intel's Programmer's Reference Manual for Lunar Lake and Battlemage, volume 2a "Command
//! Reference: Instructions", and the driver's public header `hw_cmds_generated_xe2_hpg_core.inl`. The memory interface
//! commands (MI_*) are those of Linux, `drivers/gpu/drm/xe/instructions/xe_mi_commands.h`, as well.

use super::state::EngineClass;

/// A command of a command stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// A command without an effect on memory: pipeline state, caches, preemption, interrupts.
    Ignored,
    BatchBufferEnd,
    BatchBufferStart,
    SemaphoreWait,
    StoreDataImm,
    StoreQwordImm,
    LoadRegisterImm,
    LoadRegisterReg,
    StoreRegisterMem,
    Math,
    FlushDw,
    PipeControl,
    StateBaseAddress,
    ComputeWalker,
    MemCopy,
    MemSet,
}

impl Command {
    /// Whether engines of the class execute the command.
    pub(super) fn runs_on(self, class: EngineClass) -> bool {
        match self {
            Self::PipeControl | Self::StateBaseAddress | Self::ComputeWalker => {
                class != EngineClass::Copy
            }
            Self::MemCopy | Self::MemSet => class == EngineClass::Copy,
            _ => true,
        }
    }
}

/// The supported numbers of dwords of a command. The handlers index within them.
#[derive(Clone, Copy)]
pub(super) enum Dwords {
    /// Any length, for commands whose fields are ignored.
    Any,
    Of(&'static [usize]),
    /// The header and one or more pairs.
    Pairs,
}

/// The bits of one dword that a handler understands: with any other bit, the command would do something else. The masks leave
/// out bits without a meaning, which are zero, and addresses and values that may have any bits have no mask.
pub(super) struct Field {
    pub(super) dword: usize,
    pub(super) understood: u32,
    /// Those of them that must be set.
    pub(super) required: u32,
}

/// An entry of the decoding table.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) command: Command,
    pub(super) mask: u32,
    pub(super) bits: u32,
    /// The mask of the length field, which has the dwords without two; 0 for commands of one dword.
    pub(super) length: u32,
    pub(super) supported: Dwords,
    pub(super) fields: &'static [Field],
}

/// The maximum length of a command in dwords.
pub(super) const LONGEST: usize = 256 + 2;

impl Entry {
    pub(super) fn dwords(&self, header: u32) -> usize {
        match self.length {
            0 => 1,
            mask => (header & mask) as usize + 2,
        }
    }

    /// The reason why a command of this length is not simulated, if it is not.
    pub(super) fn wrong_length(&self, header: u32) -> Option<String> {
        let dwords = self.dwords(header);
        let supported = match self.supported {
            Dwords::Any => dwords <= LONGEST,
            Dwords::Of(lengths) => lengths.contains(&dwords),
            Dwords::Pairs => (3..=LONGEST).contains(&dwords) && dwords % 2 == 1,
        };
        (!supported).then(|| format!("{} with {dwords} dwords", self.name))
    }

    /// The reason why a command with these bits is not simulated, if it is not.
    pub(super) fn unknown_bits(&self, dwords: &[u32]) -> Option<String> {
        self.fields.iter().find_map(|field| {
            let header = match field.dword {
                0 => self.mask | self.length,
                _ => 0,
            };
            let bits = dwords[field.dword];
            let unknown = bits & !header & !field.understood;
            let missing = field.required & !bits;
            let (how, bits) = match (unknown, missing) {
                (0, 0) => return None,
                (0, missing) => ("without", missing),
                (unknown, _) => ("with", unknown),
            };
            Some(format!(
                "{} {how} the bits {bits:#x} in dword {}",
                self.name, field.dword
            ))
        })
    }

    pub(super) fn is(&self, header: u32) -> bool {
        header & self.mask == self.bits
    }
}

/// A 64-bit field in two dwords, low half first.
pub(super) fn wide(dwords: &[u32], at: usize) -> u64 {
    u64::from(dwords[at]) | u64::from(dwords[at + 1]) << 32
}

/// An address field whose two lowest bits have other meanings.
pub(super) fn address(dwords: &[u32], at: usize) -> u64 {
    wide(dwords, at) & !3
}
