#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::driver::Raw;
use super::identity::File;
use super::ledger::Entry;
use super::seal::Key;
use super::{Error, IpcHandle};
use crate::usm::UsmKind;

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
    fn entries()(token: [u8; 16], descriptor: i32, file in files(), place: u32, number: u64) -> Entry {
        Entry { token, descriptor, file, place, number }
    }
}

prop_compose! {
    fn handles()(
        boot: [u8; 16],
        device: [u8; 16],
        process: u32,
        kind in kinds(),
        entry in entries(),
        raw in prop::array::uniform32(any::<(u8, u8)>()),
        file in prop::option::of(files()),
        id: u64,
        offset in 0..u64::MAX / 2,
        size in 1..u64::MAX / 2,
        key: [u8; 16],
    ) -> IpcHandle {
        let raw = Raw(std::array::from_fn(|index| {
            let (even, odd) = raw[index / 2];
            if index % 2 == 0 { even } else { odd }
        }));
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
