//! Restricted systems: control groups, limits of descriptors and file sizes, seccomp filters, no /proc.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

#[macro_use]
mod common;
#[path = "common/forks.rs"]
mod forks;
#[path = "common/process.rs"]
mod process;
#[allow(dead_code)]
#[path = "kernels/programs.rs"]
mod programs;
#[allow(dead_code, unused_imports)]
#[path = "kernels/runtime.rs"]
mod runtime;
#[path = "common/seccomp.rs"]
mod seccomp;

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::ptr;

use common::{Context, Kind, MIB, Memory, OK, bytes, bytes_mut, pattern};
use forks::in_child;
use level_zero_sys as sys;
use process::{alone, alone_with};
use runtime::{call, must};
use rustix::ioctl::opcode;

/// A control group with 300 MiB of memory that this process is in; `None` where it cannot make one.
fn group(name: &str) -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let folders = own.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let (mounted, limits) = match controllers {
            "" => ("/sys/fs/cgroup", ["memory.max", "memory.swap.max"]),
            "memory" => {
                let limits = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"];
                ("/sys/fs/cgroup/memory", limits)
            }
            _ => return None,
        };
        // A container may see its own group as the root.
        let paths = [path.trim_start_matches('/'), ""];
        let parent = paths.map(|path| Path::new(mounted).join(path)).into_iter();
        Some(
            parent
                .filter(move |parent| parent.join(limits[0]).is_file())
                .map(move |parent| (parent, limits)),
        )
    });
    folders.flatten().find_map(|(parent, [limit, swap])| {
        // The outer group has the limit, and the process is in the inner one.
        let outer = parent.join(format!(
            "zeusm-test-{name}-{}",
            std::os::unix::process::parent_id()
        ));
        let inner = outer.join("inner");
        fs::create_dir_all(&inner).ok()?;
        let ready = fs::write(outer.join(limit), (300 * MIB).to_string()).is_ok()
            && fs::write(inner.join("cgroup.procs"), std::process::id().to_string()).is_ok();
        // Without swap space, where the system limits it.
        let without = if swap.contains("memsw") { 300 * MIB } else { 0 };
        let _ = fs::write(outer.join(swap), without.to_string());
        if !ready {
            remove(&outer);
        }
        ready.then_some(outer)
    })
}

