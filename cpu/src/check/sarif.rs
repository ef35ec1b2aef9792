//! The report as SARIF 2.1.0, which services for code show beside the lines of the source.

use std::env;
use std::path::Path;

use serde_json::{Value, json};

use super::finding::{Kind, Report, own_lines};
use super::stack::Resolved;

/// By which editors know the format.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The report of a process.
pub fn document(reports: &[Report]) -> Value {
    let rules = Kind::NAMES.iter().zip(Kind::MEANINGS);
    let rules = rules.map(
        |(name, meaning)| json!({ "id": name, "shortDescription": { "text": meaning.trim() } }),
    );
    let driver = json!({
        "name": "zeusm check",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": rules.collect::<Vec<_>>(),
    });
    let results: Vec<_> = reports.iter().map(result).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{ "tool": { "driver": driver }, "results": results }],
    })
}

/// A finding: at the program's line where it happened, with those of the other stacks.
fn result(report: &Report) -> Value {
    let stacks = report.stacks();
    let mut locations = stacks.iter().map(|(what, stack)| (*what, location(stack)));
    let own = locations.next().and_then(|(_, location)| location);
    let related = locations.filter_map(|(what, location)| {
        let mut location = location?;
        location["message"] = json!({ "text": what });
        Some(location)
    });
    json!({
        "ruleId": report.kind.name(),
        "ruleIndex": report.kind as usize,
        "level": if report.kind.is_note() { "note" } else { "error" },
        "message": { "text": report.message },
        "occurrenceCount": report.count,
        "locations": Vec::from_iter(own),
        "relatedLocations": related.collect::<Vec<_>>(),
    })
}

/// The innermost line of a stack that is in a file: of the program's Python, else of its compiled functions.
fn location(stack: &Resolved) -> Option<Value> {
    let python = own_lines(stack)
        .into_iter()
        .filter_map(|line| of_python(line));
    let native = stack.native.iter().filter_map(|frame| {
        let (file, line) = frame.source.as_ref()?.rsplit_once(':')?;
        Some((file, line.parse().ok()?, &*frame.function))
    });
    let (file, line, function) = python.chain(native).next()?;
    Some(json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(Path::new(file)) },
            "region": { "startLine": line },
        },
        "logicalLocations": [{ "fullyQualifiedName": function }],
    }))
}

/// The file, the line and the function of a frame, `File "program.py", line 5 in touch`. Code without a file has a name in brackets.
fn of_python(frame: &str) -> Option<(&str, u32, &str)> {
    let (file, rest) = frame.strip_prefix("File \"")?.rsplit_once("\", line ")?;
    let (line, function) = rest.split_once(" in ")?;
    let line = line.parse().ok().filter(|line| *line > 0)?;
    (!file.starts_with('<')).then_some((file, line, function))
}

/// The reference to a file: relative, if it is in the current folder.
fn uri(file: &Path) -> String {
    let folder = env::current_dir().ok();
    let inside = folder.and_then(|folder| file.strip_prefix(folder).ok());
    let path = inside.unwrap_or(file).to_string_lossy();
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    let mut uri = scheme.to_owned();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(byte.into());
        } else {
            uri += &format!("%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_python_is_a_place_in_a_file() {
        let of = |frame| of_python(frame);
        assert_eq!(
            of("File \"a, b.py\", line 5 in f"),
            Some(("a, b.py", 5, "f"))
        );
        assert_eq!(of("File \"<string>\", line 5 in <module>"), None);
        assert_eq!(of("... and frames further out"), None);
    }

    #[test]
    fn a_file_of_the_current_folder_is_relative() {
        let folder = env::current_dir().expect("the current folder");
        assert_eq!(uri(&folder.join("a b/ö.py")), "a%20b/%C3%B6.py");
        assert_eq!(uri(Path::new("/elsewhere/a.py")), "file:///elsewhere/a.py");
        assert_eq!(uri(Path::new("a.py")), "a.py");
    }
}
