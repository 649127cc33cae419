"""The nets that are written in three libraries."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.side_by_side.__main__ import (
    NETS,
    OTHERS,
    PAGE,
    code_of,
    lines,
    mistakes,
    output_of,
)
from benchmarks.side_by_side.count import lines_of

said = cache(output_of)


def needs(*libraries: str) -> None:
    for library in libraries:
        if not OTHERS[library].python.exists():
            pytest.skip(f"{library} is not installed: run `make side-by-side`")


def test_only_the_code_of_the_program_counts() -> None:
    code = '"""Doc."""\n\nimport a\n\n# Offline: a model\nb = 1\n\n# The program\ndef f(c):\n'
    code += (
        '    """Doc\n\n    more."""\n    # why\n    return """x\n\n    y"""\n\n\n# Shown: f\nf(1)\n'
    )
    assert lines_of(code) == 5


@pytest.mark.parametrize("net", NETS)
def test_ours_takes_at_most_as_many_lines(net: str) -> None:
    others = [lines_of(code_of(library, net)) for library in OTHERS]
    assert lines_of(code_of("Agent Brain", net)) <= min(others)
    if net == "flights":
        assert lines_of(code_of("Agent Brain", "flights_net")) <= min(others)


def test_the_page_has_the_counts() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "\n".join(lines()) in page
    assert f"it takes {lines_of(code_of('Agent Brain', 'flights_net'))} lines" in page


def test_agents_and_a_net_book_the_same_flight() -> None:
    assert said("Agent Brain", "flights_net") == said("Agent Brain", "flights")
    assert said("Agent Brain", "flights").endswith("Bought AK123, seat 14A.\n")


@pytest.mark.peers
@pytest.mark.parametrize("library", OTHERS)
@pytest.mark.parametrize("net", NETS)
def test_all_say_the_same(net: str, library: str) -> None:
    needs(library)
    assert said(library, net) == said("Agent Brain", net)


@pytest.mark.peers
def test_the_page_has_the_mistakes_that_are_found() -> None:
    needs(*OTHERS)
    assert "\n".join(mistakes()) in PAGE.read_text(encoding="utf-8")
