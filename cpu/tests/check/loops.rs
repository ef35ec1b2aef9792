//! Programs with many wrong accesses, under the checker.

use std::hint;
use std::mem;
use std::ops::Range;
use std::ptr;

use serde_json::Value;

use crate::common::{self, Context, Kind, Memory};
use crate::{faulty, process};

/// Runs an ignored test of this module under the checker, and returns the report.
fn run(name: &str) -> Value {
    let report = std::env::temp_dir().join(format!("zeusm-{}-{name}.json", std::process::id()));
    let environment = [
        ("ZEUSM_CHECK", "1"),
        ("ZEUSM_CHECK_EXIT_CODE", "0"),
        ("ZEUSM_CHECK_REPORT", report.to_str().unwrap()),
    ];
    process::alone_with(&format!("loops::{name}"), &environment);
    let text = std::fs::read(&report).unwrap();
    let _ = std::fs::remove_file(&report);
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn a_loop_over_many_allocations_is_reported_once() {
    if common::direct() {
        let report = run("reads_many_allocations");
        let findings = report["findings"].as_array().unwrap();
        assert_eq!(findings.len(), 100);
        assert!(findings.iter().all(|it| it["count"] == 1));
        // 10 in the first round, and the accesses after the last call.
        assert_eq!(report["left_out"], 15);
    }
}

#[test]
#[ignore = "run by a_loop_over_many_allocations_is_reported_once"]
fn reads_many_allocations() {
    let context = Context::new();
    let all: Vec<Memory> = (0..110).map(|_| context.alloc(Kind::Device, 64)).collect();
    let read = |all: &[Memory]| {
        for memory in all {
            faulty::read(*memory, 5);
        }
    };
    for _ in 0..3 {
        read(&all);
    }
    context.free(context.alloc(Kind::Device, 64));
    read(&all[..5]);
    all.into_iter().for_each(|memory| context.free(memory));
}

#[test]
fn accesses_after_many_findings_are_counted() {
    if common::direct() {
        let report = run("reads_at_many_places");
        let findings = report["findings"].as_array().unwrap();
        let counts = findings.iter().map(|it| it["count"].as_u64().unwrap());
        let left_out = report["left_out"].as_u64().unwrap();
        assert_eq!(counts.sum::<u64>(), 100);
        // The one after them leaves the page open.
        assert_eq!(left_out, 1);
    }
}

/// Each access is at a place of its own, which its stack tells.
#[test]
#[ignore = "run by accesses_after_many_findings_are_counted"]
fn reads_at_many_places() {
    let context = Context::new();
    let memory = context.alloc(Kind::Device, 64);
    for path in 0..1200 {
        read_by_a_path(memory, path, 11);
    }
    context.free(memory);
}

/// Calls itself at one of two places by each bit of `path`.
#[inline(never)]
fn read_by_a_path(memory: Memory, path: u32, bits: u32) {
    if bits == 0 {
        faulty::read(memory, 5);
    } else if path & 1 == 0 {
        read_by_a_path(memory, path >> 1, bits - 1);
        hint::black_box(0);
    } else {
        read_by_a_path(memory, path >> 1, bits - 1);
        hint::black_box(1);
    }
}

#[test]
fn what_accesses_have_opened_is_closed_by_the_next_allocation() {
    if common::direct() {
        run("leaves_pages_open");
    }
}

/// A thread that blocks `SIGTRAP` leaves the pages open. Each allocation has 16 guard pages behind it.
#[test]
#[ignore = "run by what_accesses_have_opened_is_closed_by_the_next_allocation"]
fn leaves_pages_open() {
    const SIZE: usize = 4096;
    const WITH_GUARD: usize = SIZE + (64 << 10);
    unsafe {
        let mut blocked = mem::zeroed();
        libc::sigemptyset(&raw mut blocked);
        libc::sigaddset(&raw mut blocked, libc::SIGTRAP);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, ptr::null_mut());
    }
    let context = Context::new();
    let all = [0; 10].map(|_| context.alloc(Kind::Device, SIZE));
    let read = |pages: usize| {
        let pages = all.map(|memory| (0..pages).map(move |page| (memory, page * SIZE)));
        for (memory, offset) in pages.into_iter().flatten() {
            faulty::read(memory, offset as isize);
        }
        all.map(|memory| accessible_pages(memory as usize..memory as usize + WITH_GUARD))
    };
    assert_eq!(read(15), [15; 10], "the pages are left open");
    context.free(context.alloc(Kind::Device, SIZE));
    assert_eq!(read(0), [0; 10], "the call has closed them");
    all.into_iter().for_each(|memory| context.free(memory));
}

/// How many pages of a range are accessible.
pub fn accessible_pages(range: Range<usize>) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let accessible = maps.lines().filter_map(|line| {
        let (addresses, rest) = line.split_once(' ')?;
        let (from, to) = addresses.split_once('-')?;
        let [from, to] = [from, to].map(|it| usize::from_str_radix(it, 16).unwrap());
        let common = to.min(range.end).saturating_sub(from.max(range.start));
        rest.starts_with('r').then_some(common / 4096)
    });
    accessible.sum()
}
