//! Decodes COMPUTE_WALKER: the kernel, its work items and its arguments.
//!
//! Fields: PRM for Lunar Lake, volume 2a, "COMPUTE_WALKER" and volume 2d, "INTERFACE_DESCRIPTOR_DATA"; the driver's
//! public header `hw_cmds_generated_xe2_hpg_core.inl`.

use super::info::{Info, Slot};
use super::launch::{Launch, number};
use super::library::{self, KernelError};
use super::skipped;
use crate::memory::AddressSpace;
use crate::report::log;

/// The size in bytes of the inline argument data in a walker.
const INLINE: usize = 32;

/// The base addresses of argument data and of code, set by STATE_BASE_ADDRESS.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bases {
    general: u64,
    instruction: u64,
}

impl Bases {
    /// Applies the fields of a STATE_BASE_ADDRESS whose modify bit is set.
    pub(crate) fn set(&mut self, dwords: &[u32]) {
        let base = |at: usize| {
            let address = u64::from(dwords[at]) | u64::from(dwords[at + 1]) << 32;
            (address & 1 == 1).then_some(address & !0xfff)
        };
        self.general = base(1).unwrap_or(self.general);
        self.instruction = base(10).unwrap_or(self.instruction);
    }
}

/// Executes the kernel of a walker.
pub(crate) fn walk(space: &AddressSpace, bases: &Bases, dwords: &[u32]) -> Result<(), KernelError> {
    // The interface descriptor starts at dword 19; its first field is the offset of the code.
    let code_at = bases.instruction + u64::from(dwords[19] & !63);
    let kernel = match library::kernel(space, code_at) {
        Err(KernelError::User { at, name }) if skipped::skips() => {
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

/// A kernel's argument data: the inline data of the walker, then the indirect data from memory, with the local
/// ids of each thread behind it where the hardware does not generate them.
fn payload(space: &AddressSpace, bases: &Bases, dwords: &[u32]) -> Result<Vec<u8>, KernelError> {
    let mut payload = Vec::with_capacity(INLINE);
    if dwords[4] >> 25 & 1 == 1 {
        payload.extend(dwords[32..40].iter().flat_map(|dword| dword.to_le_bytes()));
    }
    let length = (dwords[2] & 0x1_ffff) as usize;
    let inline = payload.len();
    payload.resize(inline + length, 0);
    space.read(
        bases.general + u64::from(dwords[3] & !63),
        &mut payload[inline..],
    )?;
    Ok(payload)
}

/// The work-group size from the implicit argument. The walker's own field is valid only if the hardware generates the local
/// ids; kernels that compute the ids take the size as an argument.
fn local_size(info: &Info, payload: &[u8]) -> Option<[u64; 3]> {
    let Slot { offset, size } = info.local_size?;
    let part = size / 3;
    Some([0, 1, 2].map(|dimension| number(payload, offset + dimension * part, part)))
}
