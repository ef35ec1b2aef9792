//! Forks beside threads that are inside the runtime: no child hangs, and each one works.
//!
//! `ZEUSM_TEST_FORKS` says how many times each test forks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks,
    clippy::macro_metavars_in_unsafe
)]
#![allow(missing_docs)]

mod common;
#[allow(dead_code)]
#[path = "kernels/programs.rs"]
mod programs;
#[allow(dead_code, unused_imports)]
#[path = "kernels/runtime.rs"]
mod runtime;
#[path = "common/seccomp.rs"]
mod seccomp;

use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{Context, Kind, List, MIB, Memory, NONE, bytes, bytes_mut, pattern};
use level_zero_sys as sys;
use runtime::Runtime;
use sys::{ZE_RESULT_SUCCESS as OK, ze_result_t as Code};

/// A child that takes longer hangs. In seconds.
const PATIENCE: u32 = 30;

fn forks(usual: usize) -> usize {
    let wanted = std::env::var("ZEUSM_TEST_FORKS").ok();
    wanted.map_or(usual, |text| text.parse().unwrap())
}

/// Runs one ignored test of this file in a process of its own, which it may fork.
fn alone(test: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            test,
            "--ignored",
            "--test-threads=1",
            "--nocapture",
        ])
        .output()
        .unwrap();
    let (told, wrong) = (output.stdout, output.stderr);
    let (told, wrong) = (
        String::from_utf8_lossy(&told),
        String::from_utf8_lossy(&wrong),
    );
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{told}\n{wrong}"
    );
    eprint!("{wrong}");
}

/// What a child does, in a process that a fork has made: it must return true.
fn child(work: impl FnOnce() -> bool) {
    let child = unsafe { libc::fork() };
    if child == 0 {
        unsafe { libc::alarm(PATIENCE) };
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        unsafe { libc::_exit(if worked.unwrap_or(false) { 0 } else { 1 }) };
    }
    assert!(child > 0);
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(
        !libc::WIFSIGNALED(status) || libc::WTERMSIG(status) != libc::SIGALRM,
        "a child hangs"
    );
    assert_eq!(status, 0, "a child failed");
}

/// Forks while other threads do `works` over and over.
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

/// All that a process does without kernels, with objects of its own.
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
fn a_child_does_everything_beside_threads_that_did() {
    alone("forks_beside_everything");
}

#[test]
#[ignore = "run by a_child_does_everything_beside_threads_that_did"]
fn forks_beside_everything() {
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
            child(|| {
                if round % 2 == 0 {
                    ok!(zeInit(0));
                }
                let list = context.immediate(0);
                let mut told = vec![0u8; MIB];
                common::copy(list, told.as_mut_ptr().cast(), inherited, MIB, NONE, &[]);
                common::finish(&context, list);
                let own = Context::new();
                everything(&own);
                context.free(context.alloc(Kind::Host, size));
                context.free(inherited);
                told.iter().all(|byte| *byte == 7)
            });
        },
    );
}

#[test]
fn a_child_has_a_copy_of_all_memory_that_is_exported_or_beside_it() {
    alone("forks_with_exports");
}

#[test]
#[ignore = "run by a_child_has_a_copy_of_all_memory_that_is_exported_or_beside_it"]
fn forks_with_exports() {
    copies_what_is_exported(true);
}

#[test]
fn a_child_has_such_copies_without_userfaultfd_too() {
    alone("forks_with_exports_without_userfaultfd");
}

#[test]
#[ignore = "run by a_child_has_such_copies_without_userfaultfd_too"]
fn forks_with_exports_without_userfaultfd() {
    seccomp::refuse(libc::SYS_userfaultfd, libc::EPERM);
    copies_what_is_exported(false);
}

fn copies_what_is_exported(child_exports: bool) {
    let context = Context::new();
    for size in [256, 40 * MIB] {
        let (exported, neighbour) = (
            context.alloc(Kind::Shared, size),
            context.alloc(Kind::Shared, size),
        );
        let data = pattern(size, size as u64);
        bytes_mut(exported, size).copy_from_slice(&data);
        bytes_mut(neighbour, size).copy_from_slice(&data);
        let handle = export(&context, exported);
        let opened = open(&context, handle);
        child(|| {
            let same = bytes(exported, size) == data && bytes(neighbour, size) == data;
            bytes_mut(exported, size).fill(1);
            bytes_mut(neighbour, size).fill(2);
            // What was opened stays shared, and so is what the child opens by its parent's handle.
            let shared = open(&context, handle);
            assert!(bytes(shared, size) == data);
            bytes_mut(shared, size)[0] = !data[0];
            bytes_mut(opened, size)[1] = !data[1];
            if child_exports {
                // A handle of the child's own is to its own copy.
                let own = open(&context, export(&context, exported));
                assert!(bytes(own, size).iter().all(|byte| *byte == 1));
            }
            same
        });
        assert_eq!(bytes(exported, size)[..2], [!data[0], !data[1]]);
        assert!(bytes(exported, size)[2..] == data[2..]);
        assert!(bytes(neighbour, size) == data);
        // The child's copy is as it was at the fork, whatever the parent does next.
        let mut ends = [0; 2];
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        let mut go = 0u8;
        let process = unsafe { libc::fork() };
        if process == 0 {
            unsafe { libc::alarm(PATIENCE) };
            unsafe { libc::read(ends[0], (&raw mut go).cast(), 1) };
            let (first, second) = (bytes(exported, size), bytes(neighbour, size));
            let unchanged = first[2..] == data[2..] && second == data;
            unsafe { libc::_exit(i32::from(!unchanged)) };
        }
        bytes_mut(exported, size).fill(3);
        bytes_mut(neighbour, size).fill(4);
        assert_eq!(
            unsafe { libc::write(ends[1], (&raw const go).cast(), 1) },
            1
        );
        let mut status = 1;
        assert_eq!(
            unsafe { libc::waitpid(process, &raw mut status, 0) },
            process
        );
        assert_eq!(status, 0, "the child saw its parent's writes");
        ok!(zeMemCloseIpcHandle(context.0, opened));
        context.free(exported);
        context.free(neighbour);
    }
}

