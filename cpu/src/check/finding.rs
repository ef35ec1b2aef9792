//! Findings: what is wrong, where, and with which allocation.

use std::sync::Arc;

use serde::Serialize;

use super::stack::{Frame, Resolved, Stack};
use super::threads;
use super::watch::Watch;

/// Declares the kinds of findings by the names that reports and suppressions use.
macro_rules! kinds {
    ($(#[doc = $comment:literal] $kind:ident = $name:literal,)*) => {
        /// The kinds of findings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        pub enum Kind {
            $(#[doc = $comment] #[serde(rename = $name)] $kind,)*
        }

        impl Kind {
            /// The names of all kinds.
            pub const NAMES: &[&str] = &[$($name),*];
            /// What they are, in the order of their names.
            pub const MEANINGS: &[&str] = &[$($comment),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }
        }
    };
}

kinds! {
    /// The host accesses device memory.
    HostAccess = "host-access",
    /// An access before or behind an allocation.
    OutOfBounds = "out-of-bounds",
    /// An access to freed memory.
    UseAfterFree = "use-after-free",
    /// A free of an address that is no allocation's.
    InvalidFree = "invalid-free",
    /// A free of memory that a command in flight uses.
    FreeInUse = "free-in-use",
    /// Unordered accesses to the same bytes, of which one is a write.
    Race = "race",
    /// A reset of an event that a command in flight will signal.
    EventInUse = "event-in-use",
    /// A command of one context with memory of another.
    ForeignContext = "foreign-context",
    /// A copy of bytes that were never written.
    Uninitialised = "uninitialised",
    /// Memory or an object that is alive at the exit.
    Leak = "leak",
    /// A use of another process's memory, whose order with that process is not checked.
    IpcOrder = "ipc-order",
}

impl Kind {
    /// Whether it is no mistake, but something that is not checked.
    pub fn is_note(self) -> bool {
        self == Self::IpcOrder
    }
}

/// A finding, before its stacks are resolved.
#[derive(Debug)]
pub struct Finding {
    /// What is wrong.
    pub kind: Kind,
    message: String,
    address: Option<usize>,
    watch: Option<Arc<Watch>>,
    stack: Stack,
    related: Vec<(String, Stack)>,
    thread: i32,
}

impl Finding {
    /// A finding in the calling thread.
    pub fn here(kind: Kind, message: impl Into<String>) -> Self {
        Self::at(kind, message, Stack::capture(), threads::thread_id())
    }

    /// A finding at a stack of a thread.
    pub fn at(kind: Kind, message: impl Into<String>, stack: Stack, thread: i32) -> Self {
        Self {
            kind,
            message: message.into(),
            address: None,
            watch: None,
            stack,
            related: Vec::new(),
            thread,
        }
    }

    /// With the allocation that `address` is in or beside.
    #[must_use]
    pub fn about(mut self, address: usize, watch: Option<Arc<Watch>>) -> Self {
        (self.address, self.watch) = (Some(address), watch);
        self
    }

    /// With the stack of another operation that takes part.
    #[must_use]
    pub fn with(mut self, what: impl Into<String>, stack: Stack) -> Self {
        self.related.push((what.into(), stack));
        self
    }

    /// Resolves its stacks.
    pub fn resolve(self) -> Report {
        let allocation = self.watch.map(|watch| Allocation {
            id: watch.id,
            address: format!("{:#x}", watch.base),
            size: watch.size,
            memory: watch.kind,
            distance: watch.distance(self.address.unwrap_or(watch.base)),
            offset: self.address.map_or(0, |at| at as i64 - watch.base as i64),
            allocated: watch.allocated.resolve(),
            freed: watch.freed.get().map(Stack::resolve),
        });
        Report {
            kind: self.kind,
            message: self.message,
            thread: self.thread,
            address: self.address.map(|address| format!("{address:#x}")),
            allocation,
            stack: self.stack.resolve(),
            related: self
                .related
                .into_iter()
                .map(|(what, stack)| Related {
                    what,
                    stack: stack.resolve(),
                })
                .collect(),
            count: 1,
        }
    }
}

/// A finding as it is reported.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What is wrong.
    pub kind: Kind,
    /// The same in a sentence.
    pub message: String,
    /// The id of the thread.
    pub thread: i32,
    /// The address that was accessed or named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The allocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Allocation>,
    /// Where it happened.
    pub stack: Resolved,
    /// Other operations that take part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
    /// How often it happened.
    pub count: usize,
}

/// The allocation of a finding.
#[derive(Debug, Serialize)]
pub struct Allocation {
    /// Its id.
    pub id: u64,
    /// Its first byte.
    pub address: String,
    /// Its size in bytes.
    pub size: usize,
    /// Its kind of memory.
    pub memory: &'static str,
    /// Bytes from its first byte to the address.
    pub offset: i64,
    /// How far outside the address is: 0 inside, 1 for the first byte behind it, negative before it.
    pub distance: i64,
    /// Where it was allocated.
    pub allocated: Resolved,
    /// Where it was freed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freed: Option<Resolved>,
}

