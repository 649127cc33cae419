"""Settings of the documentation site. ``make docs`` builds it into ``build/site``."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

SITE = Path(__file__).parent
sys.path[:0] = [str(SITE), str(SITE.parents[1])]  # where Sphinx finds extensions.py and scripts/

project = "Agent Brain"
author = "the Agent Brain authors"
copyright = author  # noqa: A001 - Sphinx's name
release = version = importlib.metadata.version("agent-brain")
html_title = f"Agent Brain {release}"
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "extensions",
]
root_doc = "index"
source_suffix = {".md": "markdown"}
exclude_patterns = ["site"]
nitpicky = (
    True  # a reference that leads nowhere is a warning, and make docs turns warnings to errors
)
show_warning_types = True

myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]

add_module_names = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True, "exclude-members": "model_config, model_post_init"}
maximum_signature_line_length = 72
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/icon.svg"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_exclude = ".linenos, .gp, .go"
