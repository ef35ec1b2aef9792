//! Eight threads, a million operations, random sizes, kinds and lifetimes, a Level Zero that fails at random.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;

use parking_lot::Mutex;
use zeusm::pool::{Block, Found, Growth, Options, Pool, find};
use zeusm::usm::LevelZero;
use zeusm::{Context, Device, Runtime, UsmKind};

use crate::provider::{Ledger, Watched};
use crate::random::Random;

const THREADS: usize = 8;
const OPERATIONS: usize = 1_000_000;

/// What one pool is known to have done.
#[derive(Default)]
struct Book {
    requested: AtomicUsize,
    count: AtomicUsize,
    successes: AtomicU64,
    failures: AtomicU64,
}

struct Stand {
    kind: UsmKind,
    ledger: Ledger,
    pool: Pool<Watched<LevelZero>>,
    book: Book,
}

/// A block, and what is written at its beginning and its end when the host may write there.
struct Live {
    block: Block<Watched<LevelZero>>,
    mark: u8,
}

impl Stand {
    fn new(context: &Context, device: &Device, kind: UsmKind) -> Self {
        let ledger = Ledger::with_capacity(256 << 20);
        ledger.refuse_one_in(7);
        let options = Options {
            largest_cache: 32 << 20,
            ..Options::default()
        };
        let provider = ledger.over(LevelZero::new(context, device, kind));
        let pool = Pool::new(provider, options);
        Self {
            kind,
            ledger,
            pool,
            book: Book::default(),
        }
    }

    /// The first and the last byte of a block, if the host may look.
    fn ends(&self, block: &Block<Watched<LevelZero>>) -> Option<[*mut u8; 2]> {
        let first = block.address().cast::<u8>().as_ptr();
        (self.kind != UsmKind::Device).then(|| [first, first.wrapping_add(block.size() - 1)])
    }

    fn allocate(&self, random: &mut Random) -> Option<Live> {
        let size = random.power_law(1, 16 << 20);
        let alignment = [0, 0, 0, 64, 4096, 2 << 20][random.below(6)];
        match self.pool.allocate(size, alignment) {
            Ok(block) => {
                self.book.requested.fetch_add(size, Ordering::SeqCst);
                self.book.count.fetch_add(1, Ordering::SeqCst);
                self.book.successes.fetch_add(1, Ordering::SeqCst);
                let mark = random.next() as u8;
                for end in self.ends(&block).into_iter().flatten() {
                    // SAFETY: the byte is of a live block, which nobody else has.
                    unsafe { end.write(mark) };
                }
                Some(Live { block, mark })
            }
            Err(_) => {
                self.book.failures.fetch_add(1, Ordering::SeqCst);
                None
            }
        }
    }

    fn free(&self, Live { block, mark }: Live) {
        for end in self.ends(&block).into_iter().flatten() {
            // SAFETY: the byte is of a live block, and was written when that was allocated.
            assert_eq!(unsafe { end.read() }, mark, "somebody else's block too");
        }
        self.book
            .requested
            .fetch_sub(block.size(), Ordering::SeqCst);
        self.book.count.fetch_sub(1, Ordering::SeqCst);
        drop(block);
    }

    fn check(&self) {
        let statistics = self.pool.statistics();
        let load = |value: &AtomicUsize| value.load(Ordering::SeqCst);
        assert_eq!(statistics.requested_bytes, load(&self.book.requested));
        assert_eq!(statistics.used_count, load(&self.book.count));
        assert_eq!(statistics.total_bytes, self.ledger.bytes());
        assert!(statistics.peak_bytes >= statistics.used_bytes);
        let successes = self.book.successes.load(Ordering::SeqCst);
        assert_eq!(statistics.allocations, successes);
        assert_eq!(statistics.hits + statistics.misses, successes);
        assert_eq!(statistics.misses, self.ledger.allocations() as u64);
        let failures = self.book.failures.load(Ordering::SeqCst);
        assert_eq!(statistics.failures, failures);
    }
}

#[test]
fn every_byte_comes_back_and_every_figure_is_exact() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let kinds = [UsmKind::Host, UsmKind::Device, UsmKind::Shared];
    let stands = kinds.map(|kind| Stand::new(&context, &device, kind));
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel()).unzip();
    let survivors = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (number, receiver) in receivers.into_iter().enumerate() {
            let (stands, survivors, senders) = (&stands, &survivors, senders.clone());
            scope.spawn(move || {
                let mut random = Random(number as u64);
                let mut live = Vec::new();
                for operation in 0..OPERATIONS / THREADS {
                    let which = random.below(stands.len());
                    match random.below(10) {
                        0..5 => {
                            live.extend(stands[which].allocate(&mut random).map(|b| (which, b)))
                        }
                        5 if !live.is_empty() => {
                            let handed_over = live.swap_remove(random.below(live.len()));
                            senders[random.below(THREADS)].send(handed_over).unwrap();
                        }
                        _ if !live.is_empty() => {
                            let (which, block): (usize, Live) =
                                live.swap_remove(random.below(live.len()));
                            stands[which].free(block);
                        }
                        _ => {}
                    }
                    live.extend(receiver.try_iter());
                    if operation % 5000 == number {
                        stands[which].pool.trim(random.below(64 << 20));
                        let statistics = stands[which].pool.statistics();
                        assert!(statistics.used_bytes >= statistics.requested_bytes);
                    }
                }
                drop(senders);
                // The channel ends when every thread has come here.
                live.extend(receiver);
                survivors.lock().append(&mut live);
            });
        }
        drop(senders);
    });
    for stand in &stands {
        stand.check();
        assert!(stand.ledger.refusals() > 0);
    }
    for (which, block) in survivors.into_inner() {
        stands[which].free(block);
    }
    for stand in stands {
        stand.check();
        stand.pool.free_all_blocks();
        stand.check();
        assert_eq!(stand.ledger.bytes(), 0);
        assert_eq!(stand.ledger.allocations(), stand.ledger.frees());
    }
}

#[test]
fn a_block_is_known_by_its_own_bytes_from_the_moment_it_is_handed_out() {
    // Slabs of few blocks, so that one thread takes blocks of the slab that another one is just adding.
    let growth = Growth {
        first_slab: 4 << 10,
        largest_slab: 4 << 10,
        ..Growth::default()
    };
    let options = Options {
        growth,
        ..Options::default()
    };
    let pool = Pool::new(Ledger::default().provider(), options);
    std::thread::scope(|scope| {
        for _ in 0..THREADS / 2 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let blocks: Vec<_> = (0..200).map(|_| known(&pool)).collect();
                    drop(blocks);
                    pool.trim(0);
                }
            });
        }
    });
}

/// A block that is found by its address.
fn known(pool: &Pool<crate::provider::Addresses>) -> Block<crate::provider::Addresses> {
    let block = pool.allocate(256, 0).unwrap();
    let address = block.address().addr().get();
    assert_eq!(find(address + 255), Found::Used(address..address + 256));
    block
}
