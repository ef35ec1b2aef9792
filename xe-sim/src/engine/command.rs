//! Decoding of the commands that Intel's driver emits for Xe2.
//!
//! Names, numbers and fields: Intel's Programmer's Reference Manual for Lunar Lake and Battlemage, volume 2a "Command
//! Reference: Instructions", and the driver's public header `hw_cmds_generated_xe2_hpg_core.inl`. The memory interface
//! commands (MI_*) are those of Linux, `drivers/gpu/drm/xe/instructions/xe_mi_commands.h`, as well.

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
    LoadRegisterMem,
    LoadRegisterReg,
    StoreRegisterMem,
    Math,
    Atomic,
    FlushDw,
    PipeControl,
    StateBaseAddress,
    ComputeWalker,
    MemCopy,
    MemSet,
    BlockCopy,
    FastColor,
}

/// The length of a command.
#[derive(Clone, Copy)]
enum Length {
    /// One dword.
    One,
    /// The length field with this mask, plus two.
    Counted(u32),
}

/// The supported numbers of dwords of a command. The handlers index within them.
#[derive(Clone, Copy)]
enum Dwords {
    /// Any length, for commands whose fields are ignored.
    Any,
    Of(&'static [usize]),
    /// The header and one or more pairs.
    Pairs,
}

/// An entry of the decoding table.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) command: Command,
    mask: u32,
    bits: u32,
    length: Length,
    supported: Dwords,
}

/// The maximum length of a command in dwords.
pub(super) const LONGEST: usize = 256 + 2;

impl Entry {
    pub(super) fn dwords(&self, header: u32) -> usize {
        match self.length {
            Length::One => 1,
            Length::Counted(mask) => (header & mask) as usize + 2,
        }
    }

    /// The reason why the command with this header is not simulated, if it is not.
    pub(super) fn refusal(&self, header: u32) -> Option<String> {
        let dwords = self.dwords(header);
        let supported = match self.supported {
            Dwords::Any => dwords <= LONGEST,
            Dwords::Of(lengths) => lengths.contains(&dwords),
            Dwords::Pairs => (3..=LONGEST).contains(&dwords) && dwords % 2 == 1,
        };
        (!supported).then(|| format!("{} with {dwords} dwords", self.name))
    }

    const fn of(self, lengths: &'static [usize]) -> Self {
        Self {
            supported: Dwords::Of(lengths),
            ..self
        }
    }

    const fn pairs(self) -> Self {
        Self {
            supported: Dwords::Pairs,
            ..self
        }
    }

    const fn counted(self, mask: u32) -> Self {
        Self {
            length: Length::Counted(mask),
            ..self
        }
    }
}

const MI_MASK: u32 = 0xff80_0000;
const BLT_MASK: u32 = 0xffc0_0000;
const GFX_MASK: u32 = 0xffff_0000;

const fn mi(opcode: u32, name: &'static str, command: Command) -> Entry {
    Entry {
        name,
        command,
        mask: MI_MASK,
        bits: opcode << 23,
        // Opcodes below 0x10 have no length field.
        length: if opcode < 0x10 {
            Length::One
        } else {
            Length::Counted(0xff)
        },
        supported: Dwords::Any,
    }
}

/// The bit of MI_STORE_DATA_IMM that selects 64 bits.
const QWORD: u32 = 1 << 21;

/// MI_STORE_DATA_IMM of 32 or 64 bits, which differ in length.
const fn store_data_imm(qword: bool, command: Command) -> Entry {
    let entry = mi(0x20, "MI_STORE_DATA_IMM", command).counted(0x3ff);
    Entry {
        mask: entry.mask | QWORD,
        bits: if qword {
            entry.bits | QWORD
        } else {
            entry.bits
        },
        ..entry
    }
}

const fn blt(opcode: u32, name: &'static str, command: Command) -> Entry {
    Entry {
        name,
        command,
        mask: BLT_MASK,
        bits: 2 << 29 | opcode << 22,
        length: Length::Counted(0xff),
        supported: Dwords::Any,
    }
}

const fn gfx(bits: u32, name: &'static str, command: Command) -> Entry {
    Entry {
        name,
        command,
        mask: GFX_MASK,
        bits: bits << 16,
        length: Length::Counted(0xff),
        supported: Dwords::Any,
    }
}

