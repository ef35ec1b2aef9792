//! Programs with many wrong accesses, under the checker.

use serde_json::Value;

use super::common::{self, Context, Kind, Memory};
use super::{faulty, process};

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
        // The accesses after the last call.
        assert_eq!(report["left_out"], 5);
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
