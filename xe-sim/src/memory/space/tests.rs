#![allow(clippy::unwrap_used)]

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::super::Buffer;
use super::*;

fn buffer() -> Arc<Buffer> {
    Arc::new(Buffer::new(1 << 16, None).unwrap())
}

#[test]
fn copies_go_over_bindings_and_into_the_programs_memory() {
    let space = AddressSpace::default();
    let mut own = vec![0u8; 8192];
    space.bind(0x10000, 4096, Backing::Buffer(buffer(), 0), true);
    space.bind(0x11000, 4096, Backing::Buffer(buffer(), 4096), true);
    space.bind(0x20000, 8192, Backing::User(own.as_mut_ptr() as u64), true);
    space.fill(0x10000, &[1, 2, 3], 8192).unwrap();
    space.copy(0x20000, 0xffff_0000_0001_0000, 8192).unwrap();
    assert!(
        own.iter()
            .enumerate()
            .all(|(i, &byte)| usize::from(byte) == i % 3 + 1)
    );
}

#[test]
fn what_is_not_bound_faults() {
    let space = AddressSpace::default();
    space.bind(0x10000, 8192, Backing::Buffer(buffer(), 0), true);
    space.unbind(0x10800 & !4095, 4096);
    let fault = space.write(0x10000, &[0]).unwrap_err();
    assert_eq!(fault.address, 0x10000);
    space.write(0x11000, &[0]).unwrap();
    assert_eq!(
        space.read(0x11fff, &mut [0; 2]).unwrap_err().address,
        0x12000
    );
    assert_eq!(space.load(0x9000).unwrap_err().access, "read");
}

#[test]
fn writes_to_read_only_bindings_fault() {
    let space = AddressSpace::default();
    space.bind(0, 0x3000, Backing::Buffer(buffer(), 0), false);
    space.unbind(0x1000, 0x1000);
    for at in [0, 0x2000] {
        assert_eq!(space.load(at), Ok(0));
        assert_eq!(space.read(at, &mut [0; 9]), Ok(()));
        for end in [
            space.write(at, &[1]),
            space.fill(at, &[1], 9),
            space.copy(at, at + 8, 8),
            space.store(at, 1),
            space.store_wide(at, 1),
        ] {
            assert_eq!(end.unwrap_err().address, at);
        }
    }
}

#[test]
fn memory_that_the_program_gave_back_faults() {
    let space = AddressSpace::default();
    space.bind(0x10000, 4096, Backing::User(4096), true);
    assert!(space.read(0x10000, &mut [0; 4]).is_err());
    assert!(space.write(0x10000, &[0; 4]).is_err());
}

#[test]
fn a_stretch_taken_out_leaves_head_and_tail() {
    let space = AddressSpace::default();
    let buffer = buffer();
    space.bind(0, 0x4000, Backing::Buffer(Arc::clone(&buffer), 0), true);
    space.store(0x3000, 7).unwrap();
    space.unbind(0x1000, 0x1000);
    assert_eq!(space.load(0x3000).unwrap(), 7);
    assert!(space.load(0).is_ok() && space.load(0x1000).is_err() && space.load(0x2000).is_ok());
}

#[test]
fn loads_of_user_memory_and_binds_do_not_block_each_other() {
    let space = Arc::new(AddressSpace::default());
    let own = Arc::new([7u32; 1024]);
    space.bind(0x10000, 4096, Backing::User(own.as_ptr() as u64), true);
    let (done, ends) = mpsc::channel();
    for _ in 0..2 {
        let (space, own, done) = (Arc::clone(&space), Arc::clone(&own), done.clone());
        thread::spawn(move || {
            (0..200_000).for_each(|_| assert_eq!(space.load(0x10000).unwrap(), own[0]));
            done.send(()).unwrap();
        });
    }
    drop(done);
    let binds = Arc::downgrade(&space);
    drop(space);
    // The thread ends with the last reader, which owns the space.
    thread::spawn(move || {
        while let Some(space) = binds.upgrade() {
            space.bind(0x20000, 4096, Backing::Null, true);
        }
    });
    for _ in 0..2 {
        ends.recv_timeout(Duration::from_secs(60)).unwrap();
    }
}
