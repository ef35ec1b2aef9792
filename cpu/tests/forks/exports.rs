//! Memory that is exported when the process forks.

use crate::children::{CHILD_TIMEOUT, in_child, join};
use crate::common::{Context, Kind, MIB, Memory, bytes, bytes_mut, pattern, status};
use crate::process::alone;
use crate::{export, open, seccomp};

#[test]
fn a_child_gets_private_copies_of_exported_blocks() {
    alone("exports::forks_with_exports");
}

#[test]
#[ignore = "run by a_child_gets_private_copies_of_exported_blocks"]
fn forks_with_exports() {
    copies_what_is_exported(true);
}

#[test]
fn a_child_gets_private_copies_without_userfaultfd() {
    alone("exports::forks_with_exports_without_userfaultfd");
}

#[test]
#[ignore = "run by a_child_gets_private_copies_without_userfaultfd"]
fn forks_with_exports_without_userfaultfd() {
    seccomp::refuse(libc::SYS_userfaultfd, libc::EPERM);
    copies_what_is_exported(false);
}

fn copies_what_is_exported(child_exports: bool) {
    let context = Context::new();
    for size in [256, 40 * MIB] {
        let (exported, neighbour) = (
            context.alloc(Kind::Shared, size),
            context.alloc(Kind::Shared, size),
        );
        let data = pattern(size, size as u64);
        bytes_mut(exported, size).copy_from_slice(&data);
        bytes_mut(neighbour, size).copy_from_slice(&data);
        let handle = export(&context, exported);
        let opened = open(&context, handle);
        in_child(|| {
            let same = bytes(exported, size) == data && bytes(neighbour, size) == data;
            bytes_mut(exported, size).fill(1);
            bytes_mut(neighbour, size).fill(2);
            // Opened memory stays shared, and so does memory that the child opens by its parent's handle.
            let shared = open(&context, handle);
            assert!(bytes(shared, size) == data);
            bytes_mut(shared, size)[0] = !data[0];
            bytes_mut(opened, size)[1] = !data[1];
            if child_exports {
                // A handle that the child creates refers to its own copy.
                let own = open(&context, export(&context, exported));
                assert!(bytes(own, size).iter().all(|byte| *byte == 1));
            }
            same
        });
        assert_eq!(bytes(exported, size)[..2], [!data[0], !data[1]]);
        assert!(bytes(exported, size)[2..] == data[2..]);
        assert!(bytes(neighbour, size) == data);
        // The child's copy is that of the time of the fork, whatever the parent writes later.
        let mut ends = [0; 2];
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        let mut go = 0u8;
        let process = unsafe { libc::fork() };
        if process == 0 {
            unsafe { libc::alarm(CHILD_TIMEOUT) };
            unsafe { libc::read(ends[0], (&raw mut go).cast(), 1) };
            let (first, second) = (bytes(exported, size), bytes(neighbour, size));
            let unchanged = first[2..] == data[2..] && second == data;
            unsafe { libc::_exit(i32::from(!unchanged)) };
        }
        bytes_mut(exported, size).fill(3);
        bytes_mut(neighbour, size).fill(4);
        assert_eq!(
            unsafe { libc::write(ends[1], (&raw const go).cast(), 1) },
            1
        );
        join(process); // It saw none of its parent's writes.
        ok!(zeMemCloseIpcHandle(context.0, opened));
        context.free(exported);
        context.free(neighbour);
    }
}

/// Shared memory that has been exported, with its content.
fn exported(context: &Context, size: usize) -> (Memory, Vec<u8>) {
    let (memory, data) = (
        context.alloc(Kind::Shared, size),
        pattern(size, size as u64),
    );
    bytes_mut(memory, size).copy_from_slice(&data);
    export(context, memory);
    (memory, data)
}

#[test]
fn a_child_writes_to_pages_of_its_own_where_there_is_no_room_for_a_copy() {
    alone("exports::forks_without_room");
}

#[test]
#[ignore = "run by a_child_writes_to_pages_of_its_own_where_there_is_no_room_for_a_copy"]
fn forks_without_room() {
    const SIZE: usize = 64 * MIB;
    let context = Context::new();
    let (memory, data) = exported(&context, SIZE);
    let most = (status("VmSize") + SIZE / 2) as u64;
    let limit = libc::rlimit {
        rlim_cur: most,
        rlim_max: most,
    };
    assert_eq!(
        unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) },
        0
    );
    in_child(|| {
        let same = bytes(memory, SIZE) == data;
        bytes_mut(memory, SIZE).fill(1);
        same
    });
    assert!(bytes(memory, SIZE) == data);
}

#[test]
fn a_child_gets_a_copy_after_the_program_has_closed_the_file() {
    alone("exports::forks_without_descriptors");
}

#[test]
#[ignore = "closes all descriptors; run by a_child_gets_a_copy_after_the_program_has_closed_the_file"]
fn forks_without_descriptors() {
    const SIZE: usize = MIB;
    let context = Context::new();
    let (memory, data) = exported(&context, SIZE);
    assert_eq!(unsafe { libc::close_range(3, u32::MAX, 0) }, 0);
    in_child(|| {
        let same = bytes(memory, SIZE) == data;
        bytes_mut(memory, SIZE).fill(1);
        same
    });
    assert!(bytes(memory, SIZE) == data);
}
