//! A block of memory: private at first, in a memory file once another process may map it.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use level_zero_sys as sys;
use parking_lot::Mutex;

use super::mapping::Mapping;
use super::record::Record;
use super::share::{can_move, memory_file, move_to};
use super::{LEAST_ALIGNMENT, PAGE};
use crate::answer::Answer;

/// Bytes that are mapped, freed when the block is dropped.
///
/// The file, when there is one, begins with the bytes; behind them it has room for one [`Record`] for each place where
/// an allocation can begin.
#[derive(Debug)]
pub struct Block {
    mapping: Mapping,
    file: OnceLock<File>,
    /// Held while the file is made.
    making: Mutex<()>,
    exported: AtomicBool,
    /// The process that made it; one forked from that may use it, and changes no record.
    process: u32,
}

/// What other processes map an allocation through.
#[derive(Debug)]
pub struct Export {
    /// The block's file, through a descriptor of the allocation's own: its position is that of the record, so that it
    /// tells all by itself.
    pub file: File,
    /// Where in the file the record is.
    pub place: u64,
}

/// How many blocks have had a file from the beginning and still live.
static FROM_THE_BEGINNING: AtomicUsize = AtomicUsize::new(0);

impl Block {
    /// At least `length` bytes aligned to `alignment`; `None` when there are none.
    pub fn new(length: usize, alignment: usize) -> Option<Self> {
        let block = Self {
            mapping: Mapping::anonymous(length, alignment)?,
            file: OnceLock::new(),
            making: Mutex::new(()),
            exported: AtomicBool::new(false),
            process: std::process::id(),
        };
        if !can_move() {
            block.share_from_the_beginning();
        }
        Some(block)
    }

    /// Memory that cannot be moved into a file later is put in one while it is new. It stays private, and cannot be
    /// exported, when there is no file to be had or the program's descriptors would run short.
    pub(super) fn share_from_the_beginning(&self) {
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let most = most.map_or(usize::MAX, |most| most as usize / 4);
        if FROM_THE_BEGINNING.fetch_add(1, Ordering::Relaxed) < most
            && let Ok(file) = memory_file(self.file_length())
            && self.mapping.replace(&file).is_ok()
        {
            let _ = self.file.set(file);
        } else {
            FROM_THE_BEGINNING.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Lets other processes map the allocation that `record` describes.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE` where the system has no memory files,
    /// `ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY` when memory or descriptors have run out.
    pub fn export(&self, record: &Record) -> Answer<Export> {
        let shared = self.share()?;
        let records = self.mapping.length() as u64;
        let place = records + record.offset / LEAST_ALIGNMENT as u64 * Record::LENGTH as u64;
        shared
            .write_all_at(&record.encode(), place)
            .and_then(|()| reopen(shared, place))
            .map(|file| Export { file, place })
            .map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)
    }

    /// The file that the bytes are in, from now on at the latest.
    fn share(&self) -> Answer<&File> {
        let _guard = self.making.lock();
        self.exported.store(true, Ordering::Release);
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        if !can_move() {
            return Err(sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
        }
        let file = memory_file(self.file_length())
            .and_then(|file| move_to(&self.mapping, &file).map(|()| file))
            .map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
        Ok(self.file.get_or_init(|| file))
    }

    /// Whether new allocations may be cut from it. Another process's would be seen by all that were exported from it,
    /// and a forked child and its parent would cut the same bytes of a shared block without knowing.
    pub fn is_closed(&self) -> bool {
        self.exported.load(Ordering::Acquire)
            || self.file.get().is_some() && self.process != std::process::id()
    }

    /// Strikes an export's record out, when its allocation is freed.
    pub fn strike(&self, export: &Export) {
        if self.process == std::process::id() {
            // The file has room there, so this cannot fail.
            let _ = export.file.write_all_at(&[0; Record::LENGTH], export.place);
        }
    }

    /// Address of the first byte.
    pub fn address(&self) -> usize {
        self.mapping.address()
    }

    fn file_length(&self) -> u64 {
        let records = self.mapping.length() / LEAST_ALIGNMENT * Record::LENGTH;
        (self.mapping.length() + records.next_multiple_of(PAGE)) as u64
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.file.get().is_some() && !can_move() {
            FROM_THE_BEGINNING.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Another descriptor of `file` with a position of its own.
fn reopen(file: &File, position: u64) -> std::io::Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut file = File::options().read(true).write(true).open(path)?;
    file.seek(SeekFrom::Start(position))?;
    Ok(file)
}
