//! Forks beside threads that are inside the runtime: no child hangs, and each one works.
//!
//! `ZEUSM_TEST_FORKS` sets how many times each test forks.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

#[macro_use]
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/forks.rs"]
mod children;
mod exports;
mod kernels;
mod objects;
#[path = "../common/process.rs"]
mod process;
#[allow(dead_code)]
#[path = "../kernels/programs.rs"]
mod programs;
#[path = "../common/graphs.rs"]
mod recorded;
#[allow(dead_code, unused_imports)]
#[path = "../kernels/runtime.rs"]
mod runtime;
#[path = "../common/seccomp.rs"]
mod seccomp;

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use children::in_child;
use common::{Context, Kind, MIB, Memory, NONE, bytes, bytes_mut, pattern};
use level_zero_sys as sys;
use process::alone;

fn forks(usual: usize) -> usize {
    let wanted = std::env::var("ZEUSM_TEST_FORKS").ok();
    wanted.map_or(usual, |text| text.parse().unwrap())
}

/// A value for several threads.
struct Shared<T>(T);
unsafe impl<T> Sync for Shared<T> {}
impl<T> Shared<T> {
    fn get(&self) -> &T {
        &self.0
    }
}

/// Runs `each` `count` times while other threads run `works` in loops.
fn beside(works: &[&(dyn Fn() + Sync)], count: usize, each: impl Fn(usize)) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for work in works {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    work();
                }
            });
        }
        let done =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (0..count).for_each(each)));
        over.store(true, Ordering::Relaxed);
        done.unwrap();
    });
}

/// Uses all parts of the runtime but kernels, with new objects.
fn everything(context: &Context) {
    let size = 3 * MIB;
    let data = pattern(size, 5);
    let list = context.immediate(0);
    let memory = context.alloc(Kind::Shared, size);
    common::copy(list, memory, data.as_ptr().cast(), size, NONE, &[]);
    common::finish(context, list);
    assert!(bytes(memory, size) == data);
    common::destroy(list);
    let opened = open(context, export(context, memory));
    assert!(bytes(opened, size) == data);
    ok!(zeMemCloseIpcHandle(context.0, opened));
    context.free(memory);
    Context::new();
}

fn export(context: &Context, memory: Memory) -> sys::ze_ipc_mem_handle_t {
    let mut handle = sys::ze_ipc_mem_handle_t::default();
    ok!(zeMemGetIpcHandle(context.0, memory, &raw mut handle));
    handle
}

fn open(context: &Context, handle: sys::ze_ipc_mem_handle_t) -> Memory {
    let mut opened = ptr::null_mut();
    ok!(zeMemOpenIpcHandle(
        context.0,
        common::device(),
        handle,
        0,
        &raw mut opened
    ));
    opened
}

#[test]
fn a_child_works_when_other_threads_use_the_runtime() {
    alone("forks_beside_threads");
}

#[test]
#[ignore = "run by a_child_works_when_other_threads_use_the_runtime"]
fn forks_beside_threads() {
    let context = Context::new();
    let inherited = context.alloc(Kind::Device, MIB);
    bytes_mut(inherited, MIB).fill(7);
    let allocate = || context.free(context.alloc(Kind::Shared, 64));
    let handles = || drop((Context::new(), context.pool(3, false)));
    let everything_else = || everything(&context);
    beside(
        &[&allocate, &handles, &everything_else],
        forks(30),
        |round| {
            let size = 1 + round * 97;
            in_child(|| {
                if round % 2 == 0 {
                    ok!(zeInit(0));
                }
                let list = context.immediate(0);
                let mut copied = vec![0u8; MIB];
                common::copy(list, copied.as_mut_ptr().cast(), inherited, MIB, NONE, &[]);
                common::finish(&context, list);
                let own = Context::new();
                everything(&own);
                context.free(context.alloc(Kind::Host, size));
                context.free(inherited);
                copied.iter().all(|byte| *byte == 7)
            });
        },
    );
}
