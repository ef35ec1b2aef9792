//! Memory of the program as host memory, where it is.
//!
//! Source: Level Zero specification, `ze_external_memmap_sysmem_ext_desc_t`.

use std::any::Any;
use std::fmt;
use std::mem;
use std::ops::Range;
use std::ptr::{self, NonNull};

use level_zero_sys as sys;
use level_zero_sys::extensions;
use once_cell::race::OnceBool;

use super::{context_map, page_size};
use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::history::Place;
use crate::kind::UsmKind;
use crate::pool;

/// The driver's extension.
const EXTENSION: &str = "ZE_extension_external_memmap_sysmem";

/// Pages of the program that are host memory of a context, until this is dropped.
pub(super) struct InPlace {
    context: Context,
    /// The address of the first page.
    base: usize,
    /// What keeps the pages, dropped after them.
    _owner: Box<dyn Any + Send + Sync>,
}

impl InPlace {
    /// The pages that have `bytes`, which are not empty.
    ///
    /// # Errors
    /// [`Error::InPlace`].
    ///
    /// # Safety
    /// The bytes stay where they are, and writable, until `owner` is dropped.
    pub(super) unsafe fn new(
        context: &Context,
        device: &Device,
        bytes: NonNull<[u8]>,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<Self> {
        let start = bytes.addr().get();
        let pages =
            start / page_size() * page_size()..(start + bytes.len()).next_multiple_of(page_size());
        take(context, device, &pages).map_err(|cause| Error::InPlace {
            size: bytes.len(),
            address: start,
            device: device.to_string(),
            cause: Box::new(cause),
        })?;
        Ok(Self {
            context: context.clone(),
            base: pages.start,
            _owner: owner,
        })
    }
}

/// Makes pages of the program host memory.
fn take(context: &Context, device: &Device, pages: &Range<usize>) -> Result<()> {
    context.check_driver_of(device)?;
    if !context.driver().has_extension(EXTENSION)? {
        return Err(Error::NoExtension(EXTENSION));
    }
    if !gives_back(context)? {
        return Err(Error::KeepsPages);
    }
    let place = Place::new(
        UsmKind::Host,
        device.handle().addr(),
        context.handle().addr(),
    );
    // Before the driver has them, so that no other thread takes them as well.
    if !context_map::claim(pages, place) {
        return Err(Error::PagesInUse);
    }
    let is_usm = |address| context.driver_attributes(address).is_ok();
    let taken = if is_usm(pages.start) || is_usm(pages.end - 1) {
        Err(Error::PagesInUse)
    } else {
        pool::retry_out_of_memory(|| map(context, pages))
    };
    if taken.is_err() {
        context_map::unregister(pages.start);
    }
    taken
}

/// Whether the driver gives memory of the program back when it is freed. Intel's driver 26.27 keeps it for reuse, and hands the
/// program's pages out as new host memory later, unless its cache is turned off. The question takes a page of the program.
fn gives_back(context: &Context) -> Result<bool> {
    static ANSWER: OnceBool = OnceBool::new();
    ANSWER.get_or_try_init(|| {
        let room = vec![0_u8; 2 * page_size()];
        let start = room
            .as_ptr()
            .expose_provenance()
            .next_multiple_of(page_size());
        map(context, &(start..start + page_size()))?;
        unmap(context, start);
        let gives_back = context.driver_attributes(start).is_err();
        if !gives_back {
            // The driver may hand the page out.
            mem::forget(room);
        }
        Ok(gives_back)
    })
}

/// Makes pages of the program host memory, unchecked.
fn map(context: &Context, pages: &Range<usize>) -> Result<()> {
    let memory = extensions::ze_external_memmap_sysmem_ext_desc_t {
        stype: extensions::ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC,
        pNext: ptr::null(),
        pSystemMemory: ptr::with_exposed_provenance_mut(pages.start),
        size: pages.len() as u64,
    };
    let description = sys::ze_host_mem_alloc_desc_t {
        pNext: sys::next::<sys::ze_host_mem_alloc_desc_t, _>(Some(&memory)),
        ..sys::structure()
    };
    let (library, context, size) = (context.library(), context.handle(), pages.len());
    let mut pointer = ptr::null_mut();
    // SAFETY: the context is alive, the descriptors outlive the call, and whoever has the bytes vouches for the pages.
    unsafe {
        call!(
            library,
            zeMemAllocHost(context, &description, size, 0, &mut pointer)
        )
    }
}

/// Ends it. A failure is ignored, as a drop cannot report it.
fn unmap(context: &Context, base: usize) {
    let pointer = ptr::with_exposed_provenance_mut(base);
    // SAFETY: the memory is of this context, and freed once; the program keeps the pages.
    let _ = unsafe { call!(context.library(), zeMemFree(context.handle(), pointer)) };
}

impl Drop for InPlace {
    fn drop(&mut self) {
        context_map::unregister(self.base);
        unmap(&self.context, self.base);
    }
}

impl fmt::Debug for InPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "<pages of the program at {:#x}>", self.base)
    }
}
