#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use level_zero_sys as sys;

use super::platform::exports::{file_length, read_record};
use super::platform::mapping::HUGE_PAGE;
use super::*;
use crate::memory::next_id;

fn record(offset: usize, size: usize) -> Record {
    Record {
        id: next_id(),
        offset: offset as u64,
        size: size as u64,
        kind: sys::ZE_MEMORY_TYPE_SHARED,
    }
}

/// As the runtime makes a large one, whatever its size.
fn block(length: usize) -> Backing {
    Backing::whole(Form::Own, Mapping::anonymous(length, PAGE).unwrap(), 0)
}

fn export(backing: &Backing, record: &Record) -> ZeResult<Export> {
    backing.export(|_| *record)
}

fn words(address: usize, count: usize) -> &'static [AtomicU64] {
    // SAFETY: the tests pass the address of so many words of a block that they keep.
    unsafe { std::slice::from_raw_parts(address as *const AtomicU64, count) }
}

fn file(export: &Export) -> File {
    // SAFETY: the export keeps its descriptor open.
    let descriptor = unsafe { BorrowedFd::borrow_raw(export.descriptor) };
    File::from(descriptor.try_clone_to_owned().unwrap())
}

#[test]
fn suballocations_have_pages_of_their_own() {
    let mut all = Vec::new();
    for size in (1..30_000).step_by(97) {
        let suballocation = Backing::new(size, 0, false).unwrap();
        let pages = suballocation.pages().unwrap();
        assert!(matches!(suballocation.owner, Some(Owner::Arena(_))));
        assert_eq!(pages.address(), suballocation.address());
        assert!(pages.address().is_multiple_of(PAGE) && pages.length() >= size);
        all.push((
            pages.address()..pages.address() + pages.length(),
            suballocation,
        ));
        if size % 3 == 0 {
            all.swap_remove(size % all.len());
        }
    }
    all.sort_by_key(|it| it.0.start);
    assert!(all.windows(2).all(|two| two[0].0.end <= two[1].0.start));
}

#[test]
fn pages_that_were_exported_are_private_again_when_they_are_used_next() {
    let first = Backing::new(64, 0, false).unwrap();
    let address = first.address();
    words(address, 1)[0].store(99, Ordering::Relaxed);
    let exported = export(&first, &record(0, 64)).unwrap();
    let file = file(&exported);
    assert_eq!(file.metadata().unwrap().len(), file_length(PAGE));
    drop(first);
    let next: Vec<_> = (0..2000)
        .map(|_| Backing::new(64, 0, false).unwrap())
        .collect();
    assert!(next.iter().any(|it| it.address() == address));
    words(address, 1)[0].store(7, Ordering::Relaxed);
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(u64::from_le_bytes(bytes), 99);
}

#[test]
fn the_end_of_a_large_allocation_is_the_base_of_no_other() {
    let sizes = [OWN_MAPPING_THRESHOLD, 1 << 20, 2 * HUGE_PAGE].map(|size| [size; 12]);
    let of = |size: &usize| (*size, Backing::new(*size, 64, false).unwrap());
    let all: Vec<_> = sizes.as_flattened().iter().map(of).collect();
    for (size, one) in &all {
        let end = one.address() + size;
        assert!(all.iter().all(|(_, other)| other.address() != end));
    }
}

#[test]
fn what_is_exported_keeps_its_bytes_and_shares_them() {
    for length in [PAGE, 1 << 20, 9 << 20] {
        let memory = block(length);
        let all = words(memory.address(), length / 8);
        // Every third page, so that untouched pages are moved as well.
        for index in (0..all.len()).filter(|index| index / 512 % 3 == 0) {
            all[index].store(index as u64 ^ 0xabcd, Ordering::Relaxed);
        }
        let export = export(&memory, &record(0, length)).unwrap();
        for (index, word) in all.iter().enumerate() {
            let expected = if index / 512 % 3 == 0 {
                index as u64 ^ 0xabcd
            } else {
                0
            };
            assert_eq!(word.load(Ordering::Relaxed), expected);
        }
        let other = Mapping::of_file(&file(&export), 0, length).unwrap();
        let there = words(other.address(), length / 8);
        all[1].store(1, Ordering::Relaxed);
        there[2].store(2, Ordering::Relaxed);
        assert_eq!(there[1].load(Ordering::Relaxed), 1);
        assert_eq!(all[2].load(Ordering::Relaxed), 2);
    }
}

