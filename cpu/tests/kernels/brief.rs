//! Brief launches, which a waiting thread executes by itself, and which are executed without a wait, too.

use std::hint::{black_box, spin_loop};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use level_zero_sys as sys;
use level_zero_sys::ZE_RESULT_SUCCESS as OK;
use spirv::StorageClass;

use super::process::{alone, run};
use super::programs::{Program, module};
use super::runtime::{Runtime, call, must};

/// A module with `locate(x)`: `x[0]` and `x[1]` are the halves of the address of a private variable.
fn locating() -> Vec<u8> {
    let mut p = Program::new();
    let (int, long, global) = (p.int, p.long, p.global);
    let private = p.b.type_pointer(None, StorageClass::Function, int);
    let (zero, one, half) = (
        p.b.constant_bit64(long, 0),
        p.b.constant_bit64(long, 1),
        p.b.constant_bit64(long, 32),
    );
    let (_, arguments) = p.kernel("locate", &[global]);
    let variable = p.b.variable(private, None, StorageClass::Function, None);
    let address = p.b.convert_ptr_to_u(long, None, variable).unwrap();
    let high = p.b.shift_right_logical(long, None, address, half).unwrap();
    for (index, half) in [(zero, address), (one, high)] {
        let narrow = p.b.u_convert(int, None, half).unwrap();
        let place = p.at(arguments[0], index);
        p.store(place, narrow);
    }
    p.end();
    p.bytes()
}

/// `locate` with its memory.
fn locating_itself(runtime: &Runtime) -> (sys::ze_kernel_handle_t, &'static mut [u32]) {
    let kernel = kernel_of(runtime, &locating(), "locate");
    let x = runtime.shared(&[0, 0]);
    assert_eq!(runtime.set(kernel, 0, x.as_ptr()), OK);
    (kernel, x)
}

/// Whether the result of `locate` is close to the frames of the calling thread.
fn is_located_here(halves: &[u32]) -> bool {
    let address = u64::from(halves[1]) << 32 | u64::from(halves[0]);
    let local = 0_u8;
    let here = ptr::from_ref(black_box(&local)).addr() as u64;
    here.abs_diff(address) < 1 << 20
}

/// In one of several rounds, more than 150 launches must be executed by the waiting thread: others are faster at times, when the
/// system does not let this thread execute.
fn are_executed_here(mut round: impl FnMut() -> usize) {
    let mut counts = Vec::new();
    while counts.len() < 20 {
        counts.push(round());
        if counts.last() > Some(&150) {
            return;
        }
    }
    panic!("executed by the waiting thread: {counts:?}");
}

#[test]
fn a_waiting_thread_executes_brief_launches() {
    if Runtime::with_compiler().is_some() {
        // While threads of other tests sleep, launches are issued.
        alone("brief::launches_and_waits");
    }
}

#[test]
#[ignore = "run by a_waiting_thread_executes_brief_launches"]
fn launches_and_waits() {
    let runtime = Runtime::with_compiler().unwrap();
    let kernel = kernel_of(&runtime, &locating(), "locate");
    let [first, last] = [(); 2].map(|()| runtime.shared(&[0, 0]));
    let list = runtime.immediate(true);
    let launch_and_wait = |_| {
        for x in [&first, &last] {
            assert_eq!(runtime.set(kernel, 0, x.as_ptr()), OK);
            runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
        }
        assert_eq!(runtime.synchronize(list), OK);
        usize::from(is_located_here(first)) + usize::from(is_located_here(last))
    };
    are_executed_here(|| (0..100).map(launch_and_wait).sum());
}

#[test]
fn launches_are_queued_again_after_waits_that_do_not_execute_them() {
    if Runtime::with_compiler().is_some() {
        alone("brief::launches_and_waits_in_all_ways");
    }
}

#[test]
#[ignore = "run by launches_are_queued_again_after_waits_that_do_not_execute_them"]
fn launches_and_waits_in_all_ways() {
    let runtime = Runtime::with_compiler().unwrap();
    let (kernel, x) = locating_itself(&runtime);
    let (list, event) = (runtime.immediate(true), runtime.untimed_event());
    let mut waits_for = |nanoseconds| {
        x.fill(0);
        runtime.launch(list, kernel, 1, event, &[]);
        must!(runtime, zeEventHostSynchronize(event, nanoseconds));
        must!(runtime, zeEventHostReset(event));
        is_located_here(x)
    };
    for _ in 0..3 {
        // With a timeout, a thread executes no kernel.
        assert_eq!((0..20).filter(|_| waits_for(1_000_000_000)).count(), 0);
        for _ in 0..300 {
            waits_for(u64::MAX);
        }
        are_executed_here(|| (0..200).filter(|_| waits_for(u64::MAX)).count());
    }
}

