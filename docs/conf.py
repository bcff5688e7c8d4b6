"""Sphinx configuration."""

import sys
import warnings
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

import mtclust

_HERE = Path(__file__).parent
sys.path.insert(0, str(_HERE))

project = "mtclust"
author = "the mtclust developers"
copyright = "2026, the mtclust developers"
release = version = mtclust.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas are drawn without a network
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py", "gallery/*.zip"]
suppress_warnings = ["config.cache"]

# -- API reference
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc says it in words
numpydoc_show_class_members = False

# -- pages
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# -- gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "abort_on_example_error": True,
    "doc_module": ("mtclust",),
    "reference_url": {"mtclust": None},
    "backreferences_dir": "gallery/backreferences",
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "min_reported_time": 60,
    "remove_config_comments": True,
    "show_memory": False,
    "within_subsection_order": ExplicitOrder(
        [
            "plot_digits.py",
            "plot_helps_and_hurts.py",
            "plot_related_and_unrelated.py",
            "plot_shared_features.py",
            "plot_text_by_domain.py",
            "plot_unknown_sizes.py",
            "plot_number_of_clusters.py",
            "plot_new_task.py",
            "plot_big_data.py",
            "plot_convex_relaxation.py",
            "*",
        ]
    ),
}


# wide figures are illegible as thumbnails: their first part is shown instead
def setup(app):
    from thumbnails import cut_thumbnails

    app.connect("builder-inited", lambda app: cut_thumbnails(_HERE / "gallery" / "images"), priority=900)


# a figure is saved by the gallery, not shown
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive", category=UserWarning)

# -- look
html_theme = "pydata_sphinx_theme"
html_title = "mtclust"
html_static_path = ["_static"]
html_css_files = ["mtclust.css"]
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "mtclust"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# pages without pages below them have nothing to list
html_sidebars = {path.stem: [] for path in _HERE.glob("*.md")} | {"api": []}