/// As when a program closes all descriptors, as daemons do, and opens files of its own.
#[test]
fn files_of_the_program_with_the_numbers_of_memory_files_are_left_alone() {
    let memory = block(PAGE);
    let exported = record(0, 64);
    let made = export(&memory, &exported).unwrap();
    let program = rustix::fs::memfd_create("program", rustix::fs::MemfdFlags::CLOEXEC);
    let program = File::from(program.unwrap());
    program.write_all_at(&[7; 100], 0).unwrap();
    let numbers: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| {
            let about = std::fs::metadata(entry.as_ref().ok()?.path()).ok()?;
            (about.ino() == made.inode).then(|| entry.ok())?
        })
        .map(|entry| entry.file_name().to_string_lossy().parse().unwrap())
        .collect();
    assert_eq!(numbers.len(), 1, "one descriptor for each allocation");
    // SAFETY: the number is the export's, which must not use it any more.
    numbers.iter().for_each(|number| unsafe {
        assert_eq!(libc::dup2(program.as_raw_fd(), *number), *number);
    });
    assert!(export(&memory, &exported).is_err());
    drop(memory);
    for number in numbers {
        // SAFETY: the number is that of the duplicate of above, which only this test has.
        let file = unsafe { File::from_raw_fd(number) };
        let mut content = [0; 100];
        file.read_exact_at(&mut content, 0).unwrap();
        assert_eq!((content, file.metadata().unwrap().len()), ([7; 100], 100));
    }
}

#[test]
fn no_write_is_lost_while_the_block_moves() {
    const LENGTH: usize = 24 << 20;
    for _ in 0..5 {
        let memory = block(LENGTH);
        let all = words(memory.address(), LENGTH / 8);
        all.iter().for_each(|word| word.store(1, Ordering::Relaxed));
        let done = AtomicBool::new(false);
        let counts: Vec<u64> = thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|writer| {
                    let done = &done;
                    scope.spawn(move || {
                        let mut count = 0;
                        while !done.load(Ordering::Relaxed) {
                            let place = (count as usize * 7919 * 3) % (all.len() - 3) + writer;
                            all[place - place % 3 + writer].fetch_add(1, Ordering::Relaxed);
                            count += 1;
                        }
                        count
                    })
                })
                .collect();
            thread::sleep(std::time::Duration::from_millis(5));
            export(&memory, &record(0, LENGTH)).unwrap();
            thread::sleep(std::time::Duration::from_millis(5));
            done.store(true, Ordering::Relaxed);
            writers.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let sum: u64 = all.iter().map(|word| word.load(Ordering::Relaxed)).sum();
        assert_eq!(sum, all.len() as u64 + counts.iter().sum::<u64>());
    }
}

#[test]
fn a_record_says_until_it_is_struck_out_what_there_is() {
    let memory = block(PAGE);
    let exported = record(128, 200);
    let export = export(&memory, &exported).unwrap();
    let file = file(&export);
    assert_eq!(read_record(&file), Some(Some(exported)));
    drop(memory);
    assert_eq!(read_record(&file), Some(None));
}

#[test]
fn a_record_of_more_than_the_pages_is_none() {
    let memory = block(PAGE);
    let honest = record(0, 200);
    let export = export(&memory, &honest).unwrap();
    let file = file(&export);
    let more = PAGE as u64 + 1;
    let kind = sys::ze_memory_type_t(9);
    for wrong in [
        Record {
            size: more,
            ..honest
        },
        Record {
            offset: more - 200,
            ..honest
        },
        Record {
            offset: 64,
            size: u64::MAX,
            ..honest
        },
        Record { size: 0, ..honest },
        Record { kind, ..honest },
    ] {
        file.write_all_at(&wrong.encode(), PAGE as u64).unwrap();
        assert_eq!(read_record(&file), None, "{wrong:?}");
    }
    for length in [
        0,
        Record::LENGTH as u64,
        PAGE as u64,
        100 + Record::LENGTH as u64,
    ] {
        assert_eq!(read_record(&memory_file(length).unwrap()), None, "{length}");
    }
}

#[test]
fn memory_that_is_shared_from_the_beginning_can_be_exported() {
    let small = Backing::new(800, 0, false).unwrap();
    assert!(small.in_files.put(small.pages().unwrap()));
    let all = words(small.address(), 100);
    all[3].store(5, Ordering::Relaxed);
    let export = export(&small, &record(0, 800)).unwrap();
    let mut bytes = [0; 8];
    file(&export).read_exact_at(&mut bytes, 24).unwrap();
    assert_eq!(u64::from_le_bytes(bytes), 5);
    assert_eq!(all[3].load(Ordering::Relaxed), 5);
}

#[test]
fn an_import_has_the_pages_of_its_allocation_only() {
    let file = memory_file(8 * PAGE as u64).unwrap();
    file.write_all_at(&[7], 5 * PAGE as u64 + 100).unwrap();
    let import = Backing::import(&file, &record(5 * PAGE + 100, 200)).unwrap();
    let (pages, address) = (import.pages().unwrap(), import.address());
    assert_eq!((pages.length(), address - pages.address()), (PAGE, 100));
    assert_eq!(
        words(import.address() / 8 * 8, 1)[0].load(Ordering::Relaxed) >> 32,
        7
    );
}