static TABLE: [Entry; 34] = [
    mi(0x00, "MI_NOOP", Command::Ignored),
    mi(0x02, "MI_USER_INTERRUPT", Command::Ignored),
    mi(0x05, "MI_ARB_CHECK", Command::Ignored),
    mi(0x08, "MI_ARB_ON_OFF", Command::Ignored),
    mi(0x09, "MI_MEM_FENCE", Command::Ignored),
    mi(0x0a, "MI_BATCH_BUFFER_END", Command::BatchBufferEnd),
    mi(0x1a, "MI_MATH", Command::Math),
    mi(0x1c, "MI_SEMAPHORE_WAIT", Command::SemaphoreWait).of(&[5]),
    store_data_imm(false, Command::StoreDataImm).of(&[4]),
    store_data_imm(true, Command::StoreQwordImm).of(&[5]),
    mi(0x22, "MI_LOAD_REGISTER_IMM", Command::LoadRegisterImm).pairs(),
    mi(0x24, "MI_STORE_REGISTER_MEM", Command::StoreRegisterMem).of(&[4]),
    // With four dwords the immediate data has 32 bits.
    mi(0x26, "MI_FLUSH_DW", Command::FlushDw)
        .counted(0x3f)
        .of(&[4, 5]),
    mi(0x29, "MI_LOAD_REGISTER_MEM", Command::LoadRegisterMem).of(&[4]),
    mi(0x2a, "MI_LOAD_REGISTER_REG", Command::LoadRegisterReg).of(&[3]),
    // The longer form has operands.
    mi(0x2f, "MI_ATOMIC", Command::Atomic).of(&[3, 11]),
    mi(0x31, "MI_BATCH_BUFFER_START", Command::BatchBufferStart).of(&[3]),
    blt(0x41, "XY_BLOCK_COPY_BLT", Command::BlockCopy).of(&[22]),
    blt(0x44, "XY_FAST_COLOR_BLT", Command::FastColor).of(&[16]),
    blt(0x5a, "MEM_COPY", Command::MemCopy).of(&[10]),
    blt(0x5b, "MEM_SET", Command::MemSet).of(&[7]),
    gfx(0x6003, "STATE_PREFETCH", Command::Ignored),
    gfx(0x6101, "STATE_BASE_ADDRESS", Command::StateBaseAddress).of(&[22]),
    gfx(0x6102, "STATE_SIP", Command::Ignored),
    gfx(0x6105, "STATE_COMPUTE_MODE", Command::Ignored),
    gfx(0x6106, "3DSTATE_BTD", Command::Ignored),
    gfx(0x6109, "STATE_SYSTEM_MEM_FENCE_ADDRESS", Command::Ignored),
    gfx(0x610b, "STATE_CONTEXT_DATA_BASE_ADDRESS", Command::Ignored),
    Entry {
        length: Length::One,
        ..gfx(0x6904, "PIPELINE_SELECT", Command::Ignored)
    },
    gfx(0x7200, "CFE_STATE", Command::Ignored),
    // The two lowest bits of the opcode distinguish a walker that is resumed after preemption.
    gfx(0x7208, "COMPUTE_WALKER", Command::ComputeWalker).of(&[40]),
    gfx(0x7919, "3DSTATE_BINDING_TABLE_POOL_ALLOC", Command::Ignored),
    gfx(0x7a00, "PIPE_CONTROL", Command::PipeControl).of(&[6]),
    Entry {
        mask: 0xfc00_0000,
        ..gfx(0xac00, "RESOURCE_BARRIER", Command::Ignored)
    },
];

/// The table entry for a command header, or `None` for an unknown command.
pub(super) fn decode(header: u32) -> Option<&'static Entry> {
    TABLE.iter().find(|row| header & row.mask == row.bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_as_the_driver_writes_them() {
        let known = [
            (0x0500_0000, "MI_BATCH_BUFFER_END", 1),
            (0x1040_0002, "MI_STORE_DATA_IMM", 4),
            (0x1888_0101, "MI_BATCH_BUFFER_START", 3),
            (0x0e00_8003, "MI_SEMAPHORE_WAIT", 5),
            (0x5680_0008, "MEM_COPY", 10),
            (0x7208_0026, "COMPUTE_WALKER", 40),
            (0x7a00_0004, "PIPE_CONTROL", 6),
            (0x6904_0000, "PIPELINE_SELECT", 1),
            (0xac00_0003, "RESOURCE_BARRIER", 5),
        ];
        for (header, name, dwords) in known {
            let row = decode(header);
            assert_eq!(
                row.map(|row| (row.name, row.dwords(header))),
                Some((name, dwords))
            );
        }
        assert!(decode(0xdead_beef).is_none());
    }

    fn refusal(header: u32) -> Option<String> {
        decode(header).and_then(|entry| entry.refusal(header))
    }

    #[test]
    fn only_the_lengths_that_are_known_are_simulated() {
        let known = [
            0x1040_0002, // MI_STORE_DATA_IMM of 32 bits
            0x1060_0003, // MI_STORE_DATA_IMM of 64 bits
            0x1100_0003, // MI_LOAD_REGISTER_IMM of two registers
            0x1300_0002, // MI_FLUSH_DW without the high half of its data
            0x1780_0001, // MI_ATOMIC without operands
            0x7208_0026,
            0x7a00_0004,
        ];
        for header in known {
            assert_eq!(refusal(header), None, "{header:#x}");
        }
        for (header, reason) in [
            (0x1888_0000, "MI_BATCH_BUFFER_START with 2 dwords"),
            (0x1060_0002, "MI_STORE_DATA_IMM with 4 dwords"),
            (0x1040_03ff, "MI_STORE_DATA_IMM with 1025 dwords"),
            (0x1100_0002, "MI_LOAD_REGISTER_IMM with 4 dwords"),
            (0x1300_0001, "MI_FLUSH_DW with 3 dwords"),
            (0x5680_0007, "MEM_COPY with 9 dwords"),
            (0x7208_0025, "COMPUTE_WALKER with 39 dwords"),
        ] {
            assert_eq!(refusal(header).as_deref(), Some(reason));
        }
    }
}
