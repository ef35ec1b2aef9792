//! The memory of this process that other processes may map.
//!
//! A block is private at first, and in a memory file once an allocation in it is exported. The file begins with the
//! block's bytes; behind them it has room for one [`Record`] for each place where an allocation can begin.
//!
//! A child of a fork gets a private copy of every such block, at the same addresses, as it does of all other memory:
//! an allocation that was exported may have neighbours in its block, and whoever forks shares nothing by that. What
//! the child means to share it opens through a handle.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};

use super::LEAST_ALIGNMENT;
use super::block::Block;
use super::mapping::Mapping;
use super::record::Record;
use super::refusal::Refusal;
use super::share::{can_move, extents, memory_file, move_to};
use crate::abi::result::Answer;
use crate::memory::ledger;
use crate::process;
use crate::process::sync::{Held, Mutex, MutexGuard};

/// What another process finds an allocation through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// A descriptor of the block's file that is the allocation's own: its position is that of the record, so that it
    /// tells all by itself. It is open until the allocation is freed.
    pub descriptor: i32,
    /// The file's inode.
    pub inode: u64,
    /// Where in the file the record is.
    pub place: u64,
}

struct Exports {
    /// The blocks that are in a file, by address.
    blocks: BTreeMap<usize, InFile>,
    /// The exported allocations by id, and by the generation of the process that exported them: a child keeps its
    /// parent's descriptors, so that a handle of the parent's can be opened there.
    records: BTreeMap<(u64, u32), (File, Export)>,
}

/// A block that is in a file.
struct InFile {
    file: File,
    length: usize,
}

static EXPORTS: Mutex<Exports> = Mutex::new(Exports {
    blocks: BTreeMap::new(),
    records: BTreeMap::new(),
});

/// Lets other processes map the allocation that `record` describes, which is in `block`.
///
/// # Errors
/// What [`Refusal::answer`] makes of the system's refusal.
pub fn export(block: &Block, record: &Record) -> Answer<Export> {
    let mut all = EXPORTS.lock();
    let key = (record.id, process::generation());
    if let Some((_, export)) = all.records.get(&key) {
        return Ok(*export);
    }
    let (file, export) = all
        .publish(block, record)
        .map_err(|refusal| refusal.answer())?;
    all.records.insert(key, (file, export));
    Ok(export)
}

impl Exports {
    fn publish(&mut self, block: &Block, record: &Record) -> Result<(File, Export), Refusal> {
        let shared = self.share(block)?;
        let place = place_of(shared.length as u64, record.offset);
        shared
            .file
            .write_all_at(&record.encode(), place)
            .map_err(Refusal::of("pwrite to a memory file"))?;
        let file = reopen(&shared.file, place)?;
        let about = file.metadata().map_err(Refusal::of("fstat"))?;
        let export = Export {
            descriptor: file.as_raw_fd(),
            inode: about.ino(),
            place,
        };
        Ok((file, export))
    }

    /// The file that the block's bytes are in, from now on at the latest.
    fn share(&mut self, block: &Block) -> Result<&InFile, Refusal> {
        block.close();
        if !self.blocks.contains_key(&block.address()) {
            can_move()?;
            let file = memory_file(file_length(block.mapping().length()))?;
            move_to(block.mapping(), &file)?;
            self.insert(block, file);
        }
        // It has just been looked for.
        self.blocks
            .get(&block.address())
            .ok_or(Refusal::new("finding the memory file", libc::ENOENT))
    }

    fn insert(&mut self, block: &Block, file: File) {
        let length = block.mapping().length();
        self.blocks.insert(block.address(), InFile { file, length });
        block.note_file();
    }
}

/// Memory that cannot be moved into a file later is put in one while it is new. It stays private, and cannot be exported,
/// when there is no file to be had or the program's descriptors would run short.
pub fn share_from_the_beginning(block: &Block) {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = most.map_or(usize::MAX, |most| most as usize / 4);
    let mut all = EXPORTS.lock();
    if all.blocks.len() < most
        && let Ok(file) = memory_file(file_length(block.mapping().length()))
        && block.mapping().replace(&file).is_ok()
    {
        all.insert(block, file);
    }
}