fn submit(
    queue: sys::ze_command_queue_handle_t,
    list: List,
    fence: sys::ze_fence_handle_t,
) -> Code {
    let mut list = list;
    ze!(zeCommandQueueExecuteCommandLists(
        queue,
        1,
        &raw mut list,
        fence
    ))
}

#[test]
fn what_was_under_way_in_inherited_objects_is_over_for_a_child() {
    alone("forks_with_work_under_way");
}

#[test]
#[ignore = "run by what_was_under_way_in_inherited_objects_is_over_for_a_child"]
fn forks_with_work_under_way() {
    const FOR_EVER: u64 = u64::MAX;
    let context = Context::new();
    let pool = context.pool(4, false);
    let [gate, given, idle, set] = pool.events[..] else {
        unreachable!()
    };
    ok!(zeEventHostSignal(set));
    let memory = context.alloc(Kind::Shared, MIB);
    let (list, recorded, queue) = (context.immediate(0), context.list(0), context.queue());
    common::fill(recorded, memory, &[6], 64, NONE, &[]);
    ok!(zeCommandListClose(recorded));
    let desc = sys::ze_fence_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_FENCE_DESC,
        ..Default::default()
    };
    let mut fence = ptr::null_mut();
    ok!(zeFenceCreate(queue, &raw const desc, &raw mut fence));
    // All of it waits for the gate.
    let gated = context.list(0);
    common::fill(gated, memory, &[5], 64, NONE, &[gate]);
    ok!(zeCommandListClose(gated));
    common::fill(list, memory, &[5], MIB, given, &[gate]);
    assert_eq!(submit(queue, gated, fence), OK);
    child(|| {
        common::finish(&context, list);
        ok!(zeCommandQueueSynchronize(queue, FOR_EVER));
        ok!(zeEventHostSynchronize(given, FOR_EVER));
        ok!(zeFenceHostSynchronize(fence, FOR_EVER));
        // What nothing was to set is as it was.
        assert!(!common::is_set(gate) && !common::is_set(idle) && common::is_set(set));
        // And all of it works.
        ok!(zeEventHostReset(given));
        assert!(!common::is_set(given));
        ok!(zeFenceReset(fence));
        common::fill(list, memory, &[7], MIB, given, &[idle]);
        assert!(!common::is_set(given));
        ok!(zeEventHostSignal(idle));
        common::wait(given);
        assert!(bytes(memory, MIB).iter().all(|byte| *byte == 7));
        assert_eq!(submit(queue, recorded, fence), OK);
        ok!(zeFenceHostSynchronize(fence, FOR_EVER));
        assert_eq!(bytes(memory, 65), [[6; 64].as_slice(), &[7]].concat());
        for list in [list, recorded, gated] {
            common::destroy(list);
        }
        ok!(zeFenceDestroy(fence));
        ok!(zeCommandQueueDestroy(queue));
        drop(pool);
        true
    });
}

#[test]
fn a_child_uses_lists_and_events_that_other_threads_were_using() {
    alone("forks_beside_users_of_the_same");
}

#[test]
#[ignore = "run by a_child_uses_lists_and_events_that_other_threads_were_using"]
fn forks_beside_users_of_the_same() {
    let context = Context::new();
    let pool = context.pool(1, false);
    let memory = context.alloc(Kind::Shared, MIB);
    let (list, recorded, queue) = (context.immediate(0), context.list(0), context.queue());
    let shared = Shared((list, recorded, queue, pool.events[0], memory));
    let reuse = || {
        let (_, recorded, _, _, memory) = *shared.get();
        ok!(zeCommandListReset(recorded));
        common::fill(recorded, memory, &[1], 64, NONE, &[]);
        ok!(zeCommandListClose(recorded));
    };
    let run = || {
        let (list, recorded, queue, event, memory) = *shared.get();
        ok!(zeEventHostReset(event));
        common::fill(list, memory, &[2], 64, event, &[]);
        common::wait(event);
        // Closed or not, as the other thread has it.
        submit(queue, recorded, ptr::null_mut());
        ok!(zeCommandQueueSynchronize(queue, u64::MAX));
    };
    beside(&[&reuse, &run], forks(300), |_| {
        child(|| {
            run();
            reuse();
            assert_eq!(submit(queue, recorded, ptr::null_mut()), OK);
            ok!(zeCommandQueueSynchronize(queue, u64::MAX));
            common::destroy(list);
            common::destroy(recorded);
            ok!(zeCommandQueueDestroy(queue));
            true
        });
    });
    drop(pool);
}

