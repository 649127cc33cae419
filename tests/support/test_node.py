"""What programs for Node.js print is read as they printed it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.node import run_node


def test_a_text_may_have_separators_of_unicode(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("needs Node.js")
    script = tmp_path / "print.mjs"
    script.write_text(r'console.log(JSON.stringify("a\u2028b\u0085c")); console.log("1");')

    assert run_node(script, tmp_path) == ["a\u2028b\x85c", 1]
