//! The processor: its name, clock, caches and vectors.

use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::thread;

use zeusm_process::Lazy;

use super::platform::machine;
pub use super::platform::machine::cache_line;

/// How many processors this process may use.
pub fn count() -> usize {
    static COUNT: Lazy<usize> = Lazy::new();
    *COUNT.get_or_make(|| thread::available_parallelism().map_or(1, usize::from))
}

/// The processor's name.
pub fn model() -> &'static str {
    static MODEL: Lazy<String> = Lazy::new();
    MODEL.get_or_make(|| machine::model().unwrap_or_else(|| std::env::consts::ARCH.to_owned()))
}

/// The clock in MHz: the highest that the system reports, else the current one; 0 when it reports neither.
pub fn megahertz() -> u32 {
    static CLOCK: Lazy<u32> = Lazy::new();
    *CLOCK.get_or_make(|| machine::megahertz().unwrap_or(0))
}

/// Size in bytes of the largest cache.
pub fn cache() -> usize {
    static CACHE: Lazy<usize> = Lazy::new();
    *CACHE.get_or_make(|| machine::largest_cache().unwrap_or(0))
}

/// Bytes in a vector register.
pub fn vector_bytes() -> u32 {
    if is_x86_feature_detected!("avx512f") {
        64
    } else if is_x86_feature_detected!("avx2") {
        32
    } else {
        16
    }
}

/// What compilers know a processor by: its signature and features, and the size of the vectors that the system lets programs use.
/// They are the same on all processors of a machine.
pub fn features() -> [u32; 8] {
    let (basic, extended, more) = (__cpuid(1), __cpuid_count(7, 0), __cpuid_count(7, 1));
    [
        basic.eax,
        basic.ecx,
        basic.edx,
        extended.ebx,
        extended.ecx,
        extended.edx,
        more.eax,
        vector_bytes(),
    ]
}

/// The family of a processor of AMD; `None` for other makes.
pub fn amd_family() -> Option<u32> {
    // /proc/cpuinfo says the same in a hundred times as long, and each process asks at its start.
    let vendor = __cpuid(0);
    let amd = [vendor.ebx, vendor.edx, vendor.ecx]
        .map(u32::to_le_bytes)
        .concat()
        == b"AuthenticAMD";
    amd.then(|| family(__cpuid(1).eax))
}

/// The family in the processor's signature: of 15 and above, the sum of two fields.
fn family(signature: u32) -> u32 {
    let (base, extended) = (signature >> 8 & 0xf, signature >> 20 & 0xff);
    if base == 0xf { base + extended } else { base }
}

/// Sixteen bytes that stay the same on this machine: its identity, or else its processor's name. They are read once, as a process
/// may have no descriptor left for the file later.
pub fn identity() -> [u8; 16] {
    static IDENTITY: Lazy<[u8; 16]> = Lazy::new();
    *IDENTITY.get_or_make(read_identity)
}

fn read_identity() -> [u8; 16] {
    let seed = machine::identity().unwrap_or_else(|| model().to_owned());
    // FNV-1a of the seed, once for each half: an identity, not a secret.
    let half = |start: u64| {
        seed.trim().bytes().fold(start, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    let mut identity = [0; 16];
    let (low, high) = identity.split_at_mut(8);
    low.copy_from_slice(&half(0xcbf2_9ce4_8422_2325).to_le_bytes());
    high.copy_from_slice(&half(0x6c62_272e_07bb_0142).to_le_bytes());
    identity
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_those_of_signatures() {
        // Xeon 8481C, Opteron (K8), EPYC 7003 and EPYC 9005.
        let signatures = [0x0008_06f8, 0x0000_0f51, 0x00a0_0f11, 0x00b0_0f21];
        assert_eq!(signatures.map(family), [6, 15, 25, 26]);
    }
}
