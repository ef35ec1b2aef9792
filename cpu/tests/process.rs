//! The runtime in a process that forks, exits early, or has not initialised it.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;
#[path = "common/forks.rs"]
mod forks;
#[path = "common/process.rs"]
mod process;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{Context, Kind, MIB, NONE, OK, bytes, direct};
use forks::in_child;
use level_zero_sys as sys;
use process::alone;

#[test]
fn a_process_can_exit_with_commands_in_flight() {
    assert!(process::run("child_ends_early", &[]).status.success());
}

#[test]
#[ignore = "run by a_process_can_exit_with_commands_in_flight"]
fn child_ends_early() {
    let context = Context::new();
    let pool = context.pool(1, false);
    let memory = context.alloc(Kind::Shared, 256 * MIB);
    let list = context.immediate(0);
    for _ in 0..8 {
        common::fill(list, memory, &[1], 256 * MIB, NONE, &[]);
    }
    let waiting = context.immediate(0);
    common::fill(waiting, memory, &[1], MIB, NONE, &pool.events);
    std::process::exit(0);
}

/// Which signals a thread blocks, of those with this name.
fn blocked_by_threads(name: &str) -> Vec<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let statuses = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("status")));
    let ours = statuses
        .flatten()
        .filter(|it| it.starts_with(&format!("Name:\t{name}\n")));
    let field = |it: String| {
        let line = it.lines().find_map(|line| line.strip_prefix("SigBlk:\t"));
        u64::from_str_radix(line.unwrap(), 16).unwrap()
    };
    ours.map(field).collect()
}

#[test]
fn signals_of_the_process_are_the_applications() {
    let context = Context::new();
    let memory = context.alloc(Kind::Shared, 256 * MIB);
    common::fill(context.immediate(0), memory, &[1], 256 * MIB, NONE, &[]);
    let mut looks = (0..500).map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        blocked_by_threads("zeusm-cpu")
    });
    // A new thread gets its name, and then its mask.
    let blocked = looks.find(|sets| sets.iter().any(|set| *set != 0)).unwrap();
    for set in blocked.into_iter().filter(|set| *set != 0) {
        let has = |signal: i32| set & 1 << (signal - 1) != 0;
        assert!(has(libc::SIGINT) && has(libc::SIGCHLD) && has(libc::SIGTERM));
        assert!(!has(libc::SIGSEGV) && !has(libc::SIGTRAP));
    }
}

#[test]
fn a_call_fails_at_the_end_of_its_thread() {
    alone("child_fails_at_the_end_of_a_thread");
}

/// Fails a call without a description. It returns whether that is the result.
fn fails() -> bool {
    ze!(zeMemFree(std::ptr::null_mut(), std::ptr::null_mut())) != OK
}

#[test]
#[ignore = "run by a_call_fails_at_the_end_of_its_thread"]
fn child_fails_at_the_end_of_a_thread() {
    static HAVE_FAILED: AtomicBool = AtomicBool::new(false);
    /// The C library calls it when the thread has no values of Rust any more.
    extern "C" fn late(_: *mut std::ffi::c_void) {
        HAVE_FAILED.store(fails(), Ordering::Relaxed);
    }
    let _context = Context::new();
    let mut key = 0;
    assert_eq!(
        unsafe { libc::pthread_key_create(&raw mut key, Some(late)) },
        0
    );
    let thread = std::thread::spawn(move || {
        assert!(fails());
        let value = std::ptr::dangling::<std::ffi::c_void>();
        assert_eq!(unsafe { libc::pthread_setspecific(key, value) }, 0);
    });
    thread.join().unwrap();
    assert!(HAVE_FAILED.load(Ordering::Relaxed));
}

#[test]
fn one_engine_executes_the_lists_one_after_the_other() {
    process::alone_with("child_has_one_engine", &[("ZEUSM_CPU_ENGINES", "1")]);
}

