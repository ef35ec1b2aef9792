#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn results_are_told_apart_from_other_output() {
    let report = in_child(|output| {
        // Not with `println!`, which the test harness captures.
        io::stdout().write_all(b"a driver's banner\n").unwrap();
        io::stdout().flush().unwrap();
        output.write("one");
        output.write("two\nlines");
    });
    let expected = Report {
        results: vec!["one".to_owned(), "two lines".to_owned()],
        failure: None,
        output: "a driver's banner".to_owned(),
    };
    assert_eq!(report.unwrap(), expected);
}

#[test]
fn the_output_of_a_child_that_aborts_is_quoted() {
    let report = in_child(|output| {
        output.write("one");
        let message = "Abort was called\n";
        // SAFETY: writes from a live buffer; the child ends here, by a signal.
        unsafe {
            libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len());
            libc::abort();
        }
    });
    let Report {
        results,
        failure,
        output,
    } = report.unwrap();
    assert_eq!(results, ["one"]);
    let Some(Failure::Exited(how)) = failure else {
        panic!("{failure:?}");
    };
    assert!(how.contains("signal 6"), "{how}");
    assert_eq!(output, "Abort was called");
}

#[test]
fn much_output_hides_no_results() {
    let report = in_child(|output| {
        output.write("one");
        for _ in 0..MAX_OUTPUT >> 10 {
            io::stdout().write_all(&[b'x'; 1024]).unwrap();
        }
        // It is cut off here.
        let _ = io::stdout().write_all(b"the end");
        output.write("two");
    });
    let report = report.unwrap();
    assert_eq!(report.results, ["one", "two"]);
    assert_eq!(report.output, "x".repeat(MAX_QUOTED as usize));
    assert_eq!(report.failure, None);
}

#[test]
fn a_child_that_is_killed_says_nothing_about_the_driver() {
    for signal in [libc::SIGKILL, libc::SIGTERM] {
        // SAFETY: ends the child.
        let report = in_child(|_| unsafe { _ = libc::raise(signal) }).unwrap();
        assert!(
            matches!(report.failure, Some(Failure::Killed(_))),
            "{report:?}"
        );
    }
}

#[test]
fn a_child_that_exits_early_has_failed() {
    // SAFETY: ends the child.
    let report = in_child(|_| unsafe { libc::_exit(0) }).unwrap();
    assert!(
        matches!(report.failure, Some(Failure::Exited(_))),
        "{report:?}"
    );
}
