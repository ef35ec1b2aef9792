#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use proptest::prelude::*;
use rustix::fs::MemfdFlags;
use zeusm_process::{FileId, testing::in_child};

use super::driver::{self, DriverHandle, Subject};
use super::driver_descriptor::DriverDescriptor;
use super::handle::Key;
use super::identity::is_trusted;
use super::socket::{check_client, peer_user};
use super::{Error, IpcHandle, exports};
use crate::pool::{Options, Pool};
use crate::usm::{Allocation, LevelZeroProvider, UsmKind};
use crate::{Context, Runtime};

fn kinds() -> impl Strategy<Value = Subject> {
    let kinds = [UsmKind::Host, UsmKind::Device, UsmKind::Shared];
    prop::sample::select(kinds.map(Subject::Memory).to_vec())
}

#[test]
fn a_server_answers_its_own_user_and_root() {
    let [root, one, other] = [0, 1, 2].map(rustix::process::Uid::from_raw);
    for (client, is_answered) in [(one, true), (root, true), (other, false)] {
        assert_eq!(check_client(one, client).is_ok(), is_answered);
    }
}

#[test]
fn what_no_handle_can_name_is_refused() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let memory = Allocation::new(&context, &device, UsmKind::Host, 100, 0).unwrap();
    for (start, end) in [(0, 101), (3, 2)] {
        let refused = IpcHandle::new(&memory, start..end);
        assert!(matches!(refused, Err(Error::Range { .. })));
    }
    let empty = IpcHandle::new(&memory, 5..5);
    assert!(matches!(empty, Err(Error::NothingToShare(_))));
}

prop_compose! {
    fn handles()(
        boot: [u8; 16],
        device: [u8; 16],
        process in 1..i32::MAX.cast_unsigned(),
        descriptor in 0..i32::MAX,
        subject in kinds(),
        token: [u8; 16],
        export: u64,
        driver_handle in prop::array::uniform32(any::<(u8, u8)>()),
        allocation_id: u64,
        offset in 0..u64::MAX / 2,
        size in 1..u64::MAX / 2,
        key: [u8; 16],
    ) -> IpcHandle {
        let mut driver_handle = DriverHandle(std::array::from_fn(|index| {
            let (even, odd) = driver_handle[index / 2];
            if index % 2 == 0 { even } else { odd }
        }));
        driver_handle.0[..4].copy_from_slice(&descriptor.to_ne_bytes());
        let allocation_size = offset + size;
        IpcHandle {
            boot, device, process, subject, token, export, driver_handle, allocation_id, allocation_size, offset, size,
            tag: Default::default(),
        }.authenticated(&Key(key))
    }
}

