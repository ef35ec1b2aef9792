//! Allocations from a context's pools: the attributes of their pointers, and reuse while work is in flight.

use std::sync::Arc;

use zeusm::pool::{Options, Pool};
use zeusm::usm::{Allocation, LevelZeroProvider};
use zeusm::{Completion, Context, Device, Error, IpcHandle, Queue, Runtime, UsmKind, ipc};

const KINDS: [UsmKind; 3] = [UsmKind::Host, UsmKind::Device, UsmKind::Shared];

fn setup() -> (Context, Device) {
    let device = Runtime::get().unwrap().default_device().unwrap();
    (Context::new(device.driver()).unwrap(), device)
}

fn fill(queue: &Queue, memory: &Allocation, value: u8) -> Option<zeusm::Event> {
    // SAFETY: the memory has as many bytes; the tests keep it until the event is complete.
    unsafe { queue.fill_raw(memory.as_ptr(), value, memory.size(), Completion::Event) }.unwrap()
}

#[test]
fn a_context_has_one_pool_for_each_kind() {
    let (context, device) = setup();
    let pools = KINDS.map(|kind| context.pool(&device, kind).unwrap());
    for (pool, kind) in pools.iter().zip(KINDS) {
        assert_eq!(pool.provider().kind(), kind);
        let memory = Allocation::in_pool(pool, 100, 0).unwrap();
        assert!(memory.is_pooled());
        assert_eq!((memory.kind(), memory.size()), (kind, 100));
        assert_eq!((memory.context(), memory.device()), (&context, &device));
        let again = context.clone().pool(&device, kind).unwrap();
        assert_eq!(again.statistics().used_count, 1);
    }
    let (other, _) = setup();
    let elsewhere = other.pool(&device, UsmKind::Host).unwrap();
    drop(Allocation::in_pool(&pools[0], 100, 0).unwrap());
    assert_eq!(elsewhere.statistics().allocations, 0);
}

#[test]
fn pointer_attributes_are_those_of_the_block_and_not_of_the_slab() {
    let (context, device) = setup();
    for kind in KINDS {
        let pool = context.pool(&device, kind).unwrap();
        let block = Allocation::in_pool(&pool, 100, 0).unwrap();
        let neighbour = Allocation::in_pool(&pool, 100, 0).unwrap();
        for memory in [&block, &neighbour] {
            let base = memory.as_ptr().addr();
            for offset in [0, 99] {
                let attributes = context.pointer_attributes(base + offset).unwrap();
                assert_eq!((attributes.base, attributes.size), (base, 100));
                assert_eq!(attributes.kind, kind);
            }
            let padding = context.pointer_attributes(base + 100).unwrap_err();
            assert!(matches!(padding, Error::UnknownPointer { .. }));
        }
        let base = block.as_ptr().addr();
        drop(block);
        let freed = context.pointer_attributes(base).unwrap_err();
        assert!(matches!(freed, Error::UnknownPointer { .. }));
        let (other, _) = setup();
        let foreign = other.pointer_attributes(neighbour.as_ptr().addr());
        assert!(foreign.is_err(), "it is unknown to another context");
    }
}

#[test]
fn direct_allocations_belong_to_no_pool() {
    let (context, device) = setup();
    let memory = Allocation::direct(&context, &device, UsmKind::Shared, 100, 0).unwrap();
    assert!(!memory.is_pooled());
    let pool = context.pool(&device, UsmKind::Shared).unwrap();
    assert_eq!(pool.statistics().allocations, 0);
    let empty = Allocation::in_pool(&pool, 0, 0).unwrap();
    assert!(empty.as_ptr().is_null());
    assert_eq!(pool.statistics().allocations, 0);
}

#[test]
fn a_failure_names_the_memory_and_the_pools_figures() {
    let (context, device) = setup();
    let provider = LevelZeroProvider::new(&context, &device, UsmKind::Device);
    let options = Options {
        limit: Some(1 << 20),
        ..Options::default()
    };
    let pool = Pool::new(provider, options);
    let error = Allocation::in_pool(&pool, 5 << 20, 0).unwrap_err();
    let message = error.to_string();
    for part in [
        "device USM",
        device.name(),
        "limit of 1 MiB (1048576 bytes)",
    ] {
        assert!(message.contains(part), "{part:?} in {message}");
    }
    let error = Allocation::in_pool(&pool, 64, 3).unwrap_err();
    assert!(matches!(error, Error::Alignment { .. }));
}

