use super::holds_references;

#[test]
fn references_are_found_behind_names() {
    let with = [
        "O",
        "<O",
        "P",
        "&<i",
        "X{}",
        "z",
        "<Z",
        "T{<i:Obj:<O:x:}",
        "T{l:O:O:y:}",
        "(2,3)O",
        "T{<Z:x:i:y:}",
    ];
    let without = [
        "B",
        "<d",
        "Zd",
        "T{Zf:O:<i:P:}",
        "?",
        "10s",
        "w",
        "(2,3)<i",
        "T{T{B:z:}:X:}",
    ];
    for format in with {
        assert!(holds_references(format.as_bytes()), "{format}");
    }
    for format in without {
        assert!(!holds_references(format.as_bytes()), "{format}");
    }
}
