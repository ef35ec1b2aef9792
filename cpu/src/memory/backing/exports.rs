//! The export table: memory of this process that other processes may map.
//!
//! A block is private at first, and moves into a memory file when an allocation in it is exported. The file holds the
//! block's bytes, followed by one slot for a [`Record`] for each offset at which an allocation can begin. Physical memory is
//! mapped from a page on, by a process and its children, and at several addresses: each export gets one of the page's slots.
//!
//! A fork's child gets a private copy of every such block at the same addresses, as it does of all other memory: an
//! exported allocation may have neighbours in its block, which must not be shared by accident. The child shares memory
//! by opening a handle.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr;

use zeusm_process::{ForkLock, Mutex, OwnFile, generation};

use super::block::Block;
use super::error::ShareError;
use super::mapping::Mapping;
use super::record::Record;
use super::share::{can_move, extents, move_to, own_memory_file};
use super::{MIN_ALIGNMENT, PAGE};
use crate::abi::result::ZeResult;
use crate::check;
use crate::memory::accounting;

/// How another process finds an exported allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// A descriptor of the block's file for this allocation alone. Its position is that of the record, so the
    /// descriptor identifies the allocation. It stays open until the allocation is freed.
    pub descriptor: i32,
    /// The file's inode.
    pub inode: u64,
    /// The record's offset in the file.
    pub record_offset: u64,
}

/// The bytes of the slots of all offsets in a page, which divide a page.
const SLOTS_OF_A_PAGE: u64 = (PAGE / MIN_ALIGNMENT * Record::LENGTH) as u64;

/// The error of an export from a block whose file is closed.
const CLOSED: ShareError = ShareError::new(
    "finding a memory file, which the program has closed",
    libc::EBADF,
);

struct Exports {
    /// The blocks that were moved into a file, by address.
    blocks: BTreeMap<usize, InFile>,
    /// The exported allocations by id, and by the generation of the process that exported them: a child keeps its
    /// parent's descriptors, so that a handle of the parent's can be opened there.
    records: BTreeMap<(u64, u32), (OwnFile, Export)>,
    /// In a fork, the copies of the blocks for the child, by address.
    copies: BTreeMap<usize, Mapping>,
}

/// The file of a block.
struct InFile {
    file: OwnFile,
    length: usize,
}

static EXPORTS: ForkLock<Mutex<Exports>> = ForkLock::new(Mutex::new(Exports {
    blocks: BTreeMap::new(),
    records: BTreeMap::new(),
    copies: BTreeMap::new(),
}));

/// Exports the allocation that `record` describes, which is in `block`.
///
/// # Errors
/// The result code of [`ShareError::report`].
pub fn export(block: &Block, record: &Record) -> ZeResult<Export> {
    EXPORTS.lock().export(record, |all| {
        let shared = all.share(block)?;
        let record_offset = record_offset(shared.length as u64, record.offset);
        let file = shared.file.get().ok_or(CLOSED)?;
        let own = reopen(file, record_offset)?;
        publish(own, record_offset, record)
    })
}

/// Exports the pages that `record` describes of a memory file with `length` bytes of memory, which was made with
/// [`file_length`].
///
/// # Errors
/// As for [`export`].
pub fn export_part(file: &File, length: usize, record: &Record) -> ZeResult<Export> {
    EXPORTS.lock().export(record, |_| {
        let (own, record_offset) = claim(file, length, record)?;
        publish(own, record_offset, record)
    })
}

/// Takes a free slot of the first page that `record` describes; returns a descriptor with the slot as its position, and the
/// slot.
///
/// The descriptor holds a lock of the slot. So a slot is free again when it is revoked, or when the process that took it and
/// its children have ended.
fn claim(file: &File, length: usize, record: &Record) -> Result<(File, u64), ShareError> {
    let first = record_offset(length as u64, record.offset);
    for slot in (first..first + SLOTS_OF_A_PAGE).step_by(Record::LENGTH) {
        let own = reopen(file, slot)?;
        if lock(&own, slot, libc::F_WRLCK).map_err(ShareError::of("fcntl of a memory file"))? {
            return Ok((own, slot));
        }
    }
    let none = ShareError::new("finding a slot for one more handle of a page", libc::ENOSPC);
    Err(none)
}

