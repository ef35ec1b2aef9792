//! The reservations of the process, and what is mapped in them.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use level_zero_sys as sys;
use rangemap::{RangeMap, RangeSet};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};
use zeusm_process::{AtFork, ForkLock, OwnFile};

use super::pages::{check_size, pages};
use super::physical::PhysicalMemory;
use crate::abi::result::{ZeResult, ensure};
use crate::abi::strictness::is_strict;
use crate::context::Context;
use crate::memory::{Export, PAGE};

const INVALID: sys::ze_result_t = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;

/// How mapped pages may be accessed.
type Attribute = sys::ze_memory_access_attribute_t;

/// Reservations by the address of their first byte.
type Reservations = BTreeMap<usize, Reservation>;

static RESERVATIONS: ForkLock<Reservations> = ForkLock::new(BTreeMap::new());

struct Reservation {
    length: usize,
    /// What each call has mapped, by the address of the first byte.
    mapped: BTreeMap<usize, Mapped>,
    /// The pages that are mapped.
    filled: RangeSet<usize>,
    /// The attributes of all pages: of those that are not mapped, none.
    access: RangeMap<usize, Attribute>,
}

/// The pages that one call has mapped.
struct Mapped {
    physical: Arc<PhysicalMemory>,
    /// The id of the context that has mapped them.
    context: u64,
    /// The offset of the first byte in the physical memory.
    offset: usize,
    length: usize,
    /// Its export, with the descriptor.
    exported: Option<(Export, OwnFile)>,
}

/// `zeVirtualMemReserve`; if the wanted range is not free, the system chooses another one.
pub fn reserve(
    _: Arc<Context>,
    wanted: *const c_void,
    length: usize,
    pointer: &mut *mut c_void,
) -> ZeResult {
    check_size(length)?;
    let mut reservations = RESERVATIONS.lock();
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: without `FIXED`, the wanted address is a hint, and the mapping replaces no other one.
    *pointer = unsafe { mmap_anonymous(wanted.cast_mut(), length, ProtFlags::empty(), flags) }
        .map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    let address = *pointer as usize;
    let reservation = Reservation {
        length,
        mapped: BTreeMap::new(),
        filled: RangeSet::new(),
        access: RangeMap::from_iter([(
            address..address + length,
            sys::ZE_MEMORY_ACCESS_ATTRIBUTE_NONE,
        )]),
    };
    reservations.insert(address, reservation);
    Ok(())
}

/// `zeVirtualMemFree`, of a whole reservation in which nothing is mapped.
pub fn free(_: Arc<Context>, pointer: *const c_void, size: usize) -> ZeResult {
    let pages = pages(pointer, size)?;
    let mut reservations = RESERVATIONS.lock();
    let found = reservations.get(&pages.start).ok_or(INVALID)?;
    ensure(
        found.length == pages.len() && found.mapped.is_empty(),
        INVALID,
    )?;
    reservations.remove(&pages.start);
    // SAFETY: the reservation owned the pages, and nothing is mapped there.
    unsafe { munmap(pages.start as *mut c_void, pages.len()) }.map_err(|_| INVALID)
}

/// The protection of pages with an attribute.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ENUMERATION` for a number that is none.
fn protection(access: Attribute) -> ZeResult<ProtFlags> {
    match access {
        sys::ZE_MEMORY_ACCESS_ATTRIBUTE_NONE => Ok(ProtFlags::empty()),
        sys::ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE => Ok(ProtFlags::READ | ProtFlags::WRITE),
        sys::ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY => Ok(ProtFlags::READ),
        _ => Err(sys::ZE_RESULT_ERROR_INVALID_ENUMERATION),
    }
}

