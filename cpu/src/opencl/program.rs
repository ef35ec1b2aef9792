//! Programs: SPIR-V to the device's own code, and that code loaded.

use std::ffi::{CStr, CString, c_void};

use opencl_sys as cl;
use opencl_sys::cl_program;
use serde::{Deserialize, Serialize};

use super::device::{info, number, text};
use super::owned::Owned;
use super::quiesce::{self, Call};
use super::{Error, Kernel, Runtime};

/// A SPIR-V module and how to compile it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// The SPIR-V, in the machine's byte order.
    pub code: Vec<u8>,
    /// OpenCL's options.
    pub options: String,
    /// The flags that the program passed, which OpenCL does not need.
    pub flags: String,
    /// Specialisation constants by SpecId, as bytes of their types.
    pub specialisation: Vec<(u32, Vec<u8>)>,
}

/// A built program.
pub struct Program {
    runtime: &'static Runtime,
    program: Owned<cl_program>,
}

impl Program {
    /// Builds a program from one SPIR-V module, or from several that refer to each other.
    ///
    /// # Errors
    /// The log of the compiler or the linker.
    pub fn compile(runtime: &'static Runtime, units: &[Unit]) -> Result<Self, String> {
        quiesce::expect_usable()?;
        let _call = Call::begin()?;
        if let [unit] = units {
            let program = Self::create(runtime, unit)?;
            program.build(&unit.options)?;
            return Ok(program);
        }
        let compiled = units.iter().map(|unit| {
            let program = Self::create(runtime, unit)?;
            program.compile_alone(&unit.options)?;
            Ok(program)
        });
        Self::link(runtime, &compiled.collect::<Result<Vec<_>, String>>()?)
    }

    /// A program that has yet to be built.
    fn create(runtime: &'static Runtime, unit: &Unit) -> Result<Self, Error> {
        let mut status = 0;
        // SAFETY: the bytes are read during the call only.
        let raw = unsafe {
            let create = runtime.api.clCreateProgramWithIL;
            create(
                runtime.context,
                unit.code.as_ptr().cast(),
                unit.code.len(),
                &raw mut status,
            )
        };
        let program = Self::created(runtime, "clCreateProgramWithIL", raw, status)?;
        for (id, value) in &unit.specialisation {
            let set = runtime.api.clSetProgramSpecializationConstant;
            // SAFETY: the value has the size that is given with it.
            let code = unsafe { set(raw, *id, value.len(), value.as_ptr().cast()) };
            Error::check("clSetProgramSpecializationConstant", code)?;
        }
        Ok(program)
    }

    /// Compiles without linking.
    fn compile_alone(&self, options: &str) -> Result<(), String> {
        let options = CString::new(options).map_err(|error| error.to_string())?;
        let device = &raw const self.runtime.device.device;
        // SAFETY: one device, no headers, and no callback: the call returns when it is done.
        let code = unsafe {
            (self.runtime.api.clCompileProgram)(
                self.program.raw,
                1,
                device,
                options.as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
                None,
                std::ptr::null_mut(),
            )
        };
        self.built("clCompileProgram", code)
    }

    /// Links compiled programs into one.
    fn link(runtime: &'static Runtime, parts: &[Self]) -> Result<Self, String> {
        let parts: Vec<cl_program> = parts.iter().map(|part| part.program.raw).collect();
        let mut status = 0;
        // SAFETY: one device, programs that are alive, and no callback: the call returns when it is done.
        let raw = unsafe {
            (runtime.api.clLinkProgram)(
                runtime.context,
                1,
                &raw const runtime.device.device,
                c"".as_ptr(),
                parts.len() as u32,
                parts.as_ptr(),
                None,
                std::ptr::null_mut(),
                &raw mut status,
            )
        };
        // Linking returns a program even when it fails, for the log.
        let found = if raw.is_null() {
            status
        } else {
            cl::CL_SUCCESS
        };
        let program = Self::created(runtime, "clLinkProgram", raw, found)?;
        program.built("clLinkProgram", status)?;
        Ok(program)
    }

    /// Loads the binary of [`Program::binary`], from the same runtime.
    ///
    /// # Errors
    /// When the runtime rejects the binary.
    pub fn load(runtime: &'static Runtime, binary: &[u8]) -> Result<Self, String> {
        quiesce::expect_usable()?;
        let _call = Call::begin()?;
        let (mut status, mut loaded) = (0, 0);
        let (size, mut start) = (binary.len(), binary.as_ptr());
        // SAFETY: one device, one size, one pointer to that many bytes; all read during the call only.
        let raw = unsafe {
            (runtime.api.clCreateProgramWithBinary)(
                runtime.context,
                1,
                &raw const runtime.device.device,
                &raw const size,
                &raw mut start,
                &raw mut loaded,
                &raw mut status,
            )
        };
        let program = Self::created(runtime, "clCreateProgramWithBinary", raw, status)?;
        Error::check("clCreateProgramWithBinary", loaded)?;
        program.build("")?;
        Ok(program)
    }

