import zeusm
from Cython.Build import cythonize
from setuptools import Extension, setup

include = [zeusm.get_include()]
extensions = [
    Extension("blocks", ["blocks.c"], include_dirs=include),
    Extension("cyblocks", ["cyblocks.pyx"], include_dirs=include),
]
setup(name="blocks", version="0.1", ext_modules=cythonize(extensions))
