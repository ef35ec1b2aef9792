# A second OpenCL runtime, PoCL 7: a Debian sid root has it. The tests are those of this project, with its environments and its Python.
POCL_ROOT := $(CURDIR)/.cache/pocl-root
$(POCL_ROOT)/.complete: tools/debian_root.sh
	sh tools/debian_root.sh $(POCL_ROOT) sid pocl-opencl-icd ocl-icd-libopencl1 libssl3t64 libffi8 libbz2-1.0 liblzma5 libze1

# POCL_AREAS='kernels tables' runs a part. With WHOLE=1 tests run, too, that are known to be too much work.
POCL_AREAS ?=
.PHONY: test-pocl
test-pocl: build venvs $(if $(filter jax,$(or $(POCL_AREAS),jax)),$(VENV_JAX)/.zeusm) $(POCL_ROOT)/.complete ## Kernels of the Rust tests, of dpnp, numba-dpex and JAX over PoCL, a second OpenCL runtime, compared with a committed list (root; hours)
	$(PYTHON) tests/pocl $(POCL_ROOT) --output $(TARGET)/pocl $(if $(POCL_AREAS),--areas $(POCL_AREAS)) $(if $(WHOLE),--whole)