    fn created(
        runtime: &'static Runtime,
        operation: &'static str,
        raw: cl_program,
        code: i32,
    ) -> Result<Self, Error> {
        // SAFETY: it was created just now.
        let program = unsafe { Owned::made(operation, raw, code, runtime.api.clReleaseProgram) }?;
        Ok(Self { runtime, program })
    }

    fn build(&self, options: &str) -> Result<(), String> {
        let options = CString::new(options).map_err(|error| error.to_string())?;
        let device = &raw const self.runtime.device.device;
        // SAFETY: one device, and no callback: the call returns when the build is done.
        let code = unsafe {
            (self.runtime.api.clBuildProgram)(
                self.program.raw,
                1,
                device,
                options.as_ptr(),
                None,
                std::ptr::null_mut(),
            )
        };
        self.built("clBuildProgram", code)
    }

    /// The outcome of a build; an error has the log.
    fn built(&self, operation: &'static str, code: i32) -> Result<(), String> {
        Error::check(operation, code).map_err(|error| format!("{error}\n{}", self.log()))
    }

    /// The build log.
    fn log(&self) -> String {
        let (program, device) = (self.program.raw, self.runtime.device.device);
        // SAFETY: `info` gives a buffer of the size that was asked for.
        text(&info(|size, value, needed| unsafe {
            (self.runtime.api.clGetProgramBuildInfo)(
                program,
                device,
                cl::CL_PROGRAM_BUILD_LOG,
                size,
                value,
                needed,
            )
        }))
    }

    /// The device's own code, for [`Program::load`].
    ///
    /// # Errors
    /// When the runtime does not return it.
    pub fn binary(&self) -> Result<Vec<u8>, Error> {
        // SAFETY: `info` gives a buffer of the size that was asked for.
        let size = number(&info(|size, value, needed| unsafe {
            (self.runtime.api.clGetProgramInfo)(
                self.program.raw,
                cl::CL_PROGRAM_BINARY_SIZES,
                size,
                value,
                needed,
            )
        }));
        let nothing = Error {
            operation: "clGetProgramInfo",
            code: cl::CL_INVALID_BINARY,
        };
        let size = usize::try_from(size)
            .ok()
            .filter(|&size| size != 0)
            .ok_or(nothing)?;
        let mut binary = vec![0_u8; size];
        let mut start: *mut c_void = binary.as_mut_ptr().cast();
        // SAFETY: for CL_PROGRAM_BINARIES the value is one pointer for each device, to a buffer of the size that was
        // just queried.
        let code = unsafe {
            (self.runtime.api.clGetProgramInfo)(
                self.program.raw,
                cl::CL_PROGRAM_BINARIES,
                size_of::<*mut c_void>(),
                (&raw mut start).cast(),
                std::ptr::null_mut(),
            )
        };
        Error::check("clGetProgramInfo", code).map(|()| binary)
    }

    /// The kernel of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn kernel(&self, name: &CStr) -> Result<Kernel, Error> {
        Kernel::new(self.runtime, self.program.raw, name)
    }

    /// The address and the size in bytes of a global variable, where the runtime supports the query.
    pub fn global_variable(&self, name: &CStr) -> Option<(*mut c_void, usize)> {
        let find = self.runtime.global_variable?;
        let (mut address, mut size) = (std::ptr::null_mut(), 0);
        // SAFETY: device and program belong together, the name ends in a null, and both places are ours.
        let code = unsafe {
            find(
                self.runtime.device.device,
                self.program.raw,
                name.as_ptr(),
                &raw mut size,
                &raw mut address,
            )
        };
        (code == cl::CL_SUCCESS && !address.is_null()).then_some((address, size))
    }

    /// The address of a function, which kernels can call. OpenCL knows those that the program's SPIR-V module exports or
    /// takes the address of.
    pub fn function(&self, name: &CStr) -> Option<u64> {
        let find = self.runtime.function_pointer?;
        let mut address = 0;
        // SAFETY: device and program belong together, the name ends in a null, and the place is ours.
        let code = unsafe {
            find(
                self.runtime.device.device,
                self.program.raw,
                name.as_ptr(),
                &raw mut address,
            )
        };
        (code == cl::CL_SUCCESS && address != 0).then_some(address)
    }
}
