//! What the tests share: memory, edited handles, other processes.

use std::process::Command;
use std::slice;
use std::sync::{Mutex, MutexGuard};

use zeusm::ipc::{Error, Mapping};
use zeusm::usm::Allocation;
use zeusm::{Context, Device, IpcHandle, Runtime, UsmKind};

pub const KINDS: [UsmKind; 3] = [UsmKind::Host, UsmKind::Device, UsmKind::Shared];

pub fn place() -> (Context, Device) {
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

/// The bytes at `pointer`, where host and device are one; the copies below prove it where they are not.
pub fn bytes<'a>(pointer: *mut std::ffi::c_void, size: usize) -> &'a mut [u8] {
    // SAFETY: the tests own the memory, and use it from one place at a time.
    unsafe { slice::from_raw_parts_mut(pointer.cast(), size) }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|index| u8::from_str_radix(&text[2 * index..2 * index + 2], 16).unwrap())
        .collect()
}

/// The handle with other bytes at a place, and a checksum that says that they are right.
pub fn edited(handle: &IpcHandle, place: usize, change: &[u8]) -> IpcHandle {
    let mut bytes = handle.to_bytes();
    bytes[place..place + change.len()].copy_from_slice(change);
    IpcHandle::from_bytes(&checked(bytes)).unwrap()
}

/// The bytes with a checksum that says that they are right.
pub fn checked(mut bytes: Vec<u8>) -> Vec<u8> {
    let (content, check) = bytes.split_at_mut(IpcHandle::LENGTH - 4);
    check.copy_from_slice(&crc32fast::hash(content).to_le_bytes());
    bytes
}

/// Runs an ignored test in a new process, which must succeed; what it printed.
pub fn in_a_new_process(test: &str, task: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("ZEUSM_TEST_IPC", task)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    let passed = output.status.success() && told.contains("1 passed");
    assert!(passed, "{told}\n{wrong}");
    told
}

/// What a process without privileges has anyway: no right to look into others that do not want it.
pub fn give_up_tracing() {
    let header = [0x2008_0522u32, 0];
    let none = [0u32; 6];
    // SAFETY: the kernel reads a header of version 3 and as many words as that has.
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

/// While it lives, no other process of the user may look into this one; one at a time, as it is the whole process's.
pub struct Secluded(#[allow(dead_code, reason = "held, not read")] MutexGuard<'static, ()>);

impl Secluded {
    pub fn new() -> Self {
        static ONE: Mutex<()> = Mutex::new(());
        let one = ONE.lock().unwrap();
        // SAFETY: changes an attribute of the process.
        assert_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) }, 0);
        Self(one)
    }
}

impl Drop for Secluded {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) };
    }
}
