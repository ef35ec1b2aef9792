//! The copies: while the caller uses one chunk, CUDA copies the next.

use std::ffi::c_void;
use std::ptr;

use super::chunks::{CHUNK, Chunk, Piece, chunks, is_distinct};
use super::gather::{gather, scatter};
use super::lane::{Lane, lanes};
use super::library::{DEVICE, DevicePointer, HOST, Rows};
use super::session::Current;
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
    let lanes = lanes(&current, layout)?;
    let mut packed = Vec::new();
    let mut finish = |(lane, chunk): (&Lane<'_>, Chunk)| {
        lane.wait()?;
        let mut elements = lane.chunk;
        if let Some(extent) = chunk.whole(false) {
            packed.resize(CHUNK, 0u8);
            elements = packed.as_mut_ptr().cast();
            // SAFETY: the extent has just been copied to the lane's chunk; no chunk has more than CHUNK bytes.
            unsafe { gather(&chunk.pieces, extent.start, lane.chunk, elements) };
        }
        sink(chunk.first, elements, chunk.size)
    };
    let mut previous = None;
    for (chunk, lane) in chunks(layout).zip(lanes.iter().cycle()) {
        match chunk.whole(false) {
            Some(extent) => copy(&current, lane, pointer, &Piece::of(&extent), false)?,
            None => copy_all(&current, lane, pointer, &chunk, false)?,
        }
        if let Some(previous) = previous.replace((lane, chunk)) {
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
    let lanes = lanes(&current, layout)?;
    let mut packed = Vec::new();
    // Elements without overlaps whose extent has as many bytes have no gaps, which must not be written.
    let is_distinct = is_distinct(layout);
    for (chunk, lane) in chunks(layout).zip(lanes.iter().cycle()) {
        lane.wait()?;
        if let Some(extent) = chunk.whole(true).filter(|_| is_distinct) {
            packed.resize(CHUNK, 0u8);
            let elements = packed.as_mut_ptr().cast();
            source(chunk.first, elements, chunk.size)?;
            // SAFETY: the extent has as many bytes as the elements, which are not more than CHUNK, the size of both.
            unsafe { scatter(&chunk.pieces, extent.start, lane.chunk, elements) };
            copy(&current, lane, pointer, &Piece::of(&extent), true)?;
        } else {
            source(chunk.first, lane.chunk, chunk.size)?;
            copy_all(&current, lane, pointer, &chunk, true)?;
        }
    }
    lanes.iter().try_for_each(Lane::wait)
}

/// Submits the copies of a chunk's pieces.
fn copy_all(
    current: &Current,
    lane: &Lane<'_>,
    pointer: DevicePointer,
    chunk: &Chunk,
    to_device: bool,
) -> Result<(), Error> {
    chunk
        .pieces
        .iter()
        .try_for_each(|piece| copy(current, lane, pointer, piece, to_device))
}

/// Submits the copy of a piece between the array at `pointer` and the chunk of `lane`.
fn copy(
    current: &Current,
    lane: &Lane<'_>,
    pointer: DevicePointer,
    piece: &Piece,
    to_device: bool,
) -> Result<(), Error> {
    let driver = current.driver;
    let device = pointer.wrapping_add_signed(piece.start as i64);
    let host = lane.chunk.wrapping_byte_add(piece.at);
    // SAFETY: the caller guarantees the validity of the elements, which `Current::enter` has found in one allocation. The
    // chunk has room for the piece, and lives until the stream is synchronised.
    unsafe {
        if piece.rows > 1 {
            let rows = rows(device, host, piece, to_device);
            let code = (driver.copy_rows)(&raw const rows, lane.stream);
            driver.check("cuMemcpy2DAsync", code)
        } else if to_device {
            let code = (driver.copy_to_device)(device, host, piece.width, lane.stream);
            driver.check("cuMemcpyHtoDAsync", code)
        } else {
            let code = (driver.copy_to_host)(host, device, piece.width, lane.stream);
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
