//! The checker on a gallery of faulty programs, each in a process of its own, and on correct ones.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks,
    clippy::macro_metavars_in_unsafe
)]
#![allow(missing_docs)]

#[macro_use]
#[path = "../common/mod.rs"]
mod common;
mod correct;
#[path = "../common/counter.rs"]
mod counter;
mod faulty;
#[path = "../common/forks.rs"]
mod forks;
mod gallery;
mod graphs;
mod kernels;
mod loops;
mod orders;
mod pointers;
#[path = "../common/process.rs"]
mod process;
#[allow(dead_code, unused_imports)]
#[path = "../kernels/programs.rs"]
mod programs;
mod races;
#[path = "../common/graphs.rs"]
mod recorded;
#[allow(dead_code, unused_imports)]
#[path = "../kernels/runtime.rs"]
mod runtime;
#[path = "../common/seccomp.rs"]
mod seccomp;
mod signals;
mod surroundings;
mod tricky;

use std::path::PathBuf;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use gallery::Program;

/// Names the program that [`child`] runs.
const PROGRAM: &str = "ZEUSM_GALLERY";

fn programs() -> impl Iterator<Item = Program> {
    let all = [
        faulty::PROGRAMS,
        races::PROGRAMS,
        orders::PROGRAMS,
        kernels::PROGRAMS,
        pointers::PROGRAMS,
        correct::PROGRAMS,
        tricky::PROGRAMS,
        graphs::PROGRAMS,
        graphs::WITH_KERNELS,
    ];
    all.into_iter().flatten().copied()
}

#[test]
#[ignore = "run by the other tests"]
fn child() {
    let name = std::env::var(PROGRAM).unwrap();
    let (_, _, run) = programs().find(|it| it.0 == name).unwrap();
    run();
}

/// Runs a program under the checker: its output, and the report.
fn run(name: &str, environment: &[(&str, &str)]) -> (Output, Value) {
    let report = std::env::temp_dir().join(format!("zeusm-{}-{name}.json", std::process::id()));
    let path = report.to_str().unwrap();
    let mut all = vec![
        ("ZEUSM_CHECK", "all"),
        (common::STRICT, "1"),
        (PROGRAM, name),
        ("ZEUSM_CHECK_REPORT", path),
    ];
    all.extend(environment);
    let output = process::run("child", &all);
    let text = std::fs::read(&report).unwrap_or_default();
    let _ = std::fs::remove_file(&report);
    (output, serde_json::from_slice(&text).unwrap_or(Value::Null))
}

fn kinds(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array();
    findings
        .into_iter()
        .flatten()
        .map(|finding| finding["kind"].as_str().unwrap())
        .collect()
}

/// The modes with a loader have another library in the frames, and the loader keeps objects alive.
fn direct() -> bool {
    common::direct()
}

