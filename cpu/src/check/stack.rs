//! Stacks: captured as addresses, which is cheap, and resolved to names when they are reported.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ops::Range;

use serde::Serialize;
use zeusm_process::{Local, Mutex};

use super::python;
use super::unwind::{self, Shared};
use crate::system::library::library_of;

/// The most addresses whose frames are remembered.
const MOST_KNOWN: usize = 4096;

/// Frames by their address and that of their library.
type Resolutions = HashMap<(usize, usize), Vec<Frame>>;

/// The frames that were resolved: a search of the debug information takes long, and findings in a loop have the same stacks.
static KNOWN: Local<Mutex<Resolutions>> = Local::new();

/// The stack of a thread at some moment.
#[derive(Clone, Debug, Default)]
pub struct Stack(Shared);

impl Stack {
    /// The calling thread's stack.
    pub fn capture() -> Self {
        Self::with(unwind::here)
    }

    /// The calling thread's stack at the instruction of a fault, without the frames of its handler.
    pub fn behind(instruction: usize) -> Self {
        let stack =
            Self::with(|interpreter, python| unwind::behind(instruction, interpreter, python));
        if stack.0.native.is_empty() {
            return Self::capture();
        }
        stack
    }

    /// The stack whose native frames `unwind` finds, given the interpreter's code and Python's frames.
    fn with(unwind: impl FnOnce(&Range<usize>, &[u8]) -> Shared) -> Self {
        let mut text = [0; python::LONGEST];
        let (length, interpreter) = python::dump(&mut text);
        Self(unwind(&interpreter, &text[..length]))
    }

    /// What tells it from the stacks of other calls: without the first instruction, as a call of `memcpy` is one access.
    pub fn callers(&self) -> (&[usize], &[u8]) {
        (self.0.native.get(1..).unwrap_or_default(), &self.0.python)
    }

    /// The names of its frames.
    pub fn resolve(&self) -> Resolved {
        let mut native: Vec<Frame> = self
            .0
            .native
            .iter()
            .flat_map(|address| Frame::at(*address))
            .collect();
        // Of this library, only the function that the program called.
        let own = native.iter().take_while(|frame| frame.is_own).count();
        let called = native[..own].iter().rposition(Frame::is_of_the_api);
        native.drain(..called.unwrap_or(0));
        Resolved {
            python: python::frames(&self.0.python),
            native,
        }
    }
}

/// The names of a stack's frames, the innermost first.
#[derive(Debug, Default, Serialize)]
pub struct Resolved {
    /// Frames of Python functions.
    pub python: Vec<String>,
    /// Frames of compiled functions.
    pub native: Vec<Frame>,
}

/// A native frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// The function, or its address.
    pub function: String,
    /// Where it is in the source, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The library or program that it is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Whether that is this library.
    #[serde(skip)]
    is_own: bool,
}

impl Frame {
    /// The functions at `address`, inlined ones first.
    fn at(address: usize) -> Vec<Self> {
        let (library, base) = library_of(address);
        let is_own = base.is_some() && base == library_of(Self::at as *const () as usize).1;
        let key = (address, base.unwrap_or(0));
        if let Some(known) = KNOWN.get_or_default().lock().get(&key) {
            return known.clone();
        }
        let mut frames = Vec::new();
        backtrace::resolve(address as *mut c_void, |symbol| {
            let Some(function) = symbol.name() else {
                return;
            };
            let line = symbol.lineno();
            let source = symbol.filename().map(|file| match line {
                Some(line) => format!("{}:{line}", file.display()),
                None => file.display().to_string(),
            });
            frames.push(Self {
                function: format!("{function:#}"),
                source,
                library: library.clone(),
                is_own,
            });
        });
        if frames.is_empty() {
            frames.push(Self {
                function: match base {
                    Some(base) => format!("+{:#x}", address - base),
                    None => format!("{address:#x}"),
                },
                source: None,
                library,
                is_own,
            });
        }
        // Code without a library, as that of a kernel, may make room for other code.
        if base.is_some() {
            let mut known = KNOWN.get_or_default().lock();
            if known.len() == MOST_KNOWN {
                known.clear();
            }
            known.insert(key, frames.clone());
        }
        frames
    }

    /// Whether it is a function of Level Zero, such as `zeMemFree`.
    fn is_of_the_api(&self) -> bool {
        let rest = self.function.strip_prefix("ze");
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    }

    /// Whether its function is known.
    pub fn is_named(&self) -> bool {
        !self.function.starts_with(['+', '0'])
    }

    /// One line.
    pub fn line(&self) -> String {
        let mut line = self.function.clone();
        if let Some(source) = &self.source {
            line += &format!(" at {source}");
        }
        if let Some(library) = &self.library {
            line += &format!(" ({library})");
        }
        line
    }
}

impl Resolved {
    /// Whether a line contains `text`.
    pub fn mentions(&self, text: &str) -> bool {
        self.python.iter().any(|line| line.contains(text))
            || self.native.iter().any(|frame| frame.line().contains(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frames_of_an_address_are_searched_once() {
        let address = Stack::capture().0.native[1];
        let (frames, base) = (Frame::at(address), library_of(address).1);
        assert!(!frames.is_empty());
        let known = KNOWN.get_or_default().lock();
        assert_eq!(known.get(&(address, base.unwrap_or(0))), Some(&frames));
    }
}
