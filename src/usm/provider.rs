//! Level Zero as a pool's provider.

use std::ffi::c_void;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use level_zero_sys as sys;

use super::virtual_memory::{Suspension, VirtualMemory};
use super::{budget, context_map, limits, mappings};
use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::history::Place;
use crate::kind::UsmKind;
use crate::pool::Provider;

/// Provides USM of one kind, in one context, for one device.
///
/// Source: Level Zero specification, `zeMemAllocHost`, `zeMemAllocDevice`, `zeMemAllocShared`, `zeMemFree`.
#[derive(Clone, Debug)]
pub struct LevelZeroProvider {
    context: Context,
    device: Device,
    kind: UsmKind,
    /// Whether its allocations belong to no pool.
    is_unpooled: bool,
    /// For a pool that can be suspended.
    virtual_memory: Option<Arc<VirtualMemory>>,
}

/// The largest allocation of device memory in bytes that is made for the host's copies; that of a pool's slabs of several blocks.
/// It fits into the caches of a GPU, where a compression would save no bandwidth.
const LARGEST_FOR_HOST_COPIES: usize = 2 << 20;

impl LevelZeroProvider {
    /// A provider of USM of `kind` in `context` for `device`.
    #[must_use]
    pub fn new(context: &Context, device: &Device, kind: UsmKind) -> Self {
        Self {
            context: context.clone(),
            device: device.clone(),
            kind,
            is_unpooled: false,
            virtual_memory: None,
        }
    }

    /// A provider of device memory for a pool that can be [suspended](crate::pool::Pool::suspend): at addresses that stay reserved
    /// while the physical memory is given back. Level Zero has such memory for devices only. Its clones are suspended with it.
    #[must_use]
    pub fn suspendable(context: &Context, device: &Device) -> Self {
        Self {
            virtual_memory: Some(Arc::new(VirtualMemory::new(context, device))),
            ..Self::new(context, device, UsmKind::Device)
        }
    }

    /// Whether its memory must not be used, nor allocated.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.virtual_memory
            .as_ref()
            .is_some_and(|it| it.is_suspended())
    }

    /// Whether it can be suspended.
    #[must_use]
    pub fn is_suspendable(&self) -> bool {
        self.virtual_memory.is_some()
    }

    /// Begins to suspend or resume its memory.
    ///
    /// # Errors
    /// [`Error::NotSuspendable`]; [`Error::Suspended`] while another thread does so.
    pub(crate) fn suspension(&self) -> Result<Suspension<'_>> {
        let memory = self.virtual_memory.as_ref();
        memory.ok_or(Error::NotSuspendable)?.change()
    }

    /// A provider of allocations that belong to no pool.
    pub(super) fn unpooled(context: &Context, device: &Device, kind: UsmKind) -> Self {
        Self {
            is_unpooled: true,
            ..Self::new(context, device, kind)
        }
    }

    /// The context that the memory belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The device of the memory. For host memory, which all devices of the context can access, the one given to `new`.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The kind of memory.
    #[must_use]
    pub fn kind(&self) -> UsmKind {
        self.kind
    }

    /// Whether an allocation is made so that the driver can copy to and from it by the processor. Intel's driver does that with
    /// small copies between the host and a discrete GPU, in a tenth of the time, but not where it may compress the memory. It
    /// ignores the hint against that (`ze_memory_compression_hints_ext_desc_t`), but compresses no memory that can be exported.
    fn is_for_host_copies(&self, size: usize) -> bool {
        self.kind == UsmKind::Device
            && size <= LARGEST_FOR_HOST_COPIES
            && !self.device.is_integrated()
            && self.device.exports_dma_bufs()
    }

    /// The largest size without relaxed limits. The specification does not tell which device's limit holds for host memory;
    /// Intel's driver takes that of its first device, whatever devices the context has.
    fn strict_limit(&self) -> u64 {
        let own = self.device.largest_allocation();
        if self.kind != UsmKind::Host {
            return own;
        }
        let devices = self.device.driver().devices().unwrap_or_default();
        let all = devices.iter().map(Device::largest_allocation);
        all.fold(own, u64::min)
    }
}

