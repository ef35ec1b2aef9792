#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use proptest::prelude::*;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::process::{Resource, Rlimit};

use super::driver::{self, Raw};
use super::identity::{File, is_trusted};
use super::ledger::{self, Entry, Foreign};
use super::lent::Lent;
use super::seal::Key;
use super::{Error, IpcHandle};
use crate::process::in_child;
use crate::usm::{Allocation, UsmKind};
use crate::{Context, Runtime};

fn kinds() -> impl Strategy<Value = UsmKind> {
    prop_oneof![
        Just(UsmKind::Host),
        Just(UsmKind::Device),
        Just(UsmKind::Shared)
    ]
}

prop_compose! {
    fn files()(device: u64, inode: u64) -> File {
        File { device, inode }
    }
}

prop_compose! {
    fn entries()(token: [u8; 16], descriptor in 0..i32::MAX, file in files(), place: u32, number: u64) -> Entry {
        Entry { token, descriptor, file, place, number }
    }
}

prop_compose! {
    fn handles()(
        boot: [u8; 16],
        device: [u8; 16],
        process in 1..i32::MAX.cast_unsigned(),
        descriptor in 0..i32::MAX,
        kind in kinds(),
        entry in entries(),
        raw in prop::array::uniform32(any::<(u8, u8)>()),
        file in prop::option::of(files()),
        id: u64,
        offset in 0..u64::MAX / 2,
        size in 1..u64::MAX / 2,
        key: [u8; 16],
    ) -> IpcHandle {
        let mut raw = Raw(std::array::from_fn(|index| {
            let (even, odd) = raw[index / 2];
            if index % 2 == 0 { even } else { odd }
        }));
        raw.0[..4].copy_from_slice(&descriptor.to_ne_bytes());
        let whole = offset + size;
        let seal = Default::default();
        IpcHandle { boot, device, process, kind, entry, raw, file, id, whole, offset, size, seal }.sealed(&Key(key))
    }
}

proptest! {
    #[test]
    fn bytes_say_all_of_a_handle(handle in handles()) {
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
    fn any_damage_is_seen(handle in handles(), place in 0..IpcHandle::LENGTH, damage in 1u8..) {
        let mut bytes = handle.to_bytes();
        bytes[place] ^= damage;
        match IpcHandle::from_bytes(&bytes) {
            Err(Error::Malformed { .. }) => {}
            Err(Error::Version { .. }) => prop_assert!((8..12).contains(&place)),
            answer => prop_assert!(false, "{answer:?}"),
        }
    }

    #[test]
    fn numbers_that_no_kernel_gives_are_refused(
        handle in handles(), process in 1 << 31..u32::MAX, descriptor in i32::MIN..0,
    ) {
        let entry = Entry { descriptor, ..handle.entry };
        let mut raw = handle.raw;
        raw.0[..4].copy_from_slice(&descriptor.to_ne_bytes());
        for wrong in [
            IpcHandle { process: 0, ..handle.clone() },
            IpcHandle { process, ..handle.clone() },
            IpcHandle { entry, ..handle.clone() },
            IpcHandle { raw, file: Some(handle.file.unwrap_or_default()), ..handle.clone() },
        ] {
            let answer = IpcHandle::from_bytes(&wrong.to_bytes());
            let malformed = matches!(answer, Err(Error::Malformed { .. }));
            prop_assert!(malformed);
        }
        // A driver without descriptors has something else there.
        let none = IpcHandle { raw, file: None, ..handle };
        prop_assert!(IpcHandle::from_bytes(&none.to_bytes()).is_ok());
    }

    #[test]
    fn arbitrary_bytes_are_no_handle(bytes: Vec<u8>) {
        prop_assert!(IpcHandle::from_bytes(&bytes).is_err());
    }

    #[test]
    fn a_range_outside_is_refused_even_with_a_right_checksum(mut handle in handles(), excess in 1u64..) {
        handle.whole = handle.whole.saturating_sub(excess);
        prop_assert!(IpcHandle::from_bytes(&handle.to_bytes()).is_err());
        handle.size = 0;
        prop_assert!(IpcHandle::from_bytes(&handle.to_bytes()).is_err());
    }
}

/// What only a process that may look into the exporting one can make: a handle of its own with that one's seal.
#[test]
fn no_seal_makes_a_mapping_larger_than_it_is() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let memory = Allocation::direct(&context, &device, UsmKind::Shared, 3 << 20, 0).unwrap();
    let handle = IpcHandle::new(&memory, 0..3 << 20).unwrap();
    let key = ledger::get().as_ref().unwrap().key;
    let large = IpcHandle {
        whole: 1 << 30,
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
            let answer = changed.clone().sealed(&key).open(&context, &device);
            assert!(matches!(answer, Err(Error::Malformed { .. })), "{answer:?}");
        }
    }
}

#[test]
fn another_key_makes_another_seal() {
    let content = [7; 100];
    let key = Key([1; Key::LENGTH]);
    let seal = key.seal(&content);
    assert!(key.fits(&content, &seal));
    assert!(!key.fits(&content[1..], &seal));
    assert!(!Key([2; Key::LENGTH]).fits(&content, &seal));
    assert_eq!(format!("{key:?}"), "Key(..)");
    for bit in 0..128 {
        let mut other = seal;
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(!key.fits(&content, &other));
    }
}

/// A number that no other thread gets by chance, as the kernel gives out the lowest free one.
const HIGH: i32 = 700;

fn is_open(number: i32) -> bool {
    // SAFETY: the number is only looked at.
    File::of(unsafe { BorrowedFd::borrow_raw(number) }).is_some()
}

fn close(number: i32) {
    // SAFETY: the test has the number.
    drop(unsafe { OwnedFd::from_raw_fd(number) });
}

