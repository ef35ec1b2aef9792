//! Allocations: sizes, alignments, kinds and errors.
#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[path = "support/child.rs"]
mod child;

use std::ptr::NonNull;
use std::sync::Arc;

use zeusm::runtime::POOL_VARIABLE;
use zeusm::usm::{Allocation, LARGEST_ALIGNMENT, pools_enabled};
use zeusm::{
    Context, Device, DeviceMemory, Error, HostMemory, IpcHandle, Runtime, SharedMemory, UsmKind,
    sys,
};

const KINDS: [UsmKind; 3] = [UsmKind::Host, UsmKind::Device, UsmKind::Shared];

fn setup() -> (Context, Device) {
    let device = Runtime::get().unwrap().default_device().unwrap();
    (Context::new(device.driver()).unwrap(), device)
}

#[test]
fn allocations_have_pointer_attributes() {
    let (context, device) = setup();
    for kind in KINDS {
        let memory = Allocation::new(&context, &device, kind, 1000, 0).unwrap();
        let base = memory.as_ptr().addr();
        for offset in [0, 1, 999] {
            let attributes = context.pointer_attributes(base + offset).unwrap();
            assert_eq!(attributes.kind, kind);
            assert_eq!(attributes.base, base);
            assert!(attributes.size >= 1000);
            assert_eq!(attributes.device.is_some(), kind != UsmKind::Host);
            assert!(attributes.device.is_none_or(|owner| owner == device));
        }
    }
}

#[test]
fn freed_and_foreign_pointers_are_unknown() {
    let (context, device) = setup();
    let memory = Allocation::new(&context, &device, UsmKind::Shared, 64, 0).unwrap();
    let address = memory.as_ptr().addr();
    drop(memory);
    let local = 0u8;
    for pointer in [address, (&raw const local).addr(), 8] {
        let error = context.pointer_attributes(pointer).unwrap_err();
        assert!(matches!(error, Error::UnknownPointer(named) if named == pointer));
        assert!(error.to_string().contains(&format!("{pointer:#x}")));
    }
}

#[test]
fn another_context_does_not_know_the_memory() {
    let (context, device) = setup();
    let other = Context::new(device.driver()).unwrap();
    for kind in [UsmKind::Host, UsmKind::Device, UsmKind::Shared] {
        let memory = Allocation::new(&context, &device, kind, 64, 0).unwrap();
        let pointer = memory.as_ptr().addr();
        context.pointer_attributes(pointer).unwrap();
        let error = other.pointer_attributes(pointer).unwrap_err();
        assert!(matches!(error, Error::UnknownPointer(named) if named == pointer));
    }
}

#[test]
fn alignment_is_honoured_or_refused() {
    let (context, device) = setup();
    for kind in KINDS {
        for alignment in (0..=21).map(|power| 1 << power) {
            let memory = Allocation::new(&context, &device, kind, 3, alignment).unwrap();
            assert!(memory.as_ptr().addr().is_multiple_of(alignment));
        }
        for alignment in [
            3,
            48,
            LARGEST_ALIGNMENT + 1,
            LARGEST_ALIGNMENT * 2,
            usize::MAX,
        ] {
            let error = Allocation::new(&context, &device, kind, 64, alignment).unwrap_err();
            assert!(matches!(error, Error::Alignment { .. }));
            let message = error.to_string();
            assert!(message.contains(&alignment.to_string()), "{message}");
            assert!(
                message.contains(&LARGEST_ALIGNMENT.to_string()),
                "{message}"
            );
        }
    }
}

