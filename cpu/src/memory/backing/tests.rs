#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use level_zero_sys as sys;

use super::arena::Suballocation;
use super::*;
use crate::memory::allocate::next_id;

fn record(offset: usize, size: usize) -> Record {
    Record {
        id: next_id(),
        offset: offset as u64,
        size: size as u64,
        kind: sys::ZE_MEMORY_TYPE_SHARED,
    }
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

fn read(export: &Export, offset: u64) -> u64 {
    let mut bytes = [0; 8];
    file(export).read_exact_at(&mut bytes, offset).unwrap();
    u64::from_le_bytes(bytes)
}

#[test]
fn pieces_are_apart_aligned_and_used_again() {
    let mut suballocations = Vec::new();
    for size in (1..3000).step_by(37) {
        for alignment in [0, 1, 64, 256, 4096] {
            let suballocation = Suballocation::new(size, alignment).unwrap();
            assert!(suballocation.address().is_multiple_of(alignment.max(64)));
            suballocations.push((suballocation.address(), size, suballocation));
        }
    }
    suballocations.sort_by_key(|suballocation| suballocation.0);
    assert!(
        suballocations
            .windows(2)
            .all(|two| two[0].0 + two[0].1 <= two[1].0)
    );
    for (address, size, suballocation) in &suballocations {
        let block = suballocation.block();
        assert!(*address >= block.address() && address + size <= block.address() + (2 << 20));
    }
}

#[test]
fn the_end_of_a_large_allocation_is_the_base_of_no_other() {
    let sizes = [OWN_BLOCK_THRESHOLD, 1 << 20, 2 * HUGE_PAGE].map(|size| [size; 12]);
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
        let block = Block::new(length, PAGE).unwrap();
        let all = words(block.address(), length / 8);
        // Every third page, so that untouched pages are moved as well.
        for index in (0..all.len()).filter(|index| index / 512 % 3 == 0) {
            all[index].store(index as u64 ^ 0xabcd, Ordering::Relaxed);
        }
        let export = exports::export(&block, &record(0, length)).unwrap();
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
    let block = Block::new(PAGE, PAGE).unwrap();
    let exported = record(0, 64);
    let export = exports::export(&block, &exported).unwrap();
    let program = rustix::fs::memfd_create("program", rustix::fs::MemfdFlags::CLOEXEC);
    let program = File::from(program.unwrap());
    program.write_all_at(&[7; 100], 0).unwrap();
    let numbers: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| {
            let about = std::fs::metadata(entry.as_ref().ok()?.path()).ok()?;
            (about.ino() == export.inode).then(|| entry.ok())?
        })
        .map(|entry| entry.file_name().to_string_lossy().parse().unwrap())
        .collect();
    assert_eq!(numbers.len(), 2, "the block's file, and the export's");
    // SAFETY: the numbers are the block's and the export's, which must not use them any more.
    numbers.iter().for_each(|number| unsafe {
        assert_eq!(libc::dup2(program.as_raw_fd(), *number), *number);
    });
    assert!(exports::export(&block, &record(128, 64)).is_err());
    exports::revoke(exported.id);
    drop(block);
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
        let block = Block::new(LENGTH, PAGE).unwrap();
        let all = words(block.address(), LENGTH / 8);
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
            exports::export(&block, &record(0, LENGTH)).unwrap();
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
    let block = Block::new(PAGE, PAGE).unwrap();
    let exported = record(128, 200);
    let export = exports::export(&block, &exported).unwrap();
    let file = file(&export);
    assert_eq!(
        exports::read_record(&file, export.record_offset),
        Some(Some(exported))
    );
    exports::revoke(exported.id);
    assert_eq!(
        exports::read_record(&file, export.record_offset),
        Some(None)
    );
}

#[test]
fn what_a_program_writes_is_no_record() {
    let block = Block::new(PAGE, PAGE).unwrap();
    let honest = record(128, 200);
    let export = exports::export(&block, &honest).unwrap();
    let file = file(&export);
    let forged = Record {
        size: PAGE as u64,
        offset: 0,
        ..honest
    };
    file.write_all_at(&forged.encode(), 256).unwrap();
    assert_eq!(
        exports::read_record(&file, 256),
        None,
        "the program's own bytes"
    );
    // Behind them, a record is valid only at its own offset and for a range in the block.
    let at = |offset: usize| (PAGE + offset / 64 * 32) as u64;
    for (place, wrong) in [
        (
            at(128),
            Record {
                offset: 64,
                ..honest
            },
        ),
        (
            at(0),
            Record {
                size: PAGE as u64 + 1,
                ..forged
            },
        ),
        (
            at(64),
            Record {
                offset: 64,
                size: u64::MAX,
                ..honest
            },
        ),
        (
            at(192),
            Record {
                offset: 192,
                size: 0,
                ..honest
            },
        ),
        (
            at(0),
            Record {
                kind: sys::ze_memory_type_t(9),
                ..forged
            },
        ),
    ] {
        file.write_all_at(&wrong.encode(), place).unwrap();
        assert_eq!(exports::read_record(&file, place), None, "{wrong:?}");
    }
    assert_eq!(exports::read_record(&file, export.record_offset + 1), None);
    assert_eq!(exports::read_record(&file, u64::MAX), None);
    exports::revoke(honest.id);
}

#[test]
fn nothing_new_comes_into_an_exported_block() {
    let first = Suballocation::new(64, 0).unwrap();
    let block = first.block().address();
    let offset = first.address() - block;
    words(first.address(), 1)[0].store(99, Ordering::Relaxed);
    let export = exports::export(first.block(), &record(offset, 64)).unwrap();
    assert_eq!(read(&export, offset as u64), 99);
    let later: Vec<_> = (0..100)
        .map(|_| Suballocation::new(64, 0).unwrap())
        .collect();
    assert!(later.iter().all(|it| it.block().address() != block));
}

#[test]
fn memory_that_is_shared_from_the_beginning_can_be_exported() {
    let block = Block::new(1 << 20, PAGE).unwrap();
    exports::share_when_new(&block);
    let all = words(block.address(), 100);
    all[3].store(5, Ordering::Relaxed);
    let export = exports::export(&block, &record(0, 800)).unwrap();
    assert_eq!(read(&export, 24), 5);
    assert_eq!(all[3].load(Ordering::Relaxed), 5);
}
