//! Kernels and the compiler in a child.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use level_zero_sys as sys;
use level_zero_sys::ZE_RESULT_SUCCESS as OK;

use crate::children::in_child;
use crate::common::{Context, Kind, MIB, NONE};
use crate::process::alone;
use crate::runtime::{Runtime, call, must};
use crate::{Shared, beside, forks, programs};

/// A kernel that doubles its values, and its arguments.
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

    /// Launches it `rounds` times on a new list. Returns whether the result is right.
    fn run(&mut self, rounds: u32) -> bool {
        self.values.fill(1);
        let list = self.runtime.immediate(true);
        let groups = self.values.len() as u32;
        for _ in 0..rounds {
            self.runtime.launch(list, self.kernel, groups, NONE, &[]);
        }
        assert_eq!(self.runtime.synchronize(list), OK);
        assert_eq!(
            unsafe { self.runtime.library.zeCommandListDestroy.unwrap()(list) },
            OK
        );
        self.values.iter().all(|value| *value == 1 << rounds)
    }
}

#[test]
fn a_child_runs_kernels_beside_threads_that_ran_kernels() {
    alone("kernels::forks_beside_kernels");
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
        in_child(|| Doubling::new(runtime.get(), *module.get()).run(10));
    });
}

#[test]
fn a_fork_does_not_wait_for_a_main_thread_that_has_ended() {
    alone("kernels::forks_after_the_main_thread");
}

#[test]
#[ignore = "run by a_fork_does_not_wait_for_a_main_thread_that_has_ended"]
fn forks_after_the_main_thread() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = Shared(runtime.build(&programs::module(), &[]).unwrap());
    let runtime = Shared(runtime);
    assert!(Doubling::new(runtime.get(), *module.get()).run(10));
    in_child(|| {
        // A process that is limited to one processor: its main thread looks like a worker.
        let only = unsafe {
            let mut only: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(libc::sched_getcpu().cast_unsigned() as usize, &mut only);
            libc::sched_setaffinity(0, size_of_val(&only), &raw const only)
        };
        assert_eq!(only, 0);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(100));
                let begin = Instant::now();
                let launch = || Doubling::new(runtime.get(), *module.get()).run(10);
                let worked = catch_unwind(AssertUnwindSafe(|| in_child(launch))).is_ok();
                let is_prompt = begin.elapsed() < Duration::from_secs(5);
                unsafe { libc::_exit(i32::from(!(worked && is_prompt))) };
            });
            // Ends this thread alone.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        });
        false
    });
}

#[test]
fn each_of_two_threads_that_fork_waits_for_calls_of_opencl() {
    alone("kernels::forks_of_two_threads");
}

/// Queries about a kernel that OpenCL answers.
fn ask(kernel: sys::ze_kernel_handle_t) {
    let mut properties = sys::ze_kernel_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES,
        ..Default::default()
    };
    ok!(zeKernelGetProperties(kernel, &raw mut properties));
    let [mut x, mut y, mut z] = [0; 3];
    ok!(zeKernelSuggestGroupSize(
        kernel, 64, 1, 1, &raw mut x, &raw mut y, &raw mut z
    ));
}

/// How many handlers linger, and how often one has begun or ended.
static LINGERING: AtomicUsize = AtomicUsize::new(0);
static CHANGES: AtomicUsize = AtomicUsize::new(0);

/// A handler that makes a fork take long. The C library calls it after the runtime's, which are registered later.
extern "C" fn linger() {
    LINGERING.fetch_add(1, Ordering::AcqRel);
    CHANGES.fetch_add(1, Ordering::AcqRel);
    thread::sleep(Duration::from_millis(50));
    LINGERING.fetch_sub(1, Ordering::AcqRel);
    CHANGES.fetch_add(1, Ordering::AcqRel);
}

#[test]
#[ignore = "run by each_of_two_threads_that_fork_waits_for_calls_of_opencl"]
fn forks_of_two_threads() {
    let registered = unsafe { libc::pthread_atfork(Some(linger), None, None) };
    assert_eq!(registered, 0);
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&programs::module(), &[]).unwrap();
    let kernel = Shared(runtime.kernel(module, "add").unwrap());
    let (calls, during_forks) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let ask = || {
        let before = CHANGES.load(Ordering::Acquire);
        let lingers = LINGERING.load(Ordering::Acquire) > 0;
        ask(*kernel.get());
        // Without a change, the whole call was between the handlers of a fork.
        let is_during_fork = lingers && CHANGES.load(Ordering::Acquire) == before;
        during_forks.fetch_add(usize::from(is_during_fork), Ordering::AcqRel);
        calls.fetch_add(1, Ordering::AcqRel);
    };
    beside(&[&ask], 3, |_| {
        thread::scope(|scope| {
            let fork = || in_child(|| true);
            scope.spawn(fork);
            scope.spawn(fork);
        });
    });
    assert!(calls.into_inner() > 0);
    assert_eq!(during_forks.into_inner(), 0);
}

#[test]
fn a_kernel_that_runs_in_a_child_answers_queries() {
    alone("kernels::asks_a_running_kernel_in_a_child");
}

#[test]
#[ignore = "run by a_kernel_that_runs_in_a_child_answers_queries"]
fn asks_a_running_kernel_in_a_child() {
    beside_a_running_kernel_of_a_child(ask);
}

