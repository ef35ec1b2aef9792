//! Pointer attributes.

use std::ops::Range;
use std::ptr;

use level_zero_sys as sys;

use super::context_map;
use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kind::UsmKind;
use crate::pool::{self, Lookup};

/// The allocation that contains a pointer, as Level Zero reports it. For a pool's block, base and size are the block's.
///
/// Source: Level Zero specification, `zeMemGetAllocProperties` and `zeMemGetAddressRange`.
#[derive(Clone, Debug)]
pub struct PointerAttributes {
    /// The kind of memory.
    pub kind: UsmKind,
    /// The address of the allocation.
    pub base: usize,
    /// Its size in bytes.
    pub size: usize,
    /// Level Zero's id of the allocation, which is unique; blocks of a pool, zeusm's or the driver's, may share one.
    pub id: u64,
    /// The device of the allocation; `None` for host memory.
    pub device: Option<Device>,
}

impl PointerAttributes {
    /// The addresses of the allocation.
    #[must_use]
    pub fn addresses(&self) -> Range<usize> {
        self.base..self.base + self.size
    }
}

impl Context {
    /// The attributes of the allocation that contains `pointer`, or of the pool's block. Some drivers look pointers up in
    /// all their contexts: zeusm checks the context of its own allocations, and cannot check that of foreign ones.
    ///
    /// # Errors
    /// [`Error::UnknownPointer`] when it is not USM of this context.
    pub fn pointer_attributes(&self, pointer: usize) -> Result<PointerAttributes> {
        let whole = self.driver_attributes(pointer)?;
        match pool::lookup(pointer) {
            Lookup::NotPooled => Ok(whole),
            Lookup::Allocated(range) if range.contains(&pointer) => Ok(PointerAttributes {
                base: range.start,
                size: range.len(),
                ..whole
            }),
            Lookup::Allocated(_) | Lookup::Free => Err(Error::UnknownPointer(pointer)),
        }
    }

    /// The attributes of Level Zero's allocation that contains `pointer`, which a pool may have divided.
    ///
    /// # Errors
    /// [`Error::UnknownPointer`] when it is not USM of this context.
    pub(crate) fn driver_attributes(&self, pointer: usize) -> Result<PointerAttributes> {
        if pointer == 0 || context_map::is_in_another_context(pointer, self.handle()) {
            return Err(Error::UnknownPointer(pointer));
        }
        let mut properties = sys::structure::<sys::ze_memory_allocation_properties_t>();
        let mut device = ptr::null_mut();
        // SAFETY: the context is alive; Level Zero looks the pointer up and does not dereference it.
        unsafe {
            call!(
                self.library(),
                zeMemGetAllocProperties(
                    self.handle(),
                    ptr::without_provenance(pointer),
                    &mut properties,
                    &mut device
                )
            )
        }?;
        let kind =
            UsmKind::from_level_zero(properties.type_).ok_or(Error::UnknownPointer(pointer))?;
        let (mut base, mut size) = (ptr::null_mut(), 0);
        // SAFETY: the context is alive; Level Zero looks the pointer up and does not dereference it.
        unsafe {
            call!(
                self.library(),
                zeMemGetAddressRange(
                    self.handle(),
                    ptr::without_provenance(pointer),
                    &mut base,
                    &mut size
                )
            )
        }?;
        Ok(PointerAttributes {
            kind,
            base: base.addr(),
            size,
            id: properties.id,
            device: if device.is_null() {
                None
            } else {
                // SAFETY: the handle comes from this driver.
                Some(unsafe { self.driver().device(device) }?)
            },
        })
    }
}
