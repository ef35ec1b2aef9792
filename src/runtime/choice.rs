//! The user's choice of a runtime.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::{Error, Result};

/// The environment variable that chooses the runtime.
pub const RUNTIME_VARIABLE: &str = "ZEUSM_RUNTIME";

/// The environment variable that disables the default pools, as a switch.
pub const POOL_VARIABLE: &str = "ZEUSM_POOL";

/// The choice of a runtime.
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
    /// An Intel GPU if one is usable, else the CPU.
    #[default]
    Auto,
    /// The system's loader, with any devices that it finds.
    System,
    /// The CPU runtime of this package.
    Cpu,
    /// The library at this absolute path.
    Path(PathBuf),
}

impl Choice {
    /// The choice in [`RUNTIME_VARIABLE`]; [`Auto`](Self::Auto) when it is not set.
    ///
    /// # Errors
    /// [`Error::InvalidVariable`] for any other value.
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
            path if Path::new(path).is_absolute() => Ok(Self::Path(PathBuf::from(path))),
            other => Err(Error::InvalidVariable {
                variable: RUNTIME_VARIABLE,
                value: other.to_owned(),
                expected: "auto, system, cpu or the absolute path of a library".to_owned(),
            }),
        }
    }
}
