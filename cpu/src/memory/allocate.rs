//! Allocating new memory, and importing another process's.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use level_zero_sys as sys;

use super::allocation::{Allocation, Request, next_id};
use super::backing::{Backing, Record, exports, is_accessible};
use super::share::Reserved;
use super::{accounting, map};
use crate::check::{self, Properties};
use crate::system::PAGE;

/// Allocates memory and returns the address of its first byte, or `None` when the machine has not enough.
pub fn allocate(request: &Request) -> Option<usize> {
    // Every allocation has pages of its own.
    let bytes = request.size.checked_next_multiple_of(PAGE)?;
    let reserved = accounting::reserve(bytes, request.share)?;
    let backing = Backing::new(request.size, request.alignment, request.exportable)?;
    insert(backing, Some(reserved), request, None)
}

/// Maps another process's allocation, which `record` describes and `file` holds, for the device with this handle. Returns
/// the address of its first byte, or `None` when the system refuses.
pub fn import(file: &File, record: &Record, context: u64, device: u64) -> Option<usize> {
    let backing = Backing::import(file, record)?;
    let request = Request {
        size: record.size as usize,
        alignment: 0,
        kind: record.kind,
        context,
        host_access: true,
        device: if record.kind == sys::ZE_MEMORY_TYPE_HOST {
            0
        } else {
            device
        },
        share: None,
        exportable: false,
    };
    let exported_as = (check::is_on() && !exports::has(file)).then_some(record.id);
    insert(backing, None, &request, exported_as)
}

/// Maps the beginning of a file that is not of this runtime as the memory that `request` describes. Returns the address of
/// its first byte, or `None` when the file is shorter or the system refuses.
pub fn import_file(file: &File, request: &Request) -> Option<usize> {
    let backing = Backing::external(file, request.size, request.alignment)?;
    insert(backing, None, request, None)
}

/// Takes pages of the program, which it keeps mapped until they are freed, as the memory that `request` describes. Returns the
/// address of the first byte, or `None` when a page cannot be read, or not be written to where that is asked for, or is one of an
/// allocation.
pub fn adopt(pages: Range<usize>, to_write: bool, request: &Request) -> Option<usize> {
    if !is_accessible(&pages, to_write) || map::overlaps(&pages) {
        return None;
    }
    insert(Backing::of_program(pages), None, request, None)
}

/// Enters the allocation, which has that id in the process that has exported it; `None` when the checker cannot watch it.
fn insert(
    mut backing: Backing,
    reserved: Option<Reserved>,
    request: &Request,
    exported_as: Option<u64>,
) -> Option<usize> {
    let id = next_id();
    let is_watched = backing.watch(|base, whole, pages| Properties {
        id,
        base,
        size: request.size,
        kind: match request.kind {
            sys::ZE_MEMORY_TYPE_DEVICE => "device",
            sys::ZE_MEMORY_TYPE_HOST => "host",
            _ => "shared",
        },
        context: request.context,
        whole,
        pages,
        host: request.host_access,
        exported_as,
    });
    if !is_watched {
        return None;
    }
    let allocation = Allocation::new(backing, reserved, request, id);
    let address = allocation.base();
    map::insert(Arc::new(allocation));
    Some(address)
}
