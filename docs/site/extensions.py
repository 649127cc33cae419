"""What the site adds to Sphinx: the API reference, navigation, diagrams and short references."""

from __future__ import annotations

import builtins
import posixpath
import re
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.python import PyObject  # type: ignore[attr-defined]
from sphinx.environment import BuildEnvironment
from sphinx.pycode import ModuleAnalyzer

from agent_brain.demo import DemoLLM
from agent_brain.nets import create_net
from scripts import public_names

LINK = re.compile(r"\[([^\]]+)\]\(([\w./-]+)\.md\)")
FILE = re.compile(r"^<!-- file ([\w./-]+) -->$", re.MULTILINE)
ROOT = Path(public_names.__file__).parents[1]
LIBRARIES = {"anyio", "chromadb", "httpx", "litellm", "mcp", "pydantic", "pytest", "starlette"}
LONG = 8  # fields of a model; more are only listed
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register everything with Sphinx."""
    app.connect("source-read", expand)
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-signature", shorten)
    app.connect("autodoc-process-bases", show_public_bases)
    app.add_directive("mermaid", Diagram)
    ModuleAnalyzer.analyze = without_overloads(ModuleAnalyzer.analyze)  # type: ignore[assignment, method-assign]
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def without_overloads(
    analyze: Callable[[ModuleAnalyzer], None],
) -> Callable[[ModuleAnalyzer], None]:
    """Show the signature that a function really has: overloads say the same, with less detail."""

    def analyze_without(analyzer: ModuleAnalyzer) -> None:
        analyze(analyzer)
        analyzer.overloads = {}

    return analyze_without


def expand(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill in the entries of a reference page, files, and the navigation of an index page."""
    text = public_names.COMMENT.sub(lambda match: public_names.entries(match[1]), source[0])
    text = FILE.sub(lambda match: f"```python\n{(ROOT / match[1]).read_text('utf-8')}```", text)
    if docname == "index":
        parts = SECTION.split(text)[1:]
        text += "".join(map(toctree, parts[::2], parts[1::2]))
    elif posixpath.basename(docname) == "README":
        text += toctree("", "\n".join(line for line in text.splitlines() if "](../" not in line))
    source[0] = text


def toctree(caption: str, text: str) -> str:
    """Return a hidden table of contents with the pages that ``text`` links to."""
    titles = {page: title.strip("`") for title, page in reversed(LINK.findall(text))}
    pages = "\n".join(f"{titles[page]} <{page}>" for page in reversed(titles))
    options = ":hidden:\n" + (f":caption: {caption}\n" if caption else "")
    return f"\n\n```{{toctree}}\n{options}\n{pages}\n```\n" if pages else ""


def shorten(
    app: Sphinx, kind: str, name: str, value: object, options: Any, signature: str, returns: str
) -> tuple[str, str] | None:
    """Write the signature of a pydantic model without its types, which the attributes list says."""
    if not (isinstance(value, type) and issubclass(value, BaseModel)):
        return None
    if len(value.model_fields) > LONG:
        return "(**fields)", ""
    fields = [
        name + ("" if field.is_required() else f"={default_of(field)}")
        for name, field in value.model_fields.items()
    ]
    return f"({', '.join(['*', *fields] if fields else [])})", ""


def default_of(field: FieldInfo) -> str:
    """Return the default of a field as a reader would write it."""
    value = field.get_default()
    return repr(value) if value is None or isinstance(value, bool | int | float | str) else "..."


def show_public_bases(app: Sphinx, name: str, value: type, options: Any, bases: list[type]) -> None:
    """Replace private base classes by the public ones that they derive from."""
    bases[:] = public_names.public_bases(value)


class Diagram(Directive):
    """The SVG of a built-in net in the place of its Mermaid source, which a browser cannot draw."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Draw the net that the page is named after."""
        name = posixpath.basename(self.state.document.settings.env.docname)
        svg = b64encode(create_net(name, DemoLLM()).to_svg().encode()).decode()
        picture = f'<img alt="The states of {name}" src="data:image/svg+xml;base64,{svg}">'
        return [nodes.raw("", f'<div class="diagram">{picture}</div>', format="html")]


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.TextElement
) -> nodes.Node | None:
    """Resolve a name as docstrings and annotations write it: short, or by its private module.

    Names of other libraries become plain text. A name of ours that is not documented stays
    unresolved, which is a warning.
    """
    if node.get("refdomain") != "py":
        return None
    domain = env.domains.python_domain
    target = str(node["reftarget"]).lstrip(".~")
    for name in candidates(target, node["reftype"]):
        found = min(
            (known for known in domain.objects if known.endswith(name)), key=len, default=""
        )
        if found:
            entry = domain.objects[found]
            link = nodes.reference("", "", internal=True, reftitle=found)
            assert app.builder is not None
            link["refuri"] = app.builder.get_relative_uri(env.docname, entry.docname)
            link["refuri"] += f"#{entry.node_id}"
            link += content
            return link
    if node["reftype"] == "data" or is_foreign(target):  # constants have no entries
        return content
    return None if "refwarn" in node else content


def candidates(target: str, kind: str) -> Iterator[str]:
    """Yield how the full name of an entry may end, best first."""
    parts = target.removeprefix("agent_brain.").split(".")
    yield "." + ".".join(parts)
    if target.startswith("agent_brain."):  # by its private module
        yield from ("." + ".".join(parts[start:]) for start in range(1, len(parts)))
    if kind == "attr" and len(parts) > 1:  # attributes are listed in the entry of their class
        yield "." + ".".join(parts[:-1])


def is_foreign(target: str) -> bool:
    """Return whether a name is Python's or another library's."""
    root = target.partition(".")[0]
    return hasattr(builtins, root) or root in sys.stdlib_module_names or root in LIBRARIES
