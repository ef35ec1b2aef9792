"""To be imported before SYCL is: shows it the OpenCL runtime that dpctl's environment brings, as `opencl:cpu`."""

import os
import sys

LIBRARY = os.path.join(sys.prefix, "lib", "libintelocl.so")
os.environ["OCL_ICD_FILENAMES"] = os.environ["OCL_ICD_VENDORS"] = LIBRARY
