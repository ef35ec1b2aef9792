//! The file of suppressions: findings that are not reported.

use std::fs;
use std::path::Path;

use zeusm_process::Lazy;

use super::finding::{Kind, Report};
use super::{say, settings};

/// A line of the file.
struct Suppression {
    /// The name of a kind; `*` is any.
    kind: String,
    /// A part of a line of a stack.
    text: String,
}

/// Whether the file has a line for the finding.
pub fn cover(report: &Report) -> bool {
    static ALL: Lazy<Vec<Suppression>> = Lazy::new();
    let all = ALL.get_or_make(|| {
        let Some(path) = &settings::get().suppressions else {
            return Vec::new();
        };
        match fs::read_to_string(path) {
            Ok(text) => read(path, &text),
            Err(error) => {
                say::line(format_args!("{}: {error}", path.display()));
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

/// The suppressions of a file. Lines that are wrong are named on the standard error.
fn read(path: &Path, text: &str) -> Vec<Suppression> {
    let lines = text.trim_start_matches('\u{feff}').lines();
    let mut all = Vec::new();
    for (index, line) in lines.enumerate() {
        match parse(line) {
            Ok(suppression) => all.extend(suppression),
            Err(reason) => say::line(format_args!("{}:{}: {reason}", path.display(), index + 1)),
        }
    }
    all
}

/// The suppression of a line: `kind:text`. `#` begins a comment, at the beginning of the line or after a space or a
/// tab.
fn parse(line: &str) -> Result<Option<Suppression>, String> {
    let comment = [" #", "\t#"]
        .into_iter()
        .filter_map(|it| line.find(it))
        .min();
    let line = line[..comment.unwrap_or(line.len())].trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let Some((kind, text)) = line.split_once(':') else {
        return Err(format!("kind:text is expected, not {line}"));
    };
    let (kind, text) = (kind.trim(), text.trim());
    if kind != "*" && !Kind::NAMES.contains(&kind) {
        return Err(format!("{kind} is no kind of finding"));
    }
    if text.is_empty() {
        return Err(format!("{kind}: lacks the text of a line of a stack"));
    }
    Ok(Some(Suppression {
        kind: kind.to_owned(),
        text: text.to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Finding;
    use super::super::stack::Stack;
    use super::*;

    #[test]
    fn a_suppression_names_a_kind_and_a_line_of_a_stack() {
        let report = Finding::at(Kind::Race, "", Stack::capture(), 0).resolve();
        let covers = |text: &str| {
            let all = read(Path::new("file"), text);
            all.iter().any(|it| it.covers(&report))
        };
        assert!(covers("race:a_suppression_names"));
        assert!(covers("# all of a test\n\n*: a_suppression_names"));
        assert!(covers("\u{feff}race:a_suppression_names"));
        assert!(covers("race: a_suppression_names # known"));
        assert!(covers("race: a_suppression_names\t# known # since May"));
        assert!(covers("race: a_suppression_names # known\t# since May"));
        assert!(!covers("leak:a_suppression_names"));
        assert!(!covers("race:elsewhere"));
        assert!(!covers("race:"));
        assert!(!covers("a_suppression_names"));
    }

    #[test]
    fn a_line_that_covers_nothing_is_wrong() {
        for right in ["", "  # a:b", "race:text", "*:text # comment", "leak: a#b"] {
            assert!(parse(right).is_ok(), "{right}");
        }
        for wrong in [
            "text",
            "races:text",
            "Race:text",
            "race:",
            "race: # comment",
            ":text",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
