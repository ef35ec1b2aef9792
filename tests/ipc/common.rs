//! Helpers of the IPC tests: memory, edited handles, other processes.

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard};

use zeusm::ipc::{Error, Mapping};
use zeusm::usm::Allocation;
use zeusm::{Completion, Context, Device, IpcHandle, Queue, Runtime, UsmKind};

use super::child;

pub fn setup() -> (Context, Device) {
    let device = Runtime::get().unwrap().default_device().unwrap();
    (Context::new(device.driver()).unwrap(), device)
}

pub fn allocate((context, device): &(Context, Device), kind: UsmKind, size: usize) -> Allocation {
    Allocation::new(context, device, kind, size, 0).unwrap()
}

pub fn open(handle: &IpcHandle, (context, device): &(Context, Device)) -> Result<Mapping, Error> {
    IpcHandle::from_bytes(&handle.to_bytes())
        .unwrap()
        .open(context, device)
}

/// The kinds of memory that the device's driver can export.
pub fn kinds((_, device): &(Context, Device)) -> impl Iterator<Item = UsmKind> {
    let migrates = device.migrates_shared_memory();
    [UsmKind::Host, UsmKind::Device, UsmKind::Shared]
        .into_iter()
        .filter(move |&kind| kind != UsmKind::Shared || !migrates)
}

/// Reads USM of any kind by a queue, as the host cannot access all of it: Intel's driver opens shared memory as device memory.
pub fn read(target: &(Context, Device), from: *const c_void, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    copy(target, bytes.as_mut_ptr().cast(), from, size);
    bytes
}

/// Writes USM of any kind by a queue.
pub fn write(target: &(Context, Device), to: *mut c_void, bytes: &[u8]) {
    copy(target, to, bytes.as_ptr().cast(), bytes.len());
}

fn copy((context, device): &(Context, Device), to: *mut c_void, from: *const c_void, size: usize) {
    let queue = Queue::new(context, device).unwrap();
    // SAFETY: the tests own both ranges, and the queue's drop waits for the copy.
    unsafe { queue.copy_raw(to, from, size, Completion::Event) }.unwrap();
    queue.wait().unwrap();
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|index| u8::from_str_radix(&text[2 * index..2 * index + 2], 16).unwrap())
        .collect()
}

/// The handle with other bytes at an offset, and a right checksum.
pub fn edited(handle: &IpcHandle, offset: usize, change: &[u8]) -> IpcHandle {
    let mut bytes = handle.to_bytes();
    bytes[offset..offset + change.len()].copy_from_slice(change);
    IpcHandle::from_bytes(&checked(bytes)).unwrap()
}

/// The bytes with a right checksum.
pub fn checked(mut bytes: Vec<u8>) -> Vec<u8> {
    let (content, check) = bytes.split_at_mut(IpcHandle::LENGTH - 4);
    check.copy_from_slice(&crc32fast::hash(content).to_le_bytes());
    bytes
}

/// Runs an ignored test in a new process, which gets `task`; returns its output.
pub fn in_a_new_process(test: &str, task: &str) -> String {
    let mut command = child::command(test);
    command.env("ZEUSM_TEST_IPC", task);
    child::run(command)
}

/// Drops all capabilities, among them the one to trace processes that are not dumpable.
pub fn drop_capabilities() {
    let header = [0x2008_0522u32, 0];
    let none = [0u32; 6];
    // SAFETY: the kernel reads a header of version 3 and the six words of that version.
    let answer = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    assert_eq!(answer, 0);
}

pub fn is_tracing_forbidden(process: u32) -> bool {
    let process = rustix::process::Pid::from_raw(process as i32).unwrap();
    let process =
        rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).unwrap();
    let taken = rustix::process::pidfd_getfd(process, 0, rustix::process::PidfdGetfdFlags::empty());
    taken.err() == Some(rustix::io::Errno::PERM)
}

/// While it lives, this process is not dumpable, so that other processes of the user may not trace it. One at a time, as
/// the attribute is the process's.
pub struct Undumpable(#[allow(dead_code, reason = "held, not read")] MutexGuard<'static, ()>);

impl Undumpable {
    pub fn new() -> Self {
        static LOCK: Mutex<()> = Mutex::new(());
        let guard = LOCK.lock().unwrap();
        // SAFETY: changes an attribute of the process.
        assert_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) }, 0);
        Self(guard)
    }
}

impl Drop for Undumpable {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) };
    }
}
