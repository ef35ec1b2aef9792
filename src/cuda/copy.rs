//! The copies, chunk by chunk, through host memory.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;

use super::chunks::{CHUNK, Chunk, Piece, chunks};
use super::library::{DEVICE, DevicePointer, HOST, Handle, Rows};
use super::session::Current;
use super::{Error, Interface};
use crate::suai::Layout;

/// `CU_STREAM_PER_THREAD`, the default stream of the calling thread.
const STREAM: Handle = ptr::without_provenance_mut(2);

/// Copies the elements of `layout`, in row-major order, to the host. `sink` gets each chunk: its offset when the elements are
/// packed, its address and its size in bytes; it may use the chunk until it returns.
///
/// # Errors
/// [`Error`]: of the library, of CUDA, of the array's memory, and that of `sink`.
///
/// # Safety
/// `layout` must have elements of `array` only, in any order. They must be valid memory of CUDA until this returns.
pub unsafe fn read(
    array: &Interface,
    layout: &Layout,
    mut sink: impl FnMut(usize, *const c_void, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    if layout.elements() == 0 {
        return Ok(());
    }
    let (current, pointer) = Current::enter(array)?;
    let mut staging = Staging::new(&current, pointer, layout);
    for chunk in chunks(layout) {
        let whole = chunk.whole();
        staging.submit(&chunk, whole.as_ref(), false)?;
        staging.wait()?;
        if whole.is_some() {
            for (spread, packed) in chunk.rows() {
                staging.packed[packed].copy_from_slice(&staging.extent[spread]);
            }
        }
        sink(chunk.first, staging.packed.as_ptr().cast(), chunk.size)?;
    }
    Ok(())
}

/// Copies from the host to the elements of `layout`, in row-major order, and waits. `source` fills each chunk: its offset when
/// the elements are packed, its address and its size in bytes.
///
/// # Errors
/// As for [`read`].
///
/// # Safety
/// As for [`read`]; nothing else may access the elements until this returns.
pub unsafe fn write(
    array: &Interface,
    layout: &Layout,
    mut source: impl FnMut(usize, *mut c_void, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    if layout.elements() == 0 {
        return Ok(());
    }
    let (current, pointer) = Current::enter(array)?;
    let mut staging = Staging::new(&current, pointer, layout);
    let is_distinct = layout.is_distinct();
    for chunk in chunks(layout) {
        source(chunk.first, staging.packed.as_mut_ptr().cast(), chunk.size)?;
        // A gap must not be written. Elements that overlap can have gaps in an extent of their size.
        let has_gaps = |extent: &Range<isize>| extent.len() != chunk.size || !is_distinct;
        let whole = chunk.whole().filter(|extent| !has_gaps(extent));
        if whole.is_some() {
            for (spread, packed) in chunk.rows() {
                staging.extent[spread].copy_from_slice(&staging.packed[packed]);
            }
        }
        staging.submit(&chunk, whole.as_ref(), true)?;
        staging.wait()?;
    }
    Ok(())
}

/// Host memory for a chunk of the array at `pointer`, whose context is the thread's current one until this is dropped.
struct Staging<'a> {
    current: &'a Current,
    pointer: DevicePointer,
    /// Its elements, one after the other.
    packed: Vec<u8>,
    /// Its extent, if that is copied as a whole.
    extent: Vec<u8>,
}

impl<'a> Staging<'a> {
    fn new(current: &'a Current, pointer: DevicePointer, layout: &Layout) -> Self {
        Self {
            current,
            pointer,
            packed: vec![0; layout.nbytes().min(CHUNK)],
            extent: vec![0; layout.extent().len().min(CHUNK)],
        }
    }

    /// Submits the copy of a chunk: of its extent if that is copied as a `whole`, else of each piece.
    fn submit(
        &mut self,
        chunk: &Chunk,
        whole: Option<&Range<isize>>,
        to_device: bool,
    ) -> Result<(), Error> {
        if let Some(extent) = whole {
            let host = self.extent.as_mut_ptr().cast();
            return self.copy(&Piece::of(extent), host, to_device);
        }
        let mut host = self.packed.as_mut_ptr();
        for piece in &chunk.pieces {
            self.copy(piece, host.cast(), to_device)?;
            host = host.wrapping_add(piece.size());
        }
        Ok(())
    }

    /// Submits the copy of a piece between the array and `host`, where its rows are packed.
    fn copy(&self, piece: &Piece, host: *mut c_void, to_device: bool) -> Result<(), Error> {
        let driver = self.current.driver;
        let device = self.pointer.wrapping_add_signed(piece.start as i64);
        // SAFETY: the caller guarantees the validity of the elements, which `Current::enter` has found in one allocation. The
        // host memory has room for the piece, and lives until the stream is synchronised.
        unsafe {
            if piece.rows > 1 {
                let rows = rows(device, host, piece, to_device);
                let code = (driver.copy_rows)(&raw const rows, STREAM);
                driver.check("cuMemcpy2DAsync", code)
            } else if to_device {
                let code = (driver.copy_to_device)(device, host, piece.width, STREAM);
                driver.check("cuMemcpyHtoDAsync", code)
            } else {
                let code = (driver.copy_to_host)(host, device, piece.width, STREAM);
                driver.check("cuMemcpyDtoHAsync", code)
            }
        }
    }

    /// Waits for the submitted copies.
    fn wait(&self) -> Result<(), Error> {
        let driver = self.current.driver;
        // SAFETY: a context is current, which has the stream.
        let code = unsafe { (driver.synchronize_stream)(STREAM) };
        driver.check("cuStreamSynchronize", code)
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        // The copies of a failed submission may be in flight. An error cannot be handled.
        let _ = self.wait();
    }
}

/// CUDA's description of a copy of rows, which are packed on the host.
fn rows(device: DevicePointer, host: *mut c_void, piece: &Piece, to_device: bool) -> Rows {
    let on_host = (HOST, host, 0, piece.width);
    let on_device = (DEVICE, ptr::null_mut(), device, piece.pitch);
    let (from, to) = if to_device {
        (on_host, on_device)
    } else {
        (on_device, on_host)
    };
    Rows {
        source_x: 0,
        source_y: 0,
        source_type: from.0,
        source_host: from.1,
        source_device: from.2,
        source_array: ptr::null(),
        source_pitch: from.3,
        destination_x: 0,
        destination_y: 0,
        destination_type: to.0,
        destination_host: to.1,
        destination_device: to.2,
        destination_array: ptr::null(),
        destination_pitch: to.3,
        width: piece.width,
        height: piece.rows,
    }
}
