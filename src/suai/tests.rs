//! Known cases by name, and random ones against a model that visits every element.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// The fields of a well-formed array of four-byte floats.
fn fields<'a>(shape: &'a [i64], strides: Option<&'a [i64]>, offset: i64) -> Fields<'a> {
    Fields {
        version: Some(1),
        pointer: Some(0x10_0000),
        flag: Some(false),
        typestr: Some("<f4"),
        shape: Some(shape),
        strides,
        offset: Some(offset),
        ..Fields::default()
    }
}

fn read(fields: &Fields<'_>) -> Interface {
    Interface::read(fields).unwrap()
}

/// The message of the error that `fields` give.
fn refusal(fields: &Fields<'_>) -> String {
    Interface::read(fields).unwrap_err().to_string()
}

mod dictionary {
    use super::*;

    #[test]
    fn absent_fields_are_named() {
        let whole = fields(&[2], None, 0);
        for (field, without) in [
            (
                "version",
                Fields {
                    version: None,
                    ..whole.clone()
                },
            ),
            (
                "data",
                Fields {
                    pointer: None,
                    ..whole.clone()
                },
            ),
            (
                "typestr",
                Fields {
                    typestr: None,
                    ..whole.clone()
                },
            ),
            (
                "shape",
                Fields {
                    shape: None,
                    ..whole.clone()
                },
            ),
        ] {
            assert_eq!(Interface::read(&without), Err(Error::Missing { field }));
            assert!(refusal(&without).contains(field));
        }
        let least = Fields {
            flag: None,
            offset: None,
            ..whole
        };
        assert_eq!(read(&least).layout.offset(), 0);
    }

    #[test]
    fn only_version_1_is_known() {
        for version in [0, 2, -1, i64::MIN, i64::MAX] {
            let fields = Fields {
                version: Some(version),
                ..fields(&[2], None, 0)
            };
            assert_eq!(Interface::read(&fields), Err(Error::Version { version }));
            assert!(refusal(&fields).contains(&version.to_string()));
        }
    }

    #[test]
    fn a_null_pointer_is_for_arrays_without_elements() {
        let null = |shape| Fields {
            pointer: Some(0),
            ..fields(shape, None, 0)
        };
        assert!(read(&null(&[4, 0])).is_empty());
        assert_eq!(
            Interface::read(&null(&[])),
            Err(Error::NullPointer { shape: vec![] })
        );
        assert_eq!(
            Interface::read(&null(&[3])),
            Err(Error::NullPointer { shape: vec![3] })
        );
    }

    #[test]
    fn elements_stay_in_the_address_space() {
        let below = Fields {
            pointer: Some(4),
            ..fields(&[3], Some(&[-1]), 0)
        };
        assert!(refusal(&below).contains("0x4"));
        assert!(refusal(&below).contains("-8..4"));
        let above = Fields {
            pointer: Some(u64::MAX - 6),
            ..fields(&[2], None, 0)
        };
        assert!(matches!(
            Interface::read(&above),
            Err(Error::OutsideAddressSpace { .. })
        ));
        let last = Fields {
            pointer: Some(u64::MAX - 8),
            ..fields(&[2], None, 0)
        };
        assert_eq!(read(&last).len(), 8);
    }

    #[test]
    fn both_readings_of_the_flag() {
        let with = |flag| {
            read(&Fields {
                flag,
                ..fields(&[1], None, 0)
            })
        };
        assert!(with(Some(true)).is_read_only(Flag::ReadOnly));
        assert!(!with(Some(true)).is_read_only(Flag::Writable));
        assert!(!with(Some(false)).is_read_only(Flag::ReadOnly));
        assert!(with(Some(false)).is_read_only(Flag::Writable));
        assert!(!with(None).is_read_only(Flag::ReadOnly));
        assert!(!with(None).is_read_only(Flag::Writable));
    }

    #[test]
    fn a_view_starts_at_the_lowest_element() {
        let array = read(&fields(&[3, 2], Some(&[-2, 1]), 10));
        assert_eq!(array.start(), 0x10_0000 + (10 - 4) * 4);
        assert_eq!(array.len(), 6 * 4);
    }