/// `meet` with its memory.
fn meeting(runtime: &Runtime) -> (sys::ze_kernel_handle_t, &'static mut [u32]) {
    let kernel = kernel_of(runtime, &module(), "meet");
    let x = runtime.shared(&[0, 0]);
    assert_eq!(runtime.set(kernel, 0, x.as_ptr()), OK);
    (kernel, x)
}

/// Polls until another thread or a kernel has set a value.
fn becomes_set(value: &u32) -> bool {
    let end = Instant::now() + Duration::from_secs(60);
    // SAFETY: a reference is valid.
    while unsafe { ptr::from_ref(value).read_volatile() } == 0 {
        if Instant::now() > end {
            return false;
        }
        thread::yield_now();
    }
    true
}

fn set(value: &mut u32) {
    // SAFETY: a reference is valid.
    unsafe { ptr::from_mut(value).write_volatile(1) };
}

#[test]
fn a_brief_launch_begins_without_a_wait() {
    if Runtime::with_compiler().is_some() {
        // The waits of other tests issue all queued launches of the process.
        alone("brief::launches_without_a_wait");
    }
}

#[test]
#[ignore = "run by a_brief_launch_begins_without_a_wait"]
fn launches_without_a_wait() {
    let runtime = Runtime::with_compiler().unwrap();
    let (kernel, x) = meeting(&runtime);
    let list = runtime.immediate(true);
    for _ in 0..20 {
        x.fill(0);
        runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
        assert!(becomes_set(&x[0]), "the kernel does not begin");
        set(&mut x[1]);
        assert_eq!(runtime.synchronize(list), OK);
    }
}

/// A list of high priority.
fn urgent(runtime: &Runtime) -> sys::ze_command_list_handle_t {
    let desc = sys::ze_command_queue_desc_t {
        priority: sys::ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH,
        ..crate::common::queue_desc(crate::common::IN_ORDER_QUEUE)
    };
    let mut list = ptr::null_mut();
    must!(
        runtime,
        zeCommandListCreateImmediate(
            runtime.context,
            runtime.device,
            &raw const desc,
            &raw mut list
        )
    );
    list
}

/// Another thread launches and executes the kernel that the calling thread executes. On a busy machine the flusher may issue
/// both before, which then need not be executed at once.
#[test]
fn a_kernel_is_executed_by_two_threads_at_once() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    // Normal lists of a device share an engine, which executes one command after another.
    let lists = [runtime.immediate(true), urgent(&runtime)];
    let mut late = 0;
    for _ in 0..10 {
        // A new kernel, of which it is not known how long it takes.
        let (kernel, x) = meeting(&runtime);
        let y = runtime.shared(&[0, 1]);
        assert_eq!(runtime.set(kernel, 0, x.as_ptr()), OK);
        runtime.launch(lists[0], kernel, 1, ptr::null_mut(), &[]);
        let (other, end) = (Beside((&runtime, lists[1], kernel)), AtomicU32::new(0));
        thread::scope(|scope| {
            let ([first, last], y) = (x, &*y) else {
                unreachable!()
            };
            let (first, end) = (&*first, &end);
            scope.spawn(move || {
                let Beside((runtime, list, kernel)) = { other };
                assert!(becomes_set(first));
                assert_eq!(runtime.set(kernel, 0, y.as_ptr()), OK);
                runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
                assert_eq!(runtime.synchronize(list), OK);
                end.store(1, Ordering::Relaxed);
            });
            let guard = scope.spawn(move || {
                let begin = Instant::now();
                let is_late = || begin.elapsed() > Duration::from_secs(3);
                while end.load(Ordering::Relaxed) == 0 && !is_late() {
                    thread::yield_now();
                }
                set(last);
                end.load(Ordering::Relaxed) == 0
            });
            assert_eq!(runtime.synchronize(lists[0]), OK);
            late += usize::from(guard.join().unwrap());
        });
        assert_eq!(y[0], 1);
    }
    assert!(
        late < 5,
        "the second one was executed behind the first one {late} times"
    );
}

