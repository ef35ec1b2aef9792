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

/// An entry of the decoding table.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) command: Command,
    mask: u32,
    bits: u32,
    length: Length,
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
    }
}

const fn blt(opcode: u32, name: &'static str, command: Command) -> Entry {
    Entry {
        name,
        command,
        mask: BLT_MASK,
        bits: 2 << 29 | opcode << 22,
        length: Length::Counted(0xff),
    }
}

const fn gfx(bits: u32, name: &'static str, command: Command) -> Entry {
    Entry {
        name,
        command,
        mask: GFX_MASK,
        bits: bits << 16,
        length: Length::Counted(0xff),
    }
}

static TABLE: [Entry; 33] = [
    mi(0x00, "MI_NOOP", Command::Ignored),
    mi(0x02, "MI_USER_INTERRUPT", Command::Ignored),
    mi(0x05, "MI_ARB_CHECK", Command::Ignored),
    mi(0x08, "MI_ARB_ON_OFF", Command::Ignored),
    mi(0x09, "MI_MEM_FENCE", Command::Ignored),
    mi(0x0a, "MI_BATCH_BUFFER_END", Command::BatchBufferEnd),
    mi(0x1a, "MI_MATH", Command::Math),
    mi(0x1c, "MI_SEMAPHORE_WAIT", Command::SemaphoreWait),
    Entry {
        length: Length::Counted(0x3ff),
        ..mi(0x20, "MI_STORE_DATA_IMM", Command::StoreDataImm)
    },
    mi(0x22, "MI_LOAD_REGISTER_IMM", Command::LoadRegisterImm),
    mi(0x24, "MI_STORE_REGISTER_MEM", Command::StoreRegisterMem),
    Entry {
        length: Length::Counted(0x3f),
        ..mi(0x26, "MI_FLUSH_DW", Command::FlushDw)
    },
    mi(0x29, "MI_LOAD_REGISTER_MEM", Command::LoadRegisterMem),
    mi(0x2a, "MI_LOAD_REGISTER_REG", Command::LoadRegisterReg),
    mi(0x2f, "MI_ATOMIC", Command::Atomic),
    mi(0x31, "MI_BATCH_BUFFER_START", Command::BatchBufferStart),
    blt(0x41, "XY_BLOCK_COPY_BLT", Command::BlockCopy),
    blt(0x44, "XY_FAST_COLOR_BLT", Command::FastColor),
    blt(0x5a, "MEM_COPY", Command::MemCopy),
    blt(0x5b, "MEM_SET", Command::MemSet),
    gfx(0x6003, "STATE_PREFETCH", Command::Ignored),
    gfx(0x6101, "STATE_BASE_ADDRESS", Command::StateBaseAddress),
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
    gfx(0x7208, "COMPUTE_WALKER", Command::ComputeWalker),
    gfx(0x7919, "3DSTATE_BINDING_TABLE_POOL_ALLOC", Command::Ignored),
    gfx(0x7a00, "PIPE_CONTROL", Command::PipeControl),
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
}
