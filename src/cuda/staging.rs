//! A staging buffer in host memory, with the stream of its copies.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

use super::Error;
use super::chunks;
use super::library::{Driver, Handle};
use super::session::Current;
use crate::suai::Layout;

/// The least size of an array whose staging buffers are pinned. To pin two takes longer than copies of smaller arrays gain by it:
/// CUDA copies to and from pageable memory through pinned memory of its own.
const PINNED_FROM: usize = 8 << 20;

/// `CU_STREAM_NON_BLOCKING`: the stream does not wait for the legacy default stream.
const NON_BLOCKING: u32 = 1;

/// A staging buffer, and the stream of its copies.
pub(super) struct Staging<'a> {
    driver: &'a Driver,
    pub(super) stream: Handle,
    pub(super) memory: *mut c_void,
    /// The memory as a `Box` has it, unless it is CUDA's pinned memory.
    pageable: Option<*mut [MaybeUninit<u8>]>,
}

/// The staging buffers for an array of `layout`, in the current context.
pub(super) fn buffers<'a>(
    current: &'a Current,
    layout: &Layout,
) -> Result<Vec<Staging<'a>>, Error> {
    let (count, size) = chunks::staging(layout);
    let is_pinned = layout.nbytes() >= PINNED_FROM;
    (0..count)
        .map(|_| Staging::new(current, size, is_pinned))
        .collect()
}

impl<'a> Staging<'a> {
    /// A buffer of `size` bytes in the current context, which must stay current until this is dropped.
    fn new(current: &'a Current, size: usize, is_pinned: bool) -> Result<Self, Error> {
        let driver = current.driver;
        let mut staging = Self {
            driver,
            stream: ptr::null_mut(),
            memory: ptr::null_mut(),
            pageable: None,
        };
        // SAFETY: a context is current; the handle is written on success.
        driver.check("cuStreamCreate", unsafe {
            (driver.create_stream)(&raw mut staging.stream, NON_BLOCKING)
        })?;
        if is_pinned {
            // SAFETY: as above.
            driver.check("cuMemAllocHost", unsafe {
                (driver.allocate_pinned)(&raw mut staging.memory, size)
            })?;
        } else {
            let memory = Box::into_raw(Box::new_uninit_slice(size));
            staging.memory = memory.cast();
            staging.pageable = Some(memory);
        }
        Ok(staging)
    }

    /// Waits for the copies of the stream.
    pub(super) fn wait(&self) -> Result<(), Error> {
        // SAFETY: the stream is this buffer's own.
        let code = unsafe { (self.driver.synchronize_stream)(self.stream) };
        self.driver.check("cuStreamSynchronize", code)
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        // SAFETY: both are of this buffer. The copies of the stream are complete before the memory is freed; errors cannot be
        // handled.
        unsafe {
            if !self.stream.is_null() {
                (self.driver.synchronize_stream)(self.stream);
                (self.driver.destroy_stream)(self.stream);
            }
            if let Some(memory) = self.pageable {
                drop(Box::from_raw(memory));
            } else if !self.memory.is_null() {
                (self.driver.free_pinned)(self.memory);
            }
        }
    }
}
