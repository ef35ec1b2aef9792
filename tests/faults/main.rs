//! Fault injection: a script that uses the whole API runs on a library whose n-th call fails, for n from 1 until a run has no
//! failure, with each result code that a driver may return.
//!
//! A failure must be reported by the right error, allow a retry, and not leak objects in the driver. `ZEUSM_TEST_FAULTS=all`
//! tests every call with every code; by default each call is tested with one code, and consecutive calls use different codes.
#![allow(clippy::unwrap_used)]

#[path = "../support/child.rs"]
mod child;
mod driver;
mod drops;
mod expected;
mod losses;
mod overlap;
mod peers;
mod retries;
mod script;
mod suspension;
mod waits;

use std::io::{self, Write};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, process, thread};

use driver::FaultDriver;
use zeusm::{Device, SharedMemory, sys};

/// The result codes that a driver may return for a correct call.
pub const CODES: [sys::ze_result_t; 7] = [
    sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,
    sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY,
    sys::ZE_RESULT_ERROR_DEVICE_LOST,
    sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
    sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
    sys::ZE_RESULT_NOT_READY,
    sys::ZE_RESULT_ERROR_UNINITIALIZED,
];

/// The timeout of a run, which takes some milliseconds.
const RUN_TIMEOUT: Duration = Duration::from_secs(10);

/// The timeout for dropped objects to be released.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Reports a run that hangs, and aborts the process.
struct Watchdog(mpsc::Sender<String>);

impl Watchdog {
    fn new() -> Self {
        let (sender, runs) = mpsc::channel::<String>();
        thread::spawn(move || {
            let driver = FaultDriver::open();
            let mut run = "the first run".to_owned();
            loop {
                match runs.recv_timeout(RUN_TIMEOUT) {
                    Ok(next) => run = next,
                    Err(mpsc::RecvTimeoutError::Disconnected) => return,
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        // Written directly to standard error, because the captured output is lost when the process aborts.
                        let message = format!("{run}, {:?}, hangs\n", driver.fired());
                        let _ = io::stderr().lock().write_all(message.as_bytes());
                        process::abort();
                    }
                }
            }
        });
        Self(sender)
    }
}

fn name(code: sys::ze_result_t) -> &'static str {
    code.name().unwrap()
}

/// Runs the script with the `nth` call failing. Returns the findings, or `None` if the script has fewer calls.
fn run(
    driver: &FaultDriver,
    device: &Device,
    nth: u64,
    code: sys::ze_result_t,
) -> Option<Vec<String>> {
    let before = driver.live();
    driver.arm(nth, code);
    let mut findings = script::play(driver, device, code);
    let fired = driver.disarm();
    let fired = fired?;
    // The thread of a queue's host tasks may release the last event shortly after the queue is dropped.
    let begin = Instant::now();
    let (mut live, mut kinds) = driver.live();
    while live > before.0 && !expected::may_leak(&fired) && begin.elapsed() < RELEASE_TIMEOUT {
        thread::sleep(Duration::from_millis(1));
        (live, kinds) = driver.live();
    }
    // The count may decrease, because objects of the previous run may be released during this one.
    if live > before.0 && !expected::may_leak(&fired) {
        findings.push(format!("leaked: {kinds}, before: {}", before.1));
    }
    Some(
        findings
            .into_iter()
            .map(|finding| format!("call {nth}, {fired}, {}: {finding}", name(code)))
            .collect(),
    )
}

#[test]
fn every_call_may_fail() {
    let driver = FaultDriver::open();
    let device = driver.serve().default_device().unwrap();
    let watchdog = Watchdog::new();
    // The first run, without a failure, creates the objects that live as long as the process.
    let findings = script::play(&driver, &device, sys::ZE_RESULT_SUCCESS);
    assert_eq!(findings, Vec::<String>::new());
    assert_eq!(driver.live().1, "");

    let all = env::var("ZEUSM_TEST_FAULTS").is_ok_and(|wanted| wanted == "all");
    let mut findings = Vec::new();
    let mut runs = 0;
    for (turn, code) in CODES.into_iter().enumerate() {
        let (first, step) = if all { (1, 1) } else { (1 + turn, CODES.len()) };
        for nth in (first as u64..).step_by(step) {
            watchdog
                .0
                .send(format!("call {nth} returning {}", name(code)))
                .unwrap();
            match run(&driver, &device, nth, code) {
                Some(found) => {
                    findings.extend(found);
                }
                None => break,
            }
            runs += 1;
        }
    }
    println!("{runs} runs");
    assert!(
        runs > 100,
        "{runs} runs are too few for a script that uses the whole API"
    );
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

/// When the spin wait of an operation fails, the operation is already complete, so the queue must be idle again.
#[test]
fn a_failed_spin_wait_leaves_the_queue_idle() {
    child::alone(&[], || {
        let (driver, device, context, queue) = driver::set_up();
        let mut memory = SharedMemory::new(&context, &device, 64).unwrap();
        // Downwards: after a failed append, which precedes the wait, the next operation makes a command list first.
        for nth in (1..10).rev() {
            driver.arm(nth, sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
            let filled = queue.fill(&mut memory, 1);
            let fired = driver.disarm();
            match fired.as_deref() {
                Some("zeCommandListHostSynchronize") => {
                    assert!(filled.is_err() && queue.is_idle());
                    return;
                }
                _ => queue.wait().unwrap(),
            }
        }
        panic!("there was no spin wait");
    });
}

#[test]
fn every_call_of_the_start_may_fail() {
    for code in CODES {
        for nth in 1u64.. {
            let mut command = child::command("start");
            command.env("ZEUSM_TEST_FAULT", format!("{nth} {}", code.0));
            if child::run(command).contains("no call failed") {
                assert!(nth > 3, "initialisation makes more than {nth} calls");
                break;
            }
        }
    }
}

#[test]
#[ignore = "run by every_call_of_the_start_may_fail"]
fn start() {
    let plan = env::var("ZEUSM_TEST_FAULT").unwrap();
    let (nth, code) = plan.split_once(' ').unwrap();
    let code = sys::ze_result_t(code.parse().unwrap());
    let driver = FaultDriver::open();
    driver.arm(nth.parse().unwrap(), code);
    let started = driver
        .try_serve()
        .and_then(|runtime| runtime.default_device());
    let Some(fired) = driver.fired() else {
        assert!(started.is_ok(), "{started:?}");
        println!("no call failed");
        return;
    };
    match started {
        Ok(_) => assert!(
            expected::may_pass(&fired, code),
            "the failure of {fired} was not reported"
        ),
        Err(error) => {
            let message = error.to_string();
            assert!(
                message.contains(&fired) && message.contains(name(code)),
                "{fired}: {message}"
            );
            // A retry succeeds.
            driver.serve().default_device().unwrap();
        }
    }
}
