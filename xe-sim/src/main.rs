//! Runs a program on a machine with a simulated GPU: `xe-sim ROOT MACHINE [--bind FOLDER]... -- COMMAND [ARGUMENT]...`

use std::process::ExitCode;

fn main() -> ExitCode {
    let error = xe_sim::launch::run(std::env::args_os().skip(1));
    eprintln!("xe-sim: {error}");
    ExitCode::FAILURE
}
