//! What the user asks for.

use std::env;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The environment variable that chooses the runtime.
pub const RUNTIME_VARIABLE: &str = "ZEUSM_RUNTIME";

/// Which runtime shall serve.
///
/// ```
/// use zeusm::runtime::Choice;
///
/// assert_eq!("cpu".parse::<Choice>()?, Choice::Cpu);
/// assert!("gpu, please".parse::<Choice>().is_err());
/// # Ok::<(), zeusm::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// An Intel GPU when one works, else the CPU.
    #[default]
    Auto,
    /// The system's loader, whatever it finds.
    System,
    /// The CPU runtime of this package.
    Cpu,
    /// The library at this absolute path.
    Path(PathBuf),
}

impl Choice {
    /// What [`RUNTIME_VARIABLE`] says; [`Auto`](Self::Auto) when it is not set.
    ///
    /// # Errors
    /// [`Error::Choice`] when it means nothing.
    pub fn from_environment() -> Result<Self> {
        match env::var_os(RUNTIME_VARIABLE) {
            None => Ok(Self::Auto),
            Some(value) => value.to_string_lossy().parse(),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::System => formatter.write_str("system"),
            Self::Cpu => formatter.write_str("cpu"),
            Self::Path(path) => path.display().fmt(formatter),
        }
    }
}

impl FromStr for Choice {
    type Err = Error;

    fn from_str(value: &str) -> Result<Self> {
        match value {
            "" | "auto" => Ok(Self::Auto),
            "system" => Ok(Self::System),
            "cpu" => Ok(Self::Cpu),
            path if path.starts_with('/') => Ok(Self::Path(PathBuf::from(path))),
            other => Err(Error::Choice {
                variable: RUNTIME_VARIABLE,
                value: other.to_owned(),
            }),
        }
    }
}