#[test]
fn allocations_outlive_context_and_pool() {
    let (context, device) = setup();
    let pool = context.pool(&device, UsmKind::Shared).unwrap();
    let memory = Allocation::in_pool(&pool, 1000, 0).unwrap();
    drop((pool, context));
    let context = memory.context().clone();
    let base = memory.as_ptr().addr();
    assert_eq!(context.pointer_attributes(base).unwrap().size, 1000);
    // The pools were dropped with the context's last owner, so new allocations are direct.
    assert!(context.pool(&device, UsmKind::Shared).is_none());
    let other = Allocation::new(&context, &device, UsmKind::Shared, 100, 0).unwrap();
    assert!(!other.is_pooled());
    drop(memory);
    assert!(context.pointer_attributes(base).is_err());
}

#[test]
fn a_block_is_not_reused_while_work_on_it_is_in_flight() {
    let (context, device) = setup();
    let queue = Queue::new(&context, &device).unwrap();
    let pool = context.pool(&device, UsmKind::Shared).unwrap();
    // Long operations before the one under test.
    let long = Allocation::direct(&context, &device, UsmKind::Shared, 64 << 20, 0).unwrap();
    let long = Arc::new(long);
    let mut seen_running = 0;
    for round in 0..6u8 {
        for _ in 0..4 {
            let event = fill(&queue, &long, round).unwrap();
            queue.retain(&event, Arc::clone(&long));
        }
        let memory = Allocation::in_pool(&pool, 5000, 0).unwrap();
        let address = memory.as_ptr();
        let event = fill(&queue, &memory, round).unwrap();
        // The last owner is dropped before the fill has run.
        queue.retain(&event, memory);
        let next = Allocation::in_pool(&pool, 5000, 0).unwrap();
        if !event.is_complete().unwrap() {
            seen_running += 1;
            assert_ne!(next.as_ptr(), address);
        }
        queue.wait().unwrap();
    }
    assert!(seen_running > 0, "the work was always complete too early");
    queue.wait().unwrap();
    assert_eq!(pool.statistics().used_count, 0);
}

#[test]
fn blocks_of_one_slab_are_exported_separately() {
    exports_blocks_separately(UsmKind::Device);
}

#[test]
fn blocks_of_a_slab_of_shared_memory_are_exported_separately() {
    exports_blocks_separately(UsmKind::Shared);
}

fn exports_blocks_separately(kind: UsmKind) {
    let (context, device) = setup();
    let pool = context.pool(&device, kind).unwrap();
    let queue = Queue::new(&context, &device).unwrap();
    let blocks = [1u8, 2, 3].map(|value| {
        let block = Allocation::in_pool(&pool, 256, 0).unwrap();
        let event = fill(&queue, &block, value).unwrap();
        queue.finish(&event, "fill", 256).unwrap();
        block
    });
    if let Err(refusal @ ipc::Error::Migrates { .. }) = IpcHandle::new(&blocks[0], 0..256) {
        // Shared memory that migrates has neither slabs nor handles.
        assert_eq!(kind, UsmKind::Shared, "{refusal}");
        return;
    }
    let handles = blocks
        .each_ref()
        .map(|block| IpcHandle::new(block, 0..256).unwrap());
    let [first, second, third] = blocks;
    drop(first);
    assert!(handles[0].open(&context, &device).is_err(), "it is freed");
    for (handle, block) in [(&handles[1], &second), (&handles[2], &third)] {
        let mapping = handle.open(&context, &device).unwrap();
        let mut seen = [0u8; 256];
        // SAFETY: the mapping has as many bytes, and lives until the copy is complete.
        let event = unsafe {
            let from = mapping.as_ptr().cast_const().cast();
            queue.copy_raw(
                seen.as_mut_ptr().cast(),
                from,
                seen.len(),
                Completion::Event,
            )
        };
        queue.finish(&event.unwrap().unwrap(), "copy", 256).unwrap();
        let base = context.pointer_attributes(block.as_ptr().addr());
        assert_eq!(base.unwrap().size, 256);
        assert!(seen.iter().all(|&byte| byte == seen[0]), "{seen:?}");
        assert_eq!(seen[0], if std::ptr::eq(block, &second) { 2 } else { 3 });
    }
}
