//! The properties of a pool over any provider: sizes, alignment, no overlap, all memory returned.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use zeusm::pool::{Block, LARGEST_CLASS, Options, Pool, Provider, SMALLEST_ALIGNMENT};
use zeusm::usm::{LARGEST_ALIGNMENT, UsmKind};
use zeusm::{Error, Result};

use crate::provider::Tracker;
use crate::scale::scaled;

/// Provides writable memory from the heap.
struct Heap;

fn layout(size: usize, alignment: usize) -> Layout {
    Layout::from_size_align(size, alignment.max(4096)).unwrap()
}

// SAFETY: the global allocator has the same contract.
unsafe impl Provider for Heap {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        assert!(alignment <= LARGEST_ALIGNMENT);
        // SAFETY: the size is not 0. All allocations have the largest alignment, as `free` does not get the alignment.
        let memory = unsafe { alloc(layout(size, LARGEST_ALIGNMENT)) };
        Ok(NonNull::new(memory.cast()).unwrap())
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        // SAFETY: as in `allocate`.
        unsafe { dealloc(address.as_ptr().cast(), layout(size, LARGEST_ALIGNMENT)) };
    }
}

const SIZES: [usize; 14] = [
    1,
    63,
    64,
    65,
    128,
    1000,
    4096,
    5000,
    65_536,
    100_000,
    700_000,
    LARGEST_CLASS,
    LARGEST_CLASS + 1,
    5 << 20,
];

/// The conformance suite for providers.
pub fn conformance<P: Provider>(provider: P) {
    let pool = Pool::new(provider, Options::default());
    let mut blocks = Vec::new();
    for _ in 0..3 {
        for size in SIZES {
            for alignment in [0, 1, 8, 64, 256, 4096, 65_536, LARGEST_ALIGNMENT] {
                let block = pool.allocate(size, alignment).unwrap();
                assert_eq!(block.size(), size);
                let alignment = alignment.max(SMALLEST_ALIGNMENT);
                assert!(block.address().addr().get().is_multiple_of(alignment));
                blocks.push(block);
            }
        }
        no_overlap(&blocks);
        let statistics = pool.statistics();
        assert_eq!(statistics.used_count, blocks.len());
        let requested: usize = blocks.iter().map(Block::size).sum();
        assert_eq!(statistics.requested_bytes, requested);
        assert!(statistics.used_bytes >= requested);
        assert!(statistics.total_bytes >= statistics.used_bytes);
        let mut index = 0;
        blocks.retain(|_| {
            index += 1;
            index % 3 == 0
        });
    }
    drop(blocks);
    let statistics = pool.statistics();
    assert_eq!(statistics.used_bytes, 0);
    assert_eq!(statistics.requested_bytes, 0);
    assert_eq!(statistics.used_count, 0);
    assert_eq!(pool.free_all_blocks(), statistics.total_bytes);
    assert_eq!(pool.statistics().total_bytes, 0);
}

fn no_overlap<P: Provider>(blocks: &[Block<P>]) {
    let mut ranges: Vec<_> = blocks
        .iter()
        .map(|block| (block.address().addr().get(), block.size()))
        .collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:x?}");
    }
}

#[test]
fn addresses_conform() {
    let tracker = Tracker::default();
    conformance(tracker.provider());
    assert_eq!(tracker.bytes(), 0);
    assert_eq!(tracker.frees(), tracker.allocations());
}

#[test]
fn the_heap_conforms() {
    conformance(Heap);
}

#[test]
#[cfg_attr(windows, ignore = "the CPU runtime is for Linux")]
fn level_zero_conforms() {
    let device = zeusm::Runtime::get().unwrap().default_device().unwrap();
    let context = zeusm::Context::new(device.driver()).unwrap();
    for kind in [UsmKind::Host, UsmKind::Device, UsmKind::Shared] {
        conformance(zeusm::usm::LevelZeroProvider::new(&context, &device, kind));
    }
}

#[test]
fn blocks_keep_their_content() {
    let pool = Pool::new(Heap, Options::default());
    let blocks: Vec<_> = (0..scaled(2000, 50))
        .map(|index| {
            let block = pool.allocate(1 + (index * 37) % 9000, 0).unwrap();
            // SAFETY: the block is owned, from the heap, and has that size.
            unsafe {
                block
                    .address()
                    .cast::<u8>()
                    .write_bytes(index as u8, block.size());
            }
            block
        })
        .collect();
    for (index, block) in blocks.iter().enumerate() {
        let first = block.address().cast::<u8>().as_ptr();
        // SAFETY: the block is owned, from the heap, has that size and was written.
        let bytes = unsafe { std::slice::from_raw_parts(first, block.size()) };
        assert!(bytes.iter().all(|&byte| byte == index as u8));
    }
}

#[test]
fn impossible_alignments_are_refused() {
    let pool = Pool::new(Tracker::default().provider(), Options::default());
    for alignment in [3, 48, LARGEST_ALIGNMENT * 2, usize::MAX] {
        let error = pool.allocate(64, alignment).unwrap_err();
        assert!(matches!(error, Error::Alignment { .. }), "{error}");
    }
    assert_eq!(pool.statistics().allocations, 0);
}