/// Leaves the group, and removes it.
fn leave(group: &Path) {
    let parent = group.parent().unwrap();
    fs::write(parent.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    remove(group);
}

fn remove(outer: &Path) {
    let _ = fs::remove_dir(outer.join("inner"));
    let _ = fs::remove_dir(outer);
}

#[test]
fn allocations_are_limited_by_the_control_group() {
    alone("in_a_control_group");
}

#[test]
#[ignore = "run by allocations_are_limited_by_the_control_group"]
fn in_a_control_group() {
    let Some(group) = group("own") else {
        eprintln!("skipped: this process cannot make a control group");
        return;
    };
    let context = Context::new();
    let take = |size: usize| {
        let memory = context.try_alloc(Kind::Device, size, 0)?;
        bytes_mut(memory, size).fill(1);
        Ok::<Memory, sys::ze_result_t>(memory)
    };
    for _ in 0..3 {
        let mut pieces = Vec::new();
        let refused = loop {
            match take(MIB) {
                Ok(memory) => pieces.push(memory),
                Err(error) => break error,
            }
        };
        assert_eq!(refused, sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
        assert!((200..300).contains(&pieces.len()), "{}", pieces.len());
        // Freed memory is available at once, also for a large allocation.
        pieces.drain(..150).for_each(|memory| context.free(memory));
        let large = take(140 * MIB).unwrap();
        context.free(large);
        let again: Vec<Memory> = (0..140).map(|_| take(MIB).unwrap()).collect();
        again
            .into_iter()
            .chain(pieces)
            .for_each(|memory| context.free(memory));
    }
    // Memory that is not touched counts, too.
    let untouched: Vec<Memory> =
        std::iter::from_fn(|| context.try_alloc(Kind::Host, MIB, 0).ok()).collect();
    assert!((200..300).contains(&untouched.len()), "{}", untouched.len());
    for memory in &untouched {
        bytes_mut(*memory, MIB).fill(2);
    }
    untouched
        .into_iter()
        .for_each(|memory| context.free(memory));
    exports_need_room_for_a_copy(&context);
    leave(&group);
}

#[test]
fn a_program_with_objects_beside_its_small_allocations_is_refused_before_the_groups_end() {
    for size in [64, 1000, 100_000] {
        alone_with("with_objects_of_its_own", &[("SIZE", &size.to_string())]);
    }
}

#[test]
#[ignore = "run by a_program_with_objects_beside_its_small_allocations_is_refused_before_the_groups_end"]
fn with_objects_of_its_own() {
    let size: usize = std::env::var("SIZE").unwrap().parse().unwrap();
    let Some(group) = group("objects") else {
        eprintln!("skipped: this process cannot make a control group");
        return;
    };
    let context = Context::new();
    let mut objects = Vec::new();
    // The system would end the process at the group's limit.
    while let Ok(memory) = context.try_alloc(Kind::Host, size, 0) {
        bytes_mut(memory, size).fill(1);
        objects.push((memory, vec![1_u8; 500]));
    }
    // An allocation has pages of its own.
    let taken = objects.len() * (size.next_multiple_of(4096) + 500);
    assert!(taken > 200 * MIB, "{taken}");
    in_child(|| true);
    for (memory, _) in objects {
        context.free(memory);
    }
    leave(&group);
}

/// Exports memory beside other memory that leaves no room for a copy, and without that.
#[test]
fn memory_that_another_process_frees_is_available() {
    alone("beside_another_process");
}

#[test]
#[ignore = "run by memory_that_another_process_frees_is_available"]
fn beside_another_process() {
    let Some(group) = group("beside") else {
        eprintln!("skipped: this process cannot make a control group");
        return;
    };
    let mut other = Command::new("dd")
        .args(["if=/dev/zero", "of=/dev/stdout", "bs=150M", "count=2"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It writes its memory before it writes to the pipe, which it then waits for.
    let mut byte = [0];
    let mut output = other.stdout.take().unwrap();
    output.read_exact(&mut byte).unwrap();
    let context = Context::new();
    let take = |size: usize| {
        let memory = context.try_alloc(Kind::Device, size, 0)?;
        bytes_mut(memory, size).fill(1);
        Ok::<Memory, sys::ze_result_t>(memory)
    };
    let mut own = vec![take(100 * MIB).unwrap()];
    assert!(take(140 * MIB).is_err(), "the other process has the memory");
    other.kill().unwrap();
    other.wait().unwrap();
    own.push(take(140 * MIB).unwrap());
    assert!(take(60 * MIB).is_err());
    own.into_iter().for_each(|memory| context.free(memory));
    // Untouched memory is not available twice.
    own = [100, 100]
        .map(|size| context.alloc(Kind::Device, size * MIB))
        .into();
    assert!(context.try_alloc(Kind::Device, 120 * MIB, 0).is_err());
    own.into_iter().for_each(|memory| context.free(memory));
    leave(&group);
}

fn exports_need_room_for_a_copy(context: &Context) {
    let size = 110 * MIB;
    let [other, memory] = [(); 2].map(|()| context.alloc(Kind::Device, size));
    for memory in [other, memory] {
        bytes_mut(memory, size).fill(1);
    }
    let shortage = sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    assert_eq!(export(context, memory), shortage);
    assert!(bytes(memory, size).iter().all(|byte| *byte == 1));
    context.free(other);
    // What was never written takes no memory in a file either.
    let untouched = context.alloc(Kind::Device, size);
    assert_eq!(export(context, untouched), OK);
    context.free(untouched);
    assert_eq!(export(context, memory), OK);
    assert!(bytes(memory, size).iter().all(|byte| *byte == 1));
    context.free(memory);
}

fn export(context: &Context, memory: Memory) -> sys::ze_result_t {
    let mut handle = sys::ze_ipc_mem_handle_t::default();
    ze!(zeMemGetIpcHandle(context.0, memory, &raw mut handle))
}

/// The description of the thread's last error.
fn description() -> String {
    let functions = common::library();
    let describe = functions.zeDriverGetLastErrorDescription.unwrap();
    let mut text = ptr::null();
    assert_eq!(unsafe { describe(common::driver(), &raw mut text) }, OK);
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}

/// Expects that memory cannot be exported, and that the description contains `words`.
fn expect_refusal(context: &Context, expected: sys::ze_result_t, words: &[&str]) {
    let memory = context.alloc(Kind::Shared, 4096);
    assert_eq!(export(context, memory), expected);
    if common::direct() {
        let text = description();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    context.free(memory);
}

fn limit(which: libc::__rlimit_resource_t, most: Option<u64>) -> u64 {
    let mut limits = unsafe { std::mem::zeroed::<libc::rlimit>() };
    assert_eq!(unsafe { libc::getrlimit(which, &raw mut limits) }, 0);
    let before = limits.rlim_cur;
    limits.rlim_cur = most.unwrap_or(limits.rlim_max);
    assert_eq!(unsafe { libc::setrlimit(which, &raw const limits) }, 0);
    before
}

#[test]
fn a_shortage_of_descriptors_is_transient() {
    alone("without_descriptors");
}

#[test]
#[ignore = "run by a_shortage_of_descriptors_is_transient"]
fn without_descriptors() {
    let context = Context::new();
    limit(libc::RLIMIT_NOFILE, Some(64));
    let all: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    expect_refusal(
        &context,
        sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,
        &["memfd_create", "open files", "ulimit -n"],
    );
    drop(all);
    assert_eq!(export(&context, context.alloc(Kind::Shared, 4096)), OK);
}

#[test]
fn a_file_size_limit_is_reported_without_a_signal() {
    alone("without_files");
}

#[test]
#[ignore = "run by a_file_size_limit_is_reported_without_a_signal"]
fn without_files() {
    let context = Context::new();
    limit(libc::RLIMIT_FSIZE, Some(0));
    expect_refusal(
        &context,
        sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE,
        &["File too large", "ulimit -f"],
    );
    limit(libc::RLIMIT_FSIZE, None);
    assert_eq!(export(&context, context.alloc(Kind::Shared, 4096)), OK);
}

#[test]
fn a_seccomp_filter_is_reported() {
    alone("without_memory_files");
}

#[test]
#[ignore = "run by a_seccomp_filter_is_reported"]
fn without_memory_files() {
    let context = Context::new();
    // Modules can still be built.
    let runtime = runtime::Runtime::with_compiler();
    seccomp::refuse(libc::SYS_memfd_create, libc::EPERM);
    let permission = sys::ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS;
    expect_refusal(
        &context,
        permission,
        &["memfd_create", "not permitted", "seccomp"],
    );
    let Some(runtime) = runtime else { return };
    // A child needs a compiler process of its own.
    in_child(|| {
        let (_, log) = runtime.build(&programs::module(), &[]).unwrap_err();
        let words = ["memfd_create", "not permitted", "seccomp"];
        assert!(words.iter().all(|word| log.contains(word)), "{log}");
        true
    });
}

#[test]
fn memory_that_cannot_be_moved_any_more_is_not_offered() {
    alone("without_page_faults");
}

#[test]
#[ignore = "run by memory_that_cannot_be_moved_any_more_is_not_offered"]
fn without_page_faults() {
    let context = Context::new();
    let exported = || common::external_memory().memoryAllocationExportTypes;
    assert_ne!(exported(), 0);
    assert_eq!(export(&context, context.alloc(Kind::Shared, 4096)), OK);
    if unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) } < 0 {
        eprintln!("skipped: memory is in files from the start, as this system lacks userfaultfd");
        return;
    }
    seccomp::refuse(libc::SYS_userfaultfd, libc::EPERM);
    assert_eq!(exported(), 0);
    let permission = sys::ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS;
    expect_refusal(&context, permission, &["userfaultfd", "seccomp"]);
}

#[test]
fn kernels_run_where_no_thread_can_be_started() {
    alone("without_threads");
}

/// A kernel behind a copy behind a kernel is not chained to it, so the runtime's callback must not enqueue it.
#[test]
#[ignore = "run by kernels_run_where_no_thread_can_be_started"]
fn without_threads() {
    const ROUNDS: u64 = 100_000;
    let Some(runtime) = runtime::Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&programs::module(), &[]).unwrap();
    let kernel = runtime.kernel(module, "work").unwrap();
    must!(runtime, zeKernelSetGroupSize(kernel, 1, 1, 1));
    let memory = runtime.shared(&[0, 0]);
    assert_eq!(runtime.set(kernel, 0, memory.as_ptr()), OK);
    assert_eq!(runtime.set(kernel, 1, ROUNDS), OK);
    let list = runtime.immediate(false);
    let [start, end] = runtime.events(2)[..] else {
        unreachable!()
    };
    // The OpenCL runtime starts its threads, and the engine none.
    runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
    assert_eq!(runtime.synchronize(list), OK);
    seccomp::refuse_threads();
    let barrier = || {
        must!(
            runtime,
            zeCommandListAppendBarrier(list, ptr::null_mut(), 0, ptr::null_mut())
        );
    };
    runtime.launch(list, kernel, 100, ptr::null_mut(), &[start]);
    barrier();
    let (to, from) = (
        memory[1..].as_ptr().cast_mut().cast(),
        memory.as_ptr().cast(),
    );
    must!(
        runtime,
        zeCommandListAppendMemoryCopy(list, to, from, 4, ptr::null_mut(), 0, ptr::null_mut())
    );
    barrier();
    runtime.launch(list, kernel, 1, end, &[]);
    must!(runtime, zeEventHostSignal(start));
    must!(runtime, zeEventHostSynchronize(end, 60_000_000_000));
    assert_eq!(runtime.synchronize(list), OK);
}

/// `UFFDIO_WRITEPROTECT` and `UFFDIO_UNREGISTER`.
const PROTECT: u32 = opcode::read_write::<[u64; 3]>(0xaa, 6);
const UNREGISTER: u32 = opcode::read::<[u64; 2]>(0xaa, 1);

/// The system calls that move memory into a file, with the argument that distinguishes each: the copy, the mapping of the
/// file, and the protection from writes meanwhile.
const MOVING: [(libc::c_long, Option<(u32, u32)>); 3] = [
    (libc::SYS_pwrite64, None),
    (
        libc::SYS_mmap,
        Some((
            3,
            (libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE) as u32,
        )),
    ),
    (libc::SYS_ioctl, Some((1, PROTECT))),
];

#[test]
fn a_move_that_fails_and_cannot_be_undone_leaves_the_memory() {
    for step in 0..MOVING.len() {
        alone_with("with_failing_moves", &[("STEP", &step.to_string())]);
    }
}

#[test]
#[ignore = "run by a_move_that_fails_and_cannot_be_undone_leaves_the_memory"]
fn with_failing_moves() {
    let context = Context::new();
    let sizes = [100, 300_000, 9 * MIB];
    let all = sizes.map(|size| {
        let memory = context.alloc(Kind::Shared, size);
        let data = pattern(size, size as u64);
        bytes_mut(memory, size).copy_from_slice(&data);
        (memory, data)
    });
    let step: usize = std::env::var("STEP").unwrap().parse().unwrap();
    // The calls that take a step back fail, too.
    let back = [
        (
            libc::SYS_mremap,
            Some((3, (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u32)),
        ),
        (libc::SYS_ioctl, Some((1, UNREGISTER))),
    ];
    for (call, argument) in [MOVING[step]].into_iter().chain(back) {
        match argument {
            Some((position, value)) => seccomp::refuse_with(call, position, value, libc::ENOMEM),
            None => seccomp::refuse(call, libc::ENOMEM),
        }
    }
    for (memory, mut data) in all {
        let shortage = sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        assert_eq!(export(&context, memory), shortage);
        assert!(bytes(memory, data.len()) == data);
        // It can still be written.
        data.reverse();
        bytes_mut(memory, data.len()).copy_from_slice(&data);
        assert!(bytes(memory, data.len()) == data);
        context.free(memory);
    }
}

#[test]
fn memory_is_exported_where_proc_is_not_mounted() {
    alone("without_proc");
}

#[test]
#[ignore = "run by memory_is_exported_where_proc_is_not_mounted"]
fn without_proc() {
    let context = Context::new();
    let none = c"none".as_ptr();
    let hidden = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                none,
                c"/".as_ptr(),
                ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                ptr::null(),
            ) == 0
            && libc::mount(none, c"/proc".as_ptr(), c"tmpfs".as_ptr(), 0, ptr::null()) == 0
    };
    if !hidden {
        eprintln!("skipped: this process cannot hide /proc");
        return;
    }
    assert_eq!(export(&context, context.alloc(Kind::Shared, 4096)), OK);
}
