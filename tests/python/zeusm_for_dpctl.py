"""A pytest plugin that replaces the public names of dpctl.memory by those of zeusm.memory."""

import zeusm.memory

# isort: split
import dpctl.memory

NAMES = [name for name in dir(dpctl.memory) if not name.startswith("_") and name != "annotations"]

for name in NAMES:
    setattr(dpctl.memory, name, getattr(zeusm.memory, name))