#[test]
#[ignore = "run by one_engine_executes_the_lists_one_after_the_other"]
fn child_has_one_engine() {
    let context = Context::new();
    let pool = context.pool(4, false);
    let [host, first, second, third] = pool.events[..] else {
        panic!()
    };
    let [before, waiting, after] = [0; 3].map(|flags| context.immediate(flags));
    let barrier = |list, signal, waits: &[common::Event]| {
        let (count, waits) = (waits.len() as u32, waits.as_ptr().cast_mut());
        ok!(zeCommandListAppendBarrier(list, signal, count, waits));
    };
    barrier(before, first, &[]);
    barrier(waiting, second, &[host]);
    barrier(after, third, &[]);
    let not_ready = sys::ZE_RESULT_NOT_READY;
    assert_eq!(ze!(zeEventHostSynchronize(third, 10_000_000)), not_ready);
    // A list's own commands count, and not those of other lists.
    if let Some(synchronize) = common::extension(c"zeCommandListHostSynchronize") {
        let synchronize: unsafe extern "C" fn(common::List, u64) -> common::Result = synchronize;
        assert_eq!(unsafe { synchronize(before, common::SECOND) }, OK);
        assert_eq!(unsafe { synchronize(after, 10_000_000) }, not_ready);
    }
    ok!(zeEventHostSignal(host));
    for event in [first, second, third] {
        common::wait(event);
    }
    [before, waiting, after]
        .into_iter()
        .for_each(common::destroy);
}

#[test]
fn a_fork_can_go_on() {
    alone("child_forks");
}

#[test]
#[ignore = "run by a_fork_can_go_on"]
fn child_forks() {
    let work = || {
        let context = Context::new();
        let memory = context.alloc(Kind::Shared, 32 * MIB);
        let list = context.immediate(0);
        common::fill(list, memory, &[5], 32 * MIB, NONE, &[]);
        common::finish(&context, list);
        let done = bytes(memory, 32 * MIB)
            .iter()
            .step_by(997)
            .all(|byte| *byte == 5);
        common::destroy(list);
        context.free(memory);
        done
    };
    assert!(work(), "workers are running now");
    match unsafe { libc::fork() } {
        0 => {
            // Each process initialises, as the specification demands.
            let ready = ze!(zeInit(0)) == OK;
            unsafe { libc::_exit(if ready && work() { 42 } else { 1 }) };
        }
        child => {
            assert!(child > 0);
            assert!(work(), "the parent goes on");
            let mut status = 0;
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert!(
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42,
                "{status:#x}"
            );
        }
    }
}

#[test]
fn a_fork_may_come_between_allocations() {
    alone("child_forks_while_others_allocate");
}

#[test]
#[ignore = "run by a_fork_may_come_between_allocations"]
fn child_forks_while_others_allocate() {
    let context = Context::new();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    context.free(context.alloc(Kind::Shared, 64));
                }
            });
        }
        for _ in 0..200 {
            in_child(|| {
                context.free(context.alloc(Kind::Device, MIB));
                true
            });
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn loading_starts_no_thread() {
    alone("child_counts_threads");
}

#[test]
#[ignore = "run by loading_starts_no_thread"]
fn child_counts_threads() {
    let before = common::status("Threads");
    let context = Context::new();
    let memory = context.alloc(Kind::Shared, 4096);
    let list = context.immediate(0);
    common::fill(list, memory, &[5], 4096, NONE, &[]);
    common::finish(&context, list);
    assert_eq!(common::status("Threads"), before, "small work needs none");
    common::destroy(list);
    context.free(memory);
}

#[test]
fn nothing_works_before_initialisation() {
    alone("child_is_not_initialised");
}

#[test]
#[ignore = "run by nothing_works_before_initialisation"]
fn child_is_not_initialised() {
    if !direct() {
        return; // A loader answers for itself.
    }
    let library = unsafe { sys::load_from(common::library_path()) }.unwrap();
    let mut count = 0;
    unsafe {
        let get = library.zeDriverGet.unwrap();
        let init = library.zeInit.unwrap();
        let unsupported: unsafe extern "C" fn() -> sys::ze_result_t =
            library.symbol(c"zesDeviceReset").unwrap();
        assert_eq!(unsupported(), sys::ZE_RESULT_ERROR_UNINITIALIZED);
        let none = std::ptr::null_mut();
        assert_eq!(
            get(&raw mut count, none),
            sys::ZE_RESULT_ERROR_UNINITIALIZED
        );
        assert_eq!(init(4), sys::ZE_RESULT_ERROR_INVALID_ENUMERATION);
        assert_eq!(
            init(sys::ZE_INIT_FLAG_VPU_ONLY.0),
            sys::ZE_RESULT_ERROR_UNINITIALIZED
        );
        assert_eq!(
            get(&raw mut count, none),
            sys::ZE_RESULT_ERROR_UNINITIALIZED
        );
        assert_eq!(init(sys::ZE_INIT_FLAG_GPU_ONLY.0), OK);
        assert_eq!(get(&raw mut count, none), OK);
        // As the loader, which has a driver by now.
        assert_eq!(init(sys::ZE_INIT_FLAG_VPU_ONLY.0), OK);
        assert_eq!(unsupported(), sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
    }
    assert_eq!(count, 1);
}
