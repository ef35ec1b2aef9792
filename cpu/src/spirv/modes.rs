//! Execution modes of kernels: sizes of groups.

use spirv::ExecutionMode;

use super::Error;
use super::kernel::Kernel;

/// Sets what a mode with these operands says about `kernel`.
///
/// # Errors
/// [`Error::Mode`] when there are too few operands, or a group would have no work-items.
pub fn apply(kernel: &mut Kernel, mode: ExecutionMode, operands: &[u32]) -> Result<(), Error> {
    let refused = || Error::Mode {
        mode: format!("{mode:?}"),
        operands: operands.to_vec(),
    };
    let three = || operands.first_chunk().copied().ok_or_else(refused);
    let first = || operands.first().copied().ok_or_else(refused);
    match mode {
        ExecutionMode::LocalSize | ExecutionMode::LocalSizeId => {
            let size: [u32; 3] = three()?;
            if size.contains(&0) {
                return Err(refused());
            }
            kernel.required_group_size = Some(size);
        }
        ExecutionMode::LocalSizeHint | ExecutionMode::LocalSizeHintId => {
            kernel.group_size_hint = Some(three()?);
        }
        ExecutionMode::SubgroupSize => {
            kernel.required_sub_group_size = Some(first()?);
        }
        ExecutionMode::SubgroupsPerWorkgroup | ExecutionMode::SubgroupsPerWorkgroupId => {
            kernel.required_sub_groups = Some(first()?);
        }
        _ => {}
    }
    Ok(())
}

/// A constant of the module, whose value may be set when the module is built.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    /// Its value, unless it is set; `None` if the reader does not know it, as that of an operation.
    pub value: Option<u64>,
    /// The number by which it can be set.
    pub spec_id: Option<u32>,
}

impl Constant {
    fn with(self, values: &[(u32, Vec<u8>)]) -> Option<u32> {
        let set = values.iter().find(|(id, _)| Some(*id) == self.spec_id);
        let value = match set {
            Some((_, bytes)) => {
                let bytes = bytes.iter().rev();
                bytes.fold(0, |value: u64, byte| value << 8 | u64::from(*byte))
            }
            None => self.value?,
        };
        u32::try_from(value).ok()
    }
}

/// A mode whose operands are constants.
#[derive(Debug)]
pub struct ModeByConstants {
    /// The index of the kernel.
    pub kernel: usize,
    /// Which mode.
    pub mode: ExecutionMode,
    /// Its operands.
    pub operands: Vec<Constant>,
}

impl ModeByConstants {
    /// Sets what it says about its kernel, with these values of specialisation constants. A mode with a value that is not known
    /// is left to the compiler.
    ///
    /// # Errors
    /// Those of [`apply`].
    pub fn apply(&self, kernels: &mut [Kernel], values: &[(u32, Vec<u8>)]) -> Result<(), Error> {
        let operands = self.operands.iter().map(|it| it.with(values));
        match (
            operands.collect::<Option<Vec<u32>>>(),
            kernels.get_mut(self.kernel),
        ) {
            (Some(operands), Some(kernel)) => apply(kernel, self.mode, &operands),
            _ => Ok(()),
        }
    }
}
