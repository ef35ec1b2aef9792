//! The reservations of the process, and what is mapped in them.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

use level_zero_sys as sys;
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};
use zeusm_process::{AtFork, ForkLock, Mutex, OwnFile};

use super::access::Access;
use super::pages::Pages;
use super::physical::PhysicalMemory;
use crate::abi::result::{ZeResult, ensure};
use crate::memory::Export;
use crate::system::PAGE;

const INVALID: sys::ze_result_t = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;

/// Reservations by the address of their first byte.
type Reservations = BTreeMap<usize, Reservation>;

static RESERVATIONS: ForkLock<Mutex<Reservations>> = ForkLock::new(Mutex::new(BTreeMap::new()));

struct Reservation {
    length: usize,
    /// By the address of the first byte.
    mapped: BTreeMap<usize, Mapped>,
}

/// The pages that one call has mapped.
struct Mapped {
    physical: Arc<PhysicalMemory>,
    /// The offset of the first byte in the physical memory.
    offset: usize,
    /// The attribute of each page.
    access: Vec<Access>,
    /// Its export, with the descriptor.
    exported: Option<(Export, OwnFile)>,
}

/// Reserves `length` bytes, at `wanted` if the system has them there. Returns the address.
pub fn reserve(wanted: usize, length: usize) -> Result<usize, Errno> {
    let mut reservations = RESERVATIONS.lock();
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: without `FIXED`, the wanted address is a hint, and the mapping replaces no other one.
    let address =
        unsafe { mmap_anonymous(wanted as *mut c_void, length, ProtFlags::empty(), flags) }?;
    let mapped = BTreeMap::new();
    reservations.insert(address as usize, Reservation { length, mapped });
    Ok(address as usize)
}

/// Ends a reservation.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` if it is not a whole reservation, or if something is mapped there.
pub fn free(pages: Pages) -> ZeResult {
    let mut reservations = RESERVATIONS.lock();
    let found = reservations.get(&pages.address).ok_or(INVALID)?;
    ensure(
        found.length == pages.length && found.mapped.is_empty(),
        INVALID,
    )?;
    reservations.remove(&pages.address);
    // SAFETY: the reservation owned the pages, and nothing is mapped there.
    unsafe { munmap(pages.address as *mut c_void, pages.length) }.map_err(|_| INVALID)
}