proptest! {
    #[test]
    fn a_handle_survives_serialisation(handle in handles()) {
        let bytes = handle.to_bytes();
        prop_assert_eq!(bytes.len(), IpcHandle::LENGTH);
        prop_assert_eq!(IpcHandle::from_bytes(&bytes).unwrap(), handle);
    }

    #[test]
    fn too_few_and_too_many_bytes_are_refused(handle in handles(), more: Vec<u8>) {
        let mut bytes = handle.to_bytes();
        for length in 0..bytes.len() {
            let answer = IpcHandle::from_bytes(&bytes[..length]);
            let malformed = matches!(answer, Err(Error::Malformed { .. }));
            prop_assert!(malformed);
        }
        bytes.extend(&more);
        prop_assert_eq!(IpcHandle::from_bytes(&bytes).is_ok(), more.is_empty());
    }

    #[test]
    fn any_damage_is_detected(handle in handles(), position in 0..IpcHandle::LENGTH, damage in 1u8..) {
        let mut bytes = handle.to_bytes();
        bytes[position] ^= damage;
        match IpcHandle::from_bytes(&bytes) {
            Err(Error::Malformed { .. }) => {}
            Err(Error::Version { .. }) => prop_assert!((8..12).contains(&position)),
            answer => prop_assert!(false, "{answer:?}"),
        }
    }

    #[test]
    fn invalid_process_ids_are_refused(handle in handles(), process in 1 << 31..u32::MAX) {
        for process in [0, process] {
            let invalid = IpcHandle { process, ..handle.clone() };
            let answer = IpcHandle::from_bytes(&invalid.to_bytes());
            let malformed = matches!(answer, Err(Error::Malformed { .. }));
            prop_assert!(malformed);
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused(bytes: Vec<u8>) {
        prop_assert!(IpcHandle::from_bytes(&bytes).is_err());
    }

    #[test]
    fn a_range_outside_is_refused_even_with_a_right_checksum(mut handle in handles(), excess in 1u64..) {
        handle.allocation_size = handle.allocation_size.saturating_sub(excess);
        prop_assert!(IpcHandle::from_bytes(&handle.to_bytes()).is_err());
        handle.size = 0;
        prop_assert!(IpcHandle::from_bytes(&handle.to_bytes()).is_err());
    }
}

/// A handle of the exporting process that says more than there is.
#[test]
fn an_authenticated_handle_cannot_reach_beyond_the_mapping() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let memory = Allocation::direct(&context, &device, UsmKind::Shared, 3 << 20, 0).unwrap();
    let handle = IpcHandle::new(&memory, 0..3 << 20).unwrap();
    let large = IpcHandle {
        allocation_size: 1 << 30,
        size: 1 << 30,
        ..handle.clone()
    };
    for changed in [
        large.clone(),
        IpcHandle {
            offset: 1 << 29,
            size: 1,
            ..large
        },
    ] {
        for is_open in [false, true] {
            let _opened = is_open.then(|| handle.open(&context, &device).unwrap());
            let changed = exports::handle(handle.export, |_| changed.clone());
            let changed = changed.unwrap().unwrap();
            let answer = changed.open(&context, &device);
            assert!(matches!(answer, Err(Error::Malformed { .. })), "{answer:?}");
        }
    }
}

#[test]
fn another_key_makes_another_tag() {
    let content = [7; 100];
    let key = Key([1; Key::LENGTH]);
    let tag = key.tag(&content);
    assert!(key.verify(&content, &tag));
    assert!(!key.verify(&content[1..], &tag));
    assert!(!Key([2; Key::LENGTH]).verify(&content, &tag));
    for bit in 0..128 {
        let mut other = tag;
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(!key.verify(&content, &other));
    }
}

/// A number that other threads do not get, as the kernel assigns the lowest free one.
const HIGH: i32 = 700;

fn is_open(number: i32) -> bool {
    // SAFETY: the number is only used for a status query.
    FileId::of(unsafe { BorrowedFd::borrow_raw(number) }).is_some()
}

fn close(number: i32) {
    // SAFETY: the test owns the descriptor.
    drop(unsafe { OwnedFd::from_raw_fd(number) });
}

/// Reuses the number as another thread could just after the driver closed it.
fn reuse(number: i32, file: &fs::File) -> OwnedFd {
    close(number);
    let reused = rustix::io::fcntl_dupfd_cloexec(file, number).unwrap();
    assert_eq!(reused.as_raw_fd(), number);
    reused
}

#[test]
fn a_descriptor_for_the_driver_is_closed_once() {
    let file = tempfile::tempfile().unwrap();
    let kept = || OwnedFd::from(file.try_clone().unwrap());
    let left_open = DriverDescriptor::new(kept(), HIGH).unwrap();
    let number = left_open.number();
    assert!(number >= HIGH && is_open(number));
    drop(left_open);
    assert!(!is_open(number));
    let closed = DriverDescriptor::new(kept(), HIGH).unwrap();
    close(closed.number());
    drop(closed);
    // The driver closed it, and another thread reused the number: for another file, and for the same one opened again.
    let again = format!("/proc/self/fd/{}", file.as_raw_fd());
    for other in [
        tempfile::tempfile().unwrap(),
        fs::File::open(again).unwrap(),
    ] {
        let closed = DriverDescriptor::new(kept(), HIGH + 1).unwrap();
        let reused = reuse(closed.number(), &other);
        drop(closed);
        assert!(is_open(reused.as_raw_fd()));
    }
    // A number above the limit is replaced by another one.
    assert!(DriverDescriptor::new(kept(), i32::MAX).unwrap().number() < HIGH);
}

#[test]
fn a_descriptor_for_the_driver_leaves_files_of_the_program() {
    in_child(|| {
        let memory = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        let number = memory.as_raw_fd();
        let passed = DriverDescriptor::new(memory, HIGH).unwrap();
        let file = tempfile::tempfile().unwrap();
        let reused = [number, passed.number()].map(|number| reuse(number, &file));
        drop(passed);
        assert!(reused.iter().all(|it| is_open(it.as_raw_fd())));
    });
}

/// An exported allocation of a child's, in which the program closes the memory's descriptor, and opens a file of that number.
fn with_closed_export(check: impl FnOnce(&Context, Allocation, &IpcHandle, OwnedFd)) {
    in_child(|| {
        let device = Runtime::get().unwrap().default_device().unwrap();
        let context = Context::new(device.driver()).unwrap();
        let memory = Allocation::direct(&context, &device, UsmKind::Device, 3 << 20, 0).unwrap();
        let handle = IpcHandle::new(&memory, 0..3 << 20).unwrap();
        let file = tempfile::tempfile().unwrap();
        let reused = reuse(handle.driver_handle.descriptor(), &file);
        check(&context, memory, &handle, reused);
    });
}

#[test]
fn the_end_of_an_export_closes_no_file_of_the_program() {
    with_closed_export(|_, memory, _, reused| {
        drop(memory);
        assert!(is_open(reused.as_raw_fd()));
    });
}

#[test]
fn memory_whose_descriptor_the_program_closed_is_not_opened() {
    with_closed_export(|context, memory, handle, _reused| {
        let answer = handle.open(context, memory.device());
        assert!(matches!(answer, Err(Error::Freed { .. })), "{answer:?}");
    });
}

#[test]
fn memory_whose_descriptor_the_program_closed_has_no_more_handles() {
    with_closed_export(|_, memory, _, _reused| {
        let answer = IpcHandle::new(&memory, 0..1);
        assert!(matches!(answer, Err(Error::Closed)), "{answer:?}");
    });
}

/// The descriptors of this process.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn an_exported_allocation_has_one_descriptor_until_it_is_freed() {
    in_child(|| {
        let device = Runtime::get().unwrap().default_device().unwrap();
        let context = Context::new(device.driver()).unwrap();
        let export = |kind| {
            let memory = Allocation::direct(&context, &device, kind, 5000, 0).unwrap();
            let handle = IpcHandle::new(&memory, 0..100).unwrap();
            (memory, handle)
        };
        // Starts the server.
        let first = export(UsmKind::Host);
        let before = descriptors();
        let kinds = [UsmKind::Host, UsmKind::Device, UsmKind::Shared];
        let exported: Vec<_> = kinds.repeat(20).into_iter().map(export).collect();
        assert_eq!(descriptors(), before + exported.len());
        for (_, handle) in &exported {
            handle.open(&context, &device).unwrap();
        }
        assert_eq!(descriptors(), before + exported.len());
        drop(exported);
        assert_eq!(descriptors(), before);
        drop(first);
        assert_eq!(descriptors(), before - 1);
    });
}

