//! Memory between processes, through handles that travel as bytes.

use std::{fs, thread};

use rustix::process::{Resource, Rlimit};
use zeusm::ipc::{Error, is_supported};
use zeusm::pool::{Options, Pool};
use zeusm::usm::{Allocation, LevelZero};
use zeusm::{Completion, Context, Device, IpcHandle, Queue, UsmKind};

use super::common::{
    KINDS, Secluded, allocate, bytes, edited, give_up_tracing, hex, in_a_new_process,
    is_tracing_forbidden, open, place, unhex,
};

fn elsewhere(task: &str, handle: &IpcHandle) -> String {
    in_a_new_process(
        "sharing::another_process",
        &format!("{task} {}", hex(&handle.to_bytes())),
    )
}

#[test]
#[ignore = "the other side of the other tests, which run it"]
fn another_process() {
    let task = std::env::var("ZEUSM_TEST_IPC").unwrap();
    let (task, handle) = task.split_once(' ').unwrap();
    let place = place();
    if task == "export" {
        let memory = allocate(&place, UsmKind::Shared, 4096);
        let handle = IpcHandle::new(&memory, 0..4096).unwrap();
        println!("handle={}", hex(&handle.to_bytes()));
        return;
    }
    if task == "limited" {
        return limited(&place);
    }
    let handle = IpcHandle::from_bytes(&unhex(handle)).unwrap();
    match task {
        "increment" => increment(&handle, &place),
        "increment-by-socket" => {
            give_up_tracing();
            assert!(is_tracing_forbidden(handle.process()));
            increment(&handle, &place);
        }
        "freed" => {
            let answer = handle.open(&place.0, &place.1);
            assert!(matches!(answer, Err(Error::Freed { .. })), "{answer:?}");
        }
        "freed-by-socket" => {
            give_up_tracing();
            let answer = handle.open(&place.0, &place.1);
            assert!(matches!(answer, Err(Error::Freed { .. })), "{answer:?}");
        }
        other => panic!("{other}"),
    }
}

/// Shares memory while the process may have no file of its size, and when it may again.
fn limited(place: &(Context, Device)) {
    let memory = allocate(place, UsmKind::Shared, 4096);
    let usual = rustix::process::getrlimit(Resource::Fsize);
    // The first leaves no room for what this process keeps of its exports, either.
    for longest in [0, 4095] {
        let short = Rlimit {
            current: Some(longest),
            ..usual
        };
        rustix::process::setrlimit(Resource::Fsize, short).unwrap();
        let error = IpcHandle::new(&memory, 0..4096).unwrap_err();
        assert!(matches!(error, Error::System { .. }), "{error}");
        assert!(error.to_string().contains("RLIMIT_FSIZE"), "{error}");
    }
    rustix::process::setrlimit(Resource::Fsize, usual).unwrap();
    IpcHandle::new(&memory, 0..4096).unwrap();
}

/// Adds 1 to every byte, which are 0, 1, 2, ..., by way of a queue.
fn increment(handle: &IpcHandle, place: &(Context, Device)) {
    let mapping = handle.open(&place.0, &place.1).unwrap();
    let queue = Queue::new(&place.0, &place.1).unwrap();
    let mut copy = vec![0; mapping.size()];
    let (there, here) = (mapping.as_ptr(), copy.as_mut_ptr().cast());
    // SAFETY: the mapping and the vector live until the copy is done, and are as long as each other.
    unsafe { queue.copy_raw(here, there, mapping.size(), Completion::Event) }.unwrap();
    queue.wait().unwrap();
    for (index, byte) in copy.iter_mut().enumerate() {
        assert_eq!(*byte, index as u8);
        *byte = byte.wrapping_add(1);
    }
    // SAFETY: as above.
    unsafe { queue.copy_raw(there, here, mapping.size(), Completion::Event) }.unwrap();
    queue.wait().unwrap();
}

