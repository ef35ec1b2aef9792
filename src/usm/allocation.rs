//! One allocation, owned: freed once, when its last owner lets go.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use level_zero_sys as sys;

use super::UsmKind;
use crate::Result;
use crate::context::Context;
use crate::device::Device;
use crate::error::Error;
use crate::ipc::{self, Export};

/// The largest alignment in bytes that zeusm asks of Level Zero: 2 MiB, a large page of every Intel GPU.
pub const LARGEST_ALIGNMENT: usize = 2 << 20;

/// An allocation of USM whose kind is known at run time only.
///
/// Of no bytes, it is no allocation: the pointer is null and Level Zero is never asked.
///
/// Source: Level Zero specification, `zeMemAllocHost`, `zeMemAllocDevice`, `zeMemAllocShared`, `zeMemFree`.
#[derive(Debug)]
pub struct Allocation {
    context: Context,
    device: Device,
    kind: UsmKind,
    pointer: *mut c_void,
    size: usize,
    /// What other processes open it by, once a handle of it was asked for.
    export: OnceLock<Export>,
}

// SAFETY: the pointer is owned, and freeing USM is legal from any thread.
unsafe impl Send for Allocation {}
// SAFETY: shared references give out the address only; whoever follows it answers for races.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// Allocates `size` bytes in `context` for `device`, at an alignment of 0 (the runtime's choice) or a power of two.
    ///
    /// # Errors
    /// [`Error::Alignment`] for any other alignment or one above [`LARGEST_ALIGNMENT`]; [`Error::Allocation`] with
    /// Level Zero's answer when there is no such memory.
    pub fn new(
        context: &Context,
        device: &Device,
        kind: UsmKind,
        size: usize,
        alignment: usize,
    ) -> Result<Self> {
        if alignment > LARGEST_ALIGNMENT || (alignment != 0 && !alignment.is_power_of_two()) {
            return Err(Error::Alignment {
                alignment,
                limit: LARGEST_ALIGNMENT,
            });
        }
        let pointer = if size == 0 {
            ptr::null_mut()
        } else {
            allocate(context, device, kind, size, alignment).map_err(|cause| Error::Allocation {
                kind,
                size,
                alignment,
                device: device.name().to_owned(),
                limit: device.largest_allocation(),
                cause: Box::new(cause),
            })?
        };
        Ok(Self {
            context: context.clone(),
            device: device.clone(),
            kind,
            pointer,
            size,
            export: OnceLock::new(),
        })
    }

    /// Where the memory begins; null when it has no bytes.
    #[must_use]
    pub fn as_ptr(&self) -> *mut c_void {
        self.pointer
    }

    /// How many bytes there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The kind of memory.
    #[must_use]
    pub fn kind(&self) -> UsmKind {
        self.kind
    }

    /// The context it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The device it was allocated for. Host memory is for all devices of the context; this is the one named then.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What other processes open it by, made when first asked for.
    pub(crate) fn export(&self) -> Result<&Export, ipc::Error> {
        if let Some(export) = self.export.get() {
            return Ok(export);
        }
        let export = Export::new(self)?;
        // Of two that ask at once, one's is dropped.
        Ok(self.export.get_or_init(|| export))
    }

    /// The first byte, or a dangling pointer when there is none: what slices begin with.
    pub(super) fn first_byte(&self) -> NonNull<u8> {
        NonNull::new(self.pointer.cast()).unwrap_or(NonNull::dangling())
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // Nobody may find it exported once it is freed.
        drop(self.export.take());
        if !self.pointer.is_null() {
            // The answer can only be told to nobody; the runtime owns the memory's fate from here.
            // SAFETY: the pointer came from this context, this is its only owner, and whatever runs on it holds a
            // reference to `self`.
            let _ = unsafe {
                call!(
                    self.context.library(),
                    zeMemFree(self.context.handle(), self.pointer)
                )
            };
        }
    }
}

/// The call for `kind`; `size` is not 0.
fn allocate(
    context: &Context,
    device: &Device,
    kind: UsmKind,
    size: usize,
    alignment: usize,
) -> Result<*mut c_void> {
    let library = context.library();
    // Without this a size above the device's limit is refused even where the device could hold it.
    let mut relaxed = sys::ze_relaxed_allocation_limits_exp_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC,
        flags: sys::ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE.0,
        ..Default::default()
    };
    let next = if size as u64 > device.largest_allocation() {
        (&raw mut relaxed).cast()
    } else {
        ptr::null_mut()
    };
    let for_device = sys::ze_device_mem_alloc_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
        pNext: next,
        ..Default::default()
    };
    let for_host = sys::ze_host_mem_alloc_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC,
        pNext: next,
        ..Default::default()
    };
    let (in_context, on_device) = (context.handle(), device.handle());
    let mut pointer = ptr::null_mut();
    // SAFETY: context and device are alive, and the descriptors, which name their own types, outlive the calls.
    unsafe {
        match kind {
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
    Ok(pointer)
}
