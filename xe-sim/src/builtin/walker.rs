//! COMPUTE_WALKER: which kernel, over how many work items, with which arguments.
//!
//! Fields: PRM for Lunar Lake, volume 2a, "COMPUTE_WALKER" and volume 2d, "INTERFACE_DESCRIPTOR_DATA"; the driver's
//! public header `hw_cmds_generated_xe2_hpg_core.inl`.

use super::KernelError;
use super::info::{Info, Slot};
use super::library;
use super::skipped;
use crate::memory::AddressSpace;
use crate::report::{log, not_simulated};

/// The arguments that a walker carries itself, and how many can lie in memory.
const INLINE: usize = 32;
const INDIRECT: usize = 4096;

/// Addresses that STATE_BASE_ADDRESS has set: of argument data, and of code.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bases {
    general: u64,
    instruction: u64,
}

impl Bases {
    /// Takes what a STATE_BASE_ADDRESS changes.
    pub(crate) fn set(&mut self, dwords: &[u32]) {
        let base = |at: usize| {
            let address = u64::from(dwords[at]) | u64::from(dwords[at + 1]) << 32;
            (address & 1 == 1).then_some(address & !0xfff)
        };
        self.general = base(1).unwrap_or(self.general);
        self.instruction = base(10).unwrap_or(self.instruction);
    }
}

/// A kernel's work items and arguments.
pub(super) struct Launch<'a> {
    pub(super) space: &'a AddressSpace,
    /// Work items in a group, and in all, by dimension.
    pub(super) local: [u64; 3],
    pub(super) global: [u64; 3],
    info: &'a Info,
    payload: Vec<u8>,
}

impl Launch<'_> {
    /// An argument, which may be a pointer.
    pub(super) fn argument(&self, index: u32) -> u64 {
        self.part(index, 0, 1)
    }

    /// One of the equal parts of an argument.
    pub(super) fn part(&self, index: u32, part: usize, parts: usize) -> u64 {
        let Some(slot) = self.info.argument(index) else {
            return 0; // The compiler drops what a kernel does not use.
        };
        let size = slot.size / parts;
        number(&self.payload, slot.offset + part * size, size)
    }
}

fn number(payload: &[u8], offset: usize, size: usize) -> u64 {
    let mut bytes = [0; 8];
    let size = size.min(8);
    if let Some(found) = payload.get(offset..offset + size) {
        bytes[..size].copy_from_slice(found);
    }
    u64::from_le_bytes(bytes)
}

/// Runs the kernel of a walker.
pub(crate) fn walk(space: &AddressSpace, bases: &Bases, dwords: &[u32]) -> Result<(), KernelError> {
    let (predicated, indirect) = (dwords[0] >> 8 & 1 == 1, dwords[0] >> 10 & 1 == 1);
    if predicated || indirect {
        not_simulated(format_args!(
            "COMPUTE_WALKER, predicated: {predicated}, indirect: {indirect}"
        ));
    }
    // The interface descriptor begins at dword 19, with the address of the code.
    let code_at = bases.instruction + u64::from(dwords[19] & !63);
    let kernel = match library::kernel(space, code_at) {
        Err(KernelError::Unknown { at, name }) if skipped::skips() => {
            skipped::note(at, &name);
            return Ok(());
        }
        known => known?,
    };
    let payload = payload(space, bases, dwords)?;

    let groups = [dwords[7], dwords[8], dwords[9]].map(u64::from);
    let local = local_size(&kernel.info, &payload)
        .unwrap_or_else(|| [0, 10, 20].map(|shift| u64::from(dwords[6] >> shift & 0x3ff) + 1));
    let global = [0, 1, 2].map(|dimension| groups[dimension] * local[dimension]);
    log(format_args!(
        "kernel {} over {global:?} in groups of {local:?}",
        kernel.name
    ));
    let launch = Launch {
        space,
        local,
        global,
        info: &kernel.info,
        payload,
    };
    Ok((kernel.operation)(&launch)?)
}

/// A kernel's argument data: in the walker, and then in memory.
fn payload(space: &AddressSpace, bases: &Bases, dwords: &[u32]) -> Result<Vec<u8>, KernelError> {
    let mut payload = Vec::with_capacity(INLINE);
    if dwords[4] >> 25 & 1 == 1 {
        payload.extend(dwords[32..40].iter().flat_map(|dword| dword.to_le_bytes()));
    }
    let length = (dwords[2] & 0x1_ffff) as usize;
    if length > INDIRECT {
        not_simulated(format_args!("{length} bytes of argument data"));
    }
    let inline = payload.len();
    payload.resize(inline + length, 0);
    space.read(
        bases.general + u64::from(dwords[3] & !63),
        &mut payload[inline..],
    )?;
    Ok(payload)
}

/// The walker has it only where the hardware makes the local ids; kernels that make them get it as an argument.
fn local_size(info: &Info, payload: &[u8]) -> Option<[u64; 3]> {
    let Slot { offset, size } = info.local_size?;
    let part = size / 3;
    Some([0, 1, 2].map(|dimension| number(payload, offset + dimension * part, part)))
}
