//! Pools that give their physical memory back, and keep their addresses.

use std::ops::Range;

use zeusm::pool::{Options, Pool};
use zeusm::usm::{Allocation, LevelZeroProvider, is_suspended};
use zeusm::{Completion, Context, Device, Error, IpcHandle, Queue, Runtime, UsmKind};

const SIZES: [usize; 5] = [1, 1000, 70_000, 1 << 20, 5 << 20];

fn setup() -> (Context, Device, Queue, Pool<LevelZeroProvider>) {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let queue = Queue::new(&context, &device).unwrap();
    let provider = LevelZeroProvider::suspendable(&context, &device);
    let pool = Pool::new(provider, Options::default());
    (context, device, queue, pool)
}

fn fill(queue: &Queue, memory: &Allocation, value: u8) {
    // SAFETY: the memory has as many bytes, and lives until the event is complete.
    let event = unsafe { queue.fill_raw(memory.as_ptr(), value, memory.size(), Completion::Event) }
        .unwrap();
    event.inspect(|event| queue.finish(event, "fill", memory.size()).unwrap());
}

fn bytes(queue: &Queue, memory: &Allocation) -> Vec<u8> {
    let mut bytes = vec![0_u8; memory.size()];
    let to = bytes.as_mut_ptr().cast();
    // SAFETY: both have as many bytes, and live until the event is complete.
    let event =
        unsafe { queue.copy_raw(to, memory.as_ptr(), memory.size(), Completion::Event) }.unwrap();
    event.inspect(|event| queue.finish(event, "copy", memory.size()).unwrap());
    bytes
}

fn suspend(pool: &Pool<LevelZeroProvider>, keep: bool) -> zeusm::Result<usize> {
    // SAFETY: these tests have no work in flight.
    unsafe { pool.suspend(keep, |_| Ok::<(), Error>(())) }
}

#[test]
fn addresses_and_bytes_are_kept() {
    let (context, device, queue, pool) = setup();
    let blocks = SIZES.map(|size| Allocation::in_pool(&pool, size, 0).unwrap());
    for (value, block) in (1..).zip(&blocks) {
        let attributes = context.pointer_attributes(block.as_ptr().addr()).unwrap();
        assert_eq!(attributes.kind, UsmKind::Device);
        assert_eq!(attributes.device.as_ref(), Some(&device));
        assert_eq!(attributes.size, block.size());
        fill(&queue, block, value);
    }
    for keep in [true, true, false] {
        let back = suspend(&pool, keep).unwrap();
        assert!(back >= SIZES.iter().sum(), "{back}");
        assert!(
            blocks
                .iter()
                .all(|block| is_suspended(block.as_ptr().addr()))
        );
        let error = Allocation::in_pool(&pool, 100, 0).unwrap_err();
        assert!(error.to_string().contains("suspended"), "{error}");
        pool.resume().unwrap();
        assert!(!is_suspended(blocks[0].as_ptr().addr()));
        for (value, block) in (1..).zip(&blocks).filter(|_| keep) {
            assert!(bytes(&queue, block).iter().all(|&byte| byte == value));
        }
    }
    assert!(IpcHandle::new(&blocks[0], 0..1).is_err());
}

#[test]
fn an_error_of_the_wait_leaves_the_pool_in_use() {
    let (_, _, queue, pool) = setup();
    let block = Allocation::in_pool(&pool, 100, 0).unwrap();
    fill(&queue, &block, 7);
    let mut asked = Vec::new();
    let wait = |ranges: &[Range<usize>]| {
        assert!(is_suspended(block.as_ptr().addr()));
        asked.extend(ranges.iter().cloned());
        Err(Error::NullPointer)
    };
    // SAFETY: there is no work in flight.
    let error = unsafe { pool.suspend(true, wait) }.unwrap_err();
    assert!(matches!(error, Error::NullPointer));
    assert!(
        asked
            .iter()
            .any(|range| range.contains(&block.as_ptr().addr()))
    );
    assert_eq!(bytes(&queue, &block), [7; 100]);
}

/// A block that is freed meanwhile is gone at the end, and the others are as before.
#[test]
fn blocks_are_freed_meanwhile() {
    let (_, _, queue, pool) = setup();
    let blocks = SIZES.map(|size| Allocation::in_pool(&pool, size, 0).unwrap());
    blocks.iter().for_each(|block| fill(&queue, block, 3));
    let [first, second, third, fourth, fifth] = blocks;
    let wait = |_: &[Range<usize>]| {
        drop((second, fifth));
        pool.free_all_blocks();
        Ok::<(), Error>(())
    };
    // SAFETY: there is no work in flight.
    unsafe { pool.suspend(true, wait) }.unwrap();
    drop(third);
    pool.free_all_blocks();
    pool.resume().unwrap();
    for block in [first, fourth] {
        assert!(bytes(&queue, &block).iter().all(|&byte| byte == 3));
    }
}

#[test]
fn a_pool_without_virtual_memory_is_refused() {
    let (context, device, ..) = setup();
    let plain = context.pool(&device, UsmKind::Device).unwrap();
    assert!(matches!(suspend(&plain, true), Err(Error::NotSuspendable)));
    assert!(matches!(plain.resume(), Err(Error::NotSuspendable)));
}
