//! Records of untyped items.

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
fn impossible_records_are_refused() {
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