/// Maps a part of physical memory.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for pages outside of a reservation or mapped already,
/// `ZE_RESULT_ERROR_INVALID_SIZE` for more than the memory has.
pub fn map(
    pages: Pages,
    physical: &Arc<PhysicalMemory>,
    offset: usize,
    access: Access,
) -> ZeResult {
    let fits = offset
        .checked_add(pages.length)
        .is_some_and(|end| end <= physical.size());
    ensure(fits, sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
    let mut reservations = RESERVATIONS.lock();
    let mapped = &mut reservation(&mut reservations, pages)?.mapped;
    ensure(is_free(mapped, pages), INVALID)?;
    let file = physical.file()?;
    // SAFETY: the reservation owns the pages, and nothing is mapped there.
    let result = unsafe {
        mmap(
            pages.address as *mut c_void,
            pages.length,
            access.protection(),
            MapFlags::SHARED | MapFlags::FIXED,
            file,
            offset as u64,
        )
    };
    result.map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    let made = Mapped {
        physical: Arc::clone(physical),
        offset,
        access: vec![access; pages.length / PAGE],
        exported: None,
    };
    mapped.insert(pages.address, made);
    Ok(())
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
    let exported = mapped
        .physical
        .export_part(mapped.offset, mapped.length())?;
    Ok(mapped.exported.insert(exported).0)
}

/// Whether nothing is mapped in `pages`.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for pages outside of a reservation.
pub fn is_unmapped(pages: Pages) -> ZeResult<bool> {
    let mut reservations = RESERVATIONS.lock();
    let mapped = &reservation(&mut reservations, pages)?.mapped;
    Ok(is_free(mapped, pages))
}

/// Whether none of what is mapped overlaps with `pages`.
fn is_free(mapped: &BTreeMap<usize, Mapped>, pages: Pages) -> bool {
    let before = mapped.range(..pages.end()).next_back();
    before.is_none_or(|(start, before)| start + before.length() <= pages.address)
}

/// Where the mappings begin that `pages` are in, without a gap.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` if a page is not mapped.
fn cover(mapped: &BTreeMap<usize, Mapped>, pages: Pages) -> ZeResult<Vec<usize>> {
    let (first, _) = mapped.range(..=pages.address).next_back().ok_or(INVALID)?;
    let (mut starts, mut end) = (Vec::new(), pages.address);
    for (start, it) in mapped.range(first..&pages.end()) {
        ensure(*start <= end, INVALID)?;
        starts.push(*start);
        end = start + it.length();
    }
    ensure(end >= pages.end(), INVALID)?;
    Ok(starts)
}

/// Unmaps what one or more calls have mapped. The pages stay reserved.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for any other pages.
pub fn unmap(pages: Pages) -> ZeResult {
    let mut reservations = RESERVATIONS.lock();
    let mapped = &mut reservation(&mut reservations, pages)?.mapped;
    let starts = cover(mapped, pages)?;
    let lengths = starts.iter().filter_map(|start| mapped.get(start));
    let length: usize = lengths.map(Mapped::length).sum();
    ensure(
        starts.first() == Some(&pages.address) && length == pages.length,
        INVALID,
    )?;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    let address = pages.address as *mut c_void;
    // SAFETY: the reservation owns the pages; the caller of the API does not use them any more.
    unsafe { mmap_anonymous(address, pages.length, ProtFlags::empty(), flags) }
        .map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    for start in starts {
        mapped.remove(&start);
    }
    Ok(())
}

/// Sets the attribute of pages that are mapped.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for any other pages.
pub fn set_access(pages: Pages, access: Access) -> ZeResult {
    let mut reservations = RESERVATIONS.lock();
    let mapped = &mut reservation(&mut reservations, pages)?.mapped;
    let starts = cover(mapped, pages)?;
    let protection = MprotectFlags::from_bits_retain(access.protection().bits());
    // SAFETY: the pages are mapped in a reservation; the caller of the API asks for their protection.
    unsafe { mprotect(pages.address as *mut c_void, pages.length, protection) }
        .map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    for start in starts {
        if let Some(it) = mapped.get_mut(&start) {
            let from = pages.address.saturating_sub(start) / PAGE;
            let to = (pages.end() - start).min(it.length()) / PAGE;
            it.access[from..to].fill(access);
        }
    }
    Ok(())
}

/// The attribute of the first page, and how many bytes of `pages` from there on have it. Pages without memory have none.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for pages outside of a reservation.
pub fn access(pages: Pages) -> ZeResult<(Access, usize)> {
    let mut reservations = RESERVATIONS.lock();
    let reservation = reservation(&mut reservations, pages)?;
    let (first, mut end) = reservation.access(pages.address);
    while end < pages.end()
        && let (access, next) = reservation.access(end)
        && access == first
    {
        end = next;
    }
    Ok((first, end.min(pages.end()) - pages.address))
}

/// The reservation that contains `pages`.
fn reservation(reservations: &mut Reservations, pages: Pages) -> ZeResult<&mut Reservation> {
    let found = reservations.range_mut(..=pages.address).next_back();
    let (start, found) = found.ok_or(INVALID)?;
    ensure(pages.end() <= start + found.length, INVALID)?;
    Ok(found)
}

impl Reservation {
    /// The attribute of the page at `address`, and the end of the pages of the same mapping that have it, or of those where
    /// nothing is mapped.
    fn access(&self, address: usize) -> (Access, usize) {
        let found = self.mapped.range(..=address).next_back();
        let pages = found.and_then(|(start, it)| it.access.get((address - start) / PAGE..));
        let Some([first, rest @ ..]) = pages else {
            let next = self.mapped.range(address..).next();
            return (Access::None, next.map_or(usize::MAX, |(start, _)| *start));
        };
        let same = 1 + rest.iter().take_while(|page| *page == first).count();
        (*first, address + same * PAGE)
    }
}

impl Mapped {
    fn length(&self) -> usize {
        self.access.len() * PAGE
    }
}

/// The table's lock, which a fork holds so that it copies a consistent state.
pub fn at_fork() -> &'static dyn AtFork {
    &RESERVATIONS
}