fn sees_and_changes(task: &str) {
    let place = place();
    for kind in KINDS {
        for (size, range) in [
            (100, 0..100),
            (5000, 17..4999),
            (9 << 20, 12_345..9_000_000),
        ] {
            let memory = allocate(&place, kind, size);
            let all = bytes(memory.as_ptr(), size);
            all.fill(200);
            for (index, byte) in all[range.clone()].iter_mut().enumerate() {
                *byte = index as u8;
            }
            elsewhere(task, &IpcHandle::new(&memory, range.clone()).unwrap());
            for (index, byte) in all[range.clone()].iter().enumerate() {
                assert_eq!(*byte, (index as u8).wrapping_add(1));
            }
            let outside = all[..range.start].iter().chain(&all[range.end..]);
            assert!(outside.into_iter().all(|&byte| byte == 200));
        }
    }
}

#[test]
fn another_process_sees_and_changes_a_range() {
    sees_and_changes("increment");
}

#[test]
fn where_tracing_is_forbidden_the_socket_serves() {
    let _secluded = Secluded::new();
    sees_and_changes("increment-by-socket");
}

#[test]
fn a_handle_says_what_it_is_of() {
    let place = place();
    for kind in KINDS {
        // In no pool, whose memory would begin somewhere in the driver's.
        let memory = Allocation::direct(&place.0, &place.1, kind, 3000, 0).unwrap();
        let handle = IpcHandle::new(&memory, 1000..1500).unwrap();
        let known = place.0.pointer_attributes(memory.as_ptr().addr()).unwrap();
        assert_eq!((handle.kind(), handle.size()), (kind, 500));
        assert_eq!(handle.offset(), memory.as_ptr().addr() - known.base + 1000);
        assert_eq!(handle.allocation_id(), known.id);
        assert_eq!(handle.device_uuid(), place.1.uuid());
        assert_eq!(handle.process(), std::process::id());
        let mapping = open(&handle, &place).unwrap();
        assert_eq!((mapping.kind(), mapping.size()), (kind, 500));
        assert!(mapping.context() == &place.0 && mapping.device() == &place.1);
    }
}

#[test]
fn opening_twice_maps_once_and_closing_the_last_unmaps() {
    let place = place();
    let memory = allocate(&place, UsmKind::Device, 1 << 20);
    let handle = IpcHandle::new(&memory, 0..1 << 20).unwrap();
    let mappings: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| open(&handle, &place).unwrap()))
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let pointer = mappings[0].as_ptr();
    assert!(mappings.iter().all(|it| it.as_ptr() == pointer));
    assert_ne!(pointer, memory.as_ptr());
    // A part is a part of the same mapping.
    let part = open(&IpcHandle::new(&memory, 4096..8192).unwrap(), &place).unwrap();
    assert_eq!(part.as_ptr().addr(), pointer.addr() + 4096);
    let is_mapped = || place.0.pointer_attributes(pointer.addr()).is_ok();
    drop(mappings);
    assert!(is_mapped());
    drop(part);
    assert!(!is_mapped());
}

#[test]
fn what_is_freed_opens_no_more() {
    let place = place();
    for size in [64, 100_000, 9 << 20] {
        let memory = allocate(&place, UsmKind::Shared, size);
        let neighbour = allocate(&place, UsmKind::Shared, size);
        let handle = IpcHandle::new(&memory, 0..size).unwrap();
        let mapping = open(&handle, &place).unwrap();
        bytes(memory.as_ptr(), size).fill(8);
        drop(memory);
        let answer = open(&handle, &place);
        assert!(matches!(answer, Err(Error::Freed { .. })), "{answer:?}");
        elsewhere("freed", &handle);
        let secluded = Secluded::new();
        elsewhere("freed-by-socket", &handle);
        drop(secluded);
        // What was opened before stays.
        assert_eq!(bytes(mapping.as_ptr(), size)[size - 1], 8);
        drop(neighbour);
    }
}

#[test]
fn a_pools_memory_is_shared_and_freed_piece_by_piece() {
    let place = place();
    let provider = LevelZero::new(&place.0, &place.1, UsmKind::Shared);
    let pool = Pool::new(provider, Options::default());
    let mut pieces: Vec<_> = (0..3)
        .map(|_| Allocation::in_pool(&pool, 512, 0).unwrap())
        .collect();
    let handles: Vec<_> = pieces
        .iter()
        .map(|piece| IpcHandle::new(piece, 0..512).unwrap())
        .collect();
    // They are parts of one allocation of the driver's.
    assert_eq!(handles[0].allocation_id(), handles[2].allocation_id());
    assert_ne!(handles[0].offset(), handles[2].offset());
    for (piece, handle) in pieces.iter().zip(&handles) {
        for (index, byte) in bytes(piece.as_ptr(), 512).iter_mut().enumerate() {
            *byte = index as u8;
        }
        elsewhere("increment", handle);
        assert_eq!(bytes(piece.as_ptr(), 512)[..3], [1, 2, 3]);
    }
    drop(pieces.remove(0));
    assert!(matches!(
        open(&handles[0], &place),
        Err(Error::Freed { .. })
    ));
    elsewhere("freed", &handles[0]);
    assert!(open(&handles[1], &place).is_ok());
}

