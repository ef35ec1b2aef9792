//! The place of one module's code in the cache.

use std::env;
use std::hash::{DefaultHasher, Hasher as _};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde::Serialize;
use zeusm_process::Local;

use super::folder::Folder;
use super::settings;
use crate::abi::entry::Bytes;
use crate::abi::result::ZeResult;
use crate::compiler::{Job, read_limit};
use crate::driver::Driver;
use crate::module::sealed::{seal, unseal};
use crate::opencl::Runtime;
use crate::system::{library, processor};

/// The place of one module's code.
pub struct Entry {
    folder: Folder,
    name: u64,
    /// All that the code depends on. The file begins with it, so the name need not be unique.
    key: Vec<u8>,
}

impl Entry {
    /// The place of the code of `job`; `None` without a cache.
    pub fn of(job: &Job) -> Option<Self> {
        static MAKER: Local<Maker> = Local::new();
        let (folder, _) = open().ok()?;
        Self::new(folder, MAKER.get_or_try_init(Maker::new).ok()?, job)
    }

    fn new(folder: Folder, maker: &Maker, job: &Job) -> Option<Self> {
        let key = postcard::to_allocvec(&(maker, job)).ok()?;
        let mut hasher = DefaultHasher::new();
        hasher.write(&key);
        let name = hasher.finish();
        Some(Self { folder, name, key })
    }

    /// The code, if it is there and whole.
    pub fn read(&self) -> Option<Vec<u8>> {
        let bytes = self.folder.read(self.name)?;
        let code = unseal(&bytes).ok()?.strip_prefix(&*self.key)?;
        Some(code.to_vec())
    }

    /// Keeps the code for later processes, if the system lets it.
    pub fn write(&self, code: &[u8]) {
        self.folder
            .write(self.name, &seal(&[&*self.key, code].concat()));
    }
}

/// `zeusmDriverDescribeModuleCache`: says in words what is in the cache, or why there is none: the size of the text, and the text as by
/// `zeModuleBuildLogGetString`.
pub fn describe(_: Driver, place: Bytes<'_>) -> ZeResult {
    place.write_text(&match open() {
        Ok((folder, path)) => {
            let told = format!("{}: {}", path.display(), folder.content());
            match folder.try_to_write() {
                Ok(()) => told,
                Err(error) => format!("{told}; no more is kept: {error}"),
            }
        }
        Err(why) => format!("none: {why}"),
    })
}

fn open() -> Result<(Folder, PathBuf), String> {
    let settings = settings::read().map_err(|error| error.to_string())?;
    if settings.limit == 0 {
        return Err("it is off".to_owned());
    }
    let path = settings
        .folder
        .ok_or("this user has no folder for caches")?;
    match Folder::open(&path, settings.limit) {
        Ok(folder) => Ok((folder, path)),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// What code depends on beside the job. A process's compiler has the variables that the process had when it started it.
#[derive(Clone, Serialize)]
struct Maker {
    /// The device and the version of the OpenCL runtime.
    device: String,
    driver: String,
    /// The sizes and times of its library, and of this one, which changes modules before the build: versions do not tell builds.
    libraries: [(u64, i64, i64); 2],
    /// Hosts of one home may have processors with the same name.
    processor: [u32; 8],
    /// The variables of Intel's compiler.
    variables: Vec<(String, String)>,
    /// After the time limit for a module, it is built without optimisation.
    seconds: Option<u32>,
}

impl Maker {
    fn new() -> Result<Self, String> {
        let runtime = Runtime::get()?;
        let own = library::path_of(Self::new as fn() -> _ as usize);
        let library = |path: Option<PathBuf>| {
            let about = path.and_then(|path| path.metadata().ok());
            let about = about.ok_or("the file of a library is gone")?;
            Ok::<_, String>((about.size(), about.mtime(), about.mtime_nsec()))
        };
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let mut variables: Vec<_> = env::vars_os()
            .map(|(name, value)| (text(name), text(value)))
            .filter(|(name, _)| name.starts_with("CL_CONFIG_"))
            .collect();
        variables.sort();
        Ok(Self {
            device: runtime.properties.name.clone(),
            driver: runtime.properties.driver.clone(),
            libraries: [library(runtime.file())?, library(own)?],
            processor: processor::features(),
            variables,
            seconds: read_limit().unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests;
