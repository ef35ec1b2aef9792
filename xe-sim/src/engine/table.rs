//! The table of commands that Intel's driver emits for Xe2.

use super::command::{Command, Dwords, Entry, Field};

const fn field(dword: usize, understood: u32) -> Field {
    Field {
        dword,
        understood,
        required: 0,
    }
}

/// Changes of an entry of the usual form.
impl Entry {
    const fn of(self, lengths: &'static [usize]) -> Self {
        Self {
            supported: Dwords::Of(lengths),
            ..self
        }
    }

    const fn knowing(self, fields: &'static [Field]) -> Self {
        Self { fields, ..self }
    }

    const fn pairs(self) -> Self {
        Self {
            supported: Dwords::Pairs,
            ..self
        }
    }

    const fn counted(self, length: u32) -> Self {
        Self { length, ..self }
    }
}

const fn entry(mask: u32, bits: u32, name: &'static str, command: Command) -> Entry {
    Entry {
        name,
        command,
        mask,
        bits,
        length: 0xff,
        supported: Dwords::Any,
        fields: &[],
    }
}

const fn mi(opcode: u32, name: &'static str, command: Command) -> Entry {
    // Opcodes below 0x10 have no length field.
    let length = if opcode < 0x10 { 0 } else { 0xff };
    entry(0xff80_0000, opcode << 23, name, command).counted(length)
}

const fn blt(opcode: u32, name: &'static str, command: Command) -> Entry {
    entry(0xffc0_0000, 2 << 29 | opcode << 22, name, command)
}

const fn gfx(bits: u32, name: &'static str, command: Command) -> Entry {
    entry(0xffff_0000, bits << 16, name, command)
}

/// The bit of MI_STORE_DATA_IMM that selects 64 bits, and that with which the engine waits for the write.
const QWORD: u32 = 1 << 21;
const WRITE_CHECK: u32 = 1 << 10;
/// The bit of MI_BATCH_BUFFER_START with which the new batch returns to its caller.
pub(super) const SECOND_LEVEL: u32 = 1 << 22;

/// MI_STORE_DATA_IMM of 32 or 64 bits, which differ in length.
const fn store_data_imm(size: u32, command: Command) -> Entry {
    let entry = mi(0x20, "MI_STORE_DATA_IMM", command).counted(0x3ff);
    Entry {
        mask: entry.mask | QWORD,
        bits: entry.bits | size,
        ..entry
    }
}

/// The bit that lets a register be that of the engine which executes the command.
const REMAP: u32 = 1 << 17;
/// The compression format, which programs do not observe.
const COMPRESSION: u32 = 0xf << 9;
/// The memory object control state (caching) of MEM_COPY's and MEM_SET's memory.
const MOCS: u32 = 0xf << 3;
/// The flushes, invalidations and stalls of PIPE_CONTROL, which have no effect here, and its post-sync operation.
const PIPE_CONTROL: u32 = 0xe21e_ffbf;

