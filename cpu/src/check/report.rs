//! The report: findings on the standard error and in a file, without those that are suppressed, and the exit status.

use serde::Serialize;
use zeusm_process::{AtFork, ForkLock, Local, Mutex};

use super::finding::{Finding, Report};
use super::{file, sarif, say, settings, suppressions};

/// The most findings of a process that are reported, and the most notes.
const MOST: usize = 100;

/// What this process has found.
#[derive(Default)]
struct Found {
    reports: Vec<Report>,
    suppressed: usize,
    left_out: usize,
}

impl Found {
    /// How many findings were reported, or notes.
    fn count(&self, notes: bool) -> usize {
        let reports = self.reports.iter();
        reports.filter(|it| it.kind.is_note() == notes).count()
    }

    /// Whether as many findings or notes as can be were reported. The finding is counted.
    fn leaves_out(&mut self, is_note: bool) -> bool {
        let is_full = self.count(is_note) == MOST;
        self.left_out += usize::from(is_full && !is_note);
        is_full
    }
}

static FOUND: Local<Mutex<Found>> = Local::new();

/// Held while a finding is resolved and written. That takes locks of libraries, which a child of a fork must get unlocked.
static ADDING: ForkLock<()> = ForkLock::new(());

/// The lock of additions: a fork waits until no finding is being added.
pub fn at_fork() -> &'static dyn AtFork {
    &ADDING
}

/// The file of a process.
#[derive(Serialize)]
struct Document<'a> {
    pid: u32,
    suppressed: usize,
    left_out: usize,
    findings: &'a [Report],
}

/// Reports a finding, unless it is suppressed. Findings that repeat an earlier one are counted there. Those after the last one
/// that is reported are not resolved, which takes most of the time.
pub fn add(finding: Finding) {
    let _adding = ADDING.lock();
    if FOUND
        .get_or_default()
        .lock()
        .leaves_out(finding.kind.is_note())
    {
        return;
    }
    let report = finding.resolve();
    let mut found = FOUND.get_or_default().lock();
    if suppressions::cover(&report) {
        found.suppressed += 1;
    } else if let Some(earlier) = found.reports.iter_mut().find(|it| it.repeats(&report)) {
        earlier.count += 1;
    } else {
        say::lines(report.lines(settings::get().frames));
        found.reports.push(report);
    }
    write(&found, false);
}

/// Counts a finding that is not described.
pub fn leave_out() {
    FOUND.get_or_default().lock().left_out += 1;
}

/// Writes all findings so far into the report, if there is one.
fn write(found: &Found, is_end: bool) {
    let Some(path) = &settings::get().report else {
        return;
    };
    let document = Document {
        pid: std::process::id(),
        suppressed: found.suppressed,
        left_out: found.left_out,
        findings: &found.reports,
    };
    let written = if path.extension().is_some_and(|it| it == "sarif") {
        serde_json::to_vec_pretty(&sarif::document(&found.reports))
    } else {
        serde_json::to_vec_pretty(&document)
    };
    let path = file::of_this_process(path);
    let written = written
        .map_err(std::io::Error::other)
        .and_then(|text| file::write(&path, &text, is_end));
    if let Err(error) = written {
        let path = path.display();
        say::line(format_args!(
            "the report cannot be written to {path}: {error}"
        ));
    }
}

/// Reports the end of a process. Returns its exit status, unless that is the program's own.
pub fn finish() -> Option<i32> {
    let found = FOUND.get_or_default().lock();
    write(&found, true);
    let count = found.count(false);
    if count == 0 && found.left_out == 0 {
        return None;
    }
    let more = match (found.suppressed, found.left_out) {
        (0, 0) => String::new(),
        (suppressed, left_out) => format!(" ({suppressed} suppressed, {left_out} left out)"),
    };
    say::line(format_args!("findings: {count}{more}"));
    Some(settings::get().exit_code).filter(|code| *code != 0 && count > 0)
}
