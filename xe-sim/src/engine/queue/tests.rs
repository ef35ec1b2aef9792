#![allow(clippy::unwrap_used)]

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use super::*;
use crate::machine;
use crate::memory::{Backing, Buffer};
use crate::report::in_child;

const BATCH: u64 = 0x10000;
const BATCH_BUFFER_END: u32 = 0x0a << 23;
const MI_FLUSH_DW: u32 = 0x26 << 23;

/// Whether the queue completes a batch of these dwords. The queue is banned if the batch faults.
fn completes(class: EngineClass, dwords: &[u32]) -> bool {
    let space = Arc::new(AddressSpace::default());
    let buffer = Arc::new(Buffer::new(4096, None).unwrap());
    space.bind(BATCH, 4096, Backing::Buffer(buffer, 0), true);
    for (at, word) in (BATCH..)
        .step_by(4)
        .zip(dwords.iter().chain(&[BATCH_BUFFER_END]))
    {
        space.store(at, *word).unwrap();
    }
    let model = machine::named("lnl").unwrap().slots[0].model;
    let queue = ExecQueue::new(space, class, model, Arc::default()).unwrap();
    let word = AtomicU64::new(0);
    let fences = vec![UserFence {
        address: word.as_ptr() as u64,
        value: 1,
    }];
    queue.submit(Job {
        batch: BATCH,
        fences,
    });
    let deadline = Instant::now() + Duration::from_secs(30);
    while word.load(Ordering::Acquire) == 0 {
        assert!(Instant::now() < deadline, "the fence is not signalled");
        thread::sleep(Duration::from_millis(1));
    }
    !queue.is_banned()
}

#[test]
fn a_flush_without_a_write_may_have_four_dwords() {
    assert!(completes(EngineClass::Copy, &[MI_FLUSH_DW | 2, 0, 0, 0]));
    assert!(completes(EngineClass::Copy, &[MI_FLUSH_DW | 3, 0, 0, 0, 0]));
}

#[test]
fn a_batch_start_without_its_address_is_reported() {
    let told = in_child(
        "engine::queue::tests::a_batch_start_without_its_address_is_reported",
        || {
            completes(EngineClass::Copy, &[0x31 << 23, 0]);
        },
    );
    assert!(
        told.contains("not simulated: MI_BATCH_BUFFER_START with 2 dwords"),
        "{told}"
    );
}

#[test]
fn each_engine_has_its_own_commands() {
    let test = "engine::queue::tests::each_engine_has_its_own_commands";
    let walker = [&[0x7208_0026][..], &[0; 39]].concat();
    let told = in_child(test, || {
        completes(EngineClass::Copy, &walker);
    });
    let expected = "not simulated: COMPUTE_WALKER on an engine of the class Copy";
    assert!(told.contains(expected), "{told}");
    // A walker without a kernel at its address faults.
    assert!(!completes(EngineClass::Compute, &walker));
}
