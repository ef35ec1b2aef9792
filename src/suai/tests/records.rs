//! Records of untyped items.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

fn field(name: &str, element: ElementType, shape: &[usize]) -> RecordField {
    RecordField {
        name: name.to_owned(),
        element,
        shape: shape.to_vec(),
    }
}

fn plain(typestr: &str) -> ElementType {
    ElementType::Item(typestr.parse().unwrap())
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
        field("at", ElementType::Record(Arc::new(inner.unwrap())), &[2, 3]),
    ])
    .unwrap();
    assert_eq!(outer.size(), 8 + 6 * 8);
    assert_eq!(outer.find("at").unwrap().0, 8);
    assert_eq!(outer.find(""), None, "padding has no name");
    assert_eq!(outer.format().unwrap(), "T{=B:id:7x(2,3)T{<f:x:>f:y:}:at:}");
}

#[test]
fn impossible_records_are_refused() {
    let name = Record::new(vec![field("a:b", plain("<f4"), &[])]);
    assert_eq!(name, Err(Error::DescrName("a:b".to_owned())));
    let huge = Record::new(vec![field("a", plain("<f8"), &[usize::MAX / 8 + 1])]);
    assert_eq!(huge, Err(Error::DescrOverflow("a".to_owned())));
    let half = field("a", plain("|u1"), &[isize::MAX.unsigned_abs()]);
    assert!(Record::new(vec![half.clone()]).is_ok());
    assert!(Record::new(vec![half.clone(), half]).is_err());
    let many = Record::new(vec![field("a", plain("<f8"), &[1; 65])]);
    assert_eq!(many, Err(Error::TooManyDimensions(65)));
    let mut nested = Record::new(vec![field("a", plain("<f8"), &[])]).unwrap();
    for _ in 1..MAX_DEPTH {
        nested = Record::new(vec![field("a", ElementType::Record(Arc::new(nested)), &[])]).unwrap();
    }
    let deeper = Record::new(vec![field("a", ElementType::Record(Arc::new(nested)), &[])]);
    assert_eq!(deeper, Err(Error::DescrDepth));
}

#[test]
fn names_are_unique_and_records_have_bytes() {
    let twice = Record::new(vec![
        field("a", plain("<f4"), &[]),
        field("a", plain("<i4"), &[]),
    ]);
    let name = "a".to_owned();
    assert_eq!(twice, Err(Error::DescrTwice(name.clone())));
    let nothing = Record::new(vec![field("b", plain("<f4"), &[0])]).unwrap();
    let outer = Record::new(vec![field(
        "a",
        ElementType::Record(Arc::new(nothing)),
        &[],
    )]);
    assert_eq!(outer, Err(Error::DescrEmpty(name)));
    // Padding may be repeated; other fields without a name get NumPy's.
    let unnamed = Record::new(vec![
        field("", plain("|V2"), &[]),
        field("", plain("<i2"), &[]),
        field("", plain("|V2"), &[2]),
    ])
    .unwrap();
    assert_eq!(
        unnamed.to_string(),
        "[('', '|V2'), ('f1', '<i2'), ('', '|V2', (2,))]"
    );
}

#[test]
fn a_field_is_at_a_distance_in_bytes() {
    let records = Layout::new(&[3], Some(&[-2]), 4, 12).unwrap();
    let wide = records.field(4, &[], 8).unwrap();
    assert_eq!((wide.byte_offset(), wide.byte_strides()), (52, vec![-24]));
    assert_eq!(wide.element_strides(), Ok(vec![-3]));
    let uneven = Error::NotInElements {
        bytes: 52,
        itemsize: 8,
    };
    assert!(uneven.to_string().contains("52"));
    assert_eq!(wide.element_offset(), Err(uneven));
    let whole = records.index(&[Index::At(0)]).unwrap();
    assert_eq!(whole.byte_offset(), 48);
    for (offset, shape, itemsize) in [(5, &[][..], 8), (0, &[2, 2], 4), (usize::MAX, &[], 1)] {
        let outside = records.field(offset, shape, itemsize);
        assert!(
            matches!(outside, Err(Error::ExtentOverflow { .. })),
            "{outside:?}"
        );
    }
    let overflow = records.field(0, &[usize::MAX / 2], 4);
    assert!(matches!(overflow, Err(Error::ShapeOverflow { .. })));
    let deep = Layout::new(&[1; 64], None, 0, 8).unwrap();
    assert_eq!(deep.field(0, &[2], 4), Err(Error::TooManyDimensions(65)));
}

