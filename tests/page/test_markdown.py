"""The Markdown of the page: what is drawn, and that streaming draws the same."""

from __future__ import annotations

import pytest

from agent_brain import Brain

DRAW = """async ([text, cuts]) => {
    const { MarkdownView } = await import(new URL("page/markdown/view.js", document.baseURI));
    const view = new MarkdownView();
    let start = 0;
    for (const cut of [...cuts, text.length]) {
        view.append(text.slice(start, cut));
        view.flush();
        start = cut;
    }
    return view.element.innerHTML;
}"""

COPY = '<button type="button" class="copy quiet" aria-label="Copy the code"></button>'
CASES = {
    "": "",
    "a": "<p>a</p>",
    "a\nb\n\nc": "<p>a<br>b</p><p>c</p>",
    "**b** *i* ***x*** ~~s~~ `c`": "<p><strong>b</strong> <em>i</em> <strong><em>x</em></strong> <del>s</del> <code>c</code></p>",
    "2 * 3 * 4, snake_case_name, a ** b": "<p>2 * 3 * 4, snake_case_name, a ** b</p>",
    "**open and *closed*": "<p>**open and <em>closed</em></p>",
    r"\*not\* and \`not\`": "<p>*not* and `not`</p>",
    "``a ` b``": "<p><code>a ` b</code></p>",
    "# One\n## Two ##\n": '<h3 class="level-1">One</h3><h4 class="level-2">Two</h4>',
    "#no": "<p>#no</p>",
    "---": "<hr>",
    "- a\n- b": "<ul><li>a</li><li>b</li></ul>",
    "- a\n\n- b\n\n  c": "<ul><li>a</li><li>b<p>c</p></li></ul>",
    "1. a\n2. b\n   - c\n     - d\n": "<ol><li>a</li><li>b<ul><li>c<ul><li>d</li></ul></li></ul></li></ol>",
    "1. a\n  - b\n2. c": "<ol><li>a<ul><li>b</li></ul></li><li>c</li></ol>",
    "3. a": '<ol start="3"><li>a</li></ol>',
    "- a\nb\n\nc": "<ul><li>a<br>b</li></ul><p>c</p>",
    "> a\n> - b": "<blockquote><p>a</p><ul><li>b</li></ul></blockquote>",
    "text\n```\nx\n```\nmore": (
        '<p>text</p><figure class="code"><pre tabindex="0" role="group" aria-label="Code">'
        f"<code>x</code></pre>{COPY}</figure><p>more</p>"
    ),
    "- a\n  ```py\n  x = 1\n  ```": (
        '<ul><li>a<figure class="code"><figcaption>py</figcaption><pre tabindex="0" role="group" '
        f'aria-label="Code, py"><code>x = 1</code></pre>{COPY}</figure></li></ul>'
    ),
    "|a|b|\n|-|:-:|\n|1|\n|2|x\\|y|": (
        '<div class="table" tabindex="0" role="group" aria-label="Table"><table><thead><tr>'
        '<th scope="col">a</th><th class="center" scope="col">b</th></tr></thead><tbody><tr><td>1</td>'
        '<td class="center"></td></tr><tr><td>2</td><td class="center">x|y</td></tr></tbody></table></div>'
    ),
    "a | b": "<p>a | b</p>",
    "<b>x</b> &amp;": "<p>&lt;b&gt;x&lt;/b&gt; &amp;amp;</p>",
}

LINK = '<a href="{}" target="_blank" rel="noopener noreferrer">{}</a>'
LINKS = {
    "[a](https://x.test/b)": LINK.format("https://x.test/b", "a"),
    "[**a**](mailto:a@x.test 'title')": LINK.format("mailto:a@x.test", "<strong>a</strong>"),
    "see https://x.test/a_(b).": "see "
    + LINK.format("https://x.test/a_(b)", "https://x.test/a_(b)")
    + ".",
    "(https://x.test)": "(" + LINK.format("https://x.test/", "https://x.test") + ")",
    "<https://x.test>": LINK.format("https://x.test/", "https://x.test"),
    "[a](javascript:alert(1))": "[a](javascript:alert(1))",
    "[a]( JaVaScRiPt:x)": "[a]( JaVaScRiPt:x)",
    "[a](//x.test)": "[a](//x.test)",
    "[a](https://x.test": "[a](" + LINK.format("https://x.test/", "https://x.test"),
    "[[a](https://x.test)](https://y.test)": LINK.format("https://y.test/", "[a](https://x.test)"),
}


@pytest.fixture(scope="module")
def drawn(browser):
    """Draw Markdown in a page, in one piece or cut at some places."""
    from tests.page.server import PageServer

    with PageServer(Brain()) as server:
        page = browser.new_page()
        page.goto(server.url)
        yield lambda text, cuts=(): page.evaluate(DRAW, [text, list(cuts)])
        page.close()


@pytest.mark.parametrize("text", CASES)
def test_what_is_drawn(drawn, text):
    assert drawn(text) == CASES[text]


@pytest.mark.parametrize("text", LINKS)
def test_links_lead_to_web_pages_and_mail_only(drawn, text):
    assert drawn(text) == f"<p>{LINKS[text]}</p>"


def test_text_that_arrives_letter_by_letter_is_drawn_like_the_whole(drawn):
    whole = "\n\n".join([*CASES, *LINKS])

    assert drawn(whole, range(1, len(whole))) == drawn(whole)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_any_pieces_are_drawn_like_the_whole(drawn, size):
    for text in CASES:
        assert drawn(text, range(size, len(text), size)) == drawn(text), text


HOSTILE = [
    "*a ",
    "[",
    "![",
    "`",
    "``a`",
    "> ",
    "- ",
    "  - a\n",
    "|",
    "|-",
    "\n|",
    "<http://",
    "_*",
    "[a](",
    "# #",
    " ",
    "```a`",
    "~~~\n",
    "1. ",
    "**a",
    "http://)",
    "$a",
    "$a$ ",
    "$\\$",
    "$$",
    "\\(",
    "\\[\n",
    "$$a\n",
]


LINES = ["```{}`", "~~~{}`", "|a|\n-{}x", "# a{}#b", "[a]({}x", "* {}*x", "> {}x"]
LONG = [line.format(200_000 * " ") for line in LINES] + [200_000 * "~" + "`"]


@pytest.mark.parametrize(
    "text", [*(20_000 * piece for piece in HOSTILE), *LONG], ids=lambda text: repr(text[:9])
)
def test_hostile_text_takes_no_longer_than_its_length_allows(browser, drawn, text):
    time = """async (text) => {
        const { markdown } = await import(new URL("page/markdown/view.js", document.baseURI));
        const before = performance.now();
        markdown(text);
        return performance.now() - before;
    }"""
    page = browser.contexts[0].pages[0]

    assert page.evaluate(time, text) < 2000  # ms
