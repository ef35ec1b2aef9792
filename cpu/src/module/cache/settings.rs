//! Where built modules are kept, and how many.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use zeusm_process::variables::{InvalidVariable, number, parse};

/// The environment variable with the folder.
const FOLDER: &str = "ZEUSM_CACHE_DIR";
/// The environment variable with the most MiB of built modules; 0 keeps none.
const SIZE: &str = "ZEUSM_CACHE_SIZE";
/// The default of the latter.
const MEBIBYTES: u32 = 512;

/// What the user chose.
pub struct Settings {
    /// The folder; `None` where the user has none.
    pub folder: Option<PathBuf>,
    /// The most bytes.
    pub limit: u64,
}

/// Reads the variables.
///
/// # Errors
/// For a value that cannot be used.
pub fn read() -> Result<Settings, InvalidVariable> {
    let absolute = |text: &str| {
        let is_whole = !text.contains(char::REPLACEMENT_CHARACTER);
        (is_whole && Path::new(text).is_absolute()).then(|| PathBuf::from(text))
    };
    let expected = || "an absolute path in UTF-8".to_owned();
    let chosen = parse(env::var_os, FOLDER, expected, absolute)?;
    let limit = number(env::var_os, SIZE, 0..=u32::MAX)?.unwrap_or(MEBIBYTES);
    Ok(Settings {
        folder: chosen.or_else(|| default_folder(env::var_os)),
        limit: u64::from(limit) << 20,
    })
}

/// The folder of the XDG Base Directory Specification. In another user's home there is none, as for a program with that user's
/// environment and root's rights: the user could not use a folder of root's.
fn default_folder(variable: impl Fn(&'static str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| {
        variable(name)
            .map(PathBuf::from)
            .filter(|it| it.is_absolute())
    };
    let caches = absolute("XDG_CACHE_HOME").or_else(|| {
        let home = absolute("HOME")?;
        let owner = home.metadata().ok()?.uid();
        (owner == geteuid().as_raw()).then(|| home.join(".cache"))
    });
    caches.map(|caches| caches.join("zeusm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Option<PathBuf> {
        default_folder(|name| {
            let set = variables.iter().find(|(known, _)| *known == name);
            set.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn caches_of_the_user_are_the_default() {
        let own = env!("CARGO_MANIFEST_DIR");
        let in_home = Some(Path::new(own).join(".cache/zeusm"));
        let chosen = Some(PathBuf::from("/elsewhere/zeusm"));
        assert_eq!(found(&[("HOME", own)]), in_home);
        assert_eq!(found(&[("HOME", own), ("XDG_CACHE_HOME", "")]), in_home);
        assert_eq!(
            found(&[("HOME", own), ("XDG_CACHE_HOME", "relative")]),
            in_home
        );
        assert_eq!(
            found(&[("HOME", own), ("XDG_CACHE_HOME", "/elsewhere")]),
            chosen
        );
        for nowhere in [&[][..], &[("HOME", "/nowhere")], &[("HOME", "")]] {
            assert_eq!(found(nowhere), None, "{nowhere:?}");
        }
    }
}
