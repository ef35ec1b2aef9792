//! What a driver answered when it was asked last: the same machine with the same driver is not asked again.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process;

/// Variables whose names begin so change what a driver does, or which one is found.
const DECISIVE: [&str; 4] = ["ZE_", "ZES_", "NEO", "LD_LIBRARY_PATH"];

/// The file in which an answer is kept, for one boot of the machine.
pub(super) struct Remembered {
    file: PathBuf,
    /// What must be as it was: the boot, the device nodes, the environment.
    circumstances: String,
}

impl Remembered {
    /// In the user's cache folder; `None` where there is none, or the boot is not known.
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
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let mut circumstances = format!("zeusm {} {}", env!("CARGO_PKG_VERSION"), boot.trim());
        for node in nodes {
            let device = node.metadata().map_or(0, |node| node.rdev());
            let _ = write!(circumstances, " {}:{device}", node.display());
        }
        let mut variables: Vec<_> = env::vars_os()
            .filter(|(name, _)| {
                let name = name.to_string_lossy();
                DECISIVE.iter().any(|start| name.starts_with(start))
            })
            .collect();
        variables.sort();
        let _ = write!(circumstances, " {variables:?}");
        Some(Self {
            file,
            circumstances: circumstances.replace('\n', " "),
        })
    }

    /// Where the answer is kept.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// The answer, if everything is as it was then: empty for a driver that worked, else how it ended its process.
    pub(super) fn answer(&self) -> Option<String> {
        let text = fs::read_to_string(&self.file).ok()?;
        let mut lines = text.lines();
        let (circumstances, driver, identity) = (lines.next()?, lines.next()?, lines.next()?);
        let is_same =
            circumstances == self.circumstances && identity == identity_of(Path::new(driver))?;
        is_same.then(|| lines.next().unwrap_or_default().to_owned())
    }

    /// Keeps the answer of `driver` for the next time. Without a place for it, the driver is asked again.
    pub(super) fn keep(&self, driver: &Path, answer: &str) {
        let Some(identity) = identity_of(driver) else {
            return;
        };
        let text = format!(
            "{}\n{}\n{identity}\n{}\n",
            self.circumstances,
            driver.display(),
            answer.replace('\n', " ")
        );
        // Whole or not at all, for others may read it meanwhile.
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

/// What changes when a file is replaced.
fn identity_of(file: &Path) -> Option<String> {
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
    fn an_answer_is_kept_until_the_driver_or_the_nodes_change() {
        let root = tempfile::tempdir().unwrap();
        let (driver, file) = (root.path().join("driver.so"), root.path().join("a/kept"));
        fs::write(&driver, "one").unwrap();
        let with = |nodes: &[PathBuf]| Remembered::at(file.clone(), nodes).unwrap();
        assert_eq!(with(&[]).answer(), None);
        with(&[]).keep(&driver, "");
        assert_eq!(with(&[]).answer().as_deref(), Some(""));
        assert_eq!(with(&["/dev/null".into()]).answer(), None);
        with(&[]).keep(&driver, "it\naborts");
        assert_eq!(with(&[]).answer().as_deref(), Some("it aborts"));
        fs::write(&driver, "another").unwrap();
        assert_eq!(with(&[]).answer(), None);
        fs::remove_file(&driver).unwrap();
        with(&[]).keep(&driver, "");
        assert_eq!(with(&[]).answer(), None);
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }
}
