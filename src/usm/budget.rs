//! What this process holds of each device's memory, in all pools and outside of them, and the limit of it.
//!
//! A driver that gives away more device memory than a discrete GPU has loses the device when a kernel uses it. So a request beyond
//! the memory, or beyond the limit that the program has set, is refused before the driver is called.

use std::collections::BTreeMap;

use zeusm_process::{ForkLock, Mutex, held_at_fork};

use super::UsmKind;
use crate::device::Device;
use crate::error::{Error, Result};

#[derive(Default)]
struct Budget {
    /// The bytes of device memory.
    device: u64,
    /// The bytes of other memory that is in the device's.
    other: u64,
    limit: Option<u64>,
}

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

    /// Whether `size` more bytes are allowed: by the limit, and where device memory has to be in the device's own, by that.
    fn check(&self, size: u64, own: Option<u64>) -> Result<()> {
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
            most(
                limit,
                self.held(),
                "limit of the process (set_memory_limit)",
            )?;
        }
        own.map_or(Ok(()), |own| most(own, self.device, "memory of the device"))
    }
}

/// By the devices' handles. A fork's child inherits the memory, and what is held of it.
static BUDGETS: ForkLock<Mutex<BTreeMap<usize, Budget>>> =
    ForkLock::new(Mutex::new(BTreeMap::new()));
held_at_fork!(BUDGETS);

/// Calls `then` with the device's budget.
fn with<T>(device: &Device, then: impl FnOnce(&mut Budget) -> T) -> T {
    then(BUDGETS.lock().entry(device.handle().addr()).or_default())
}

/// Whether memory of this kind is in the device's memory, which is the host's, too, unless the device is discrete.
fn counts(device: &Device, kind: UsmKind) -> bool {
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
/// [`Error::DeviceLimit`].
pub(super) fn reserve(device: &Device, kind: UsmKind, size: usize) -> Result<Reservation<'_>> {
    if counts(device, kind) {
        let has_own = kind == UsmKind::Device && !device.is_integrated();
        let own = has_own.then(|| device.memory_size());
        with(device, |budget| {
            budget.check(size as u64, own)?;
            *budget.of(kind) += size as u64;
            Ok::<_, Error>(())
        })?;
    }
    Ok(Reservation { device, kind, size })
}

/// Gives the bytes of an allocation back.
pub(super) fn release(device: &Device, kind: UsmKind, size: usize) {
    drop(Reservation { device, kind, size });
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

    /// What this process holds of the device's memory through zeusm, in bytes: in all pools, whether in blocks or not, and outside
    /// of them.
    #[must_use]
    pub fn held_memory(&self) -> u64 {
        with(self, |budget| budget.held())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn all_memory_counts_against_the_limit_and_device_memory_against_the_device() {
        let (device, other) = (600, 300);
        let mut budget = Budget {
            device,
            other,
            limit: None,
        };
        assert!(budget.check(u64::MAX, None).is_ok());
        assert!(budget.check(400, Some(1000)).is_ok());
        let error = budget.check(401, Some(1000)).unwrap_err();
        assert!(error.is_out_of_memory());
        budget.limit = Some(1000);
        assert!(budget.check(100, Some(1000)).is_ok());
        let error = budget.check(101, Some(1000)).unwrap_err().to_string();
        assert!(error.contains("101 more bytes"), "{error}");
        assert!(error.contains("1000 bytes, of which this process holds 900"));
        // A limit below what is held.
        budget.limit = Some(1);
        assert!(budget.check(1, None).is_err());
    }
}