#[test]
fn the_blocks_of_a_slab_share_its_descriptor() {
    in_child(|| {
        let device = Runtime::get().unwrap().default_device().unwrap();
        let context = Context::new(device.driver()).unwrap();
        let provider = LevelZeroProvider::new(&context, &device, UsmKind::Device);
        let pool = Pool::new(provider, Options::default());
        let block = || Allocation::in_pool(&pool, 64, 0).unwrap();
        let export = |block: &Allocation| IpcHandle::new(block, 0..64).unwrap();
        let mut blocks: Vec<_> = (0..500).map(|_| block()).collect();
        let first = export(&blocks[0]);
        let before = descriptors();
        let handles: Vec<_> = blocks.iter().map(export).collect();
        assert_eq!(descriptors(), before);
        let [one, other] = [&handles[1], &handles[2]];
        assert_eq!(one.driver_handle, other.driver_handle);
        assert_ne!(one.export, other.export);
        assert!(is_open(first.driver_handle.descriptor()));
        drop(blocks.split_off(1));
        export(&blocks[0]).open(&context, &device).unwrap();
        drop(blocks);
        // The slab is exported again.
        let block = block();
        let again = export(&block);
        assert_eq!(again.driver_handle, first.driver_handle);
        again.open(&context, &device).unwrap();
        assert_eq!(descriptors(), before);
        drop((block, pool));
        assert_eq!(descriptors(), before - 1);
    });
}

