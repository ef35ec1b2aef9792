//! The type bfloat16, in which kernels keep numbers.
//!
//! Intel's OpenCL for processors refuses the type of `SPV_KHR_bfloat16`. By `SPV_INTEL_bfloat16_conversion`, which it has, such a number
//! is an integer of 16 bits that is converted to and from float32. So that is the type's representation, and what computes with it
//! computes with float32.
//!
//! Source: these extensions and `SPV_INTEL_bfloat16_arithmetic`; SPIR-V specification, section 3.49.11 (conversion instructions).

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use spirv::{Capability, FPEncoding, Op};

use super::words::{Edits, Instruction, encoded};

/// The extensions that have the type, and arithmetic with it.
const REPLACED: [&str; 2] = ["SPV_KHR_bfloat16", "SPV_INTEL_bfloat16_arithmetic"];

/// What a module has of the type.
#[derive(Default)]
pub struct BFloats {
    /// The types of bfloat16 and of its vectors, each with one of float32 that was added for it.
    types: HashMap<u32, u32>,
    /// The values of these types, with their type.
    values: HashMap<u32, u32>,
    /// The module's own types of float32, and their values.
    singles: HashSet<u32>,
    single_values: HashSet<u32>,
    /// The first id that is not used.
    next: u32,
}

impl BFloats {
    /// For a module whose ids are below `bound`.
    pub fn new(bound: u32) -> Self {
        Self {
            next: bound,
            ..Self::default()
        }
    }

    /// Whether the module has the type, so that the conversions' capability and extension are to be declared.
    pub fn found(&self) -> bool {
        !self.types.is_empty()
    }

    /// The bound of all ids. A module that has none left for more is refused by the compiler.
    pub fn bound(&self) -> u32 {
        self.next
    }

    fn new_id(&mut self) -> u32 {
        let id = self.next;
        self.next = id.saturating_add(1);
        id
    }

    /// Looks at the next instruction, and replaces one that has to do with the type.
    pub fn note(&mut self, op: Op, instruction: &Instruction, edits: &mut Edits) {
        const ENCODING: u32 = FPEncoding::BFloat16KHR as u32;
        const CAPABILITY: u32 = Capability::BFloat16TypeKHR as u32;
        // This crate's SPIR-V has no name for `BFloat16ArithmeticINTEL`.
        const ARITHMETIC: u32 = 6226;
        match (op, instruction.operands) {
            (Op::Capability, &[CAPABILITY]) => {
                let integers = encoded(Op::Capability, &[Capability::Int16 as u32]);
                edits.replace(instruction, integers);
            }
            (Op::Capability, &[ARITHMETIC]) => edits.replace(instruction, Vec::new()),
            (Op::Extension, _) if instruction.text(0).is_ok_and(|it| REPLACED.contains(&&*it)) => {
                edits.replace(instruction, Vec::new());
            }
            (Op::TypeFloat, &[kind, 16, ENCODING]) => {
                let single = self.new_id();
                self.types.insert(kind, single);
                let integer = encoded(Op::TypeInt, &[kind, 16, 0]);
                let single = encoded(Op::TypeFloat, &[single, 32]);
                edits.replace(instruction, [integer, single].concat());
            }
            (Op::TypeFloat, &[kind, 32]) => {
                self.singles.insert(kind);
            }
            (Op::TypeVector, &[kind, of, count]) => {
                if let Some(&of) = self.types.get(&of) {
                    let singles = self.new_id();
                    self.types.insert(kind, singles);
                    let vector = encoded(Op::TypeVector, &[singles, of, count]);
                    edits.insert(instruction.end(), vector);
                } else if self.singles.contains(&of) {
                    self.singles.insert(kind);
                }
            }
            (_, &[kind, result, ref operands @ ..]) => {
                if is_arithmetic(op)
                    && let Some(code) = self.by_singles(op, [kind, result], operands)
                {
                    edits.replace(instruction, code);
                }
                if self.types.contains_key(&kind) {
                    self.values.insert(result, kind);
                } else if self.singles.contains(&kind) {
                    self.single_values.insert(result);
                }
            }
            _ => {}
        }
    }

    /// The operation with float32 in the place of bfloat16; `None` for one without bfloat16.
    fn by_singles(
        &mut self,
        op: Op,
        [kind, result]: [u32; 2],
        operands: &[u32],
    ) -> Option<Vec<u32>> {
        let (to, from) = (Op::ConvertBF16ToFINTEL, Op::ConvertFToBF16INTEL);
        let single = self.types.get(&kind).copied();
        match (op, operands, single) {
            (Op::FConvert, [value], None)
                if self.values.contains_key(value) && self.singles.contains(&kind) =>
            {
                return Some(encoded(to, &[kind, result, *value]));
            }
            (Op::FConvert, [value], Some(_)) if self.single_values.contains(value) => {
                return Some(encoded(from, &[kind, result, *value]));
            }
            _ => {}
        }
        // The first two of an extended instruction are its set and its number.
        let (fixed, operands) = operands.split_at_checked(if op == Op::ExtInst { 2 } else { 0 })?;
        let mut code = Vec::new();
        let mut inner = [&[kind, result], fixed].concat();
        for operand in operands {
            let converted = self.values.get(operand).and_then(|it| self.types.get(it));
            inner.push(match converted.copied() {
                None => *operand,
                Some(single) => {
                    let id = self.new_id();
                    code.extend(encoded(to, &[single, id, *operand]));
                    id
                }
            });
        }
        if let Some(single) = single {
            let id = self.new_id();
            inner.splice(..2, [single, id]);
            code.extend(encoded(op, &inner));
            code.extend(encoded(from, &[kind, result, id]));
        } else if code.is_empty() {
            return None;
        } else {
            code.extend(encoded(op, &inner));
        }
        Some(code)
    }
}

/// Whether an operation depends on the numbers that its operands are: a conversion, arithmetic, a test, a comparison or
/// a function of OpenCL.
fn is_arithmetic(op: Op) -> bool {
    const CONVERSIONS: RangeInclusive<u32> = Op::ConvertFToU as u32..=Op::ConvertUToF as u32;
    const TESTS: RangeInclusive<u32> = Op::IsNan as u32..=Op::Unordered as u32;
    const COMPARISONS: RangeInclusive<u32> =
        Op::FOrdEqual as u32..=Op::FUnordGreaterThanEqual as u32;
    let of_a_range = [CONVERSIONS, TESTS, COMPARISONS]
        .iter()
        .any(|range| range.contains(&(op as u32)));
    let of_floats = matches!(
        op,
        Op::ExtInst
            | Op::FConvert
            | Op::FNegate
            | Op::FAdd
            | Op::FSub
            | Op::FMul
            | Op::FDiv
            | Op::FRem
            | Op::FMod
    );
    of_a_range || of_floats
}
