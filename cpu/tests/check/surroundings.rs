//! Programs whose streams and signals are not as usual, under the checker.

use std::process::Output;

use crate::common::{self, Context, Kind};
use crate::{faulty, process};

/// Runs an ignored test of this module under the checker.
fn run(name: &str) -> Output {
    process::run(
        &format!("surroundings::{name}"),
        &[("ZEUSM_CHECK", "1"), ("ZEUSM_CHECK_EXIT_CODE", "3")],
    )
}

/// Ends this process if it hangs.
fn limit() {
    unsafe { libc::alarm(60) };
}

#[test]
fn findings_without_a_reader_of_the_standard_error() {
    if common::direct() {
        let output = run("reads_without_a_standard_error");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "{}\n{text}", output.status);
        assert_eq!(output.status.code(), Some(3));
    }
}

#[test]
#[ignore = "run by findings_without_a_reader_of_the_standard_error"]
fn reads_without_a_standard_error() {
    limit();
    let mut ends = [0; 2];
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        assert_eq!(libc::dup2(ends[1], libc::STDERR_FILENO), 2);
        libc::close(ends[0]);
    }
    let context = Context::new();
    for _ in 0..3 {
        let memory = context.alloc(Kind::Device, 1000);
        faulty::read(memory, 5);
        context.free(memory);
    }
}