#[test]
fn only_the_same_user_and_root_are_trusted() {
    let own = rustix::process::geteuid().as_raw();
    assert!(is_trusted(own) && is_trusted(0) && !is_trusted(own + 1));
}

#[test]
fn a_driver_handle_may_begin_with_a_descriptor() {
    let driver_handle = |number: i32| {
        let mut bytes = [0; 64];
        bytes[..4].copy_from_slice(&number.to_ne_bytes());
        DriverHandle(bytes)
    };
    let file = tempfile::tempfile().unwrap();
    let own = driver_handle(file.as_raw_fd())
        .duplicate()
        .unwrap()
        .unwrap();
    assert_ne!(own.as_raw_fd(), file.as_raw_fd());
    assert!(FileId::of(&own).is_some() && FileId::of(&own) == FileId::of(&file));
    for number in [-1, i32::MIN, i32::MAX] {
        assert!(driver_handle(number).duplicate().unwrap().is_none());
    }
}

#[test]
fn system_errors_include_advice() {
    for (errno, advice) in [
        (libc::EMFILE, "RLIMIT_NOFILE"),
        (libc::ENFILE, "fs.file-max"),
        (libc::EFBIG, "RLIMIT_FSIZE"),
        (libc::EPERM, "seccomp"),
        (libc::ENOSYS, "seccomp"),
        (libc::ENOENT, "/proc"),
        (libc::ENOMEM, "are free"),
        (libc::EAGAIN, "ulimit -u"),
        (libc::EIO, "(os error 5)"),
    ] {
        let cause = std::io::Error::from_raw_os_error(errno);
        let plain = format!("what failed: {cause}");
        let what = "what failed";
        let message = Error::System { what, cause }.to_string();
        assert!(
            message.starts_with(&plain) && message.contains(advice),
            "{message}"
        );
        assert_eq!(message.len() > plain.len(), errno != libc::EIO, "{message}");
    }
}

#[test]
fn a_refusal_without_a_description_has_none() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let subject = Subject::Memory(UsmKind::Host);
    // The driver describes the last error of the thread; a new thread has had none.
    let explain = || driver::explain(&device, subject, 64, crate::Error::NullPointer);
    let error = std::thread::scope(|scope| scope.spawn(explain).join().unwrap());
    let Error::Refused { cause, description } = error else {
        panic!("{error}");
    };
    assert!(matches!(cause, crate::Error::NullPointer), "{cause}");
    assert_eq!(description, "");
}

#[test]
fn the_user_at_the_other_end_of_no_socket_is_an_error() {
    let file = OwnedFd::from(fs::File::open("/dev/null").unwrap());
    let error = peer_user(&UnixStream::from(file)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOTSOCK));
}
