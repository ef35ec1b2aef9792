use super::*;

fn missing() -> OpenError {
    OpenError::Missing {
        path: "libintelocl.so".into(),
        why: "absent".into(),
    }
}

fn context(path: &str) -> OpenError {
    OpenError::Context {
        path: path.into(),
        error: Error {
            operation: "clCreateContext",
            code: opencl_sys::CL_DEVICE_NOT_AVAILABLE,
        },
    }
}

#[test]
fn a_loader_without_a_runtime_is_no_runtime() {
    let loader = OpenError::Device {
        path: "libOpenCL.so.1".into(),
    };
    let text = OpenError::of_all(&[missing(), loader], false).to_string();
    assert!(text.starts_with("no OpenCL runtime for the CPU is installed: `pip install"));
    assert!(text.contains("libintelocl.so: absent; libOpenCL.so.1 offers no CPU"));
}

#[test]
fn a_wrong_choice_is_named_and_nothing_need_be_installed() {
    let text = OpenError::of_all(&[missing()], true).to_string();
    let expected =
        "ZEUSM_OPENCL_LIBRARY names no OpenCL runtime for the CPU: libintelocl.so: absent";
    assert_eq!(text, expected);
}

#[test]
fn a_runtime_that_fails_is_named_and_need_not_be_installed() {
    let text =
        OpenError::of_all(&[context("/env/lib/libintelocl.so"), missing()], false).to_string();
    assert_eq!(
        text,
        "the OpenCL runtime for the CPU does not work: /env/lib/libintelocl.so: clCreateContext answered -2 \
         (CL_DEVICE_NOT_AVAILABLE)"
    );
}

#[test]
fn a_path_with_a_space_is_named_as_the_reason() {
    let text = OpenError::of_all(&[context("/my env/lib/libintelocl.so")], true).to_string();
    assert!(text.contains("/my env/lib/libintelocl.so: clCreateContext answered -2"));
    assert!(text.contains("at a path with a space") && text.contains(VARIABLE));
}