    #[test]
    fn descr_has_to_agree_with_typestr() {
        let pair = || {
            let field = |name: &str, item: &str| RecordField {
                name: name.to_owned(),
                item: FieldType::Item(item.parse().unwrap()),
                shape: vec![],
            };
            Some(Record::new(vec![field("a", "<i4"), field("b", "<f8")]).unwrap())
        };
        let with = |typestr| Fields {
            typestr: Some(typestr),
            descr: pair(),
            ..fields(&[2], None, 0)
        };
        assert_eq!(read(&with("|V12")).format().unwrap(), "T{<i:a:<d:b:}");
        let wrong = Error::DescrSize {
            described: 12,
            itemsize: 16,
        };
        assert_eq!(Interface::read(&with("|V16")), Err(wrong));
        assert_eq!(read(&with("<f4")).format().unwrap(), "f");
    }
}

mod layouts {
    use super::*;

    #[test]
    fn shapes_that_cannot_be() {
        assert_eq!(
            Layout::new(&[2, -3], None, 0, 1),
            Err(Error::NegativeDimension {
                index: 1,
                value: -3
            })
        );
        assert_eq!(
            Layout::new(&[1; 65], None, 0, 1),
            Err(Error::TooManyDimensions { ndim: 65 })
        );
        assert_eq!(Layout::new(&[1; 64], None, 0, 1).unwrap().elements(), 1);
        let refused = |shape: &[i64], itemsize| {
            matches!(
                Layout::new(shape, None, 0, itemsize),
                Err(Error::ShapeOverflow { .. })
            )
        };
        // Products that wrap around to 0, 1 and a negative number in 64 bits.
        assert!(refused(&[1 << 32, 1 << 32], 1));
        assert!(refused(&[274_177, 67_280_421_310_721], 1));
        assert!(refused(&[1 << 32, 1 << 31], 1));
        assert!(refused(&[1 << 62], 2));
        assert!(refused(&[1 << 62, 2, 0], 1));
        assert!(refused(&[], usize::MAX));
        assert!(!refused(&[i64::MAX], 1));
    }

    #[test]
    fn strides_that_cannot_be() {
        assert_eq!(
            Layout::new(&[2, 3], Some(&[1]), 0, 1),
            Err(Error::StridesLength {
                strides: 1,
                shape: 2
            })
        );
        let refused = |shape: &[i64], strides: &[i64], offset, itemsize| {
            matches!(
                Layout::new(shape, Some(strides), offset, itemsize),
                Err(Error::ReachOverflow { .. })
            )
        };
        assert!(refused(&[3], &[i64::MAX], 0, 1));
        assert!(refused(&[2, 2], &[i64::MAX, 1], 0, 1));
        assert!(refused(&[2], &[i64::MIN], -1, 1));
        assert!(refused(
            &[2, 2],
            &[i64::MAX / 2 + 1, i64::MIN / 2 - 1],
            0,
            1
        ));
        assert!(refused(&[], &[], i64::MAX, 1));
        assert!(refused(&[0], &[1], i64::MAX, 8));
        assert!(!refused(&[0], &[1], i64::MAX, 1));
    }

    #[test]
    fn strides_that_lead_nowhere() {
        let strides = |shape: &[i64], strides: &[i64], itemsize| {
            let layout = Layout::new(shape, Some(strides), 0, itemsize);
            layout.map(|layout| (layout.element_strides(), layout.extent().len()))
        };
        let far = 1 << 62;
        assert_eq!(strides(&[1], &[far], 8), Ok((vec![1], 8)));
        assert_eq!(strides(&[3, 1], &[5, far], 8), Ok((vec![5, 1], 88)));
        assert_eq!(strides(&[0, 3], &[far, -far], 8), Ok((vec![3, 1], 0)));
        // What can be told in bytes stays as it was given.
        assert_eq!(strides(&[1], &[far], 1), Ok((vec![far as isize], 1)));
    }