/// A kernel of a new module, in groups of one.
fn kernel_of(runtime: &Runtime, code: &[u8], name: &str) -> sys::ze_kernel_handle_t {
    let module = runtime.build(code, &[]).unwrap();
    let kernel = runtime.kernel(module, name).unwrap();
    must!(runtime, zeKernelSetGroupSize(kernel, 1, 1, 1));
    kernel
}

/// `add`, which adds the values of two arrays.
fn adding(runtime: &Runtime, arrays: [&[u32]; 3]) -> sys::ze_kernel_handle_t {
    let add = kernel_of(runtime, &module(), "add");
    for (index, array) in (0..).zip(arrays) {
        assert_eq!(runtime.set(add, index, array.as_ptr()), OK);
    }
    add
}

/// Another thread appends to a list while the calling thread executes its launch.
#[test]
fn launches_behind_one_that_is_executed_follow_it() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let list = runtime.immediate(true);
    let event = runtime.events(1)[0];
    for _ in 0..20 {
        let (kernel, x) = meeting(&runtime);
        let sums = runtime.shared(&[0; 64]);
        let add = adding(&runtime, [x, sums, sums]);
        runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
        let other = Beside((&runtime, list, add, event));
        thread::scope(|scope| {
            let x = &mut *x;
            scope.spawn(move || {
                let Beside((runtime, list, add, event)) = { other };
                assert!(becomes_set(&x[0]));
                // One is brief, one is not, as it has two groups, and one is timed.
                runtime.launch(list, add, 1, ptr::null_mut(), &[]);
                runtime.launch(list, add, 2, ptr::null_mut(), &[]);
                runtime.launch(list, add, 1, event, &[]);
                set(&mut x[1]);
                // Spins until the launch that is executed has ended.
                must!(runtime, zeEventHostSynchronize(event, u64::MAX));
            });
            assert_eq!(runtime.synchronize(list), OK);
        });
        assert_eq!(runtime.synchronize(list), OK);
        assert_eq!(sums[..3], [3, 1, 0]);
        let mut times = sys::ze_kernel_timestamp_result_t::default();
        must!(runtime, zeEventQueryKernelTimestamp(event, &raw mut times));
        assert!(times.global.kernelStart < times.global.kernelEnd);
        must!(runtime, zeEventHostReset(event));
    }
}

/// Spins until another thread has stored a number.
fn becomes(place: &AtomicU32, number: u32) {
    for attempt in 1_u32.. {
        if place.load(Ordering::SeqCst) == number {
            return;
        }
        if attempt % 1000 == 0 {
            thread::yield_now();
        }
        spin_loop();
    }
}

/// A thread begins to execute queued launches while another one appends a launch that is not queued.
#[test]
fn a_launch_that_is_not_brief_does_not_overtake_queued_ones() {
    const ROUNDS: u32 = 2000;
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let [x, y, zero] = [(); 3].map(|()| runtime.shared(&[0]));
    let nothing = adding(&runtime, [zero, zero, zero]);
    // It takes some microseconds.
    let work = kernel_of(&runtime, &module(), "work");
    assert_eq!(runtime.set(work, 0, x.as_ptr()), OK);
    assert_eq!(runtime.set(work, 1, 1000_u64), OK);
    let copy = adding(&runtime, [x, zero, y]);
    let list = runtime.immediate(true);
    let (first, timed) = (runtime.untimed_event(), runtime.events(1)[0]);
    let (round, waited) = (AtomicU32::new(0), AtomicU32::new(0));
    let other = Beside((&runtime, first));
    thread::scope(|scope| {
        let (round, waited) = (&round, &waited);
        scope.spawn(move || {
            let Beside((runtime, first)) = { other };
            for number in 1..=ROUNDS {
                becomes(round, number);
                must!(runtime, zeEventHostSynchronize(first, u64::MAX));
                waited.store(number, Ordering::SeqCst);
            }
        });
        for number in 1..=ROUNDS {
            x[0] = 1;
            // That launches are queued is expected as long as the launching thread executes some of them.
            runtime.launch(list, nothing, 1, ptr::null_mut(), &[]);
            assert_eq!(runtime.synchronize(list), OK);
            runtime.launch(list, nothing, 1, first, &[]);
            runtime.launch(list, work, 1, ptr::null_mut(), &[]);
            round.store(number, Ordering::SeqCst);
            (0..number % 40).for_each(|_| spin_loop());
            runtime.launch(list, copy, 1, timed, &[]);
            must!(runtime, zeEventHostSynchronize(timed, u64::MAX));
            assert_eq!(runtime.synchronize(list), OK);
            assert!(x[0] != 1 && y[0] == x[0], "round {number}");
            becomes(waited, number);
            must!(runtime, zeEventHostReset(first));
            must!(runtime, zeEventHostReset(timed));
        }
    });
}

