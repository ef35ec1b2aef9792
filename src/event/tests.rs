#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::collections::BTreeSet;

use super::pool::EVENTS_PER_POOL;
use super::*;
use crate::Runtime;
use zeusm_process::testing::in_child;

fn event_pool() -> Arc<EventPool> {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    EventPool::new(&context, &device)
}

#[test]
fn a_parents_event_is_complete_in_its_child() {
    let event = event_pool().take().unwrap();
    assert!(!event.is_complete().unwrap());
    in_child(|| {
        assert!(event.is_complete().unwrap());
        assert!(event.wait(None).unwrap());
    });
    assert!(!event.is_complete().unwrap());
}

#[test]
fn a_number_is_that_of_the_pools_own_list() {
    let (pool, other) = (event_pool(), event_pool());
    let event = pool.take().unwrap();
    assert_eq!(event.number_in(&pool), None);
    event.set_number(3);
    assert_eq!(event.number_in(&pool), Some(3));
    assert_eq!(event.number_in(&other), None);
}

#[test]
fn a_failing_call_is_retried_until_the_timeout() {
    // The number of calls when that one succeeds, each of which takes so long.
    let calls_until = |success: u32, duration| {
        let calls = Cell::new(0);
        let succeeded = retry(|| {
            calls.set(calls.get() + 1);
            thread::sleep(duration);
            let fails = calls.get() < success;
            if fails {
                Err(Error::NullPointer)
            } else {
                Ok(())
            }
        });
        (succeeded.is_ok(), calls.get())
    };
    for success in [1, 2] {
        assert_eq!(calls_until(success, Duration::ZERO), (true, success));
    }
    let begun = Instant::now();
    let (succeeded, calls) = calls_until(u32::MAX, Duration::ZERO);
    assert!(!succeeded && calls > 1);
    assert!(begun.elapsed() >= RETRY_TIMEOUT);
    // There are two attempts even if the first one takes longer than the timeout.
    assert_eq!(calls_until(u32::MAX, 2 * RETRY_TIMEOUT), (false, 2));
}

#[test]
fn dropped_events_are_reused() {
    let events = event_pool();
    let count = EVENTS_PER_POOL as usize;
    let mut taken: Vec<_> = (0..count).map(|_| events.take().unwrap()).collect();
    let handles: BTreeSet<_> = taken.iter().map(Event::handle).collect();
    assert_eq!(handles.len(), count);
    for _ in 0..100 {
        taken[0].signal().unwrap();
        drop(taken.swap_remove(0));
        let next = events.take().unwrap();
        assert!(handles.contains(&next.handle()));
        assert!(!next.is_complete().unwrap(), "it was reset");
        taken.push(next);
    }
    let one_more = events.take().unwrap();
    assert!(!handles.contains(&one_more.handle()));
}