#[test]
fn impossible_sizes_are_refused_and_leave_nothing_allocated() {
    let tracker = Tracker::default();
    let pool = Pool::new(tracker.provider(), Options::default());
    for size in [(1 << 50) + 1, isize::MAX as usize, usize::MAX] {
        let error = pool.allocate(size, 0).unwrap_err();
        assert!(error.to_string().contains(&size.to_string()), "{error}");
    }
    assert_eq!(pool.statistics().total_bytes, 0);
    assert_eq!(pool.statistics().failures, 3);
    drop(pool.allocate(100, 0).unwrap());
}

#[test]
fn an_impossible_size_is_refused_by_a_pool_with_memory() {
    let (answer, answered) = mpsc::channel();
    let thread = thread::spawn(move || {
        let pool = Pool::new(Tracker::default().provider(), Options::default());
        // The first is free, and the second in use.
        drop(pool.allocate(3 << 20, 0));
        for size in [usize::MAX, usize::MAX - 100] {
            answer.send(pool.allocate(size, 0).is_err()).unwrap();
            let _used = pool.allocate(64, 0).unwrap();
            answer.send(pool.allocate(size, 0).is_err()).unwrap();
        }
    });
    for _ in 0..4 {
        // Under Miri it takes seconds.
        let is_refused = answered.recv_timeout(Duration::from_secs(60));
        assert_eq!(is_refused, Ok(true));
    }
    thread.join().unwrap();
}

#[test]
fn a_freed_block_is_reused() {
    let tracker = Tracker::default();
    let pool = Pool::new(tracker.provider(), Options::default());
    for size in SIZES {
        let address = pool.allocate(size, 0).unwrap().address();
        let calls = tracker.allocations();
        assert_eq!(pool.allocate(size, 0).unwrap().address(), address);
        assert_eq!(tracker.allocations(), calls, "{size} bytes");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Allocate { size: usize, power: u32 },
    Free(prop::sample::Index),
    Trim(usize),
    ResetPeak,
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![
        5 => 1..2000usize,
        3 => 2000..200_000usize,
        2 => 200_000..8_000_000usize,
    ];
    prop_oneof![
        10 => (size, 0..22u32).prop_map(|(size, power)| Step::Allocate { size, power }),
        9 => any::<prop::sample::Index>().prop_map(Step::Free),
        1 => (0..64usize << 20).prop_map(Step::Trim),
        1 => Just(Step::ResetPeak),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scaled(64, 2) as u32))]

    #[test]
    fn any_sequence_has_exact_statistics(steps in prop::collection::vec(step(), 1..300)) {
        let tracker = Tracker::default();
        let pool = Pool::new(tracker.provider(), Options::default());
        let mut live: Vec<Block<_>> = Vec::new();
        let mut taken = BTreeMap::new();
        let (mut allocations, mut peak) = (0, 0);
        for step in steps {
            match step {
                Step::Allocate { size, power } => {
                    let block = pool.allocate(size, 1 << power).unwrap();
                    let address = block.address().addr().get();
                    prop_assert!(address.is_multiple_of(1 << power));
                    prop_assert!(tracker.covers(address, size));
                    let before = taken.range(..address).next_back();
                    prop_assert!(before.is_none_or(|(start, size)| start + size <= address));
                    let after = taken.range(address..).next();
                    prop_assert!(after.is_none_or(|(start, _)| address + size <= *start));
                    taken.insert(address, size);
                    live.push(block);
                    allocations += 1;
                }
                Step::Free(_) if live.is_empty() => {}
                Step::Free(index) => {
                    let block = live.swap_remove(index.index(live.len()));
                    taken.remove(&block.address().addr().get());
                }
                Step::Trim(keep) => {
                    let before = tracker.bytes();
                    prop_assert_eq!(pool.trim(keep), before - tracker.bytes());
                }
                Step::ResetPeak => {
                    pool.reset_peak();
                    peak = 0;
                }
            }
            let statistics = pool.statistics();
            peak = peak.max(statistics.used_bytes);
            prop_assert_eq!(statistics.used_count, live.len());
            prop_assert_eq!(statistics.requested_bytes, taken.values().sum::<usize>());
            prop_assert!(statistics.used_bytes >= statistics.requested_bytes);
            prop_assert_eq!(statistics.total_bytes, tracker.bytes());
            prop_assert_eq!(statistics.free_bytes, statistics.total_bytes - statistics.used_bytes);
            prop_assert_eq!(statistics.peak_bytes, peak);
            prop_assert_eq!(statistics.allocations, allocations);
            prop_assert_eq!(statistics.hits + statistics.misses, allocations);
            prop_assert_eq!(statistics.misses, tracker.allocations() as u64);
        }
        live.clear();
        drop(pool);
        prop_assert_eq!(tracker.bytes(), 0);
    }
}
