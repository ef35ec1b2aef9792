//! A lane: a stream, and a staging chunk of host memory that its copies use.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

use super::Error;
use super::chunks::CHUNK;
use super::library::{Driver, Handle};
use super::session::Current;
use crate::suai::Layout;

/// The least size of an array whose chunks are pinned. To pin two chunks takes longer than copies of smaller arrays gain by it:
/// CUDA copies to and from pageable memory through pinned memory of its own.
const PINNED_FROM: usize = 8 << 20;

/// `CU_STREAM_NON_BLOCKING`: the stream does not wait for the legacy default stream.
const NON_BLOCKING: u32 = 1;

/// A stream and the chunk that its copies use.
pub(super) struct Lane<'a> {
    driver: &'a Driver,
    pub(super) stream: Handle,
    pub(super) chunk: *mut c_void,
    /// The chunk as a `Box` has it, unless it is CUDA's pinned memory.
    pageable: Option<*mut [MaybeUninit<u8>]>,
}

/// The lanes for an array of `layout` in the current context: two, or one where one chunk is enough.
pub(super) fn lanes<'a>(current: &'a Current, layout: &Layout) -> Result<Vec<Lane<'a>>, Error> {
    let size = layout.nbytes();
    // Elements whose extent fits one chunk are one chunk.
    let most = size.max(layout.extent().len());
    let count = most.div_ceil(CHUNK).min(2);
    (0..count)
        .map(|_| Lane::new(current, most.min(CHUNK), size >= PINNED_FROM))
        .collect()
}

impl<'a> Lane<'a> {
    /// A stream and a chunk of `size` bytes in the current context, which must stay current until this is dropped.
    fn new(current: &'a Current, size: usize, pinned: bool) -> Result<Self, Error> {
        let driver = current.driver;
        let mut lane = Self {
            driver,
            stream: ptr::null_mut(),
            chunk: ptr::null_mut(),
            pageable: None,
        };
        // SAFETY: a context is current; the handle is written on success.
        driver.check("cuStreamCreate", unsafe {
            (driver.create_stream)(&raw mut lane.stream, NON_BLOCKING)
        })?;
        if pinned {
            // SAFETY: as above.
            driver.check("cuMemAllocHost", unsafe {
                (driver.allocate_pinned)(&raw mut lane.chunk, size)
            })?;
        } else {
            let chunk = Box::into_raw(Box::new_uninit_slice(size));
            lane.chunk = chunk.cast();
            lane.pageable = Some(chunk);
        }
        Ok(lane)
    }

    /// Waits for the copies of the stream.
    pub(super) fn wait(&self) -> Result<(), Error> {
        // SAFETY: the stream is this lane's own.
        let code = unsafe { (self.driver.synchronize_stream)(self.stream) };
        self.driver.check("cuStreamSynchronize", code)
    }
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        // SAFETY: both belong to this lane. The copies of the stream are complete before the chunk is freed; errors cannot be
        // handled.
        unsafe {
            if !self.stream.is_null() {
                (self.driver.synchronize_stream)(self.stream);
                (self.driver.destroy_stream)(self.stream);
            }
            if let Some(chunk) = self.pageable {
                drop(Box::from_raw(chunk));
            } else if !self.chunk.is_null() {
                (self.driver.free_pinned)(self.chunk);
            }
        }
    }
}
