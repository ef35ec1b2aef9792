//! A pool that is suspended and resumed, where each call fails once.

use std::ops::Range;

use zeusm::pool::{Options, Pool};
use zeusm::usm::{Allocation, LevelZeroProvider};
use zeusm::{Completion, Error, Queue, Result};

use crate::{CODES, child, driver};

const VALUE: u8 = 7;

fn fill(queue: &Queue, memory: &Allocation) -> Result<()> {
    let (place, size) = (memory.as_ptr(), memory.size());
    // SAFETY: the memory has as many bytes, and lives until the event is complete.
    let event = unsafe { queue.fill_raw(place, VALUE, size, Completion::Event) }?;
    event.map_or(Ok(()), |event| queue.finish(&event, "fill", size))
}

fn bytes(queue: &Queue, memory: &Allocation) -> Result<Vec<u8>> {
    let mut bytes = vec![0_u8; memory.size()];
    let to = bytes.as_mut_ptr().cast();
    // SAFETY: both have as many bytes, and live until the event is complete.
    let event = unsafe { queue.copy_raw(to, memory.as_ptr(), memory.size(), Completion::Event) }?;
    event.map_or(Ok(()), |event| queue.finish(&event, "copy", memory.size()))?;
    Ok(bytes)
}

/// After a failure the pool is as before, or suspended; another call of `resume` brings all bytes back.
#[test]
fn no_failure_loses_bytes() {
    child::alone(&[], || {
        let (driver, device, context, queue) = driver::set_up();
        let provider = LevelZeroProvider::suspendable(&context, &device);
        let pool = Pool::new(provider, Options::default());
        let memory = Allocation::in_pool(&pool, 100, 0).unwrap();
        fill(&queue, &memory).unwrap();
        let wait = |_: &[Range<usize>]| Ok::<(), Error>(());
        for (nth, code) in (1..).zip(CODES.into_iter().cycle()) {
            driver.arm(nth, code);
            // SAFETY: no work is in flight on the pool's memory.
            let suspended = unsafe { pool.suspend(true, wait) };
            let resumed = pool.resume();
            let Some(fired) = driver.disarm() else {
                assert!(suspended.is_ok() && resumed.is_ok());
                assert!(nth > 20, "{nth} calls are too few");
                break;
            };
            pool.resume().unwrap();
            let found = bytes(&queue, &memory).unwrap();
            assert_eq!(found, [VALUE; 100], "{fired}: {suspended:?}, {resumed:?}");
        }
    });
}