static TABLE: [Entry; 30] = [
    mi(0x00, "MI_NOOP", Command::Ignored),
    mi(0x02, "MI_USER_INTERRUPT", Command::Ignored),
    mi(0x05, "MI_ARB_CHECK", Command::Ignored),
    mi(0x08, "MI_ARB_ON_OFF", Command::Ignored),
    mi(0x09, "MI_MEM_FENCE", Command::Ignored).knowing(&[field(0, 3)]),
    mi(0x0a, "MI_BATCH_BUFFER_END", Command::BatchBufferEnd).knowing(&[field(0, 0)]),
    mi(0x1a, "MI_MATH", Command::Math).knowing(&[field(0, 0x7f << 8)]),
    mi(0x1c, "MI_SEMAPHORE_WAIT", Command::SemaphoreWait)
        .of(&[5])
        .knowing(&[Field {
            // The comparison, polling, and polling of a register.
            required: 1 << 15,
            ..field(0, 7 << 12 | 1 << 15 | 1 << 16)
        }]),
    store_data_imm(0, Command::StoreDataImm)
        .of(&[4])
        .knowing(&[field(0, WRITE_CHECK), field(1, !1)]),
    store_data_imm(QWORD, Command::StoreQwordImm)
        .of(&[5])
        .knowing(&[field(0, WRITE_CHECK), field(1, !1)]),
    mi(0x22, "MI_LOAD_REGISTER_IMM", Command::LoadRegisterImm)
        .pairs()
        .knowing(&[field(0, REMAP | 1 << 12)]),
    mi(0x24, "MI_STORE_REGISTER_MEM", Command::StoreRegisterMem)
        .of(&[4])
        .knowing(&[field(0, REMAP)]),
    // With four dwords the immediate data has 32 bits.
    mi(0x26, "MI_FLUSH_DW", Command::FlushDw)
        .counted(0x3f)
        .of(&[4, 5])
        .knowing(&[
            field(0, 1 << 8 | 1 << 9 | 3 << 14 | 1 << 16 | 1 << 18),
            field(1, !7),
        ]),
    mi(0x2a, "MI_LOAD_REGISTER_REG", Command::LoadRegisterReg)
        .of(&[3])
        .knowing(&[field(0, REMAP | 1 << 16)]),
    mi(0x31, "MI_BATCH_BUFFER_START", Command::BatchBufferStart)
        .of(&[3])
        .knowing(&[Field {
            // The process's address space, the command cache, and the return to this batch.
            required: 1 << 8,
            ..field(0, 1 << 8 | 1 << 19 | SECOND_LEVEL)
        }]),
    blt(0x5a, "MEM_COPY", Command::MemCopy).of(&[10]).knowing(&[
        field(0, COMPRESSION | 3 << 17 | 1 << 19),
        field(9, MOCS | 0xf << 28),
    ]),
    blt(0x5b, "MEM_SET", Command::MemSet)
        .of(&[7])
        .knowing(&[field(0, COMPRESSION | 3 << 17), field(6, MOCS | 0xff << 24)]),
    gfx(0x6003, "STATE_PREFETCH", Command::Ignored),
    gfx(0x6101, "STATE_BASE_ADDRESS", Command::StateBaseAddress)
        .of(&[22])
        .knowing(&[field(0, 0)]),
    gfx(0x6102, "STATE_SIP", Command::Ignored),
    gfx(0x6105, "STATE_COMPUTE_MODE", Command::Ignored),
    gfx(0x6106, "3DSTATE_BTD", Command::Ignored),
    gfx(0x6109, "STATE_SYSTEM_MEM_FENCE_ADDRESS", Command::Ignored),
    gfx(0x610b, "STATE_CONTEXT_DATA_BASE_ADDRESS", Command::Ignored),
    gfx(0x6904, "PIPELINE_SELECT", Command::Ignored).counted(0),
    gfx(0x7200, "CFE_STATE", Command::Ignored),
    // The two lowest bits of the opcode distinguish a walker that is resumed after preemption. Dwords 10 to 14 are the first
    // group and the part of a walker that is divided between tiles.
    gfx(0x7208, "COMPUTE_WALKER", Command::ComputeWalker)
        .of(&[40])
        .knowing(&[
            field(0, 0),
            field(2, 0x3_ffff),
            field(10, 0),
            field(11, 0),
            field(12, 0),
            field(13, 0),
            field(14, 0),
            field(27, 0x1ff7),
        ]),
    gfx(0x7919, "3DSTATE_BINDING_TABLE_POOL_ALLOC", Command::Ignored),
    gfx(0x7a00, "PIPE_CONTROL", Command::PipeControl)
        .of(&[6])
        .knowing(&[
            field(0, 1 << 9 | 1 << 10 | 1 << 11 | 1 << 13),
            field(1, PIPE_CONTROL),
        ]),
    Entry {
        mask: 0xfc00_0000,
        ..gfx(0xac00, "RESOURCE_BARRIER", Command::Ignored)
    },
];

/// The table entry for a command header, or `None` for an unknown command.
pub(super) fn decode(header: u32) -> Option<&'static Entry> {
    TABLE.iter().find(|row| row.is(header))
}

#[cfg(test)]
mod tests;