/// Takes back what was exported of an allocation: its record is struck out, its descriptor closed. A child strikes out
/// nothing of its parent's.
pub fn strike(id: u64) {
    let mut all = EXPORTS.lock();
    let of_it: Vec<_> = all
        .records
        .extract_if((id, 0)..=(id, u32::MAX), |_, _| true)
        .collect();
    drop(all);
    for ((_, generation), (file, export)) in of_it {
        if generation == process::generation() {
            // The file has room there, so this cannot fail.
            let _ = file.write_all_at(&[0; Record::LENGTH], export.place);
        }
    }
}

/// Closes the file of a block that is about to be unmapped.
pub fn forget(address: usize) {
    let block = EXPORTS.lock().blocks.remove(&address);
    drop(block);
}

/// Where the record is of an allocation at `offset` of a block of `length` bytes.
fn place_of(length: u64, offset: u64) -> u64 {
    length + offset / LEAST_ALIGNMENT as u64 * Record::LENGTH as u64
}

/// The length of the file of a block of `length` bytes: the bytes, and a record for each place.
fn file_length(length: usize) -> u64 {
    place_of(length as u64, length as u64)
}

/// The bytes of the block that a file of `file_length` bytes is of; `None` when it is of none.
fn block_length(file_length: u64) -> Option<u64> {
    let one = LEAST_ALIGNMENT as u64 + Record::LENGTH as u64;
    let length = file_length / one * LEAST_ALIGNMENT as u64;
    (place_of(length, length) == file_length).then_some(length)
}

/// The record at `place` of a file, as its exporter wrote it; `Ok(None)` when it has been struck out.
///
/// A record counts only where the exporter writes one, behind the block's bytes and at the place that belongs to what it
/// describes: what a program has in its memory cannot pass for one.
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
    (inside && place_of(length, record.offset) == place).then_some(Some(record))
}

/// Another descriptor of `file` with a position of its own.
pub fn reopen(file: &File, position: u64) -> Result<File, Refusal> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut file = File::options()
        .read(true)
        .write(true)
        .open(path)
        .map_err(Refusal::of("open of /proc/self/fd"))?;
    file.seek(SeekFrom::Start(position))
        .map_err(Refusal::of("lseek"))?;
    Ok(file)
}

/// The exports' lock and, by address, the copies that a child is to have.
type AtFork = (MutexGuard<'static, Exports>, BTreeMap<usize, Mapping>);

static HELD: Held<AtFork> = Held::new();

/// Keeps every other thread from exporting until this one calls [`release`] or [`inherit`], and copies all blocks that
/// are in files.
pub fn hold() {
    let all = EXPORTS.lock();
    let copy = |(address, block): (&usize, &InFile)| Some((*address, block.copy()?));
    let copies = all.blocks.iter().filter_map(copy).collect();
    // SAFETY: `HELD` goes with the exports' lock.
    unsafe { HELD.put((all, copies)) };
}

/// Ends what [`hold`] began, in the parent.
pub fn release() {
    // SAFETY: this thread took the lock in `hold`.
    let held = unsafe { HELD.take() };
    if let Some((all, copies)) = held {
        drop(all);
        drop(copies);
    }
}

/// Ends what [`hold`] began, in the child: puts the copies in the place of the blocks.
pub fn inherit() {
    // SAFETY: this thread is a copy of the one that took the lock in `hold`.
    let Some((mut all, mut copies)) = (unsafe { HELD.take() }) else {
        return;
    };
    for (address, block) in mem::take(&mut all.blocks) {
        let copy = copies.remove(&address);
        let put = copy.is_some_and(|copy| copy.put_at(address).is_ok());
        if !put {
            // Without memory for a copy the child's writes are still its own; it may see some of its parent's.
            let _ = Mapping::replace_privately(address, block.length, &block.file);
        }
    }
}

impl InFile {
    /// A private copy of the block; `None` when the machine has no memory for one.
    fn copy(&self) -> Option<Mapping> {
        let extents = extents(&self.file, self.length as u64);
        let bytes = extents.iter().map(|extent| extent.end - extent.start).sum();
        if !ledger::has_room_for(bytes) {
            return None;
        }
        let copy = Mapping::anonymous(self.length, super::PAGE)?;
        for extent in extents {
            let length = (extent.end - extent.start) as usize;
            // SAFETY: the mapping is ours alone, and the extent lies within it.
            let place = unsafe {
                std::slice::from_raw_parts_mut(
                    (copy.address() + extent.start as usize) as *mut u8,
                    length,
                )
            };
            self.file.read_exact_at(place, extent.start).ok()?;
        }
        Some(copy)
    }
}
