//! How much of the allocated memory has been touched, so that the machine has it no more.

use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Weak};

use zeusm_process::{Local, Mutex, OwnFile};

use super::map;
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

/// The bytes of the pages that the system has for files.
fn in_files(files: &[Weak<OwnFile>]) -> u64 {
    let files = files.iter().filter_map(Weak::upgrade);
    files
        .filter_map(|file| file.get()?.metadata().ok())
        .map(|metadata| metadata.blocks() * BLOCK)
        .sum()
}

/// The bytes of the pages of all allocations that are in memory, pages that have only been read among them; takes a millisecond or
/// less per GiB.
pub fn touched() -> u64 {
    map::pages().into_iter().map(resident).sum::<usize>() as u64
        + in_files(&FILES.get_or_default().lock())
}

/// The bytes of a range for which the system has pages: of a file, whether this process has accessed them or not. None if it is
/// unmapped meanwhile.
fn resident(range: Range<usize>) -> usize {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::backing::{Mapping, memory_file, own_memory_file};
    use super::*;

    fn range(mapping: &Mapping) -> Range<usize> {
        mapping.address()..mapping.address() + mapping.length()
    }

    fn write(mapping: &Mapping, page: usize) {
        // SAFETY: the page is in the mapping.
        unsafe { ((mapping.address() + page * PAGE) as *mut u8).write_volatile(1) };
    }

    #[test]
    fn pages_that_were_written_are_in_memory() {
        // Less than a huge page, so that each page is one.
        let mapping = Mapping::anonymous(100 * PAGE, PAGE).unwrap();
        assert_eq!(resident(range(&mapping)), 0);
        for page in [0, 7, 99] {
            write(&mapping, page);
        }
        assert_eq!(resident(range(&mapping)), 3 * PAGE);
    }

    #[test]
    fn pages_of_a_file_are_in_memory_when_any_mapping_of_it_was_accessed() {
        let file = memory_file(100 * PAGE as u64).unwrap();
        let [one, other] = [(); 2].map(|()| Mapping::of_file(&file, 0, 100 * PAGE).unwrap());
        write(&one, 0);
        write(&one, 7);
        assert_eq!(resident(range(&other)), 2 * PAGE);
    }

    #[test]
    fn pages_of_a_counted_file_are_in_memory_once() {
        let file = Arc::new(own_memory_file(100 * PAGE as u64).unwrap());
        let files = [Arc::downgrade(&file)];
        assert_eq!(in_files(&files), 0);
        let mappings =
            [(); 2].map(|()| Mapping::of_file(file.get().unwrap(), 0, 100 * PAGE).unwrap());
        mappings.iter().for_each(|mapping| write(mapping, 3));
        assert_eq!(in_files(&files), PAGE as u64);
        drop(mappings);
        assert_eq!(in_files(&files), PAGE as u64, "mapped nowhere");
        drop(file);
        assert_eq!(in_files(&files), 0);
    }
}
