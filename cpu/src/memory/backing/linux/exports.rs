//! Memory of this process that is in memory files, so that other processes may map it.
//!
//! The pages of an allocation are private at first, and move into a memory file of their own when the allocation is exported.
//! The file holds the pages, followed by a [`Record`] that describes the allocation. One descriptor of it stays open until the
//! allocation is freed: it is the one in handles.
//!
//! A fork's child gets private copies of these pages at the same addresses, as it does of all other memory. It shares memory by
//! opening a handle.

use std::collections::BTreeMap;
use std::fs::File;
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use level_zero_sys as sys;
use zeusm_process::{AtFork, ForkLock, OwnFile, generation};

use super::error::ShareError;
use super::mapping::{Mapping, replace_privately};
use super::memory_file::{own_memory_file, reopen};
use super::room::has_room_for;
use super::share::{can_move, extents, move_to};
use crate::abi::result::ZeResult;
use crate::check;
use crate::memory::backing::pages::Pages;
use crate::memory::backing::record::Record;
use crate::system::PAGE;

/// The types of external memory that can be exported and imported.
pub const TYPES: u32 = sys::ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD.0;

/// How another process finds exported memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// A descriptor of the memory's file, open until the memory is freed.
    pub descriptor: i32,
    /// The file's inode.
    pub inode: u64,
    /// The position of the descriptor: 0, or which part of the file the memory is.
    pub position: u64,
    /// The id in the file's record.
    pub id: u64,
}

impl Export {
    /// The export of what `file`, at this position, shows; `None` if the program has closed it.
    pub fn of(file: &OwnFile, position: u64, id: u64) -> Option<Self> {
        Some(Self {
            descriptor: file.get()?.as_raw_fd(),
            inode: file.file().inode,
            position,
            id,
        })
    }
}

/// The error of an export from a file that is closed.
const CLOSED: ShareError = ShareError::new(
    "finding a memory file, which the program has closed",
    libc::EBADF,
);

/// The address of the first page, and the generation of the process that moved the pages: a child keeps its parent's
/// descriptors, so that a handle of the parent's can be opened there.
type Key = (usize, u32);

struct Exports {
    files: BTreeMap<Key, InFile>,
    /// In a fork, what the child needs copies of, and the copies.
    copies: Vec<(Key, Option<Mapping>)>,
}

/// Pages that are in a file.
struct InFile {
    file: OwnFile,
    length: usize,
}

static EXPORTS: ForkLock<Exports> = ForkLock::new(Exports {
    files: BTreeMap::new(),
    copies: Vec::new(),
});

/// Whether the pages of an owner are, or were, in a file. The owner [ends](Self::end) that before the pages have another use.
#[derive(Debug, Default)]
pub struct InFiles(AtomicBool);

impl InFiles {
    /// Exports the owner's pages, with the record that describes the allocation there.
    ///
    /// # Errors
    /// The result code of [`ShareError::report`].
    pub fn export(&self, pages: Pages<'_>, record: &Record) -> ZeResult<Export> {
        let mut all = EXPORTS.lock();
        let mut export = || {
            let file = self.file(&mut all, pages)?;
            let open = file.get().ok_or(CLOSED)?;
            write_record(open, pages.length(), record)?;
            Export::of(file, 0, record.id).ok_or(CLOSED)
        };
        export().map_err(ShareError::report)
    }

    /// The file of the owner's pages, which move into it if they are in none.
    fn file<'a>(&self, all: &'a mut Exports, pages: Pages<'_>) -> Result<&'a OwnFile, ShareError> {
        let key = (pages.address(), generation());
        if !all.files.contains_key(&key) {
            can_move()?;
            let own = own_memory_file(file_length(pages.length()))?;
            move_to(pages, own.get().ok_or(CLOSED)?)?;
            self.insert(all, pages, own);
        }
        // It was found or inserted above.
        all.files.get(&key).map(|it| &it.file).ok_or(CLOSED)
    }

    fn insert(&self, all: &mut Exports, pages: Pages<'_>, file: OwnFile) {
        let length = pages.length();
        let key = (pages.address(), generation());
        all.files.insert(key, InFile { file, length });
        self.0.store(true, Ordering::Relaxed);
    }

    /// Puts new pages, which no one uses, into a file where the system does not allow moving them later; returns whether it did.
    pub fn begin(&self, pages: Pages<'_>) -> bool {
        can_move().is_err() && self.put(pages)
    }

    /// Puts new pages, which no one uses, into a file. They stay private and cannot be exported when no file can be created or
    /// the program's descriptors would run short.
    pub(in crate::memory::backing) fn put(&self, pages: Pages<'_>) -> bool {
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let most = most.map_or(usize::MAX, |most| most as usize / 4);
        let mut all = EXPORTS.lock();
        if all.files.len() < most
            && let Ok(own) = own_memory_file(file_length(pages.length()))
            && let Some(file) = own.get()
            // SAFETY: no one uses the pages.
            && unsafe { pages.replace(file) }.is_ok()
        {
            self.insert(&mut all, pages, own);
            return true;
        }
        false
    }