// SAFETY: Level Zero allocates `size` bytes at the alignment, which overlap no other allocation until they are freed.
unsafe impl Provider for LevelZeroProvider {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        self.context.check_driver_of(&self.device)?;
        limits::check(&self.device, self.kind, size)?;
        if let Some(memory) = &self.virtual_memory {
            return memory.allocate(size, alignment, self.place());
        }
        if self.kind == UsmKind::Shared && self.device.migrates_shared_memory() {
            static BUDGET: AtomicUsize = AtomicUsize::new(0);
            mappings::check(&BUDGET, Path::new("/proc"))?;
        }
        let reserved = budget::reserve(&self.device, self.kind, size)?;
        let library = self.context.library();
        // Without relaxed limits, larger sizes are refused even if there is enough memory.
        let relaxed = sys::ze_relaxed_allocation_limits_exp_desc_t {
            flags: sys::ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE.0,
            ..sys::structure()
        };
        let relaxed = (size as u64 > self.strict_limit()).then_some(&relaxed);
        let export = sys::ze_external_memory_export_desc_t {
            flags: sys::ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF.0,
            ..sys::structure()
        };
        let for_device = sys::ze_device_mem_alloc_desc_t {
            pNext: if self.is_for_host_copies(size) {
                sys::next::<sys::ze_device_mem_alloc_desc_t, _>(Some(&export))
            } else {
                sys::next::<sys::ze_device_mem_alloc_desc_t, _>(relaxed)
            },
            ..sys::structure()
        };
        let for_host = sys::ze_host_mem_alloc_desc_t {
            pNext: sys::next::<sys::ze_host_mem_alloc_desc_t, _>(relaxed),
            ..sys::structure()
        };
        let (in_context, on_device) = (self.context.handle(), self.device.handle());
        let mut pointer = ptr::null_mut();
        // SAFETY: context and device are alive, and the descriptors, which name their own types, outlive the calls.
        unsafe {
            match self.kind {
                UsmKind::Host => call!(
                    library,
                    zeMemAllocHost(in_context, &for_host, size, alignment, &mut pointer)
                ),
                UsmKind::Device => call!(
                    library,
                    zeMemAllocDevice(
                        in_context,
                        &for_device,
                        size,
                        alignment,
                        on_device,
                        &mut pointer
                    )
                ),
                UsmKind::Shared => call!(
                    library,
                    zeMemAllocShared(
                        in_context,
                        &for_device,
                        &for_host,
                        size,
                        alignment,
                        on_device,
                        &mut pointer
                    )
                ),
            }
        }?;
        let pointer = NonNull::new(pointer).ok_or(Error::Call {
            function: "zeMemAlloc",
            result: sys::ZE_RESULT_ERROR_UNKNOWN,
        })?;
        reserved.keep();
        context_map::register(pointer.addr().get(), size, self.place(), self.is_unpooled);
        Ok(pointer)
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        if let Some(memory) = &self.virtual_memory {
            return memory.free(address.addr().get());
        }
        context_map::unregister(address.addr().get());
        // A failure is ignored, as a drop cannot report it.
        // SAFETY: the caller frees memory of this context, once.
        let _ = unsafe {
            call!(
                self.context.library(),
                zeMemFree(self.context.handle(), address.as_ptr())
            )
        };
        budget::release(&self.device, self.kind, size);
    }

    fn place(&self) -> Place {
        let (device, context) = (self.device.handle(), self.context.handle());
        Place::new(self.kind, device.addr(), context.addr())
    }

    /// Blocks of shared memory share allocations only if host and device may access one allocation concurrently. Otherwise
    /// the driver migrates a whole allocation at a page fault, and concurrent writes of the device to another block of it
    /// are lost.
    fn shares_allocations(&self) -> bool {
        self.kind != UsmKind::Shared || self.device.has_concurrent_shared_access()
    }
}