/// Changes the lock of a record, which belongs to what `file` has open; `false` when another descriptor's holds it.
fn lock(file: &File, record_offset: u64, kind: i32) -> io::Result<bool> {
    let range = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: record_offset as libc::off_t,
        l_len: Record::LENGTH as libc::off_t,
        l_pid: 0,
    };
    // SAFETY: the system reads the structure during the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) };
    if result == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::WouldBlock {
        return Ok(false);
    }
    Err(error)
}

/// Clears a record.
fn clear(file: &File, record_offset: u64) {
    // The file has room there, so the write cannot fail.
    let _ = file.write_all_at(&[0; Record::LENGTH], record_offset);
}

/// Writes the record, and returns the export with its descriptor, `file`.
fn publish(
    file: File,
    record_offset: u64,
    record: &Record,
) -> Result<(OwnFile, Export), ShareError> {
    file.write_all_at(&record.encode(), record_offset)
        .map_err(ShareError::of("pwrite to a memory file"))?;
    let own = OwnFile::new(file).map_err(ShareError::of("fstat"))?;
    let export = Export {
        descriptor: own.get().ok_or(CLOSED)?.as_raw_fd(),
        inode: own.file().inode,
        record_offset,
    };
    Ok((own, export))
}

impl Exports {
    /// The export of this process that `record` has, or the one that `publish` makes.
    fn export(
        &mut self,
        record: &Record,
        publish: impl FnOnce(&mut Self) -> Result<(OwnFile, Export), ShareError>,
    ) -> ZeResult<Export> {
        let key = (record.id, generation());
        if let Some((file, export)) = self.records.get(&key)
            && file.get().is_some()
        {
            return Ok(*export);
        }
        let (file, export) = publish(self).map_err(ShareError::report)?;
        self.records.insert(key, (file, export));
        Ok(export)
    }

    /// Moves the block into a file, if it is not in one, and returns the file.
    fn share(&mut self, block: &Block) -> Result<&InFile, ShareError> {
        block.close();
        if !self.blocks.contains_key(&block.address()) {
            can_move()?;
            let own = own_memory_file(file_length(block.mapping().length()))?;
            move_to(block.mapping(), own.get().ok_or(CLOSED)?)?;
            self.insert(block, own);
        }
        // It was found or inserted above.
        self.blocks
            .get(&block.address())
            .ok_or(ShareError::new("finding the memory file", libc::ENOENT))
    }

    fn insert(&mut self, block: &Block, file: OwnFile) {
        let length = block.mapping().length();
        self.blocks.insert(block.address(), InFile { file, length });
        block.set_in_file();
    }
}

/// Puts a new block into a file, where the system does not allow moving it later. The block stays private and cannot be
/// exported when no file can be created or the program's descriptors would run short.
pub fn share_when_new(block: &Block) {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = most.map_or(usize::MAX, |most| most as usize / 4);
    let mut all = EXPORTS.lock();
    if all.blocks.len() < most
        && let Ok(own) = own_memory_file(file_length(block.mapping().length()))
        && let Some(file) = own.get()
        && block.mapping().replace(file).is_ok()
    {
        all.insert(block, own);
    }
}

/// Revokes the export of an allocation: clears its record and closes its descriptor. A child does not clear its
/// parent's records.
pub fn revoke(id: u64) {
    let mut all = EXPORTS.lock();
    let of_it: Vec<_> = all
        .records
        .extract_if((id, 0)..=(id, u32::MAX), |_, _| true)
        .collect();
    drop(all);
    for ((_, generation), (file, export)) in of_it {
        if generation == zeusm_process::generation()
            && let Some(file) = file.get()
        {
            clear(file, export.record_offset);
            // Children may have the descriptor, too.
            let _ = lock(file, export.record_offset, libc::F_UNLCK);
        }
    }
}

/// Closes the file of a block that is about to be unmapped.
pub fn unregister(address: usize) {
    let block = EXPORTS.lock().blocks.remove(&address);
    drop(block);
}

/// The offset in the file of the record of an allocation at `offset` of a block of `length` bytes.
fn record_offset(length: u64, offset: u64) -> u64 {
    length + offset / MIN_ALIGNMENT as u64 * Record::LENGTH as u64
}

