//! What this process holds of each device's memory, in all pools and outside of them, and the limit of it.
//!
//! A driver that gives away more device memory than a discrete GPU has loses the device when a kernel uses it. So a request beyond
//! the memory, beyond what all processes have left of it, or beyond the limit that the program has set, is refused before the driver
//! is called. Requests of several processes at the same moment may still exceed it together.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use zeusm_process::{ForkLock, held_at_fork};

use super::UsmKind;
use crate::device::Device;
use crate::error::{Error, Result};

#[derive(Default)]
struct Budget {
    /// The bytes of device memory.
    device: u64,
    /// The bytes of other memory that is in the device's.
    other: u64,
    /// The bytes of device memory that were ever given back.
    returned: u64,
    limit: Option<u64>,
    /// What was free of a discrete device when the driver told it, less what was allocated since.
    seen: Option<(Instant, u64)>,
}

/// What is left of a discrete device's memory for the driver, in bytes: without memory for its queues' commands it ends the process.
const RESERVE: u64 = 32 << 20;

/// How long an answer of the driver holds for small requests. It takes longer than an allocation.
const SEEN_FOR: Duration = Duration::from_millis(1);

/// A discrete device's own memory, in bytes.
#[derive(Clone, Copy)]
struct Own {
    size: u64,
    /// What no process uses, where the driver tells it.
    free: Option<u64>,
}

/// The part of a device's memory that Intel's driver keeps for reuse after a process has freed it, in percent. It counts as used.
const KEPT_BY_DRIVER: u64 = 8;

impl Budget {
    fn held(&self) -> u64 {
        self.device + self.other
    }

    fn of(&mut self, kind: UsmKind) -> &mut u64 {
        match kind {
            UsmKind::Device => &mut self.device,
            UsmKind::Host | UsmKind::Shared => &mut self.other,
        }
    }

    /// What was free a moment ago, if that is far more than `size`.
    fn recently_free(&mut self, size: u64) -> Option<u64> {
        let (when, free) = self.seen.as_mut()?;
        let before = *free;
        let is_enough = when.elapsed() < SEEN_FOR && size <= before / 8;
        is_enough.then(|| {
            *free -= size;
            before
        })
    }

    /// Whether `size` more bytes are allowed: by the limit, and where device memory has to be in the device's own, by that.
    fn check(&self, size: u64, own: Option<Own>) -> Result<()> {
        let most = |limit: u64, held: u64, of: &'static str| {
            if size <= limit.saturating_sub(held) {
                return Ok(());
            }
            Err(Error::DeviceLimit {
                size,
                of,
                limit,
                held,
            })
        };
        if let Some(limit) = self.limit {
            let of = "limit of the process (set_memory_limit)";
            most(limit, self.held(), of)?;
        }
        let Some(own) = own else { return Ok(()) };
        most(own.size, self.device, "memory of the device")?;
        let Some(free) = own.free else { return Ok(()) };
        // A request beyond what is free makes the driver empty its cache.
        let kept = self.returned.min(own.size / 100 * KEPT_BY_DRIVER);
        let is_of_reserve = size <= free && size > free.saturating_sub(RESERVE);
        if is_of_reserve || size > free.saturating_add(kept) {
            let (free, held) = (free.saturating_sub(RESERVE), self.device);
            return Err(Error::DeviceFull { size, free, held });
        }
        Ok(())
    }
}

/// By the devices' handles. A fork's child inherits the memory, and what is held of it.
static BUDGETS: ForkLock<BTreeMap<usize, Budget>> = ForkLock::new(BTreeMap::new());
held_at_fork!(BUDGETS);

/// Calls `then` with the device's budget.
fn with<T>(device: &Device, then: impl FnOnce(&mut Budget) -> T) -> T {
    then(BUDGETS.lock().entry(device.handle().addr()).or_default())
}

/// Whether memory of this kind is in the device's memory, which is the host's, too, unless the device is discrete.
pub(super) fn counts(device: &Device, kind: UsmKind) -> bool {
    kind != UsmKind::Host || device.is_integrated()
}

/// Bytes of a device that are about to be allocated. The drop gives them back.
pub(super) struct Reservation<'a> {
    device: &'a Device,
    kind: UsmKind,
    size: usize,
}

/// Reserves bytes for an allocation.
///
/// # Errors
/// [`Error::DeviceLimit`], [`Error::DeviceFull`].
pub(super) fn reserve(device: &Device, kind: UsmKind, size: usize) -> Result<Reservation<'_>> {
    if counts(device, kind) {
        let has_own = kind == UsmKind::Device && !device.is_integrated();
        let own = has_own.then(|| Own {
            size: device.memory_size(),
            free: free(device, size as u64),
        });
        with(device, |budget| {
            budget.check(size as u64, own)?;
            *budget.of(kind) += size as u64;
            Ok::<_, Error>(())
        })?;
    }
    Ok(Reservation { device, kind, size })
}

/// The device node of WSL, where the driver has crashed in `zesInit` (docs/gpus.md).
const WSL_NODE: &str = "/dev/dxg";

/// What no process uses of a discrete device's memory.
fn free(device: &Device, size: u64) -> Option<u64> {
    if let Some(free) = with(device, |budget| budget.recently_free(size)) {
        return Some(free);
    }
    if Path::new(WSL_NODE).exists() {
        return None;
    }
    let free = device.memory_state().ok()?.free;
    let left = free.saturating_sub(size);
    with(device, |budget| budget.seen = Some((Instant::now(), left)));
    Some(free)
}

/// Gives the bytes of an allocation back.
pub(super) fn release(device: &Device, kind: UsmKind, size: usize) {
    drop(Reservation { device, kind, size });
    if kind == UsmKind::Device {
        with(device, |budget| {
            budget.returned = budget.returned.saturating_add(size as u64);
        });
    }
}

impl Reservation<'_> {
    /// The bytes were allocated.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if counts(self.device, self.kind) {
            with(self.device, |budget| {
                *budget.of(self.kind) -= self.size as u64;
            });
        }
    }
}

impl Device {
    /// Limits what this process holds of the device's memory, in all pools and outside of them; `None` for no limit. Host memory
    /// counts where the device has no memory of its own. What is held already stays, also beyond the limit.
    ///
    /// ```
    /// # use zeusm::{Context, DeviceMemory, Runtime};
    /// # let device = Runtime::get()?.default_device()?;
    /// # let context = Context::new(device.driver())?;
    /// device.set_memory_limit(Some(device.held_memory() + (64 << 20)));
    /// assert!(DeviceMemory::new(&context, &device, 65 << 20).is_err());
    /// device.set_memory_limit(None);
    /// assert!(DeviceMemory::new(&context, &device, 65 << 20).is_ok());
    /// # Ok::<(), zeusm::Error>(())
    /// ```
    pub fn set_memory_limit(&self, limit: Option<u64>) {
        with(self, |budget| budget.limit = limit);
    }

    /// The limit of what this process holds of the device's memory, if one is set.
    #[must_use]
    pub fn memory_limit(&self) -> Option<u64> {
        with(self, |budget| budget.limit)
    }

    /// What zeusm leaves of a discrete device's memory for the driver's queues, in bytes.
    #[must_use]
    pub fn reserved_memory(&self) -> u64 {
        if self.is_integrated() { 0 } else { RESERVE }
    }

    /// What this process holds of the device's memory through zeusm, in bytes: in all pools, whether in blocks or not, and outside
    /// of them.
    #[must_use]
    pub fn held_memory(&self) -> u64 {
        with(self, |budget| budget.held())
    }
}

#[cfg(test)]
mod tests;
