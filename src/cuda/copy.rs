//! The copies, chunk by chunk. While the caller uses a pinned chunk, CUDA copies the next.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;

use super::chunks::{Chunk, Piece, chunks};
use super::gather::move_pieces;
use super::library::{DEVICE, DevicePointer, HOST, Rows};
use super::session::Current;
use super::staging::{Staging, buffers};
use super::{Error, Interface};
use crate::suai::Layout;

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
    let buffers = buffers(&current, layout)?;
    let mut packed = Vec::new();
    let mut finish = |(staging, chunk): (&Staging<'_>, Chunk)| {
        staging.wait()?;
        let mut elements = staging.memory;
        if let Some(extent) = chunk.whole() {
            elements = room(&mut packed, chunk.size);
            // SAFETY: the extent, which has the pieces, has just been copied to the staging buffer.
            unsafe { move_pieces(&chunk.pieces, extent.start, staging.memory, elements, false) };
        }
        sink(chunk.first, elements, chunk.size)
    };
    let mut previous = None;
    for (chunk, staging) in chunks(layout).zip(buffers.iter().cycle()) {
        submit(&current, staging, pointer, &chunk, chunk.whole(), false)?;
        if let Some(previous) = previous.replace((staging, chunk)) {
            finish(previous)?;
        }
    }
    previous.map_or(Ok(()), finish)
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
    let buffers = buffers(&current, layout)?;
    let wait_for_all = || buffers.iter().try_for_each(Staging::wait);
    let mut packed = Vec::new();
    let is_distinct = layout.is_distinct();
    for (chunk, staging) in chunks(layout).zip(buffers.iter().cycle()) {
        staging.wait()?;
        // A gap must not be written. Elements that overlap can have gaps in an extent of their size.
        let whole = chunk.whole_without_gaps().filter(|_| is_distinct);
        if let Some(extent) = &whole {
            let elements = room(&mut packed, chunk.size);
            source(chunk.first, elements, chunk.size)?;
            // SAFETY: the extent has the pieces; it has room in the staging buffer.
            unsafe { move_pieces(&chunk.pieces, extent.start, staging.memory, elements, true) };
        } else {
            source(chunk.first, staging.memory, chunk.size)?;
        }
        submit(&current, staging, pointer, &chunk, whole, true)?;
        if !is_distinct {
            wait_for_all()?;
        }
    }
    wait_for_all()
}

/// The address of `packed` with room for `size` bytes.
fn room(packed: &mut Vec<u8>, size: usize) -> *mut c_void {
    packed.resize(packed.len().max(size), 0);
    packed.as_mut_ptr().cast()
}

/// Submits the copy of a chunk: of its extent if that is copied as a `whole`, else of each piece.
fn submit(
    current: &Current,
    staging: &Staging<'_>,
    pointer: DevicePointer,
    chunk: &Chunk,
    whole: Option<Range<isize>>,
    to_device: bool,
) -> Result<(), Error> {
    let copy = |piece: &Piece| copy(current, staging, pointer, piece, to_device);
    match whole {
        Some(extent) => copy(&Piece::of(&extent)),
        None => chunk.pieces.iter().try_for_each(copy),
    }
}

/// Submits the copy of a piece between the array at `pointer` and a staging buffer.
fn copy(
    current: &Current,
    staging: &Staging<'_>,
    pointer: DevicePointer,
    piece: &Piece,
    to_device: bool,
) -> Result<(), Error> {
    let driver = current.driver;
    let device = pointer.wrapping_add_signed(piece.start as i64);
    let host = staging.memory.wrapping_byte_add(piece.at);
    // SAFETY: the caller guarantees the validity of the elements, which `Current::enter` has found in one allocation. The
    // staging buffer has room for the piece, and lives until the stream is synchronised.
    unsafe {
        if piece.rows > 1 {
            let rows = rows(device, host, piece, to_device);
            let code = (driver.copy_rows)(&raw const rows, staging.stream);
            driver.check("cuMemcpy2DAsync", code)
        } else if to_device {
            let code = (driver.copy_to_device)(device, host, piece.width, staging.stream);
            driver.check("cuMemcpyHtoDAsync", code)
        } else {
            let code = (driver.copy_to_host)(host, device, piece.width, staging.stream);
            driver.check("cuMemcpyDtoHAsync", code)
        }
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
