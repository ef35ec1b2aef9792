//! The sizes that devices present.

use zeusm_process::Lazy;
use zeusm_process::memory::Memory;

pub use super::platform::machine::tells_memory;

/// The most memory that the process can have, in bytes: the machine's, or its control group's limit if that is lower.
pub fn total() -> u64 {
    static TOTAL: Lazy<u64> = Lazy::new();
    *TOTAL.get_or_make(|| Memory::now().total)
}