    #[test]
    fn contiguity_is_numpys() {
        let both = |shape: &[i64], strides: Option<&[i64]>| {
            let layout = Layout::new(shape, strides, 0, 8).unwrap();
            (layout.is_c_contiguous(), layout.is_f_contiguous())
        };
        assert_eq!(both(&[], None), (true, true));
        assert_eq!(both(&[5], None), (true, true));
        assert_eq!(both(&[5], Some(&[2])), (false, false));
        assert_eq!(both(&[5], Some(&[-1])), (false, false));
        assert_eq!(both(&[2, 3], None), (true, false));
        assert_eq!(both(&[2, 3], Some(&[1, 2])), (false, true));
        assert_eq!(both(&[2, 1], Some(&[1, 77])), (true, true));
        assert_eq!(both(&[1, 1], Some(&[-9, 77])), (true, true));
        assert_eq!(both(&[2, 0, 3], Some(&[5, 5, 5])), (true, true));
        assert_eq!(both(&[2, 3], Some(&[0, 0])), (false, false));
    }

    #[test]
    fn the_allocation_has_to_hold_it_all() {
        let array = read(&fields(&[4], Some(&[2]), 1));
        let at = |base, size| array.check_within(Allocation { base, size });
        assert_eq!(array.layout.extent().bytes(), 4..32);
        assert_eq!(at(0x10_0000, 32), Ok(()));
        assert_eq!(at(0x10_0004, 28), Ok(()));
        assert_eq!(at(0, usize::MAX), Ok(()));
        assert!(at(0x10_0005, 100).is_err());
        let message = at(0x10_0000, 31).unwrap_err().to_string();
        for number in ["4..32", "0x100000", "31 bytes", "0..31"] {
            assert!(message.contains(number), "{number} is not in: {message}");
        }
        let empty = read(&fields(&[0], None, 1 << 40));
        assert_eq!(empty.check_within(Allocation { base: 7, size: 0 }), Ok(()));
    }
}

mod items {
    use super::*;

    #[test]
    fn typestr_and_its_other_names() {
        // The spelling given, NumPy's, the buffer format, DLPack's code.
        for (given, canonical, format, code) in [
            ("|b1", "|b1", "?", Some(6)),
            ("<b1", "|b1", "?", Some(6)),
            ("i1", "|i1", "b", Some(0)),
            ("|u1", "|u1", "B", Some(1)),
            ("<i2", "<i2", "h", Some(0)),
            ("=u2", "<u2", "H", Some(1)),
            ("<i4", "<i4", "i", Some(0)),
            ("|u4", "<u4", "I", Some(1)),
            ("<f2", "<f2", "e", Some(2)),
            ("f4", "<f4", "f", Some(2)),
            ("<f8", "<f8", "d", Some(2)),
            ("<c8", "<c8", "Zf", Some(5)),
            ("<c16", "<c16", "Zd", Some(5)),
            (">i8", ">i8", ">q", None),
            (">c16", ">c16", ">Zd", None),
            ("<V3", "|V3", "3x", None),
        ] {
            let item: ItemType = given.parse().unwrap();
            assert_eq!(item.to_string(), canonical);
            assert_eq!(item.format().unwrap(), format, "{given}");
            assert_eq!(item.dlpack().map(|dlpack| dlpack.code), code, "{given}");
            if let Some(dlpack) = item.dlpack() {
                assert_eq!(
                    (usize::from(dlpack.bits), dlpack.lanes),
                    (item.size() * 8, 1)
                );
            }
        }
        assert_eq!("|u1".parse(), Ok(ItemType::BYTE));
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[test]
    fn native_formats_are_those_of_numpy_on_linux() {
        for (typestr, format) in [("<i8", "l"), ("<u8", "L"), ("<f16", "g"), ("<c32", "Zg")] {
            assert_eq!(
                typestr.parse::<ItemType>().unwrap().format().unwrap(),
                format
            );
        }
        let foreign: ItemType = ">f16".parse().unwrap();
        assert_eq!(
            foreign.format(),
            Err(Error::NoFormat {
                typestr: ">f16".to_owned()
            })
        );
    }

    #[test]
    fn malformed_typestrs_are_quoted() {
        for typestr in [
            "",
            "<",
            "|",
            "<<f4",
            "f",
            "<f",
            "<f+4",
            "<f-4",
            "<f 4",
            "<f4 ",
            "<f3",
            "<f0",
            "<b4",
            "<c4",
            "<i16",
            "<O8",
            "<S4",
            "<U4",
            "<M8",
            "<m8",
            "<t8",
            "<x4",
            "f\u{664}",
            "<f99999999999999999999",
            "|V0",
            "|V18446744073709551615",
            "float32",
            "\u{1f600}4",
            "<f4\0",
        ] {
            let error = typestr.parse::<ItemType>().unwrap_err();
            assert!(matches!(error, Error::Typestr { .. }), "{typestr:?}");
            assert!(error.to_string().contains(typestr));
        }
    }
}

mod records {
    use super::*;

