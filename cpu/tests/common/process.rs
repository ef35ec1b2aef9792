//! Tests in processes of their own.
#![allow(dead_code)]

use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A process that takes longer hangs.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(900);

/// Runs one ignored test of this program in a process of its own. It must pass.
pub fn alone(test: &str) {
    alone_with(test, &[]);
}

/// As [`alone`], with environment variables; returns its standard output.
pub fn alone_with(test: &str, environment: &[(&str, &str)]) -> String {
    let output = run(test, environment);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let passed = output.status.success() && text.contains("1 passed");
    assert!(passed, "{}\n{text}\n{errors}", output.status);
    eprint!("{errors}");
    text
}

/// Runs one ignored test of this program in a process of its own, which may exit early.
pub fn run(test: &str, environment: &[(&str, &str)]) -> Output {
    // `zeInit` sets variables, which another test's thread must not do while a process gets them.
    crate::common::library();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            test,
            "--ignored",
            "--test-threads=1",
            "--nocapture",
        ])
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = all_of(child.stdout.take().unwrap());
    let stderr = all_of(child.stderr.take().unwrap());
    let deadline = Instant::now() + PROCESS_TIMEOUT;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("{test} hangs");
        }
        thread::sleep(Duration::from_millis(2));
    };
    let [stdout, stderr] = [stdout, stderr].map(|reader| reader.join().unwrap());
    Output {
        status,
        stdout,
        stderr,
    }
}

/// Reads a stream to its end, in a thread.
fn all_of(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    })
}
