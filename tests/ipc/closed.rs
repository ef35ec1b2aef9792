//! Programs that close all descriptors, as daemons do, and open files of their own.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::Duration;

use zeusm::ipc::Error;
use zeusm::pool::{Options, Pool};
use zeusm::usm::{Allocation, LevelZeroProvider};
use zeusm::{IpcHandle, UsmKind};

use super::common::{hex, in_a_new_process, kinds, open, read, setup, write};

const CONTENT: [u8; 4096] = [7; 4096];

#[test]
fn after_the_program_closed_all_descriptors_its_new_exports_are_opened() {
    in_a_new_process("closed::exporter", "");
}

/// Hands the task to another process.
fn in_another_process(task: &str, handle: &IpcHandle) {
    let task = format!("{task} {}", hex(&handle.to_bytes()));
    in_a_new_process("sharing::another_process", &task);
}

fn counted(first: u8) -> Vec<u8> {
    (first..first + 100).collect()
}

fn identity(file: impl AsFd) -> Option<(u64, u64)> {
    let about = rustix::fs::fstat(file).ok()?;
    Some((about.st_dev, about.st_ino))
}

#[test]
#[ignore = "the process of the test above"]
fn exporter() {
    let target = setup();
    let provider = LevelZeroProvider::new(&target.0, &target.1, UsmKind::Device);
    let pool = Pool::new(provider, Options::default());
    let block = || Allocation::in_pool(&pool, 512, 0).unwrap();
    let direct = |kind, size| Allocation::direct(&target.0, &target.1, kind, size, 0).unwrap();
    let mut exported: Vec<_> = kinds(&target)
        .flat_map(|kind| [100, 3 << 20].map(|size| direct(kind, size)))
        .collect();
    exported.push(block());
    let handles: Vec<_> = exported
        .iter()
        .map(|memory| IpcHandle::new(memory, 0..100).unwrap())
        .collect();
    // Until the server waits for a client.
    thread::sleep(Duration::from_millis(200));
    // SAFETY: no code of this test has a descriptor, and zeusm must not depend on its own.
    assert_eq!(unsafe { libc::close_range(3, u32::MAX, 0) }, 0);
    let files: Vec<File> = (0..100).map(|_| tempfile::tempfile().unwrap()).collect();
    for file in &files {
        file.write_all_at(&CONTENT, 0).unwrap();
    }
    let identities: Vec<_> = files.iter().map(identity).collect();

    for (memory, handle) in exported.iter().zip(&handles) {
        let answer = open(handle, &target);
        assert!(matches!(answer, Err(Error::Freed { .. })), "{answer:?}");
        let answer = IpcHandle::new(memory, 0..100);
        assert!(matches!(answer, Err(Error::Closed)), "{answer:?}");
    }
    in_another_process("freed", &handles[0]);
    for kind in kinds(&target) {
        for size in [100, 5000, 3 << 20] {
            let memory = direct(kind, size);
            write(&target, memory.as_ptr(), &counted(0));
            let handle = IpcHandle::new(&memory, 0..100).unwrap();
            in_another_process("increment", &handle);
            assert_eq!(read(&target, memory.as_ptr(), 100), counted(1));
        }
    }
    let neighbour = block();
    // In the same slab.
    let answer = IpcHandle::new(&neighbour, 0..100);
    assert!(matches!(answer, Err(Error::Closed)), "{answer:?}");

    drop((exported, neighbour, pool));
    for (file, identity) in files.iter().zip(identities) {
        assert_eq!(self::identity(file), identity);
        let mut content = [0; CONTENT.len()];
        file.read_exact_at(&mut content, 0).unwrap();
        assert_eq!(content, CONTENT);
    }
}
