"""Configuration of the documentation, which `make docs` builds."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

# The real module, before autodoc looks for one: it would import the type stub in its place.
import zeusm.memory

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "zeusm"
author = "The zeusm developers"
copyright = "The zeusm developers"
version = release = version_of("zeusm")
assert zeusm.memory

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.programoutput",
    "zeusm_signatures",
    "zeusm_docstrings",
    "zeusm_completeness",
    "zeusm_notebooks",
]
exclude_patterns = ["_*"]
templates_path = ["_templates"]
nitpicky = True
# Types of other packages: the build has no network for their inventories. Private ones have no page.
nitpick_ignore_regex = [(r"py:.*", r"(?!zeusm).*|zeusm\.memory\._.*")]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_mock_imports = ["cloudpickle", "dask", "distributed", "ray", "zict"]
autodoc_typehints_format = "short"
autodoc_member_order = "groupwise"
toc_object_entries_show_parents = "hide"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = False
napoleon_use_rtype = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "zeusm"
html_static_path = ["_static"]
html_css_files = ["zeusm.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_theme_options = {
    "logo": {"text": "zeusm"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["sphinx-version"],
    "footer_end": ["theme-version"],
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# Pages without pages below them.
html_sidebars = {
    "index": [],
    "install": [],
    "tutorial": [],
    "gallery": [],
    "changelog": [],
    "contributing": [],
}