/// The last command is a copy, which is held back by the kernels and copies before it.
#[test]
fn a_thread_that_waits_for_a_copy_executes_the_kernels_and_copies_before_it() {
    if Runtime::with_compiler().is_some() {
        // While threads of other tests sleep, launches are issued.
        alone("brief::launches_copies_and_waits");
    }
}

#[test]
#[ignore = "run by a_thread_that_waits_for_a_copy_executes_the_kernels_and_copies_before_it"]
fn launches_copies_and_waits() {
    let runtime = Runtime::with_compiler().unwrap();
    let (kernel, x) = locating_itself(&runtime);
    let found = runtime.shared(&[0; 8]);
    let (list, event) = (runtime.immediate(true), runtime.untimed_event());
    let mut launch_copy_and_wait = |_| {
        for (index, place) in found.chunks_mut(2).enumerate() {
            runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
            let signal = if index == 3 { event } else { ptr::null_mut() };
            let (to, from) = (place.as_mut_ptr().cast(), x.as_ptr().cast());
            must!(
                runtime,
                zeCommandListAppendMemoryCopy(list, to, from, 8, signal, 0, ptr::null_mut())
            );
        }
        must!(runtime, zeEventHostSynchronize(event, u64::MAX));
        must!(runtime, zeEventHostReset(event));
        let pairs = found.chunks(2);
        pairs.filter(|halves| is_located_here(halves)).count()
    };
    are_executed_here(|| (0..50).map(&mut launch_copy_and_wait).sum());
}

/// Values for another thread.
struct Beside<T>(T);

// SAFETY: handles are numbers, and the library is thread-safe.
unsafe impl<T> Send for Beside<T> {}

#[test]
fn a_child_sees_the_effects_of_brief_launches_before_its_fork() {
    if Runtime::with_compiler().is_some() {
        alone("brief::forks_behind_launches");
    }
}

#[test]
#[ignore = "run by a_child_sees_the_effects_of_brief_launches_before_its_fork"]
fn forks_behind_launches() {
    let runtime = Runtime::with_compiler().unwrap();
    let (kernel, x) = meeting(&runtime);
    let list = runtime.immediate(true);
    for _ in 0..20 {
        x.copy_from_slice(&[0, 1]);
        runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
        super::process::in_child(|| runtime.synchronize(list) == OK && x[0] == 1);
        assert_eq!(runtime.synchronize(list), OK);
    }
}

#[test]
fn brief_launches_are_executed_before_the_exit() {
    if Runtime::with_compiler().is_none() {
        return;
    }
    let file = std::env::temp_dir().join(format!("zeusm-brief-{}", std::process::id()));
    std::fs::write(&file, [0, 0, 0, 0, 1, 0, 0, 0]).unwrap();
    let ended = run(
        "brief::exits_behind_a_launch",
        &[("FILE", file.to_str().unwrap())],
    );
    let written = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(written[0], 1);
}

#[test]
#[ignore = "run by brief_launches_are_executed_before_the_exit"]
fn exits_behind_a_launch() {
    let runtime = Runtime::with_compiler().unwrap();
    let (kernel, _) = meeting(&runtime);
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(std::env::var("FILE").unwrap())
        .unwrap();
    // SAFETY: a new mapping of a file that is large enough.
    let x = unsafe {
        use std::os::fd::AsRawFd as _;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(
            ptr::null_mut(),
            8,
            access,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    assert_ne!(x, libc::MAP_FAILED);
    assert_eq!(runtime.set(kernel, 0, x), OK);
    let list = runtime.immediate(true);
    runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
    std::process::exit(0);
}

#[test]
fn a_poll_ends_soon_after_a_brief_launch() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let (kernel, x) = meeting(&runtime);
    x[1] = 1;
    let list = runtime.immediate(true);
    let event = runtime.untimed_event();
    for _ in 0..20 {
        x[0] = 0;
        runtime.launch(list, kernel, 1, event, &[]);
        while call!(runtime, zeEventQueryStatus(event)) != OK {}
        assert_eq!(x[0], 1);
        must!(runtime, zeEventHostReset(event));
    }
    assert_eq!(runtime.synchronize(list), OK);
}