#[test]
#[ignore = "takes ten seconds, in a process of its own: run it by name"]
fn a_child_of_a_fork_during_a_launch_of_a_child_answers_queries() {
    beside_a_running_kernel_of_a_child(|kernel| {
        in_child(|| {
            unsafe { libc::alarm(60) };
            ask(kernel);
            true
        });
    });
}

/// Calls `work` in a child, which has no workers of OpenCL, with a kernel that another thread runs there.
fn beside_a_running_kernel_of_a_child(work: impl Fn(sys::ze_kernel_handle_t)) {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&programs::module(), &[]).unwrap();
    assert!(Doubling::new(&runtime, module).run(1));
    let kernel = runtime.kernel(module, "meet").unwrap();
    let runtime = Shared(runtime);
    in_child(|| {
        // A query may wait for the kernel, which waits for this thread.
        unsafe { libc::alarm(60) };
        let memory = runtime.get().shared(&[0; 2]);
        assert_eq!(runtime.get().set(kernel, 0, memory.as_ptr()), OK);
        let (kernel, launched) = (Shared(kernel), Shared(kernel));
        let has = |index: usize| unsafe { memory.as_ptr().add(index).read_volatile() } != 0;
        thread::scope(|scope| {
            scope.spawn(|| {
                let list = runtime.get().immediate(true);
                runtime.get().launch(list, *launched.get(), 1, NONE, &[]);
            });
            while !has(0) {
                thread::yield_now();
            }
            work(*kernel.get());
            unsafe { memory.as_ptr().add(1).cast_mut().write_volatile(1) };
        });
        true
    });
}

#[test]
#[ignore = "takes half a minute, in a process of its own: run it by name"]
fn a_child_of_a_fork_during_a_long_launch_has_no_kernels() {
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
    runtime.launch(list, kernel, 1, NONE, &[]);
    let is_refused = || {
        let (_, log) = runtime.build(&programs::module(), &[]).unwrap_err();
        assert!(
            log.contains("forked while its parent ran a kernel"),
            "{log}"
        );
        true
    };
    in_child(|| {
        is_refused();
        // A child of its own has none either, and changes nothing.
        in_child(is_refused);
        is_refused();
        // A launch of an inherited kernel is an error, too, and memory works.
        let context = Context::new();
        context.free(context.alloc(Kind::Shared, MIB));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| doubling.run(1))).is_err()
    });
}

#[test]
fn a_fork_that_is_not_announced_waits_for_no_kernel() {
    alone("kernels::forks_without_and_with_announcements");
}

#[test]
#[ignore = "run by a_fork_that_is_not_announced_waits_for_no_kernel"]
fn forks_without_and_with_announcements() {
    type Function = unsafe extern "C" fn(sys::ze_driver_handle_t) -> sys::ze_result_t;
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    // The extension gives both functions this type.
    let (require, announce): (Function, Function) = unsafe {
        (
            runtime.extension(c"zeusmDriverRequireForkAnnouncements"),
            runtime.extension(c"zeusmDriverAnnounceFork"),
        )
    };
    let module = runtime.build(&programs::module(), &[]).unwrap();
    let builds = || runtime.build(&programs::module(), &[]).is_ok();
    let kernel = runtime.kernel(module, "work").unwrap();
    must!(runtime, zeKernelSetGroupSize(kernel, 1, 1, 1));
    let memory = runtime.shared(&[0]);
    assert_eq!(runtime.set(kernel, 0, memory.as_ptr()), OK);
    let event = runtime.events(1)[0];
    let list = runtime.immediate(true);
    let launch = |rounds: u64| {
        assert_eq!(runtime.set(kernel, 1, rounds), OK);
        must!(runtime, zeEventHostReset(event));
        runtime.launch(list, kernel, 1, event, &[]);
    };
    let is_complete = || call!(runtime, zeEventQueryStatus(event)) == OK;
    let in_a_child_builds_soon = || {
        let deadline = Instant::now() + Duration::from_secs(60);
        while catch_unwind(AssertUnwindSafe(|| in_child(builds))).is_err() {
            assert!(Instant::now() < deadline);
        }
    };
    // By default, and for an announced fork, the kernel is complete at the fork, and the child has kernels.
    let rounds = 200_000_000;
    launch(rounds);
    in_child(builds);
    assert!(is_complete());
    assert_eq!(unsafe { require(runtime.driver) }, OK);
    launch(rounds);
    assert_eq!(unsafe { announce(runtime.driver) }, OK);
    in_child(builds);
    assert!(is_complete());
    // The announcement was of one fork. Without a kernel in flight, the child of another one has kernels, too, if the workers
    // fall asleep soon.
    in_a_child_builds_soon();
    // The child's compiler starts before the build is refused.
    launch(10 * rounds);
    in_child(|| !builds());
    assert!(!is_complete(), "the fork waited for the kernel");
    assert_eq!(runtime.synchronize(list), OK);
    in_a_child_builds_soon();
}

#[test]
fn a_child_builds_modules_beside_threads_that_did() {
    alone("kernels::forks_beside_compilations");
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
        in_child(|| {
            let module = runtime.get().build(&code, &[]).unwrap();
            Doubling::new(runtime.get(), module).run(5)
        });
    });
}