#[test]
fn an_exporter_that_is_gone_is_told() {
    let told = in_a_new_process("sharing::another_process", "export -");
    let handle = told.split("handle=").nth(1).unwrap();
    let handle = unhex(&handle[..2 * IpcHandle::LENGTH]);
    let handle = IpcHandle::from_bytes(&handle).unwrap();
    let answer = open(&handle, &place());
    let Err(Error::ExporterGone { process }) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(process, handle.process());
    // Its number may be another process's by now: this one's, for example.
    let reused = edited(&handle, 12, &std::process::id().to_le_bytes());
    let answer = open(&reused, &place());
    assert!(
        matches!(answer, Err(Error::ExporterGone { .. })),
        "{answer:?}"
    );
}

#[test]
fn another_machine_and_another_device_are_told() {
    let place = place();
    let memory = allocate(&place, UsmKind::Host, 64);
    let handle = IpcHandle::new(&memory, 0..64).unwrap();
    let answer = open(&edited(&handle, 16, &[7; 16]), &place);
    let Err(error @ Error::AnotherMachine { .. }) = answer else {
        panic!("{answer:?}");
    };
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert!(error.to_string().contains(boot.trim()), "{error}");
    assert!(error.to_string().contains("07070707-0707"), "{error}");
    let answer = open(&edited(&handle, 32, &[9; 16]), &place);
    let Err(error @ Error::AnotherDevice { .. }) = answer else {
        panic!("{answer:?}");
    };
    assert!(error.to_string().contains(place.1.name()), "{error}");
}

#[test]
fn a_limit_of_file_sizes_is_told() {
    in_a_new_process("sharing::another_process", "limited -");
}

#[test]
fn a_driver_that_shares_says_so() {
    assert!(is_supported(place().1.driver()).unwrap());
}

#[test]
fn ranges_are_checked() {
    let place = place();
    let memory = allocate(&place, UsmKind::Host, 64);
    for (range, wrong) in [(0..65, "0 to 65"), (64..65, "64 to 65")] {
        let error = IpcHandle::new(&memory, range).unwrap_err();
        assert!(matches!(error, Error::Range { .. }) && error.to_string().contains(wrong));
    }
    for size in [0, 64] {
        let memory = allocate(&place, UsmKind::Host, size);
        let error = IpcHandle::new(&memory, 0..0).unwrap_err();
        assert!(matches!(error, Error::NothingToShare { .. }), "{error}");
    }
}

#[test]
#[ignore = "counts the descriptors and mappings of its process: the next one runs it"]
fn open_and_close_many_times() {
    let place = place();
    let count = |what: &str| {
        let folder = fs::read_dir(format!("/proc/self/{what}"));
        folder.unwrap().count()
    };
    let memory = allocate(&place, UsmKind::Shared, 5000);
    let handle = IpcHandle::new(&memory, 0..5000).unwrap();
    let other = || {
        let other = allocate(&place, UsmKind::Device, 300_000);
        let handle = IpcHandle::new(&other, 0..300_000).unwrap();
        drop(open(&handle, &place).unwrap());
    };
    // What stays for good, a pool's memory too, is there after the first time.
    drop(open(&handle, &place).unwrap());
    other();
    let maps = || {
        let all = fs::read_to_string("/proc/self/maps").unwrap();
        all.lines().filter(|line| line.contains("memfd:")).count()
    };
    let before = (count("fd"), count("task"), maps());
    for round in 0..10_000 {
        drop(open(&handle, &place).unwrap());
        if round % 50 == 0 {
            other();
        }
    }
    assert_eq!((count("fd"), count("task"), maps()), before);
}

#[test]
fn nothing_leaks() {
    in_a_new_process("sharing::open_and_close_many_times", "");
}
