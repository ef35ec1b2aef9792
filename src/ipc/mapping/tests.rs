#![allow(clippy::unwrap_used)]

use super::*;
use crate::Runtime;
use crate::usm::Allocation;

#[test]
fn allocations_in_a_pool_of_the_driver_are_told_apart() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let memory = Allocation::direct(&context, &device, UsmKind::Host, 4096, 0).unwrap();
    let handle = IpcHandle::new(&memory, 0..4096).unwrap();
    let changed = |index: usize| {
        let mut other = handle.clone();
        other.driver_handle.0[index] ^= 1;
        other.allocation_key()
    };
    assert_eq!(changed(0), handle.allocation_key());
    assert_ne!(changed(8), handle.allocation_key());
}

#[test]
fn memory_is_mapped_once_in_a_context_and_known_while_it_is() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let contexts = [(); 2].map(|()| Context::new(device.driver()).unwrap());
    let memory = Allocation::direct(&contexts[0], &device, UsmKind::Shared, 4096, 0).unwrap();
    let handle = IpcHandle::new(&memory, 0..4096).unwrap();
    let open = |context| handle.open(context, &device).unwrap();
    let known = || {
        let mapped = MAPPED.get_or_default().lock();
        let of_handle = mapped
            .iter()
            .filter(|(key, _)| key.0 == handle.allocation_key());
        of_handle.filter(|(_, it)| it.strong_count() > 0).count()
    };
    let [one, same, other] = [0, 0, 1].map(|number| open(&contexts[number]));
    assert_eq!(one.as_ptr(), same.as_ptr());
    assert_ne!(one.as_ptr(), other.as_ptr());
    assert_eq!(known(), 2);
    drop((one, other));
    assert_eq!(known(), 1);
    drop(same);
    assert_eq!(known(), 0);
    open(&contexts[0]);
}
