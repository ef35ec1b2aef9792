//! A device, with the properties that allocations need.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use level_zero_sys as sys;
use once_cell::race::OnceBox;

use super::driver::{Driver, text};
use crate::call::enumerate;
use crate::error::Result;

/// A Level Zero device. Cheap to clone; equal when the handles are.
///
/// Source: Level Zero specification, "Core API", Device.
#[derive(Clone)]
pub struct Device(pub(super) Arc<Inner>);

pub(super) struct Inner {
    driver: Driver,
    handle: sys::ze_device_handle_t,
    name: String,
    uuid: [u8; 16],
    kind: sys::ze_device_type_t,
    largest_allocation: u64,
    concurrent_shared_access: bool,
    integrated: bool,
    /// The number of a sub-device in its device.
    pub(super) tile: Option<u32>,
    pub(super) loss: Loss,
    /// Made once, by the [`Display`](fmt::Display) of the device.
    pub(super) description: OnceBox<String>,
    memory_size: u64,
    timer: Timer,
    exports_dma_bufs: bool,
}

/// The clock of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    /// Ticks per second.
    pub(super) frequency: u64,
    /// The number of bits after which a kernel timestamp wraps around.
    pub(super) valid_bits: u32,
}

/// The record of a device's loss.
pub(super) struct Loss {
    /// Set when the device is lost, and never reset: no work can run on it any more in this process.
    pub(super) known: AtomicBool,
    pub(super) made: Instant,
    /// When `check_alive_at_times` asked last, in milliseconds after `made`.
    pub(super) asked: AtomicU64,
}

impl Default for Loss {
    fn default() -> Self {
        Self {
            known: AtomicBool::new(false),
            made: Instant::now(),
            asked: AtomicU64::new(0),
        }
    }
}

// SAFETY: the specification allows any thread to use a device handle.
unsafe impl Send for Inner {}
// SAFETY: as above, and everything else is read-only.
unsafe impl Sync for Inner {}

impl Device {
    /// Wraps a handle of `driver`.
    pub(super) fn new(driver: &Driver, handle: sys::ze_device_handle_t) -> Result<Self> {
        // This version of the structure has the clock's frequency; the older one has the period in whole nanoseconds.
        let mut properties = sys::ze_device_properties_t {
            stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2,
            ..Default::default()
        };
        // SAFETY: the handle comes from the driver and `properties` names its type.
        unsafe {
            call!(
                driver.library(),
                zeDeviceGetProperties(handle, &mut properties)
            )
        }?;
        let concurrent_shared_access = has_concurrent_shared_access(driver, handle);
        Ok(Self(Arc::new(Inner {
            driver: driver.clone(),
            handle,
            name: text(&properties.name),
            uuid: properties.uuid.id,
            kind: properties.type_,
            largest_allocation: properties.maxMemAllocSize,
            concurrent_shared_access,
            integrated: properties.flags & sys::ZE_DEVICE_PROPERTY_FLAG_INTEGRATED.0 != 0,
            tile: (properties.flags & sys::ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE.0 != 0)
                .then_some(properties.subdeviceId),
            loss: Loss::default(),
            description: OnceBox::new(),
            memory_size: memory_size(driver, handle).max(properties.maxMemAllocSize),
            timer: Timer {
                frequency: properties.timerResolution,
                valid_bits: properties.kernelTimestampValidBits,
            },
            exports_dma_bufs: exports_dma_bufs(driver, handle),
        })))
    }

    /// Whether `part` is this device itself, or one of its sub-devices at any depth.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) with the driver's result.
    pub fn contains(&self, part: &Self) -> Result<bool> {
        self.driver().is_part(self.handle(), part.handle())
    }