#[test]
fn each_faulty_program_is_caught_and_no_correct_one() {
    if !direct() {
        return;
    }
    let mut wrong = Vec::new();
    for (name, expected, _) in programs() {
        let with_kernels = kernels::PROGRAMS.iter();
        let mut with_kernels = with_kernels
            .chain(pointers::PROGRAMS)
            .chain(graphs::WITH_KERNELS);
        if with_kernels.any(|it| it.0 == name) && !kernels::can_run() {
            eprintln!("skipped, as there is no OpenCL runtime: {name}");
            continue;
        }
        let (output, report) = run(name, &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        let status = output.status.code();
        let fits = kinds(&report) == expected
            && status == Some(if expected.is_empty() { 0 } else { 86 })
            && expected
                .iter()
                .all(|kind| errors.contains(&format!("zeusm check: {kind}: ")));
        if !fits {
            wrong.push(format!(
                "{name}: {status:?}, {:?}\n{errors}",
                kinds(&report)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_report_names_the_allocation_and_the_stacks() {
    if !direct() {
        return;
    }
    let (_, report) = run("host_reads_freed_memory", &[]);
    let finding = &report["findings"][0];
    let allocation = &finding["allocation"];
    assert_eq!(allocation["memory"], "shared");
    assert_eq!(allocation["size"], 1000);
    assert_eq!(allocation["offset"], 30);
    assert_eq!(allocation["distance"], 0);
    let names = |stack: &Value, function: &str| {
        let frames = stack["native"].as_array().unwrap();
        frames
            .iter()
            .any(|frame| frame["function"].as_str().unwrap().contains(function))
    };
    assert!(names(&finding["stack"], "host_reads_freed_memory"));
    assert!(names(&allocation["allocated"], "zeMemAllocShared"));
    assert!(names(&allocation["freed"], "zeMemFree"));
    let (_, report) = run("host_writes_far_behind", &[]);
    let finding = &report["findings"][0];
    assert_eq!(finding["allocation"]["distance"], 101);
    assert!(finding["message"].as_str().unwrap().contains("writes"));
}

/// Intel's driver allows it, and Intel MPI does it at each of its copies.
#[test]
fn memory_of_another_context_is_found_by_the_letter_only() {
    if direct() {
        let (output, report) = run("memory_of_another_context", &[(common::STRICT, "0")]);
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(kinds(&report), [""; 0]);
    }
}

#[test]
fn suppressions_and_the_exit_status_can_be_set() {
    if !direct() {
        return;
    }
    let (output, _) = run(
        "host_reads_device_memory",
        &[("ZEUSM_CHECK_EXIT_CODE", "3")],
    );
    assert_eq!(output.status.code(), Some(3));
    let (output, _) = run(
        "host_reads_device_memory",
        &[("ZEUSM_CHECK_EXIT_CODE", "0")],
    );
    assert_eq!(output.status.code(), Some(0));
    let file = Suppressions::new("host-access:host_reads_device_memory\n");
    let suppressed = [("ZEUSM_CHECK_SUPPRESSIONS", file.path())];
    let (output, report) = run("host_reads_device_memory", &suppressed);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(report["suppressed"], 1);
    let (output, _) = run("host_writes_device_memory", &suppressed);
    assert_eq!(output.status.code(), Some(86));
}

#[test]
fn a_child_reports_whatever_its_parent_reports_at_the_fork() {
    if direct() {
        let output = process::run("forks_beside_findings", &[("ZEUSM_CHECK", "all")]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "{text}");
    }
}

#[test]
#[ignore = "run by a_child_reports_whatever_its_parent_reports_at_the_fork"]
fn forks_beside_findings() {
    // A child would wait for ever for an initialisation of the test's that its parent has begun.
    common::library();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                faulty::host_reads_device_memory();
            }
        });
        let forks = || {
            for _ in 0..20 {
                thread::sleep(Duration::from_millis(20));
                forks::in_child(|| {
                    faulty::host_reads_device_memory();
                    true
                });
            }
        };
        let done = std::panic::catch_unwind(forks);
        over.store(true, Ordering::Relaxed);
        done.unwrap();
    });
}

#[test]
fn a_child_begins_beside_commands_that_open_and_close_pages() {
    if direct() {
        let output = process::run("forks_beside_changes", &[("ZEUSM_CHECK", "all")]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "{text}");
    }
}

/// The host is kept out of the memory at each submission and let in after the wait. The pages are many, so that this takes
/// most of the time.
#[test]
#[ignore = "run by a_child_begins_beside_commands_that_open_and_close_pages"]
fn forks_beside_changes() {
    const SIZE: usize = 64 << 20;
    let context = common::Context::new();
    let memory = context.alloc(common::Kind::Shared, SIZE);
    let list = context.immediate(0);
    common::fill(list, memory, &[3], SIZE, common::NONE, &[]);
    common::finish(&context, list);
    let (over, addresses) = (AtomicBool::new(false), (list as usize, memory as usize));
    thread::scope(|scope| {
        scope.spawn(|| {
            let (list, memory) = (addresses.0 as common::List, addresses.1 as common::Memory);
            while !over.load(Ordering::Relaxed) {
                common::fill(list, memory, &[3], 1, common::NONE, &[]);
                common::finish(&context, list);
            }
        });
        let forks = || {
            for _ in 0..50 {
                thread::sleep(Duration::from_millis(2));
                forks::in_child(|| faulty::read(memory, 5) == 3);
            }
        };
        let done = std::panic::catch_unwind(forks);
        over.store(true, Ordering::Relaxed);
        done.unwrap();
    });
    common::destroy(list);
    context.free(memory);
}

#[test]
fn a_process_that_can_start_no_thread_reports_an_access() {
    if direct() {
        let output = process::run("reads_without_a_new_thread", &[("ZEUSM_CHECK", "all")]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "{text}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("the host reads device memory"), "{errors}");
    }
}

#[test]
#[ignore = "run by a_process_that_can_start_no_thread_reports_an_access"]
fn reads_without_a_new_thread() {
    seccomp::refuse(libc::SYS_clone, libc::EAGAIN);
    seccomp::refuse(libc::SYS_clone3, libc::EAGAIN);
    // In case that it waits for ever.
    unsafe { libc::alarm(60) };
    faulty::host_reads_device_memory();
}

#[test]
fn a_child_reports_accesses_where_memory_is_in_files() {
    if direct() {
        let output = process::run("forks_without_userfaultfd", &[("ZEUSM_CHECK", "all")]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "{text}");
        let errors = String::from_utf8_lossy(&output.stderr);
        for found in ["host-access", "out-of-bounds", "use-after-free"] {
            let line = format!("zeusm check: {found}: ");
            assert_eq!(errors.matches(&line).count(), 1, "{found}\n{errors}");
        }
    }
}

#[test]
#[ignore = "run by a_child_reports_accesses_where_memory_is_in_files"]
fn forks_without_userfaultfd() {
    seccomp::refuse(libc::SYS_userfaultfd, libc::EPERM);
    let context = common::Context::new();
    let device = context.alloc(common::Kind::Device, 1000);
    let shared = context.alloc(common::Kind::Shared, 1000);
    let freed = context.alloc(common::Kind::Shared, 1000);
    context.free(freed);
    faulty::write(shared, 5);
    forks::in_child(|| {
        faulty::read(device, 5);
        faulty::read(shared, 1000 + 5000);
        faulty::read(freed, 5);
        faulty::read(shared, 5) == 1
    });
    context.free(device);
    context.free(shared);
}

struct Suppressions(PathBuf);

impl Suppressions {
    fn new(text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("zeusm-{}.supp", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Suppressions {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
