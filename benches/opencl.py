"""Makes the OpenCL runtime of dpctl's environment available to SYCL as `opencl:cpu`, if imported before SYCL."""

import os
import sys

LIBRARY = os.path.join(sys.prefix, "lib", "libintelocl.so")
os.environ["OCL_ICD_FILENAMES"] = os.environ["OCL_ICD_VENDORS"] = LIBRARY