    /// The device's name. The name of the CPU runtime's device contains that it is a CPU.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The universal identifier, the same in every process of this machine.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.0.uuid
    }

    /// The largest single allocation in bytes that needs no relaxed limits.
    #[must_use]
    pub fn largest_allocation(&self) -> u64 {
        self.0.largest_allocation
    }

    /// Whether the host and this device may access the same shared allocation concurrently. If not, the driver migrates the
    /// allocation as a whole, and a host access has to wait until the device's work on it is complete.
    ///
    /// Source: Level Zero specification, `ze_memory_access_cap_flags_t`, `CONCURRENT`.
    #[must_use]
    pub fn has_concurrent_shared_access(&self) -> bool {
        self.0.concurrent_shared_access
    }

    /// The sum of the device's memories in bytes, at least the largest allocation; [`u64::MAX`] where the driver does not
    /// report it.
    #[must_use]
    pub fn memory_size(&self) -> u64 {
        self.0.memory_size
    }

    /// The clock that kernel timestamps are read from.
    pub(crate) fn timer(&self) -> Timer {
        self.0.timer
    }

    /// Whether allocations of its memory can be made for an export as a dma-buf.
    pub(crate) fn exports_dma_bufs(&self) -> bool {
        self.0.exports_dma_bufs
    }

    /// Whether this device can read and write memory of `peer`; not if that is another driver's.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) with the driver's result.
    pub fn can_access(&self, peer: &Self) -> Result<bool> {
        if self.driver().handle() != peer.driver().handle() {
            return Ok(false);
        }
        let mut answer = 0;
        // SAFETY: both devices are alive and of one driver, and the result outlives the call.
        unsafe {
            call!(
                self.driver().library(),
                zeDeviceCanAccessPeer(self.handle(), peer.handle(), &mut answer)
            )
        }?;
        Ok(answer != 0)
    }

    /// Whether its memory is the machine's, as opposed to memory of its own.
    #[must_use]
    #[inline]
    pub fn is_integrated(&self) -> bool {
        self.0.integrated
    }

    /// Whether the driver migrates shared memory between the host and the device, so that the two have different bytes: on a
    /// device with memory of its own, unless it [has concurrent access](Self::has_concurrent_shared_access).
    #[must_use]
    #[inline]
    pub fn migrates_shared_memory(&self) -> bool {
        !self.0.integrated && !self.0.concurrent_shared_access
    }

    /// Whether it is a GPU or a CPU.
    pub(super) fn is_usable(&self) -> bool {
        self.is_gpu() || self.0.kind == sys::ZE_DEVICE_TYPE_CPU
    }

    /// Whether Level Zero reports it as a GPU. The CPU runtime has a device of either type.
    #[must_use]
    pub fn is_gpu(&self) -> bool {
        self.0.kind == sys::ZE_DEVICE_TYPE_GPU
    }

    /// The driver it belongs to.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.0.driver
    }

    /// The raw handle, for calls that this crate does not wrap.
    #[must_use]
    pub fn handle(&self) -> sys::ze_device_handle_t {
        self.0.handle
    }
}

/// Queries [`Device::has_concurrent_shared_access`]; `false` when the query fails.
fn has_concurrent_shared_access(driver: &Driver, handle: sys::ze_device_handle_t) -> bool {
    let mut access = sys::structure::<sys::ze_device_memory_access_properties_t>();
    // SAFETY: the handle comes from the driver and `access` names its type.
    let answer = unsafe {
        call!(
            driver.library(),
            zeDeviceGetMemoryAccessProperties(handle, &mut access)
        )
    };
    let concurrent = sys::ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT.0;
    answer.is_ok() && access.sharedSingleDeviceAllocCapabilities & concurrent != 0
}

/// The sum of the device's memories in bytes; [`u64::MAX`] where the driver does not report it.
fn memory_size(driver: &Driver, handle: sys::ze_device_handle_t) -> u64 {
    let empty = sys::structure::<sys::ze_device_memory_properties_t>();
    let memories = enumerate(empty, |count, memories| {
        // SAFETY: the handle comes from the driver; `enumerate` passes null or room for `count` structures that name their type.
        unsafe {
            call!(
                driver.library(),
                zeDeviceGetMemoryProperties(handle, count, memories)
            )
        }
    });
    let sizes = memories.iter().flatten().map(|memory| memory.totalSize);
    match sizes.fold(0, u64::saturating_add) {
        0 => u64::MAX,
        total => total,
    }
}

/// Queries [`Device::exports_dma_bufs`]; `false` when the query fails.
fn exports_dma_bufs(driver: &Driver, handle: sys::ze_device_handle_t) -> bool {
    let mut properties = sys::structure::<sys::ze_device_external_memory_properties_t>();
    // SAFETY: the handle comes from the driver and `properties` names its type.
    let answer = unsafe {
        call!(
            driver.library(),
            zeDeviceGetExternalMemoryProperties(handle, &mut properties)
        )
    };
    let dma_buf = sys::ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF.0;
    answer.is_ok() && properties.memoryAllocationExportTypes & dma_buf != 0
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.0.handle == other.0.handle
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Device")
            .field("name", &self.0.name)
            .field("handle", &self.0.handle)
            .finish_non_exhaustive()
    }
}