    /// Strikes out the record and closes the descriptor of pages that no one uses any more; returns whether they are, or were,
    /// in a file. A child does not strike out its parent's records.
    pub fn end(&self, address: usize) -> bool {
        if !self.0.swap(false, Ordering::Relaxed) {
            return false;
        }
        let mut all = EXPORTS.lock();
        let keys = (address, 0)..=(address, u32::MAX);
        let ended: Vec<_> = all.files.extract_if(keys, |_, _| true).collect();
        drop(all);
        for ((_, made_in), InFile { file, length }) in ended {
            if made_in == generation()
                && let Some(file) = file.get()
            {
                // The file has room there, so the write cannot fail.
                let _ = file.write_all_at(&[0; Record::LENGTH], length as u64);
            }
        }
        true
    }
}

/// Whether it is a file of this process's memory.
pub fn has(file: &File) -> bool {
    let inode = file.metadata().map_or(0, |about| about.ino());
    let all = EXPORTS.lock();
    let mut own = all
        .files
        .iter()
        .filter(|((_, made_in), _)| *made_in == generation());
    own.any(|(_, it)| it.file.file().inode == inode)
}

/// Writes the record behind `length` bytes of pages. What is between it and the allocation becomes 0, as pages may have the bytes
/// of an allocation that had them before.
///
/// # Errors
/// The system's.
pub fn write_record(file: &File, length: usize, record: &Record) -> Result<(), ShareError> {
    let end = record.offset + record.size;
    let mut bytes = vec![0; length.saturating_sub(end as usize)];
    bytes.extend(record.encode());
    file.write_all_at(&bytes, end)
        .map_err(ShareError::of("pwrite to a memory file"))
}

/// The length of a file of `length` bytes of pages, with its record, which takes no memory until it is written.
pub fn file_length(length: usize) -> u64 {
    (length + Record::LENGTH) as u64
}

/// The record of a memory file; `Some(None)` when the memory was freed, `None` when there is none.
///
/// The record is behind the pages: a program cannot forge one by writing to its allocations.
pub fn read_record(file: &File) -> Option<Option<Record>> {
    let length = file.metadata().ok()?.len();
    let length = length.checked_sub(Record::LENGTH as u64)?;
    let mut bytes = [0; Record::LENGTH];
    let is_of_pages = length > 0 && length.is_multiple_of(PAGE as u64);
    is_of_pages
        .then(|| file.read_exact_at(&mut bytes, length).ok())
        .flatten()?;
    if bytes == [0; Record::LENGTH] {
        return Some(None);
    }
    let record = Record::decode(&bytes)?;
    let end = record.offset.checked_add(record.size)?;
    (record.size > 0 && end <= length).then_some(Some(record))
}

/// The table, which a fork holds.
struct AtExports;

impl AtFork for AtExports {
    /// Copies all pages that are in files.
    fn prepare(&'static self) {
        EXPORTS.hold(|all| {
            let own = all.files.iter();
            let own = own.filter(|((_, made_in), _)| *made_in == generation());
            all.copies = own.map(|(key, it)| (*key, it.copy(key.0))).collect();
        });
    }

    fn parent(&'static self) {
        if let Some(mut all) = EXPORTS.release() {
            let copies = mem::take(&mut all.copies);
            drop(all);
            drop(copies);
        }
    }

    /// Replaces the pages by the copies.
    fn child(&'static self) {
        let Some(mut all) = EXPORTS.release() else {
            return;
        };
        for (key, copy) in mem::take(&mut all.copies) {
            // SAFETY: the owner of the pages has not ended their listing, and the copy has their bytes.
            let put = copy.is_some_and(|copy| unsafe { copy.move_over(key.0) }.is_ok());
            if !put
                && let Some(it) = all.files.get(&key)
                && let Some(file) = it.file.get()
            {
                // Without a copy the child's writes are still private, but it may see later writes of its parent.
                // SAFETY: as above; the file has the pages' bytes.
                let _ = unsafe { replace_privately(key.0, it.length, file) };
            }
        }
    }
}

/// The table's lock, and copies of the pages for the child.
pub fn at_fork() -> &'static dyn AtFork {
    &AtExports
}

impl InFile {
    /// A private copy of the pages at `address`; `None` when the machine has no memory for one.
    fn copy(&self, address: usize) -> Option<Mapping> {
        // The search for data moves the position, which importers read.
        let Some(file) = self.file.get().and_then(|file| reopen(file, 0).ok()) else {
            return self.copy_mapped(address);
        };
        let extents = extents(&file, self.length as u64);
        let bytes = extents.iter().map(|extent| extent.end - extent.start).sum();
        if !has_room_for(bytes) {
            return None;
        }
        let copy = Mapping::anonymous(self.length, PAGE)?;
        for extent in extents {
            let length = (extent.end - extent.start) as usize;
            // SAFETY: no other code has the mapping's address, and the extent lies within it.
            let place = unsafe {
                std::slice::from_raw_parts_mut(
                    (copy.address() + extent.start as usize) as *mut u8,
                    length,
                )
            };
            file.read_exact_at(place, extent.start).ok()?;
        }
        Some(copy)
    }

    /// As [`copy`](Self::copy), when the file cannot be read: of all bytes, unless the checker may have protected them.
    fn copy_mapped(&self, address: usize) -> Option<Mapping> {
        if check::is_on() || !has_room_for(self.length as u64) {
            return None;
        }
        let copy = Mapping::anonymous(self.length, PAGE)?;
        let (from, to) = (address as *const u8, copy.address() as *mut u8);
        // SAFETY: the pages are mapped while they are in the table, which is locked, and no other code has the copy's address.
        unsafe { ptr::copy_nonoverlapping(from, to, self.length) };
        Some(copy)
    }
}