    fn field(name: &str, item: FieldType, shape: &[usize]) -> RecordField {
        RecordField {
            name: name.to_owned(),
            item,
            shape: shape.to_vec(),
        }
    }

    fn plain(typestr: &str) -> FieldType {
        FieldType::Item(typestr.parse().unwrap())
    }

    #[test]
    fn nested_padded_and_array_fields() {
        let inner = Record::new(vec![
            field("x", plain("<f4"), &[]),
            field("y", plain(">f4"), &[]),
        ]);
        let outer = Record::new(vec![
            field("id", plain("|u1"), &[]),
            field("", plain("|V7"), &[]),
            field("at", FieldType::Record(inner.unwrap()), &[2, 3]),
        ])
        .unwrap();
        assert_eq!(outer.size(), 8 + 6 * 8);
        assert_eq!(outer.format().unwrap(), "T{=B:id:7x(2,3)T{<f:x:>f:y:}:at:}");
    }

    #[test]
    fn records_that_cannot_be() {
        let name = Record::new(vec![field("a:b", plain("<f4"), &[])]);
        assert_eq!(
            name,
            Err(Error::DescrName {
                name: "a:b".to_owned()
            })
        );
        let huge = Record::new(vec![field("a", plain("<f8"), &[usize::MAX / 8 + 1])]);
        assert_eq!(
            huge,
            Err(Error::DescrOverflow {
                name: "a".to_owned()
            })
        );
        let half = field("a", plain("|u1"), &[isize::MAX.unsigned_abs()]);
        assert!(Record::new(vec![half.clone()]).is_ok());
        assert!(Record::new(vec![half.clone(), half]).is_err());
        let many = Record::new(vec![field("a", plain("<f8"), &[1; 65])]);
        assert_eq!(many, Err(Error::TooManyDimensions { ndim: 65 }));
        let mut nested = Record::new(vec![field("a", plain("<f8"), &[])]).unwrap();
        for _ in 1..MAX_DEPTH {
            nested = Record::new(vec![field("a", FieldType::Record(nested), &[])]).unwrap();
        }
        let deeper = Record::new(vec![field("a", FieldType::Record(nested), &[])]);
        assert_eq!(deeper, Err(Error::DescrDepth));
    }
}

/// Every byte that the elements touch, found by visiting each of them.
fn touched(shape: &[i64], strides: &[i64], offset: i64, itemsize: i64) -> Vec<i64> {
    let mut elements = vec![offset];
    for (&size, &stride) in shape.iter().zip(strides) {
        elements = elements
            .iter()
            .flat_map(|&at| (0..size).map(move |index| at + index * stride))
            .collect();
    }
    let bytes = |&at: &i64| (0..itemsize).map(move |byte| at * itemsize + byte);
    elements.iter().flat_map(bytes).collect()
}

/// Row-major strides by their definition: the product of the dimensions to the right.
fn model_strides(shape: &[i64]) -> Vec<i64> {
    (0..shape.len())
        .map(|axis| shape[axis + 1..].iter().product())
        .collect()
}

fn small_shape() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(0..5i64, 0..5)
}

/// A small shape with strides of the same length.
fn strided() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
    small_shape().prop_flat_map(|shape| {
        let ndim = shape.len();
        (Just(shape), prop::collection::vec(-30..30i64, ndim))
    })
}

/// Integers of which many are extreme.
fn any_integer() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -5..5i64,
        Just(i64::MAX),
        Just(i64::MIN),
        (0..63u32).prop_map(|bit| 1 << bit),
        (0..63u32).prop_map(|bit| -(1 << bit)),
    ]
}

