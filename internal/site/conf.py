# SPDX-License-Identifier: Apache-2.0

"""How Sphinx makes the site. internal/site/main.go starts it, with the pages in a folder of their own beside this file."""

import os
from html import escape

from docutils import nodes
from docutils.parsers.rst import Directive

project = "weir"
copyright = "The weir authors"
version = release = os.environ["WEIR_VERSION"]
html_title = f"weir {version}"

extensions = ["myst_parser"]
root_doc = "index"
myst_heading_anchors = 4  # headings are linked to as on a forge
myst_fence_as_directive = ["mermaid"]
nitpicky = True
suppress_warnings = ["myst.header"]  # a level of headings that is left out leads nobody astray

html_theme = "furo"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
html_favicon = "icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_permalinks_icon = "#"


class Mermaid(Directive):
    """A diagram, which mermaid.js draws where the page is read. Without scripts its text is there."""

    has_content = True

    def run(self):
        text = escape("\n".join(self.content))
        return [nodes.raw("", f'<pre class="mermaid" tabindex="0">{text}</pre>', format="html")]


def setup(app):
    app.add_directive("mermaid", Mermaid)
    return {"parallel_read_safe": True}