/// Sizes that fit, and sizes near the limits.
fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 0..4usize, 1 => any::<usize>(), 1 => (0..64u32).prop_map(|bit| 1 << bit)]
}

fn fields_of(
    element: impl Strategy<Value = ElementType>,
) -> impl Strategy<Value = Vec<RecordField>> {
    let name = prop_oneof![6 => "[a-d]?", 1 => ".{0,3}"];
    let shape = prop::collection::vec(sizes(), 0..3);
    let field = (name, element, shape).prop_map(|(name, element, shape)| RecordField {
        name,
        element,
        shape,
    });
    prop::collection::vec(field, 0..5)
}

/// Plain items and records of up to three levels.
fn elements() -> impl Strategy<Value = ElementType> {
    let item = prop::sample::select(&["|u1", "<f4", "<f8", "<c16", "|V3", ">i2", "|b1"][..]);
    item.prop_map(plain).prop_recursive(3, 12, 4, |inner| {
        fields_of(inner).prop_map(|fields| match Record::new(fields) {
            Ok(record) => ElementType::Record(Arc::new(record)),
            Err(_) => plain("<i4"),
        })
    })
}

proptest! {
    #[test]
    fn a_record_is_as_large_as_its_fields(fields in fields_of(elements()), claimed in sizes()) {
        let sum: Option<usize> = fields.iter().try_fold(0usize, |sum, field| {
            let count = field.shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
            let exact = field.shape.contains(&0).then_some(0).or(count)?;
            sum.checked_add(exact.checked_mul(field.element.size())?)
        });
        let record = match Record::new(fields) {
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                return Ok(());
            }
            Ok(record) => record,
        };
        prop_assert_eq!(Some(record.size()), sum);
        let mut end = 0;
        for field in record.named() {
            let (offset, found) = record.find(&field.name).unwrap();
            prop_assert_eq!(found, field);
            prop_assert!(offset >= end);
            end = offset + field.element.size() * field.shape.iter().product::<usize>();
        }
        prop_assert!(end <= record.size());
        let format = record.format();
        prop_assert!(format.is_ok(), "{:?}", format);
        // A dictionary is accepted with the record's own size only.
        for size in [claimed, record.size()] {
            let typestr = format!("|V{size}");
            let described = Interface::read(&Fields {
                typestr: Some(typestr),
                descr: Some(record.clone()),
                ..fields_of_bytes(&[1])
            });
            let possible = size == record.size() && (1..=1 << 40).contains(&size);
            prop_assert!(!possible || described.is_ok(), "{:?}", described);
            prop_assert!(size == record.size() || described.is_err());
        }
    }

    #[test]
    fn a_field_has_its_bytes_of_each_element(
        (shape, strides) in super::model::strided(), offset in -50..50i64,
        before in 0..5usize, inner in prop::collection::vec(0..4usize, 0..3), after in 0..5usize, itemsize in 1..9usize,
    ) {
        let size = itemsize * inner.iter().product::<usize>();
        let record = before + size + after;
        prop_assume!(record > 0);
        let records = Layout::new(&shape, Some(&strides), offset, record).unwrap();
        let field = records.field(before, &inner, itemsize).unwrap();
        let elements: Vec<isize> = super::views::addresses(&records)
            .into_iter()
            .flat_map(|at| {
                (0..size / itemsize).map(move |index| at + (before + index * itemsize).cast_signed())
            })
            .collect();
        prop_assert_eq!(super::views::addresses(&field), elements);
        prop_assert_eq!(field.shape().len(), shape.len() + inner.len());
        let in_elements = field.element_strides();
        let whole = field.byte_strides().iter().all(|stride| stride % itemsize.cast_signed() == 0);
        prop_assert_eq!(in_elements.is_ok(), whole);
        // The field's view within the memory of the records is a view like any other.
        let (_, packed) = field.packed().unwrap();
        prop_assert_eq!(packed.nbytes(), field.nbytes());
    }
}

/// A dictionary of bytes.
fn fields_of_bytes(shape: &[i64]) -> Fields {
    Fields {
        typestr: Some("|u1".to_owned()),
        ..super::fields(shape, None, 0)
    }
}
