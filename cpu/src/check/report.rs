//! The report: findings on the standard error and in a file, without those that are suppressed, and the exit status.

use std::fs;

use serde::Serialize;

use super::finding::{Finding, Report};
use super::settings;
use crate::process::PerProcess;
use crate::process::at_fork::{AtFork, ForkLock};
use crate::process::sync::{Lazy, Mutex};

/// The most findings of a process that are reported.
const MOST: usize = 100;

/// What this process has found.
#[derive(Default)]
struct Found {
    reports: Vec<Report>,
    suppressed: usize,
    left_out: usize,
}

static FOUND: PerProcess<Mutex<Found>> = PerProcess::new();

/// Held while a finding is resolved and written. That takes locks of libraries, which a child of a fork must get unlocked.
static ADDING: ForkLock<Mutex<()>> = ForkLock::new(Mutex::new(()));

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

/// Reports a finding, unless it is suppressed. Findings that repeat an earlier one are counted there.
pub fn add(finding: Finding) {
    let _adding = ADDING.lock();
    let report = finding.resolve();
    let mut found = FOUND.get().lock();
    if is_suppressed(&report) {
        found.suppressed += 1;
    } else if let Some(earlier) = found.reports.iter_mut().find(|it| it.repeats(&report)) {
        earlier.count += 1;
    } else if found.reports.len() == MOST {
        found.left_out += 1;
        return;
    } else {
        let text: String = report
            .lines()
            .iter()
            .map(|line| format!("zeusm check: {line}\n"))
            .collect();
        eprint!("{text}");
        found.reports.push(report);
    }
    write(&found);
}

/// Writes all findings so far into the file, in one step.
fn write(found: &Found) {
    let Some(path) = &settings::get().report else {
        return;
    };
    let pid = std::process::id();
    let path = path.to_string_lossy().replace("%p", &pid.to_string());
    let document = Document {
        pid,
        suppressed: found.suppressed,
        left_out: found.left_out,
        findings: &found.reports,
    };
    let unfinished = format!("{path}.{pid}.unfinished");
    let written = serde_json::to_vec_pretty(&document)
        .map_err(std::io::Error::other)
        .and_then(|text| fs::write(&unfinished, text))
        .and_then(|()| fs::rename(&unfinished, &path));
    if let Err(error) = written {
        eprintln!("zeusm check: the report cannot be written to {path}: {error}");
    }
}

/// Reports the end of a process. Returns its exit status, unless that is the program's own.
pub fn finish() -> Option<i32> {
    let found = FOUND.get().lock();
    write(&found);
    let count = found.reports.len();
    if count == 0 {
        return None;
    }
    let more = match (found.suppressed, found.left_out) {
        (0, 0) => String::new(),
        (suppressed, left_out) => format!(" ({suppressed} suppressed, {left_out} left out)"),
    };
    eprintln!("zeusm check: findings: {count}{more}");
    Some(settings::get().exit_code).filter(|code| *code != 0)
}

/// A line of the file of suppressions.
struct Suppression {
    /// The name of a kind; `*` is any.
    kind: String,
    /// A part of a line of a stack.
    text: String,
}

fn is_suppressed(report: &Report) -> bool {
    static ALL: Lazy<Vec<Suppression>> = Lazy::new();
    let all = ALL.get_or_make(|| {
        let Some(path) = &settings::get().suppressions else {
            return Vec::new();
        };
        match fs::read_to_string(path) {
            Ok(text) => parse(&text),
            Err(error) => {
                eprintln!("zeusm check: {}: {error}", path.display());
                Vec::new()
            }
        }
    });
    all.iter().any(|it| it.covers(report))
}

impl Suppression {
    fn covers(&self, report: &Report) -> bool {
        (self.kind == "*" || self.kind == report.kind.name()) && report.mentions(&self.text)
    }
}

/// The suppressions of a file: `kind:text` on each line, `#` begins a comment.
fn parse(text: &str) -> Vec<Suppression> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(':'))
        .filter(|(_, text)| !text.trim().is_empty())
        .map(|(kind, text)| Suppression {
            kind: kind.trim().to_owned(),
            text: text.trim().to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Kind;
    use super::super::stack::Stack;
    use super::*;

    #[test]
    fn a_suppression_names_a_kind_and_a_line_of_a_stack() {
        let report = Finding::at(Kind::Race, "", Stack::capture(), 0).resolve();
        let covers = |text: &str| parse(text).iter().any(|it| it.covers(&report));
        assert!(covers("race:a_suppression_names"));
        assert!(covers("# all of a test\n\n*: a_suppression_names"));
        assert!(!covers("leak:a_suppression_names"));
        assert!(!covers("race:elsewhere"));
        assert!(!covers("race:"));
        assert!(!covers("a_suppression_names"));
    }
}
