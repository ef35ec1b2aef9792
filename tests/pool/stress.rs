//! Eight threads, a million operations, random sizes, pools and lifetimes, a provider that fails at random.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;

use parking_lot::Mutex;
use zeusm::pool::{Block, Options, Pool};

use crate::provider::{Addresses, Ledger};
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
    ledger: Ledger,
    pool: Pool<Addresses>,
    book: Book,
}

impl Stand {
    fn new() -> Self {
        let ledger = Ledger::with_capacity(256 << 20);
        ledger.refuse_every(7);
        let options = Options {
            largest_cache: 32 << 20,
            ..Options::default()
        };
        let pool = Pool::new(ledger.provider(), options);
        Self {
            ledger,
            pool,
            book: Book::default(),
        }
    }

    fn allocate(&self, random: &mut Random) -> Option<Block<Addresses>> {
        let size = random.power_law(1, 16 << 20);
        let alignment = [0, 0, 0, 64, 4096, 2 << 20][random.below(6)];
        match self.pool.allocate(size, alignment) {
            Ok(block) => {
                self.book.requested.fetch_add(size, Ordering::SeqCst);
                self.book.count.fetch_add(1, Ordering::SeqCst);
                self.book.successes.fetch_add(1, Ordering::SeqCst);
                Some(block)
            }
            Err(_) => {
                self.book.failures.fetch_add(1, Ordering::SeqCst);
                None
            }
        }
    }

    fn free(&self, block: Block<Addresses>) {
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
        let failures = self.book.failures.load(Ordering::SeqCst);
        assert_eq!(statistics.failures, failures);
    }
}

#[test]
fn every_byte_comes_back_and_every_figure_is_exact() {
    let stands: Vec<_> = (0..3).map(|_| Stand::new()).collect();
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
                            let (which, block) = live.swap_remove(random.below(live.len()));
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
