//! What is known of a pointer.

use std::ptr;

use level_zero_sys as sys;

use super::origin;
use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kind::UsmKind;
use crate::pool::{self, Lookup};

/// The allocation that a pointer lies in, by Level Zero's word; of memory that a pool divided, base and size by the
/// pool's.
///
/// Source: Level Zero specification, `zeMemGetAllocProperties` and `zeMemGetAddressRange`.
#[derive(Clone, Debug)]
pub struct PointerAttributes {
    /// The kind of memory.
    pub kind: UsmKind,
    /// Where the allocation begins.
    pub base: usize,
    /// How many bytes it has.
    pub size: usize,
    /// Level Zero's number of it, which no other of its allocations ever has; blocks of a pool may share one.
    pub id: u64,
    /// The device it was allocated for; `None` for memory of the host.
    pub device: Option<Device>,
}

impl Context {
    /// What is known of the allocation that `pointer` points into: Level Zero's word, or where a pool has divided
    /// Level Zero's memory, the pool's. Some drivers answer for pointers of all their contexts; of zeusm's own
    /// allocations it is known which context they are of, of others it is not.
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
            Lookup::Allocated(_) | Lookup::Free => Err(Error::UnknownPointer { pointer }),
        }
    }

    /// What Level Zero knows of its allocation that `pointer` points into, which a pool may have divided.
    ///
    /// # Errors
    /// [`Error::UnknownPointer`] when it is not USM of this context.
    pub(crate) fn driver_attributes(&self, pointer: usize) -> Result<PointerAttributes> {
        if pointer == 0 || origin::is_elsewhere(pointer, self.handle()) {
            return Err(Error::UnknownPointer { pointer });
        }
        let mut properties = sys::ze_memory_allocation_properties_t {
            stype: sys::ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
            ..Default::default()
        };
        let mut device = ptr::null_mut();
        // SAFETY: the context is alive; Level Zero looks the pointer up and does not follow it.
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
            UsmKind::from_level_zero(properties.type_).ok_or(Error::UnknownPointer { pointer })?;
        let (mut base, mut size) = (ptr::null_mut(), 0);
        // SAFETY: the context is alive; Level Zero looks the pointer up and does not follow it.
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
                // SAFETY: the driver gave the handle.
                Some(unsafe { self.driver().device(device) }?)
            },
        })
    }
}
