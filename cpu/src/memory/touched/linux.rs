//! The pages of ranges and files that Linux has in memory.

use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Weak};

use zeusm_process::{Local, Mutex, OwnFile};

use crate::system::PAGE;

/// How many pages one call of the system tells.
const PAGES: usize = 1 << 16;

/// The unit in which the system counts the storage of a file.
const BLOCK: u64 = 512;

/// The files of physical memory, which may be mapped several times or nowhere.
static FILES: Local<Mutex<Vec<Weak<OwnFile>>>> = Local::new();

/// Counts the pages of a file from now on, until its last reference is dropped.
pub fn count_file(file: &Arc<OwnFile>) {
    let mut files = FILES.get_or_default().lock();
    files.retain(|known| known.strong_count() > 0);
    files.push(Arc::downgrade(file));
}

/// The bytes of the pages that the system has for the counted files.
pub fn in_counted_files() -> u64 {
    in_files(&FILES.get_or_default().lock())
}

/// The bytes of the pages that the system has for files.
pub(super) fn in_files(files: &[Weak<OwnFile>]) -> u64 {
    let files = files.iter().filter_map(Weak::upgrade);
    files
        .filter_map(|file| file.get()?.metadata().ok())
        .map(|metadata| metadata.blocks() * BLOCK)
        .sum()
}

/// The bytes of a range for which the system has pages: of a file, whether this process has accessed them or not. None if it is
/// unmapped meanwhile.
pub fn resident(range: Range<usize>) -> usize {
    let mut states = vec![0_u8; range.len().div_ceil(PAGE).min(PAGES)];
    let parts = range.clone().step_by(PAGES * PAGE);
    let count = |start: usize| {
        let length = (range.end - start).min(PAGES * PAGE);
        // SAFETY: the system writes a byte for each page, for which there is room, and reads no memory of the range.
        let result = unsafe { libc::mincore(start as *mut _, length, states.as_mut_ptr()) };
        let states = &states[..length.div_ceil(PAGE)];
        let in_memory = states.iter().filter(|state| **state & 1 != 0);
        if result == 0 { in_memory.count() } else { 0 }
    };
    parts.map(count).sum::<usize>() * PAGE
}
