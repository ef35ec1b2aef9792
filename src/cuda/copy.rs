//! The copies: while the caller uses one chunk, CUDA copies the next.

use std::ffi::c_void;
use std::ptr;

use super::chunks::{CHUNK, Chunk, Piece, chunks};
use super::library::{DEVICE, DevicePointer, HOST, Rows};
use super::session::{Current, Lane};
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
    let mut previous: Option<(&Lane<'_>, Chunk)> = None;
    for (chunk, lane) in chunks(layout).zip(lanes.iter().cycle()) {
        for piece in &chunk.pieces {
            copy(&current, lane, pointer, piece, false)?;
        }
        if let Some((lane, chunk)) = previous.replace((lane, chunk)) {
            lane.wait()?;
            sink(chunk.first, lane.chunk, chunk.size)?;
        }
    }
    if let Some((lane, chunk)) = previous {
        lane.wait()?;
        sink(chunk.first, lane.chunk, chunk.size)?;
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
    let lanes = lanes(&current, layout)?;
    for (chunk, lane) in chunks(layout).zip(lanes.iter().cycle()) {
        lane.wait()?;
        source(chunk.first, lane.chunk, chunk.size)?;
        for piece in &chunk.pieces {
            copy(&current, lane, pointer, piece, true)?;
        }
    }
    lanes.iter().try_for_each(Lane::wait)
}

/// Two lanes, or one where one chunk is enough.
fn lanes<'a>(current: &'a Current, layout: &Layout) -> Result<Vec<Lane<'a>>, Error> {
    let size = layout.nbytes().min(CHUNK);
    let count = layout.nbytes().div_ceil(CHUNK).min(2);
    (0..count).map(|_| Lane::new(current, size)).collect()
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
