//! How much of the allocated memory has been touched, so that the machine has it no more.

use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Weak};

use zeusm_process::maps::{self, Mapping as Area};
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

/// The bytes of the pages of all allocations that are in memory. The system looks at each page of the process, which takes tens
/// of milliseconds per GiB of small pages.
pub fn touched() -> u64 {
    in_memory(&map::pages()) + in_files(&FILES.get_or_default().lock())
}

/// The same with the pages that have only been read, and so never less; takes a millisecond or less per GiB.
pub fn touched_at_most() -> u64 {
    map::pages().into_iter().map(resident).sum::<usize>() as u64
        + in_files(&FILES.get_or_default().lock())
}

/// The bytes of the pages of some ranges, in ascending order, that are in memory. Anonymous pages that have only been read are
/// not: they are the system's one page of zeros, which `mincore` tells from no other.
fn in_memory(ranges: &[Range<usize>]) -> u64 {
    let mut bytes = 0;
    if !ranges.is_empty() {
        maps::mappings_with_resident(|area, resident| bytes += in_area(ranges, &area, resident));
    }
    bytes as u64
}

/// The same for the parts of the ranges in an area, which has so many bytes in memory at all. What the system tells of an area is
/// the most that they have, as it may have merged them with other memory.
fn in_area(ranges: &[Range<usize>], area: &Area, all: usize) -> usize {
    let first = ranges.partition_point(|range| range.end <= area.range.start);
    let inside = ranges[first..]
        .iter()
        .take_while(|range| range.start < area.range.end)
        .map(|range| range.start.max(area.range.start)..range.end.min(area.range.end));
    if area.has_file {
        inside.map(resident).sum()
    } else {
        let length: usize = inside.map(|part| part.len()).sum();
        length.min(all)
    }
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

    const HUGE_PAGE: usize = 2 << 20;

    /// A mapping between inaccessible ones, so that the system does not merge it with those of other tests.
    fn apart(length: usize) -> [Mapping; 3] {
        let mut rest = Mapping::anonymous(length + 2 * HUGE_PAGE, HUGE_PAGE).unwrap();
        let before = rest.split(HUGE_PAGE).unwrap();
        let mapping = rest.split(length).unwrap();
        // SAFETY: no one uses them.
        unsafe {
            before.pages().close();
            rest.pages().close();
        }
        [mapping, before, rest]
    }

    fn range(mapping: &Mapping) -> Range<usize> {
        mapping.address()..mapping.address() + mapping.length()
    }

    fn write(mapping: &Mapping, page: usize) {
        // SAFETY: the page is in the mapping.
        unsafe { ((mapping.address() + page * PAGE) as *mut u8).write_volatile(1) };
    }

    fn read(mapping: &Mapping) {
        for page in range(mapping).step_by(PAGE) {
            // SAFETY: the page is in the mapping.
            assert_eq!(unsafe { (page as *const u8).read_volatile() }, 0);
        }
    }

    #[test]
    fn only_pages_that_were_written_are_in_memory() {
        // Less than a huge page, so that each page is one.
        let [small, ..] = apart(100 * PAGE);
        // If the system has huge pages, it has one of zeros, too.
        let [large, ..] = apart(4 * HUGE_PAGE);
        let mut ranges = [range(&small), range(&large)];
        ranges.sort_by_key(|range| range.start);
        assert_eq!(in_memory(&ranges), 0);
        read(&small);
        read(&large);
        assert_eq!(in_memory(&ranges), 0);
        for page in [0, 7, 99] {
            write(&small, page);
        }
        assert_eq!(in_memory(&ranges), 3 * PAGE as u64);
        assert!(resident(range(&small)) >= 3 * PAGE, "the faster count");
        let part = small.address() + 7 * PAGE..small.address() + 9 * PAGE;
        assert_eq!(in_memory(&[part]), 2 * PAGE as u64, "at most");
        write(&large, 0);
        let used = in_memory(&[range(&large)]);
        assert!((PAGE as u64..=HUGE_PAGE as u64).contains(&used));
    }

    #[test]
    fn pages_of_a_file_are_in_memory_when_any_mapping_of_it_was_accessed() {
        let file = memory_file(100 * PAGE as u64).unwrap();
        let [one, other] = [(); 2].map(|()| Mapping::of_file(&file, 0, 100 * PAGE).unwrap());
        write(&one, 0);
        write(&one, 7);
        assert_eq!(in_memory(&[range(&other)]), 2 * PAGE as u64);
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
