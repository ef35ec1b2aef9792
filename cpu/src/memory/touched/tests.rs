#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::super::backing::{Mapping, memory_file, own_memory_file};
use super::platform::in_files;
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
fn pages_that_touch_are_counted_once() {
    let all = vec![
        PAGE + 1..PAGE + 2,
        PAGE + 8..2 * PAGE + 1,
        4 * PAGE..5 * PAGE,
    ];
    assert_eq!(pages(all), [PAGE..3 * PAGE, 4 * PAGE..5 * PAGE]);
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
    let mappings = [(); 2].map(|()| Mapping::of_file(file.get().unwrap(), 0, 100 * PAGE).unwrap());
    mappings.iter().for_each(|mapping| write(mapping, 3));
    assert_eq!(in_files(&files), PAGE as u64);
    drop(mappings);
    assert_eq!(in_files(&files), PAGE as u64, "mapped nowhere");
    drop(file);
    assert_eq!(in_files(&files), 0);
}