#[test]
fn allocations_of_no_bytes_are_null() {
    let (context, device) = setup();
    for kind in KINDS {
        let memory = Allocation::new(&context, &device, kind, 0, 64).unwrap();
        assert!(memory.as_ptr().is_null());
    }
    assert!(
        HostMemory::new(&context, &device, 0)
            .unwrap()
            .as_slice()
            .unwrap()
            .is_empty()
    );
    assert!(
        SharedMemory::new(&context, &device, 0)
            .unwrap()
            .as_slice()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn the_error_of_a_too_large_allocation_describes_it() {
    let (context, device) = setup();
    for kind in KINDS {
        for size in [1 << 50, isize::MAX as usize, usize::MAX] {
            let error = Allocation::new(&context, &device, kind, size, 0).unwrap_err();
            let message = error.to_string();
            for part in [&size.to_string(), kind.name(), device.name()] {
                assert!(message.contains(part), "{part:?} in {message}");
            }
            let unsupported = sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
            assert_eq!(error.result(), Some(unsupported), "{message}");
            let mut cause = &error;
            while let Error::Allocation { cause: next, .. } | Error::Pool { cause: next, .. } =
                cause
            {
                cause = next;
            }
            let Error::TooLarge {
                size: refused,
                limit,
                ..
            } = cause
            else {
                panic!("{message}");
            };
            assert!(*refused >= size && *limit < size as u64, "{message}");
        }
    }
}

#[test]
fn host_and_shared_memory_are_slices() {
    let (context, device) = setup();
    let mut host = HostMemory::new(&context, &device, 256).unwrap();
    let mut shared = SharedMemory::new(&context, &device, 256).unwrap();
    for (index, byte) in host.as_mut_slice().unwrap().iter_mut().enumerate() {
        *byte = index as u8;
    }
    let bytes = host.as_slice().unwrap();
    shared.as_mut_slice().unwrap().copy_from_slice(bytes);
    assert_eq!(shared.as_slice().unwrap()[255], 255);
    assert_eq!(bytes, shared.as_slice().unwrap());
}

/// The owner is dropped after the memory, whose bytes are the program's again.
#[test]
fn memory_of_the_program_is_used_where_it_is() {
    let (context, device) = setup();
    let mut program = vec![1_u8; 100_000];
    let bytes = NonNull::from(program.as_mut_slice());
    let owner = Arc::new(());
    let keep = Box::new(Arc::clone(&owner));
    let memory = match unsafe { Allocation::from_host(&context, &device, bytes, keep) } {
        // Intel's driver, unless its cache is turned off.
        Err(Error::InPlace { cause, .. }) if matches!(*cause, Error::KeepsPages) => return,
        answer => answer.unwrap(),
    };
    assert!(memory.is_in_place() && !memory.is_pooled());
    let attributes = context.pointer_attributes(memory.as_ptr().addr()).unwrap();
    assert_eq!(attributes.kind, UsmKind::Host);
    let again = unsafe { Allocation::from_host(&context, &device, bytes, Box::new(())) };
    let error = again.unwrap_err();
    assert!(
        matches!(&error, Error::InPlace { size: 100_000, .. }),
        "{error}"
    );
    assert_eq!(Arc::strong_count(&owner), 2);
    let pointer = memory.as_ptr().addr();
    drop(memory);
    assert_eq!(Arc::strong_count(&owner), 1);
    assert!(context.pointer_attributes(pointer).is_err());
}

#[test]
fn exported_memory_gives_no_slices() {
    let (context, device) = setup();
    // Not shared memory, which cannot be exported where it migrates.
    let mut memory = HostMemory::new(&context, &device, 256).unwrap();
    let neighbour = HostMemory::new(&context, &device, 256).unwrap();
    assert!(memory.as_mut_slice().is_ok());
    IpcHandle::of_memory(&mut memory, 0..16).unwrap();
    for refused in [memory.as_slice().err(), memory.as_mut_slice().err()] {
        let text = refused.unwrap().to_string();
        assert!(
            text.contains("256 bytes of host USM") && text.contains("exported"),
            "{text}"
        );
    }
    assert!(neighbour.as_slice().is_ok());
}

#[test]
fn memory_has_properties_and_debug_output() {
    let (context, device) = setup();
    let memory = DeviceMemory::new(&context, &device, 77).unwrap();
    let text = format!("{memory:?}");
    assert!(text.contains("device USM of 77 bytes"), "{text}");
    assert_eq!(memory.context(), &context);
    assert_eq!(memory.device(), &device);
    assert_eq!(memory.into_allocation().kind(), UsmKind::Device);
}

/// Whether allocations of a process with this value of `ZEUSM_POOL` come from a pool.
fn is_pooled_with(value: Option<&str>) -> bool {
    let mut command = child::command("default_pool");
    command.env_remove(POOL_VARIABLE);
    command.envs(value.map(|value| (POOL_VARIABLE, value)));
    child::run(command).contains("pooled: true")
}

#[test]
fn the_environment_disables_the_default_pools() {
    assert!(is_pooled_with(None) && is_pooled_with(Some("1")));
    assert!(!is_pooled_with(Some("0")) && !is_pooled_with(Some("off")));
}

#[test]
#[ignore = "run by the_environment_disables_the_default_pools"]
fn default_pool() {
    let (context, device) = setup();
    // Not shared memory, which is not pooled where it migrates.
    let memory = Allocation::new(&context, &device, UsmKind::Device, 64, 0).unwrap();
    let cached = Allocation::cached(&context, &device, UsmKind::Device, 64, 0);
    assert_eq!(pools_enabled(), memory.is_pooled());
    assert_eq!(cached.is_some(), memory.is_pooled());
    println!("pooled: {}", memory.is_pooled());
}

#[test]
fn an_allocations_context_has_the_same_pools() {
    let (context, device) = setup();
    let pool = context.pool(&device, UsmKind::Shared).unwrap();
    let memory = Allocation::in_pool(&pool, 100, 0).unwrap();
    let attributes = context.pointer_attributes(memory.as_ptr().addr()).unwrap();
    assert_eq!((attributes.size, memory.is_pooled()), (100, true));
    // The pool's provider has a weak reference to the pools.
    let weak = memory.context().clone();
    let same = weak.pool(&device, UsmKind::Shared).unwrap();
    assert_eq!(same.statistics().used_count, 1);
    drop((pool, same, context));
    assert!(weak.pool(&device, UsmKind::Shared).is_none());
}

#[test]
fn memory_of_the_program_without_bytes_has_no_pages() {
    let (context, device) = setup();
    let nothing = NonNull::slice_from_raw_parts(NonNull::<u8>::dangling(), 0);
    let memory = unsafe { Allocation::from_host(&context, &device, nothing, Box::new(())) };
    let memory = memory.unwrap();
    assert!(memory.size() == 0 && !memory.is_in_place());
}