/// As a thread would get the number just after the driver closed it.
fn reuse(number: i32, file: &fs::File) -> OwnedFd {
    close(number);
    let reused = rustix::io::fcntl_dupfd_cloexec(file, number).unwrap();
    assert_eq!(reused.as_raw_fd(), number);
    reused
}

#[test]
fn a_lent_descriptor_is_closed_once() {
    let file = tempfile::tempfile().unwrap();
    let kept = || OwnedFd::from(file.try_clone().unwrap());
    let left_open = Lent::new(kept(), HIGH).unwrap();
    let number = left_open.number();
    assert!(number >= HIGH && is_open(number));
    drop(left_open);
    assert!(!is_open(number));
    let closed = Lent::new(kept(), HIGH).unwrap();
    close(closed.number());
    drop(closed);
    // Closed, and another thread's by now: of another file, and of the same one opened again.
    let again = format!("/proc/self/fd/{}", file.as_raw_fd());
    for other in [
        tempfile::tempfile().unwrap(),
        fs::File::open(again).unwrap(),
    ] {
        let closed = Lent::new(kept(), HIGH + 1).unwrap();
        let reused = reuse(closed.number(), &other);
        drop(closed);
        assert!(is_open(reused.as_raw_fd()));
    }
    // Above any limit, it is another number.
    assert!(Lent::new(kept(), i32::MAX).unwrap().number() < HIGH);
}

#[test]
fn a_process_that_may_write_no_file_is_told_so() {
    in_child(|| {
        let none = Rlimit {
            current: Some(0),
            maximum: None,
        };
        rustix::process::setrlimit(Resource::Fsize, none).unwrap();
        assert!(matches!(ledger::enter(None), Err(Error::System { .. })));
    });
}

#[test]
fn only_a_ledger_is_one() {
    let head = [&b"zeusmLED"[..], &[9; 16], &[0; 8]].concat();
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&head, 0).unwrap();
    assert!(Foreign::read(file.into()).is_none(), "a file on a disk");
    let memory = |content: &[u8], seals| {
        let file = rustix::fs::memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::io::write(&file, content).unwrap();
        rustix::fs::fcntl_add_seals(&file, seals).unwrap();
        Foreign::read(file)
    };
    let seals = SealFlags::SHRINK | SealFlags::SEAL;
    assert!(memory(&head, SealFlags::SEAL).is_none());
    assert!(memory(&head[1..], seals).is_none());
    assert!(memory(&head[..20], seals).is_none());
    let ledger = memory(&head, seals).unwrap();
    assert_eq!(
        (ledger.key.0, ledger.maker),
        ([9; 16], rustix::process::geteuid().as_raw())
    );
    let entry = |place, number| Entry {
        place,
        number,
        ..Entry::default()
    };
    assert!(ledger.is_live(&entry(0, 0)));
    assert!(!ledger.is_live(&entry(0, 1)) && !ledger.is_live(&entry(u32::MAX, 0)));
}

#[test]
fn only_the_same_user_and_root_are_trusted() {
    let own = rustix::process::geteuid().as_raw();
    assert!(is_trusted(own) && is_trusted(0) && !is_trusted(own + 1));
}

#[test]
fn a_handle_begins_with_a_descriptor_or_with_none() {
    let raw = |number: i32| {
        let mut bytes = [0; 64];
        bytes[..4].copy_from_slice(&number.to_ne_bytes());
        Raw(bytes)
    };
    let file = tempfile::tempfile().unwrap();
    let found = raw(file.as_raw_fd()).file();
    assert!(found.is_some() && found == File::of(&file));
    for number in [-1, i32::MIN, i32::MAX] {
        assert_eq!(raw(number).file(), None);
    }
}

#[test]
fn the_systems_answers_come_with_advice() {
    for (errno, advice) in [
        (libc::EMFILE, "RLIMIT_NOFILE"),
        (libc::ENFILE, "fs.file-max"),
        (libc::EFBIG, "RLIMIT_FSIZE"),
        (libc::EPERM, "seccomp"),
        (libc::ENOSYS, "seccomp"),
        (libc::ENOENT, "/proc"),
        (libc::EIO, "(os error 5)"),
    ] {
        let cause = std::io::Error::from_raw_os_error(errno);
        let plain = format!("what failed: {cause}");
        let what = "what failed";
        let told = Error::System { what, cause }.to_string();
        assert!(told.starts_with(&plain) && told.contains(advice), "{told}");
        assert_eq!(told.len() > plain.len(), errno != libc::EIO, "{told}");
    }
    for (errno, advice) in [(libc::ECONNREFUSED, "begin to listen"), (libc::EIO, "")] {
        let socket = std::io::Error::from_raw_os_error(errno);
        let plain = format!("over its socket: {socket}");
        let told = Error::Unreachable {
            process: 7,
            forbidden: std::io::Error::from_raw_os_error(libc::EPERM),
            socket,
        };
        let told = told.to_string();
        let (_, after) = told.split_once(&plain).unwrap();
        assert!(after.contains(advice), "{told}");
        assert_eq!(after.is_empty(), advice.is_empty(), "{told}");
    }
}

#[test]
fn a_refusal_adds_no_words_where_the_driver_has_none() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    // The driver's words are of the thread's last failure; a new thread has had none.
    let explain = || driver::explain(&device, 64, crate::Error::NullPointer);
    let told = std::thread::scope(|scope| scope.spawn(explain).join().unwrap());
    let Error::Refused { cause, description } = told else {
        panic!("{told}");
    };
    assert!(matches!(cause, crate::Error::NullPointer), "{cause}");
    assert_eq!(description, "");
}