/// The length of the file of a block of `length` bytes, with its records, which take no memory until they are written.
pub fn file_length(length: usize) -> u64 {
    record_offset(length as u64, length as u64)
}

/// The length of the block in a file of `file_length` bytes; `None` when that is no length of a block's file.
fn block_length(file_length: u64) -> Option<u64> {
    let one = MIN_ALIGNMENT as u64 + Record::LENGTH as u64;
    let length = file_length / one * MIN_ALIGNMENT as u64;
    (record_offset(length, length) == file_length).then_some(length)
}

/// The record at `place` of a file; `Some(None)` when its export was revoked, `None` when there is no record at
/// `place`.
///
/// A record is valid only at an offset where the exporter writes it, which is outside of the block's bytes: a program
/// cannot forge one by writing to its allocations.
pub fn read_record(file: &File, place: u64) -> Option<Option<Record>> {
    let length = block_length(file.metadata().ok()?.len())?;
    let is_place = place >= length && (place - length).is_multiple_of(Record::LENGTH as u64);
    let mut bytes = [0; Record::LENGTH];
    is_place
        .then(|| file.read_exact_at(&mut bytes, place).ok())
        .flatten()?;
    if bytes == [0; Record::LENGTH] {
        return Some(None);
    }
    let record = Record::decode(&bytes)?;
    let end = record.offset.checked_add(record.size)?;
    let inside = record.size > 0 && end <= length;
    let first = record_offset(length, record.offset);
    let is_of_page = record.offset.is_multiple_of(PAGE as u64);
    let slots = first..first + if is_of_page { SLOTS_OF_A_PAGE } else { 1 };
    (inside && slots.contains(&place)).then_some(Some(record))
}

/// Another descriptor of `file` with a position of its own.
pub fn reopen(file: &File, position: u64) -> Result<File, ShareError> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut file = File::options()
        .read(true)
        .write(true)
        .open(path)
        .map_err(ShareError::of("open of /proc/self/fd"))?;
    file.seek(SeekFrom::Start(position))
        .map_err(ShareError::of("lseek"))?;
    Ok(file)
}

/// Locks the export table until this thread calls [`parent`] or [`child`], and copies all blocks that are in files.
pub fn prepare() {
    let copy = |(address, block): (&usize, &InFile)| Some((*address, block.copy(*address)?));
    EXPORTS.hold(|all| all.copies = all.blocks.iter().filter_map(copy).collect());
}

/// Undoes [`prepare`], in the parent.
pub fn parent() {
    if let Some(mut all) = EXPORTS.release() {
        let copies = mem::take(&mut all.copies);
        drop(all);
        drop(copies);
    }
}

/// Undoes [`prepare`], in the child: replaces the blocks by the copies.
pub fn child() {
    let Some(mut all) = EXPORTS.release() else {
        return;
    };
    let mut copies = mem::take(&mut all.copies);
    for (address, block) in mem::take(&mut all.blocks) {
        let copy = copies.remove(&address);
        let put = copy.is_some_and(|copy| copy.move_over(address).is_ok());
        if !put && let Some(file) = block.file.get() {
            // Without a copy the child's writes are still private, but it may see later writes of its parent.
            let _ = Mapping::replace_privately(address, block.length, file);
        }
    }
}

impl InFile {
    /// A private copy of the block at `address`; `None` when the machine has no memory for one.
    fn copy(&self, address: usize) -> Option<Mapping> {
        let Some(file) = self.file.get() else {
            return self.copy_mapped(address);
        };
        let extents = extents(file, self.length as u64);
        let bytes = extents.iter().map(|extent| extent.end - extent.start).sum();
        if !accounting::has_room_for(bytes) {
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
        if check::is_on() || !accounting::has_room_for(self.length as u64) {
            return None;
        }
        let copy = Mapping::anonymous(self.length, PAGE)?;
        let (from, to) = (address as *const u8, copy.address() as *mut u8);
        // SAFETY: the block is mapped while it is in the table, which is locked, and no other code has the copy's address.
        unsafe { ptr::copy_nonoverlapping(from, to, self.length) };
        Some(copy)
    }
}