/// Another operation that takes part in a finding.
#[derive(Debug, Serialize)]
pub struct Related {
    /// What it is.
    pub what: String,
    /// Where it was submitted.
    pub stack: Resolved,
}

impl Report {
    /// Whether it is the same mistake as another one.
    pub fn repeats(&self, other: &Self) -> bool {
        let id = |report: &Self| report.allocation.as_ref().map(|it| it.id);
        let place = |report: &Self| {
            let frame = report.stack.native.first();
            (
                report.stack.python.first().cloned(),
                frame.map(|it| it.line()),
            )
        };
        let says_more = self.kind == Kind::Leak && self.message != other.message;
        // MPI opens many allocations of other processes, and each again and again.
        self.kind == other.kind
            && (id(self) == id(other) || self.kind.is_note())
            && place(self) == place(other)
            && !says_more
    }

    /// Whether a line of its stacks contains `text`.
    pub fn mentions(&self, text: &str) -> bool {
        self.stacks().iter().any(|(_, stack)| stack.mentions(text))
    }

    /// Its stacks, the first where it happened, with what they are.
    pub fn stacks(&self) -> Vec<(&str, &Resolved)> {
        let mut stacks = vec![("at", &self.stack)];
        stacks.extend(self.related.iter().map(|it| (&*it.what, &it.stack)));
        if let Some(it) = &self.allocation {
            stacks.push(("allocated at", &it.allocated));
            stacks.extend(it.freed.iter().map(|freed| ("freed at", freed)));
        }
        stacks
    }

    /// The lines of the report; `all`: with all frames of the stacks.
    pub fn lines(&self, all: bool) -> Vec<String> {
        let mut lines = vec![format!("{}: {}", self.kind.name(), self.message)];
        if let Some(it) = &self.allocation {
            let place = match it.distance {
                0 => format!("{} bytes inside of", it.offset),
                1.. => format!("{} bytes behind", it.distance),
                _ => format!("{} bytes before", -it.distance),
            };
            lines.push(format!(
                "  {} is {place} allocation {} ({} memory, {} bytes at {})",
                self.address.as_deref().unwrap_or(&it.address),
                it.id,
                it.memory,
                it.size,
                it.address
            ));
        } else if let Some(address) = &self.address {
            lines.push(format!("  {address} is in no allocation"));
        }
        for (what, stack) in self.stacks() {
            add_stack(&mut lines, what, stack, all);
        }
        lines
    }
}

/// The most frames of compiled functions that are printed of a stack.
const PRINTED: usize = 12;

/// Parts of the paths of Python's own modules and of installed packages.
const INSTALLED: [&str; 2] = ["/lib/python3", "<frozen "];

/// A stack's lines of Python that are the program's own; all of them if there are none.
pub fn own_lines(stack: &Resolved) -> Vec<&String> {
    let is_own = |line: &&String| INSTALLED.iter().all(|part| !line.contains(part));
    let own: Vec<_> = stack.python.iter().filter(is_own).collect();
    if own.is_empty() {
        return stack.python.iter().collect();
    }
    own
}

/// Adds the lines of a stack; `all`: not only the program's own.
fn add_stack(lines: &mut Vec<String>, what: &str, stack: &Resolved, all: bool) {
    lines.push(format!("  {what}:"));
    let python = if all {
        stack.python.iter().collect()
    } else {
        own_lines(stack)
    };
    let native = stack.native.iter().filter(|it| all || it.is_named());
    let most = match (all, python.is_empty()) {
        (true, _) => usize::MAX,
        (false, true) => PRINTED,
        (false, false) => 0,
    };
    let native = native.take(most).map(Frame::line);
    let frames = python.into_iter().cloned().chain(native);
    lines.extend(frames.map(|line| format!("    {line}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_own_lines_are_printed() {
        let lines = |python: &[&str], all| {
            let mut stack = Stack::capture().resolve();
            stack.python = python.iter().map(|&line| line.to_owned()).collect();
            let mut lines = Vec::new();
            add_stack(&mut lines, "at", &stack, all);
            lines
        };
        let (own, installed) = (
            r#"File "program.py", line 5 in touch"#,
            r#"File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at"#,
        );
        assert_eq!(
            lines(&[installed, own], false),
            ["  at:", &format!("    {own}")]
        );
        assert_eq!(
            lines(&[installed], false)[1..],
            [format!("    {installed}")]
        );
        assert!(lines(&[installed, own], true).len() > 3);
        let native = lines(&[], false);
        assert!((2..=1 + PRINTED).contains(&native.len()), "{native:?}");
    }
}
