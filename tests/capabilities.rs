//! Devices with few capabilities, which a library in C simulates.
#![allow(clippy::unwrap_used)]

#[path = "support/child.rs"]
mod child;
#[path = "support/compile.rs"]
mod compile;

use std::collections::BTreeSet;

use compile::compile;
use zeusm::pool::Provider;
use zeusm::usm::{Allocation, LevelZeroProvider};
use zeusm::{Context, Device, DeviceMemory, Error, Queue, Runtime, UsmKind, sys};

#[test]
fn calls_follow_the_devices_capabilities() {
    let root = tempfile::tempdir().unwrap();
    compile(root.path(), "liblimited.so", "limited.c", &[]);
    let mut command = child::command("limited_device");
    command.env("ZEUSM_RUNTIME", root.path().join("liblimited.so"));
    child::run(command);
}

#[test]
#[ignore = "run by calls_follow_the_devices_capabilities"]
fn limited_device() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let [first, second] = device.driver().devices().unwrap() else {
        panic!("it has two devices");
    };
    assert_eq!(&device, first);
    assert_eq!(device.largest_allocation(), 4096);
    assert!(!device.has_concurrent_shared_access());
    allocations(&context, &device);
    attributes(&context, second);
    events(&context, &device);
    peers(&context, first, second);
    another_driver(&context, first);
    hints(&context, &device);
    loss(&context, &device);
}

fn allocations(context: &Context, device: &Device) {
    for (size, alignment) in [(100, 0), (4096, 64), (4097, 0), (1 << 20, 0)] {
        for kind in [UsmKind::Device, UsmKind::Host] {
            let memory = Allocation::direct(context, device, kind, size, alignment);
            assert_eq!(memory.unwrap().size(), size);
        }
    }
    // The library has no function for shared memory.
    let error = Allocation::direct(context, device, UsmKind::Shared, 64, 0).unwrap_err();
    assert!(
        matches!(error, Error::Allocation { size: 64, .. }),
        "{error}"
    );
    for (kind, shared) in [
        (UsmKind::Host, true),
        (UsmKind::Device, true),
        (UsmKind::Shared, false),
    ] {
        let provider = LevelZeroProvider::new(context, device, kind);
        assert_eq!(provider.shares_allocations(), shared, "{kind}");
    }
}

fn attributes(context: &Context, device: &Device) {
    let address = 0x1000_0000;
    let found = context.pointer_attributes(address).unwrap();
    assert_eq!((found.kind, found.id), (UsmKind::Device, 7));
    assert_eq!((found.base, found.size), (address - 10, 4096));
    assert_eq!(found.device.as_ref(), Some(device));
}

fn events(context: &Context, device: &Device) {
    let queue = Queue::new(context, device).unwrap();
    let events: Vec<_> = (0..64).map(|_| queue.host_task(|| ()).unwrap()).collect();
    let handles: BTreeSet<_> = events.iter().map(|event| event.handle().addr()).collect();
    assert_eq!(handles.len(), events.len());
}

/// A device can access its own memory, although it has no peer access.
fn peers(context: &Context, device: &Device, peer: &Device) {
    let queues = [device, peer].map(|device| Queue::new(context, device).unwrap());
    let memory = || DeviceMemory::new(context, device, 64).unwrap();
    queues[0].fill(&mut memory(), 1).unwrap();
    let error = queues[1].fill(&mut memory(), 1).unwrap_err();
    assert!(
        matches!(error, Error::NoPeerAccess { size: 64, .. }),
        "{error}"
    );
    let (to, from) = (memory(), memory());
    let (into, out) = (to.as_ptr().cast_mut().cast(), from.as_ptr().cast());
    let own = Queue::new(context, device).unwrap();
    // The library has no copies between contexts, either.
    let elsewhere = Queue::new(&Context::new(device.driver()).unwrap(), device).unwrap();
    for (queue, is_direct) in [(&own, true), (&queues[1], false), (&elsewhere, false)] {
        // SAFETY: both are alive, and have 64 bytes; the library completes operations at once.
        let event = unsafe { queues[0].peer_copy_async_raw(into, queue, out, 64) };
        assert_eq!(event.unwrap().is_some(), is_direct);
    }
}

/// The library aborts when it gets the device of the other driver in a call of the first one.
fn another_driver(context: &Context, own: &Device) {
    let [_, other] = Runtime::get().unwrap().drivers() else {
        panic!("it has two drivers");
    };
    let device = &other.devices().unwrap()[0];
    let is_refused = |error: &Error| {
        assert!(matches!(error, Error::OtherDriver { .. }), "{error}");
    };
    is_refused(&Queue::new(context, device).unwrap_err());
    for kind in [UsmKind::Host, UsmKind::Device, UsmKind::Shared] {
        for make in [Allocation::new, Allocation::direct] {
            let error = make(context, device, kind, 64, 0).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("another driver than the context"), "{text}");
        }
        let pool = context.pool(device, kind).unwrap();
        assert!(Allocation::in_pool(&pool, 64, 0).is_err());
    }
    assert!(!own.can_access(device).unwrap());
    assert!(!device.can_access(own).unwrap());
    let theirs = Context::new(other).unwrap();
    is_refused(&Queue::new(&theirs, own).unwrap_err());
    let queues = (
        Queue::new(&theirs, device).unwrap(),
        Queue::new(context, own).unwrap(),
    );
    let memory = DeviceMemory::new(context, own, 64).unwrap();
    let (into, out) = (memory.as_ptr().cast_mut().cast(), memory.as_ptr().cast());
    // SAFETY: the memory is alive; nothing is copied.
    let event = unsafe { queues.0.peer_copy_async_raw(into, &queues.1, out, 64) };
    assert!(event.unwrap().is_none());
}

fn hints(context: &Context, device: &Device) {
    let queue = Queue::new(context, device).unwrap();
    let memory = DeviceMemory::new(context, device, 64).unwrap();
    let (pointer, advice) = (
        memory.as_ptr().cast(),
        sys::ZE_MEMORY_ADVICE_SET_READ_MOSTLY,
    );
    for size in [0, 64] {
        // SAFETY: the memory outlives the hints.
        let answers = unsafe {
            [
                queue.prefetch_raw(pointer, size),
                queue.advise_raw(pointer, size, advice),
            ]
        };
        let results = answers.map(|answer| answer.err().and_then(|error| error.result()));
        let unsupported = (size > 0).then_some(sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
        // A driver that migrates shared memory gets no advice.
        assert!(device.migrates_shared_memory());
        assert_eq!(results, [unsupported, None]);
    }
}

/// A lost device is reported, whatever the driver's result; no more operations are submitted to it.
fn loss(context: &Context, device: &Device) {
    let queue = Queue::new(context, device).unwrap();
    let mut memory = DeviceMemory::new(context, device, 64).unwrap();
    queue.fill(&mut memory, 1).unwrap();
    // SAFETY: the library is a Level Zero driver, and this is the type of the function, which has no preconditions.
    unsafe {
        let path = std::env::var_os("ZEUSM_RUNTIME").unwrap();
        let library = sys::load_from(path).unwrap();
        let lose: unsafe extern "C" fn() = library.symbol(c"limited_lose_device").unwrap();
        lose();
    }
    for _ in 0..2 {
        let error = queue.fill(&mut memory, 1).unwrap_err();
        assert_eq!(error.result(), Some(sys::ZE_RESULT_ERROR_DEVICE_LOST));
        let lost = format!("{} is lost", device.name());
        assert!(error.to_string().contains(&lost), "{error}");
    }
}
