//! Programs whose streams and signals are not as usual, under the checker.

use std::fs::File;
use std::io::Write;
use std::process::Output;

use libc::c_int;

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
fn findings_with_a_closed_standard_error_are_not_written_into_another_file() {
    if common::direct() {
        for name in [
            "reads_with_a_closed_standard_error",
            "reads_with_closed_streams",
        ] {
            let output = run(name);
            assert_eq!(output.status.code(), Some(3), "{name}");
        }
    }
}

#[test]
#[ignore = "run by findings_with_a_closed_standard_error_are_not_written_into_another_file"]
fn reads_with_a_closed_standard_error() {
    write_a_file_beside_a_finding(&[2]);
}

#[test]
#[ignore = "run by findings_with_a_closed_standard_error_are_not_written_into_another_file"]
fn reads_with_closed_streams() {
    write_a_file_beside_a_finding(&[0, 2]);
}

/// The file is opened after the first call of Level Zero. Its own text must be all that it has: else this exits with 1.
fn write_a_file_beside_a_finding(closed: &[c_int]) {
    limit();
    for descriptor in closed {
        assert_eq!(unsafe { libc::close(*descriptor) }, 0);
    }
    let context = Context::new();
    let path = std::env::temp_dir().join(format!("zeusm-{}-beside", std::process::id()));
    let mut file = File::create(&path).unwrap();
    file.write_all(b"first").unwrap();
    let memory = context.alloc(Kind::Device, 1000);
    faulty::read(memory, 5);
    context.free(memory);
    file.write_all(b"last").unwrap();
    let text = std::fs::read(&path).unwrap();
    let _ = std::fs::remove_file(&path);
    if text != b"firstlast" {
        unsafe { libc::_exit(1) };
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