fn assert_is_touched(layout: &Layout, model: &[i64], byte_offset: i64) {
    let extent = layout.extent();
    match (model.iter().min(), model.iter().max()) {
        (Some(&low), Some(&high)) => assert_eq!(extent.bytes(), low as isize..high as isize + 1),
        _ => assert_eq!(extent.bytes(), byte_offset as isize..byte_offset as isize),
    }
    assert_eq!(layout.nbytes(), model.len());
}

proptest! {
    #[test]
    fn extent_is_what_the_elements_touch(
        (shape, strides) in strided(), offset in -50..50i64, itemsize in 1..9usize,
    ) {
        let layout = Layout::new(&shape, Some(&strides), offset, itemsize).unwrap();
        let model = touched(&shape, &strides, offset, itemsize as i64);
        assert_is_touched(&layout, &model, offset * itemsize as i64);
    }

    #[test]
    fn row_major_extent_is_what_the_elements_touch(
        shape in small_shape(), offset in -50..50i64, itemsize in 1..9usize,
    ) {
        let layout = Layout::new(&shape, None, offset, itemsize).unwrap();
        let model = touched(&shape, &model_strides(&shape), offset, itemsize as i64);
        assert_is_touched(&layout, &model, offset * itemsize as i64);
        prop_assert!(layout.is_c_contiguous());
    }

    #[test]
    fn contiguous_is_when_the_elements_follow_each_other((shape, strides) in strided()) {
        let layout = Layout::new(&shape, Some(&strides), 0, 1).unwrap();
        let visited = touched(&shape, &strides, 0, 1);
        prop_assert_eq!(layout.is_c_contiguous(), visited.iter().zip(0..).all(|(&at, index)| at == index));
        let reversed = |values: &[i64]| values.iter().rev().copied().collect::<Vec<_>>();
        let visited = touched(&reversed(&shape), &reversed(&strides), 0, 1);
        prop_assert_eq!(layout.is_f_contiguous(), visited.iter().zip(0..).all(|(&at, index)| at == index));
    }

    #[test]
    fn inside_is_when_every_byte_is_inside(
        (shape, strides) in strided(), offset in -50..50i64, base in 0..3000usize, size in 0..3000usize,
    ) {
        let pointer = 1500;
        let layout = Layout::new(&shape, Some(&strides), offset, 2).unwrap();
        let inside = touched(&shape, &strides, offset, 2)
            .iter()
            .map(|at| pointer + at)
            .all(|at| (base as i64..(base + size) as i64).contains(&at));
        let checked = layout.extent().check_within(pointer as usize, Allocation { base, size });
        prop_assert_eq!(checked.is_ok(), inside);
    }

    #[test]
    fn no_integers_panic(
        shape in prop::collection::vec(any_integer(), 0..6),
        strides in prop::option::of(prop::collection::vec(any_integer(), 0..6)),
        offset in any_integer(),
        pointer in any::<u64>(),
        base in any::<usize>(),
        size in any::<usize>(),
    ) {
        let fields = Fields { pointer: Some(pointer), ..fields(&shape, strides.as_deref(), offset) };
        match Interface::read(&fields) {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(array) => {
                if let Err(error) = array.check_within(Allocation { base, size }) {
                    prop_assert!(!error.to_string().is_empty());
                }
                let layout = &array.layout;
                prop_assert_eq!(layout.byte_strides().len(), layout.ndim());
                prop_assert!(layout.extent().start() <= layout.extent().end());
                prop_assert!(layout.elements() == 0 || layout.extent().bytes().contains(&layout.byte_offset()));
                prop_assert!(!layout.is_c_contiguous() || layout.nbytes() == array.len());
                prop_assert!(!layout.is_f_contiguous() || layout.nbytes() == array.len());
                prop_assert!(array.start() <= usize::MAX - array.len());
            }
        }
    }

    #[test]
    fn typestrs_are_parsed_or_refused_and_keep_their_meaning(typestr in ".{0,6}|[<>|=]?[biufcVO][0-9]{0,3}") {
        if let Ok(item) = typestr.parse::<ItemType>() {
            prop_assert_eq!(item.to_string().parse::<ItemType>(), Ok(item));
        }
    }
}
