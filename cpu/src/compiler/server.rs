//! The compiling process: jobs come in on standard input, a socket, and outcomes go back on it.

use std::env;
use std::ffi::CString;
use std::io::{self, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::alarm;

use super::message::{Failure, Job, write_outcome};
use crate::opencl::{self, BuildError, Program, Runtime};

/// Names how many seconds one module may take.
pub const TIME_VARIABLE: &str = "ZEUSM_COMPILER_SECONDS";

/// How many seconds one module may take when nobody says otherwise.
const SECONDS: u32 = 600;

/// What the server sends as soon as it has read a job: from then on, its end is the job's doing.
pub const BEGUN: u8 = 0x5a;

/// Serves until the peer is gone.
pub fn serve() -> io::Result<()> {
    // A core file of a compiler that fell over helps nobody.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut from = BufReader::new(stream.try_clone()?);
    let mut to = stream;
    let seconds = env::var(TIME_VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(SECONDS);
    while let Ok(job) = Job::read(&mut from) {
        to.write_all(&[BEGUN])?;
        // A build that never ends is ended by the signal, even when the peer is gone by then.
        alarm::set(seconds);
        let outcome = build(&job);
        alarm::cancel();
        write_outcome(&mut to, &outcome)?;
    }
    Ok(())
}

/// Builds one module to the device's own code.
fn build(job: &Job) -> Result<Vec<u8>, Failure> {
    let runtime = Runtime::get().map_err(|error| Failure::Unavailable(error.to_string()))?;
    let refused = |error: BuildError| Failure::Refused(error.to_string());
    let options = job
        .units
        .iter()
        .map(|unit| CString::new(unit.options.as_str()));
    let options = options.collect::<Result<Vec<_>, _>>();
    let options = options.map_err(|error| Failure::Refused(error.to_string()))?;
    let units = job
        .units
        .iter()
        .zip(&options)
        .map(|(unit, options)| opencl::Unit {
            code: &unit.code,
            options,
            specialisation: &unit.specialisation,
        });
    let program = Program::compile(runtime, &units.collect::<Vec<_>>()).map_err(refused)?;
    program
        .binary()
        .map_err(|error| Failure::Refused(error.to_string()))
}
