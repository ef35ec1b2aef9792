//! The cache of a probe's result: the same driver is not probed twice on an unchanged machine.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process;

use zeusm_process::boot_id;

/// Prefixes of the environment variables that affect which driver is loaded, and its behaviour.
const VARIABLES: [&str; 4] = ["ZE_", "ZES_", "NEO", "LD_LIBRARY_PATH"];

/// A file with the result of a probe, valid for one boot of the machine.
pub(super) struct ProbeCache {
    file: PathBuf,
    /// The boot id, the device nodes and the environment; the result is valid while they are unchanged.
    fingerprint: String,
}

impl ProbeCache {
    /// In the user's cache folder; `None` where there is none, or the boot id is unknown.
    pub(super) fn of_user(nodes: &[PathBuf]) -> Option<Self> {
        let folder = |name: &str, below: &str| {
            let path = PathBuf::from(env::var_os(name)?);
            path.is_absolute().then(|| path.join(below))
        };
        let folder =
            folder("XDG_CACHE_HOME", "zeusm").or_else(|| folder("HOME", ".cache/zeusm"))?;
        Self::at(folder.join("gpu-driver"), nodes)
    }

    pub(super) fn at(file: PathBuf, nodes: &[PathBuf]) -> Option<Self> {
        let boot = u128::from_be_bytes(boot_id().ok()?);
        let mut fingerprint = format!("zeusm {} {boot:032x}", env!("CARGO_PKG_VERSION"));
        for node in nodes {
            let device = node.metadata().map_or(0, |node| node.rdev());
            let _ = write!(fingerprint, " {}:{device}", node.display());
        }
        let mut variables: Vec<_> = env::vars_os()
            .filter(|(name, _)| {
                let name = name.to_string_lossy();
                VARIABLES.iter().any(|prefix| name.starts_with(prefix))
            })
            .collect();
        variables.sort();
        let _ = write!(fingerprint, " {variables:?}");
        Some(Self {
            file,
            fingerprint: fingerprint.replace('\n', " "),
        })
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// The cached result, if it is still valid: empty for a driver that worked, else the way in which it terminated its
    /// process.
    pub(super) fn load(&self) -> Option<String> {
        let text = fs::read_to_string(&self.file).ok()?;
        let mut lines = text.lines();
        let (fingerprint, driver, identity) = (lines.next()?, lines.next()?, lines.next()?);
        let is_valid =
            fingerprint == self.fingerprint && identity == file_identity(Path::new(driver))?;
        is_valid.then(|| lines.next().unwrap_or_default().to_owned())
    }

    /// Stores the result of `driver`. Failures are ignored, as the driver is then probed again.
    pub(super) fn store(&self, driver: &Path, result: &str) {
        let Some(identity) = file_identity(driver) else {
            return;
        };
        let text = format!(
            "{}\n{}\n{identity}\n{}\n",
            self.fingerprint,
            driver.display(),
            result.replace('\n', " ")
        );
        // The file is replaced atomically, as other processes may read it.
        let draft = self.file.with_extension(process::id().to_string());
        let written = self
            .file
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&draft, text))
            .and_then(|()| fs::rename(&draft, &self.file));
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
    }
}

/// A string that changes when the file is replaced.
fn file_identity(file: &Path) -> Option<String> {
    let found = file.metadata().ok()?;
    Some(format!(
        "{} {} {} {}.{}",
        found.dev(),
        found.ino(),
        found.size(),
        found.mtime(),
        found.mtime_nsec()
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_result_is_cached_until_the_driver_or_the_nodes_change() {
        let root = tempfile::tempdir().unwrap();
        let (driver, file) = (root.path().join("driver.so"), root.path().join("a/cache"));
        fs::write(&driver, "one").unwrap();
        let with = |nodes: &[PathBuf]| ProbeCache::at(file.clone(), nodes).unwrap();
        assert_eq!(with(&[]).load(), None);
        with(&[]).store(&driver, "");
        assert_eq!(with(&[]).load().as_deref(), Some(""));
        assert_eq!(with(&["/dev/null".into()]).load(), None);
        with(&[]).store(&driver, "it\naborts");
        assert_eq!(with(&[]).load().as_deref(), Some("it aborts"));
        fs::write(&driver, "another").unwrap();
        assert_eq!(with(&[]).load(), None);
        fs::remove_file(&driver).unwrap();
        with(&[]).store(&driver, "");
        assert_eq!(with(&[]).load(), None);
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }
}