/// `zeVirtualMemMap`, inside a reservation, where nothing is mapped.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ENUMERATION` for an access that is none; `ZE_RESULT_ERROR_INVALID_ARGUMENT` for pages outside of a
/// reservation or mapped already, `ZE_RESULT_ERROR_INVALID_SIZE` for more than the memory has.
pub fn map(
    context: Arc<Context>,
    pointer: *const c_void,
    size: usize,
    physical: Arc<PhysicalMemory>,
    offset: usize,
    access: Attribute,
) -> ZeResult {
    let pages = pages(pointer, size)?;
    ensure(
        offset.is_multiple_of(PAGE),
        sys::ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT,
    )?;
    let fits = offset
        .checked_add(pages.len())
        .is_some_and(|end| end <= physical.size);
    ensure(fits, sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
    let mut reservations = RESERVATIONS.lock();
    let reservation = reservation(&mut reservations, &pages)?;
    ensure(!reservation.filled.overlaps(&pages), INVALID)?;
    let (file, protection) = (physical.file()?, protection(access)?);
    // SAFETY: the reservation owns the pages, and nothing is mapped there.
    let result = unsafe {
        mmap(
            pages.start as *mut c_void,
            pages.len(),
            protection,
            MapFlags::SHARED | MapFlags::FIXED,
            file,
            offset as u64,
        )
    };
    result.map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    let made = Mapped {
        physical,
        context: context.id,
        offset,
        length: pages.len(),
        exported: None,
    };
    reservation.mapped.insert(pages.start, made);
    reservation.filled.insert(pages.clone());
    reservation.access.insert(pages, access);
    Ok(())
}

/// What one call of the context, or of any, has mapped, of which `address` is a part, and its physical memory.
pub fn find(context: Option<u64>, address: usize) -> Option<(Range<usize>, Arc<PhysicalMemory>)> {
    let reservations = RESERVATIONS.lock();
    let (_, reservation) = reservations.range(..=address).next_back()?;
    let (&start, mapped) = reservation.mapped.range(..=address).next_back()?;
    let is_its = context.is_none_or(|context| mapped.context == context);
    let is_found = is_its && address - start < mapped.length;
    is_found.then(|| (start..start + mapped.length, Arc::clone(&mapped.physical)))
}

/// Exports what one call has mapped at `address`. The export lives until that is unmapped.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for any other address, and those of [`PhysicalMemory::export_part`].
pub fn export(address: usize) -> ZeResult<Export> {
    let mut reservations = RESERVATIONS.lock();
    let found = reservations.range_mut(..=address).next_back();
    let mapped = found.and_then(|(_, reservation)| reservation.mapped.get_mut(&address));
    let mapped = mapped.ok_or(INVALID)?;
    if let Some((export, file)) = &mapped.exported
        && file.get().is_some()
    {
        return Ok(*export);
    }
    let exported = mapped.physical.export_part(mapped.offset, mapped.length)?;
    Ok(mapped.exported.insert(exported).0)
}

/// `zeVirtualMemUnmap`, of what one or more calls have mapped, as a whole. The pages stay reserved. Pages of a reservation that are
/// not mapped are an error only if the runtime is strict.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for any other pages.
pub fn unmap(_: Arc<Context>, pointer: *const c_void, size: usize) -> ZeResult {
    let pages = pages(pointer, size)?;
    let mut reservations = RESERVATIONS.lock();
    let reservation = reservation(&mut reservations, &pages)?;
    if !is_strict() && !reservation.filled.overlaps(&pages) {
        return Ok(());
    }
    let mapped = &mut reservation.mapped;
    let last = mapped.range(..pages.end).next_back();
    let is_whole = mapped.contains_key(&pages.start)
        && last.is_some_and(|(start, last)| start + last.length == pages.end);
    ensure(is_whole && is_filled(&reservation.filled, &pages), INVALID)?;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    let address = pages.start as *mut c_void;
    // SAFETY: the reservation owns the pages; the caller of the API does not use them any more.
    unsafe { mmap_anonymous(address, pages.len(), ProtFlags::empty(), flags) }
        .map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    mapped.retain(|start, _| !pages.contains(start));
    reservation.filled.remove(pages.clone());
    reservation
        .access
        .insert(pages, sys::ZE_MEMORY_ACCESS_ATTRIBUTE_NONE);
    Ok(())
}

/// `zeVirtualMemSetAccessAttribute`, of pages that are mapped, by however many calls. It holds for the host as for the devices.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for any other pages.
pub fn set_access(
    _: Arc<Context>,
    pointer: *const c_void,
    size: usize,
    access: Attribute,
) -> ZeResult {
    let pages = pages(pointer, size)?;
    let mut reservations = RESERVATIONS.lock();
    let reservation = reservation(&mut reservations, &pages)?;
    ensure(is_filled(&reservation.filled, &pages), INVALID)?;
    let protection = MprotectFlags::from_bits_retain(protection(access)?.bits());
    // SAFETY: the pages are mapped in a reservation; the caller of the API asks for their protection.
    unsafe { mprotect(pages.start as *mut c_void, pages.len(), protection) }
        .map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    reservation.access.insert(pages, access);
    Ok(())
}

/// `zeVirtualMemGetAccessAttribute`: the attribute of the first page, and how many bytes from there on have the same one. Pages without
/// memory have none.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for pages outside of a reservation.
pub fn access(
    _: Arc<Context>,
    pointer: *const c_void,
    size: usize,
    access: &mut Attribute,
    out_size: &mut usize,
) -> ZeResult {
    let pages = pages(pointer, size)?;
    let mut reservations = RESERVATIONS.lock();
    let found = &reservation(&mut reservations, &pages)?.access;
    let (same, found) = found.get_key_value(&pages.start).ok_or(INVALID)?;
    (*access, *out_size) = (*found, same.end.min(pages.end) - pages.start);
    Ok(())
}

/// Whether all of `pages` are mapped.
fn is_filled(filled: &RangeSet<usize>, pages: &Range<usize>) -> bool {
    filled.gaps(pages).next().is_none()
}

/// The reservation that contains `pages`.
fn reservation<'a>(
    reservations: &'a mut Reservations,
    pages: &Range<usize>,
) -> ZeResult<&'a mut Reservation> {
    let found = reservations.range_mut(..=pages.start).next_back();
    let (start, found) = found.ok_or(INVALID)?;
    ensure(pages.end <= start + found.length, INVALID)?;
    Ok(found)
}

/// The table's lock, which a fork holds so that it copies a consistent state.
pub fn at_fork() -> &'static dyn AtFork {
    &RESERVATIONS
}
