//! The process's memory: limits, freed memory, and a million live allocations.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;

use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{Context, KINDS, Kind, MIB, Memory, bytes_mut, range, status, total};
use level_zero_sys as sys;

/// These tests measure the process, so they run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn allocations_are_limited_by_available_memory() {
    let _alone = alone();
    let context = Context::new();
    let piece = total() / 8;
    let mut pieces = Vec::new();
    let refused = loop {
        match context.try_alloc(Kind::Device, piece, 0) {
            Ok(memory) => pieces.push(memory),
            Err(error) => break error,
        }
        assert!(pieces.len() <= 8, "more memory than there is");
    };
    assert_eq!(refused, sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
    if pieces.len() == 8 {
        let host = context.try_alloc(Kind::Host, piece, 0);
        assert_eq!(host, Err(sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY));
    }
    pieces.into_iter().for_each(|memory| context.free(memory));
    // Another process may take it first.
    let mut tries = (0..100).filter_map(|_| context.try_alloc(Kind::Device, piece, 0).ok());
    context.free(tries.next().unwrap());
}

#[test]
fn destroying_a_context_frees_its_memory() {
    let _alone = alone();
    let before = status("VmRSS");
    for _ in 0..8 {
        let context = Context::new();
        let memory = context.alloc(Kind::Device, 64 * MIB);
        bytes_mut(memory, 64 * MIB).fill(1);
    }
    assert!(status("VmRSS") < before + 96 * MIB);
}

#[test]
fn a_million_allocations() {
    let _alone = alone();
    let context = Context::new();
    let sizes = |index: usize| 1 + index % 97;
    let all: Vec<Memory> = (0..1_000_000)
        .map(|index| context.alloc(KINDS[index % 3], sizes(index)))
        .collect();
    for (index, memory) in all.iter().enumerate().step_by(7) {
        let inside = unsafe { memory.byte_add(sizes(index) - 1) };
        assert_eq!(
            range(&context, inside),
            Ok((*memory as usize, sizes(index)))
        );
    }
    all.into_iter()
        .rev()
        .for_each(|memory| context.free(memory));
}

#[test]
fn freed_memory_is_returned_to_the_system() {
    let _alone = alone();
    let context = Context::new();
    let round = |size: usize, count: usize| {
        let all: Vec<Memory> = (0..count)
            .map(|_| {
                let memory = context.alloc(Kind::Shared, size);
                bytes_mut(memory, size).fill(3);
                memory
            })
            .collect();
        all.into_iter().for_each(|memory| context.free(memory));
    };
    for (size, count) in [
        (64, 20_000),
        (4096, 4_000),
        (100_000, 400),
        (MIB, 64),
        (32 * MIB, 4),
    ] {
        round(size, count);
        let before = status("VmRSS");
        for _ in 0..10 {
            round(size, count);
        }
        let growth = status("VmRSS").saturating_sub(before);
        assert!(growth < 4 * MIB, "{size}: {growth}");
    }
}
