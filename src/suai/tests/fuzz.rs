//! Random dictionaries: no dictionary beyond the allocation is accepted, and none causes a panic. `PROPTEST_CASES` is the
//! number of cases, 10 million in the long run. Failures are kept in `proptest-regressions` and as named cases in the tests.

use proptest::prelude::*;

use super::*;

/// The allocation that most of the dictionaries describe.
const BASE: usize = 0x7f00_0000_0000;
const SIZE: usize = 4096;

/// Plausible integers, integers near powers of two, and any.
fn integers() -> impl Strategy<Value = i64> {
    prop_oneof![
        3 => -4..70i64,
        2 => -5000..5000i64,
        1 => (0..64u32, -2..3i64).prop_map(|(bit, more)| (1i64 << bit).wrapping_add(more)),
        1 => (0..64u32, -2..3i64).prop_map(|(bit, more)| (1i64 << bit).wrapping_neg().wrapping_add(more)),
        1 => any::<i64>(),
    ]
}

fn pointers() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (BASE - 16..BASE + SIZE + 16).prop_map(|address| address as u64),
        1 => Just(0),
        1 => any::<u64>(),
        1 => (0..64u32).prop_map(|bit| u64::MAX << bit),
    ]
}

/// Valid type strings.
const TYPESTRS: &[&str] = &[
    "|u1", "<f4", "<f8", "<c16", "|b1", ">i2", "|V3", "|V16", "<f16",
];

fn typestrs() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(TYPESTRS).prop_map(str::to_owned),
        1 => "[<>|=]?[biufcVOUSmM][0-9]{0,20}",
        1 => ".{0,6}",
    ]
}

/// A field that is rarely missing.
fn some<T: std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.97, value)
}

prop_compose! {
    /// The owner of the values that [`Fields`] borrows.
    fn dictionaries()(
        version in some(prop_oneof![20 => Just(1), 1 => integers()]),
        pointer in some(pointers()),
        flag: Option<bool>,
        typestr in some(typestrs()),
        shape in some(prop::collection::vec(integers(), 0..5)),
        strides in prop::option::of(prop::collection::vec(integers(), 0..5)),
        fitting: bool,
        offset in prop::option::of(integers()),
    ) -> Dictionary {
        let ndim = shape.as_ref().map_or(0, Vec::len);
        // Strides of another length are refused first, so most have the right length.
        let strides = strides.map(|mut strides| {
            if fitting {
                strides.resize(ndim, 1);
            }
            strides
        });
        Dictionary { version, pointer, flag, typestr, shape, strides, offset }
    }
}

#[derive(Clone, Debug)]
struct Dictionary {
    version: Option<i64>,
    pointer: Option<u64>,
    flag: Option<bool>,
    typestr: Option<String>,
    shape: Option<Vec<i64>>,
    strides: Option<Vec<i64>>,
    offset: Option<i64>,
}

impl Dictionary {
    fn read(&self) -> Result<Interface, Error> {
        Interface::read(&Fields {
            version: self.version,
            pointer: self.pointer,
            flag: self.flag,
            typestr: self.typestr.clone(),
            shape: self.shape.clone(),
            strides: self.strides.clone(),
            offset: self.offset,
            ..Fields::default()
        })
    }

    /// The range of addresses of the elements, in integers that cannot overflow; `None` without elements.
    fn touched(&self, itemsize: usize) -> Option<(i128, i128)> {
        let shape = self.shape.as_ref()?;
        if shape.contains(&0) {
            return None;
        }
        let itemsize = itemsize as i128;
        let offset = i128::from(self.offset.unwrap_or(0));
        let (mut low, mut high) = (offset, offset);
        let mut row_major = 1;
        for (axis, &size) in shape.iter().enumerate().rev() {
            let stride = match &self.strides {
                Some(strides) => i128::from(*strides.get(axis)?),
                None => row_major,
            };
            row_major *= i128::from(size);
            let distance = stride * (i128::from(size) - 1);
            low += distance.min(0);
            high += distance.max(0);
        }
        let pointer = i128::from(self.pointer?);
        Some((pointer + low * itemsize, pointer + (high + 1) * itemsize))
    }
}

proptest! {
    #[test]
    fn no_dictionary_is_accepted_beyond_the_allocation(dictionary in dictionaries()) {
        let allocation = BASE..BASE + SIZE;
        match dictionary.read() {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(array) => {
                let touched = dictionary.touched(array.element.size());
                let end = BASE + SIZE;
                let inside = touched.is_none_or(|(low, high)| BASE as i128 <= low && high <= end as i128);
                let checked = array.layout.check_within(array.pointer, allocation);
                prop_assert_eq!(checked.is_ok(), inside, "{:?}", checked);
                prop_assert_eq!(touched.is_none(), array.layout.extent().is_empty());
                if let Some((low, high)) = touched {
                    prop_assert_eq!(array.start() as i128, low);
                    prop_assert_eq!(array.layout.extent().len() as i128, high - low);
                }
            }
        }
    }
}
