use super::*;

fn missing() -> Unusable {
    Unusable {
        why: "libintelocl.so: absent".to_owned(),
        fails: false,
    }
}

fn context(path: &str) -> Unusable {
    let error = Error {
        operation: "clCreateContext",
        code: opencl_sys::CL_DEVICE_NOT_AVAILABLE,
    };
    Unusable {
        why: format!("{path}: {error}{}", of_path(Path::new(path))),
        fails: true,
    }
}

#[test]
fn a_loader_without_a_runtime_is_no_runtime() {
    let loader = Unusable {
        why: "libOpenCL.so.1 offers no CPU device".to_owned(),
        fails: false,
    };
    let text = not_found(&[missing(), loader], false);
    assert!(text.starts_with("no OpenCL runtime for the CPU is installed: `pip install"));
    assert!(text.contains("libintelocl.so: absent; libOpenCL.so.1 offers no CPU"));
}

#[test]
fn a_wrong_choice_is_named_and_nothing_need_be_installed() {
    let text = not_found(&[missing()], true);
    let expected =
        "ZEUSM_OPENCL_LIBRARY names no OpenCL runtime for the CPU: libintelocl.so: absent";
    assert_eq!(text, expected);
}

#[test]
fn a_runtime_that_fails_is_named_and_need_not_be_installed() {
    let text = not_found(&[context("/env/lib/libintelocl.so"), missing()], false);
    assert_eq!(
        text,
        "the OpenCL runtime for the CPU does not work: /env/lib/libintelocl.so: clCreateContext answered -2 \
         (CL_DEVICE_NOT_AVAILABLE)"
    );
}

#[test]
fn what_hinders_in_a_path_is_named_as_the_reason() {
    let (path, what) = match cfg!(windows) {
        true => (r"C:\Grüße\intelocl64.dll", "a character that ASCII lacks"),
        false => ("/my env/lib/libintelocl.so", "a space"),
    };
    let text = not_found(&[context(path)], true);
    assert!(text.contains(&format!("{path}: clCreateContext answered -2")));
    assert!(text.contains(&format!("at a path with {what}")) && text.contains(VARIABLE));
}
