//! Descriptors of the program: those that get the numbers of the runtime's own ones, locks, and closed standard streams.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;
#[path = "common/closed.rs"]
mod closed;
#[path = "common/forks.rs"]
mod forks;
#[path = "common/process.rs"]
mod process;
#[path = "common/reserve.rs"]
mod reserve;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::ptr;

use closed::{CONTENT, close_all, program_file};
use common::Context;
use level_zero_sys as sys;
use reserve::{physical, reserve};

const SIZE: usize = 64 << 10;
const READ_WRITE: sys::ze_memory_access_attribute_t = sys::ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE;

fn event_pool(context: &Context) -> sys::ze_event_pool_handle_t {
    let desc = sys::ze_event_pool_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
        flags: sys::ZE_EVENT_POOL_FLAG_HOST_VISIBLE.0 | sys::ZE_EVENT_POOL_FLAG_IPC.0,
        count: 4,
        ..Default::default()
    };
    let mut handle = ptr::null_mut();
    ok!(zeEventPoolCreate(
        context.0,
        &desc,
        0,
        ptr::null_mut(),
        &raw mut handle
    ));
    handle
}

/// As daemons do, closes all descriptors but the standard streams, and opens files of its own.
fn files_with_the_numbers_of_closed_ones() -> Vec<(File, u64)> {
    close_all();
    let open = |_| {
        let file = program_file();
        let inode = file.metadata().unwrap().ino();
        (file, inode)
    };
    (0..40).map(open).collect()
}

#[test]
fn files_of_the_program_with_the_numbers_of_closed_ones_are_left_alone() {
    process::alone("descriptors_are_closed");
}

#[test]
#[ignore = "closes all descriptors; run by the test before"]
fn descriptors_are_closed() {
    let context = Context::new();
    let memories = [(); 3].map(|()| physical(&context, SIZE));
    let pool = event_pool(&context);
    let range = reserve(&context, SIZE);
    ok!(zeVirtualMemMap(
        context.0,
        range,
        SIZE,
        memories[2],
        0,
        READ_WRITE
    ));
    let mut handle = sys::ze_ipc_mem_handle_t::default();
    ok!(zeMemGetIpcHandle(context.0, range, &raw mut handle));
    let files = files_with_the_numbers_of_closed_ones();

    let other = reserve(&context, SIZE);
    let mapped = ze!(zeVirtualMemMap(
        context.0,
        other,
        SIZE,
        memories[0],
        0,
        READ_WRITE
    ));
    assert_eq!(mapped, sys::ZE_RESULT_ERROR_UNKNOWN);
    let mut pool_handle = sys::ze_ipc_event_pool_handle_t::default();
    let exported = ze!(zeEventPoolGetIpcHandle(pool, &raw mut pool_handle));
    assert_eq!(exported, sys::ZE_RESULT_ERROR_UNKNOWN);
    ok!(zeVirtualMemUnmap(context.0, range, SIZE));
    for memory in memories {
        ok!(zePhysicalMemDestroy(context.0, memory));
    }
    ok!(zeEventPoolDestroy(pool));
    for (file, inode) in files {
        let about = file.metadata().unwrap();
        assert_eq!((about.ino(), about.len()), (inode, CONTENT.len() as u64));
        let mut content = CONTENT.map(|_| 0);
        file.read_exact_at(&mut content, 0).unwrap();
        assert!(content == CONTENT);
    }
}

/// The close of any descriptor of a file ends the locks that the process has of it.
#[test]
fn opening_a_handle_ends_no_locks_of_the_program() {
    let context = Context::new();
    let pool = event_pool(&context);
    let mut handle = sys::ze_ipc_event_pool_handle_t::default();
    ok!(zeEventPoolGetIpcHandle(pool, &raw mut handle));
    let path = std::env::temp_dir().join(format!("zeusm-locked-{}", std::process::id()));
    let locked = File::create(&path).unwrap();
    let range = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    let set = unsafe { libc::fcntl(locked.as_raw_fd(), libc::F_SETLK, &raw const range) };
    assert_eq!(set, 0);
    // A handle of another process, with the number of the file here.
    let number = locked.as_raw_fd().to_ne_bytes().map(u8::cast_signed);
    handle.data[..4].copy_from_slice(&number);
    let mut opened = ptr::null_mut();
    ze!(zeEventPoolOpenIpcHandle(context.0, handle, &raw mut opened));
    forks::in_child(|| {
        let locked = File::options().write(true).open(&path).unwrap();
        let set = unsafe { libc::fcntl(locked.as_raw_fd(), libc::F_SETLK, &raw const range) };
        set == -1
    });
    std::fs::remove_file(&path).unwrap();
    ok!(zeEventPoolDestroy(pool));
}

#[test]
fn the_numbers_of_closed_standard_streams_are_not_used() {
    process::alone("the_input_is_closed");
}

#[test]
#[ignore = "closes the standard input; run by the test before"]
fn the_input_is_closed() {
    let context = Context::new();
    assert_eq!(unsafe { libc::close(0) }, 0);
    let (memory, pool, range) = (
        physical(&context, SIZE),
        event_pool(&context),
        reserve(&context, SIZE),
    );
    ok!(zeVirtualMemMap(
        context.0, range, SIZE, memory, 0, READ_WRITE
    ));
    let mut handle = sys::ze_ipc_mem_handle_t::default();
    ok!(zeMemGetIpcHandle(context.0, range, &raw mut handle));
    let mut pool_handle = sys::ze_ipc_event_pool_handle_t::default();
    ok!(zeEventPoolGetIpcHandle(pool, &raw mut pool_handle));
    assert_eq!(unsafe { libc::fcntl(0, libc::F_GETFD) }, -1);
    ok!(zeVirtualMemUnmap(context.0, range, SIZE));
    ok!(zePhysicalMemDestroy(context.0, memory));
    ok!(zeEventPoolDestroy(pool));
}
