//! Eight threads, a million operations, random sizes, kinds and lifetimes, over a Level Zero that fails at random.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;

use parking_lot::Mutex;
use zeusm::pool::{Block, Growth, Lookup, Options, Pool, lookup};
use zeusm::usm::LevelZeroProvider;
use zeusm::{Context, Device, Runtime, UsmKind};

use crate::provider::{Tracked, Tracker};
use crate::random::Random;
use crate::scale::scaled;

const THREADS: usize = 8;
const OPERATIONS: usize = 1_000_000;

/// The statistics that one pool must have.
#[derive(Default)]
struct Expected {
    requested: AtomicUsize,
    count: AtomicUsize,
    successes: AtomicU64,
    failures: AtomicU64,
}

struct Fixture {
    kind: UsmKind,
    tracker: Tracker,
    pool: Pool<Tracked<LevelZeroProvider>>,
    expected: Expected,
}

/// A block, and the byte written at its first and last address if the host can access it.
struct Live {
    block: Block<Tracked<LevelZeroProvider>>,
    mark: u8,
}

impl Fixture {
    fn new(context: &Context, device: &Device, kind: UsmKind) -> Self {
        let tracker = Tracker::with_capacity(256 << 20);
        tracker.refuse_one_in(7);
        let options = Options {
            largest_cache: 32 << 20,
            ..Options::default()
        };
        let provider = tracker.wrap(LevelZeroProvider::new(context, device, kind));
        let pool = Pool::new(provider, options);
        Self {
            kind,
            tracker,
            pool,
            expected: Expected::default(),
        }
    }

    /// The first and the last byte of a block, if the host can access it.
    fn ends(&self, block: &Block<Tracked<LevelZeroProvider>>) -> Option<[*mut u8; 2]> {
        let first = block.address().cast::<u8>().as_ptr();
        (self.kind != UsmKind::Device).then(|| [first, first.wrapping_add(block.size() - 1)])
    }

    fn allocate(&self, random: &mut Random) -> Option<Live> {
        let size = random.power_law(1, 16 << 20);
        let alignment = [0, 0, 0, 64, 4096, 2 << 20][random.below(6)];
        match self.pool.allocate(size, alignment) {
            Ok(block) => {
                self.expected.requested.fetch_add(size, Ordering::SeqCst);
                self.expected.count.fetch_add(1, Ordering::SeqCst);
                self.expected.successes.fetch_add(1, Ordering::SeqCst);
                let mark = random.next() as u8;
                for end in self.ends(&block).into_iter().flatten() {
                    // SAFETY: the byte is in a live block with this one owner.
                    unsafe { end.write(mark) };
                }
                Some(Live { block, mark })
            }
            Err(_) => {
                self.expected.failures.fetch_add(1, Ordering::SeqCst);
                None
            }
        }
    }

    fn free(&self, Live { block, mark }: Live) {
        for end in self.ends(&block).into_iter().flatten() {
            // SAFETY: the byte is in a live block, and was written when that was allocated.
            assert_eq!(unsafe { end.read() }, mark, "the block has two owners");
        }
        self.expected
            .requested
            .fetch_sub(block.size(), Ordering::SeqCst);
        self.expected.count.fetch_sub(1, Ordering::SeqCst);
        drop(block);
    }

    fn check(&self) {
        let statistics = self.pool.statistics();
        let load = |value: &AtomicUsize| value.load(Ordering::SeqCst);
        assert_eq!(statistics.requested_bytes, load(&self.expected.requested));
        assert_eq!(statistics.used_count, load(&self.expected.count));
        assert_eq!(statistics.total_bytes, self.tracker.bytes());
        assert!(statistics.peak_bytes >= statistics.used_bytes);
        let successes = self.expected.successes.load(Ordering::SeqCst);
        assert_eq!(statistics.allocations, successes);
        assert_eq!(statistics.hits + statistics.misses, successes);
        assert_eq!(statistics.misses, self.tracker.allocations() as u64);
        let failures = self.expected.failures.load(Ordering::SeqCst);
        assert_eq!(statistics.failures, failures);
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri calls no driver")]
#[cfg_attr(windows, ignore = "the CPU runtime is for Linux")]
fn all_memory_is_returned_and_all_statistics_are_exact() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let kinds = [UsmKind::Host, UsmKind::Device, UsmKind::Shared];
    let fixtures = kinds.map(|kind| Fixture::new(&context, &device, kind));
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel()).unzip();
    let survivors = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (number, receiver) in receivers.into_iter().enumerate() {
            let (fixtures, survivors, senders) = (&fixtures, &survivors, senders.clone());
            scope.spawn(move || {
                let mut random = Random(number as u64);
                let mut live = Vec::new();
                for operation in 0..OPERATIONS / THREADS {
                    let which = random.below(fixtures.len());
                    match random.below(10) {
                        0..5 => {
                            live.extend(fixtures[which].allocate(&mut random).map(|b| (which, b)))
                        }
                        5 if !live.is_empty() => {
                            let handed_over = live.swap_remove(random.below(live.len()));
                            senders[random.below(THREADS)].send(handed_over).unwrap();
                        }
                        _ if !live.is_empty() => {
                            let (which, block): (usize, Live) =
                                live.swap_remove(random.below(live.len()));
                            fixtures[which].free(block);
                        }
                        _ => {}
                    }
                    live.extend(receiver.try_iter());
                    if operation % 5000 == number {
                        fixtures[which].pool.trim(random.below(64 << 20));
                        let statistics = fixtures[which].pool.statistics();
                        assert!(statistics.used_bytes >= statistics.requested_bytes);
                    }
                }
                drop(senders);
                // The channel ends when every thread has dropped its senders.
                live.extend(receiver);
                survivors.lock().append(&mut live);
            });
        }
        drop(senders);
    });
    for fixture in &fixtures {
        fixture.check();
        assert!(fixture.tracker.refusals() > 0);
    }
    for (which, block) in survivors.into_inner() {
        fixtures[which].free(block);
    }
    for fixture in fixtures {
        fixture.check();
        fixture.pool.free_all_blocks();
        fixture.check();
        assert_eq!(fixture.tracker.bytes(), 0);
        assert_eq!(fixture.tracker.allocations(), fixture.tracker.frees());
    }
}

#[test]
fn a_block_is_registered_before_it_is_allocated() {
    // Slabs of few blocks, so that a thread allocates from a slab that another one is adding.
    let growth = Growth {
        first_slab: 4 << 10,
        largest_slab: 4 << 10,
        ..Growth::default()
    };
    let options = Options {
        growth,
        ..Options::default()
    };
    let pool = Pool::new(Tracker::default().provider(), options);
    std::thread::scope(|scope| {
        for _ in 0..THREADS / 2 {
            scope.spawn(|| {
                for _ in 0..scaled(200, 3) {
                    let blocks: Vec<_> = (0..scaled(200, 20))
                        .map(|_| allocate_registered(&pool))
                        .collect();
                    drop(blocks);
                    pool.trim(0);
                }
            });
        }
    });
}

/// A block that is found by its address.
fn allocate_registered(
    pool: &Pool<crate::provider::Addresses>,
) -> Block<crate::provider::Addresses> {
    let block = pool.allocate(256, 0).unwrap();
    let address = block.address().addr().get();
    assert_eq!(
        lookup(address + 255),
        Lookup::Allocated(address..address + 256)
    );
    block
}
