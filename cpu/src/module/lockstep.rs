//! Kernels that only a GPU executes right, as they rely on the lockstep of a sub-group's work-items without a barrier: on a
//! processor, work-items run one after another up to the next barrier or operation of the group.

use crate::spirv::Kernel;

/// A part of the kernel's name, and what relies on it.
const KERNELS: [(&str, &str); 2] = [
    ("oneapi3mkl3gpu8internal12potrf_kernelIPf", CHOLESKY),
    ("oneapi3mkl3gpu8internal12potrf_kernelIPd", CHOLESKY),
];
/// That of complex matrices is right.
const CHOLESKY: &str = "oneMKL's Cholesky factorisation of real matrices";

/// Why a processor cannot execute one of these kernels; `None` if it can.
pub fn refusal(kernels: &[Kernel]) -> Option<String> {
    let known = |kernel: &Kernel| KERNELS.iter().find(|(part, _)| kernel.name.contains(part));
    let (_, what) = kernels.iter().find_map(known)?;
    Some(format!(
        "{what} relies on work-items of a GPU that run in lockstep without a barrier, and would be wrong on a processor: \
         set ZEUSM_CPU_DEVICES=1+cpu and select the device level_zero:cpu, for which oneMKL has code of its own"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_refused_by_their_names() {
        let named = |name: &str| Kernel {
            name: name.to_owned(),
            ..Kernel::default()
        };
        let cholesky = named("_ZTSN6oneapi3mkl3gpu8internal12potrf_kernelIPfPiE");
        let text = refusal(&[named("add"), cholesky]).unwrap_or_default();
        assert!(
            text.contains("Cholesky") && text.contains("level_zero:cpu"),
            "{text}"
        );
        let complex = "_ZTSN6oneapi3mkl3gpu8internal12potrf_kernelIPSt7complexIfEPiE";
        assert_eq!(refusal(&[named("potrf_kernel"), named(complex)]), None);
    }
}