/// A kernel that doubles what it is given so often, and what it takes to launch it.
struct Doubling<'a> {
    runtime: &'a Runtime,
    kernel: sys::ze_kernel_handle_t,
    values: &'static mut [u32],
}

impl<'a> Doubling<'a> {
    fn new(runtime: &'a Runtime, module: sys::ze_module_handle_t) -> Self {
        let kernel = runtime.kernel(module, "add").unwrap();
        assert_eq!(
            unsafe { runtime.library.zeKernelSetGroupSize.unwrap()(kernel, 1, 1, 1) },
            OK
        );
        let values = runtime.shared(&[1; 256]);
        for index in 0..3 {
            assert_eq!(runtime.set(kernel, index, values.as_ptr()), OK);
        }
        Self {
            runtime,
            kernel,
            values,
        }
    }

    /// Launches it `rounds` times on a list of its own; whether the sum is right.
    fn run(&mut self, rounds: u32) -> bool {
        self.values.fill(1);
        let list = self.runtime.immediate(true);
        let groups = runtime::groups(self.values.len() as u32);
        let launch = self
            .runtime
            .library
            .zeCommandListAppendLaunchKernel
            .unwrap();
        for _ in 0..rounds {
            let launched = unsafe {
                launch(
                    list,
                    self.kernel,
                    &raw const groups,
                    NONE,
                    0,
                    ptr::null_mut(),
                )
            };
            assert_eq!(launched, OK);
        }
        assert_eq!(self.runtime.synchronize(list), OK);
        assert_eq!(
            unsafe { self.runtime.library.zeCommandListDestroy.unwrap()(list) },
            OK
        );
        self.values.iter().all(|value| *value == 1 << rounds)
    }
}

struct Shared<T>(T);
unsafe impl<T> Sync for Shared<T> {}
impl<T> Shared<T> {
    fn get(&self) -> &T {
        &self.0
    }
}

#[test]
fn a_child_runs_kernels_beside_threads_that_ran_kernels() {
    alone("forks_beside_kernels");
}

#[test]
#[ignore = "run by a_child_runs_kernels_beside_threads_that_ran_kernels"]
fn forks_beside_kernels() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = Shared(runtime.build(&programs::module(), &[]).unwrap());
    let runtime = Shared(runtime);
    let launch = || assert!(Doubling::new(runtime.get(), *module.get()).run(20));
    beside(&[&launch, &launch], forks(20), |_| {
        child(|| Doubling::new(runtime.get(), *module.get()).run(10));
    });
}

#[test]
#[ignore = "takes half a minute, in a process of its own: run it by name"]
fn a_child_that_came_in_the_middle_of_a_long_launch_has_no_kernels() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&programs::module(), &[]).unwrap();
    let mut doubling = Doubling::new(&runtime, module);
    let kernel = runtime.kernel(module, "work").unwrap();
    let memory = runtime.shared(&[0]);
    assert_eq!(runtime.set(kernel, 0, memory.as_ptr()), OK);
    assert_eq!(runtime.set(kernel, 1, 20_000_000_000u64), OK);
    let list = runtime.immediate(true);
    let groups = runtime::groups(1);
    let launch = runtime.library.zeCommandListAppendLaunchKernel.unwrap();
    assert_eq!(
        unsafe { launch(list, kernel, &raw const groups, NONE, 0, ptr::null_mut()) },
        OK
    );
    child(|| {
        let (_, log) = runtime.build(&programs::module(), &[]).unwrap_err();
        assert!(
            log.contains("forked while its parent ran a kernel"),
            "{log}"
        );
        // A launch of what was inherited is an error too, and memory works.
        let context = Context::new();
        context.free(context.alloc(Kind::Shared, MIB));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| doubling.run(1))).is_err()
    });
}

#[test]
fn a_child_builds_modules_beside_threads_that_did() {
    alone("forks_beside_compilations");
}

#[test]
#[ignore = "run by a_child_builds_modules_beside_threads_that_did"]
fn forks_beside_compilations() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let runtime = Shared(runtime);
    let code = programs::module();
    let build = || {
        let module = runtime.get().build(&code, &[]).unwrap();
        assert_eq!(
            unsafe { runtime.get().library.zeModuleDestroy.unwrap()(module) },
            OK
        );
    };
    beside(&[&build, &build], forks(6), |_| {
        child(|| {
            let module = runtime.get().build(&code, &[]).unwrap();
            Doubling::new(runtime.get(), module).run(5)
        });
    });
}
