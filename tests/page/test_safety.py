"""What models, tools and people write is shown, never run, and nothing is loaded from elsewhere."""

from __future__ import annotations

import httpx
from playwright.sync_api import expect

from agent_brain import Brain
from agent_brain.tools import Action, FunctionTool
from tests.page.model import Script

ATTACK = (
    '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script><svg onload=window.hurt=1>'
)
LINKS = (
    "[a](javascript:window.hurt=1) [b](data:text/html,x) ![c](https://x.test/c.png) [d](vbscript:x)"
)


def test_scripts_in_messages_results_names_and_titles_are_text(serve, open_chat):
    def steal() -> str:
        """Steal."""
        return ATTACK

    tool = FunctionTool(steal, name="steal", description=ATTACK)
    llm = Script(
        [
            f"{ATTACK} {LINKS}\n\n```\n{ATTACK}\n```\n",
            Action(name="steal", args={"x": ATTACK}),
            Action(name=ATTACK),
        ],
        [f"# {ATTACK}\n\n| {ATTACK} |\n|--|\n| {ATTACK} |"],
        [RuntimeError(ATTACK)],
    )
    chat = open_chat(serve(Brain(llm=llm, tools=[tool])).url)

    chat.ask(ATTACK)
    chat.wait_until_idle()
    chat.page.get_by_text("Tools", exact=True).click()
    chat.ask("Again")
    expect(chat.log.get_by_role("alert")).to_contain_text(ATTACK)
    chat.page.reload()
    expect(chat.answers.first).to_contain_text(ATTACK)
    expect(chat.page.get_by_role("navigation").get_by_role("link")).to_contain_text("<img src=x")

    assert chat.page.evaluate("window.hurt") is None
    expect(chat.page.locator("#messages :is(script, svg, img, iframe)")).to_have_count(0)
    expect(chat.answers.get_by_role("link")).to_have_text(["c"])
    link = chat.answers.get_by_role("link")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(link).to_have_attribute("target", "_blank")
    assert all(host.startswith("127.0.0.1:") for host in chat.hosts)


def test_a_picture_of_the_net_keeps_nothing_but_shapes(serve, open_chat):
    chat = open_chat(serve(Brain()).url)

    shown = chat.page.evaluate(
        """async () => {
            const { NetPicture } = await import(new URL("page/net.js", document.baseURI));
            const [place, state] = [document.createElement("div"), document.createElement("p")];
            document.body.append(place);
            new NetPicture(place, state).load(`<svg xmlns="http://www.w3.org/2000/svg" onload="window.hurt=1">
                <script>window.hurt=1</script><style>*{fill:red}</style>
                <foreignObject><b xmlns="http://www.w3.org/1999/xhtml">x</b></foreignObject>
                <a href="javascript:window.hurt=1"><text>y</text></a><use href="https://x.test/#a"/>
                <rect id="state-A" onclick="window.hurt=1" fill="url(https://x.test/f)" width="3"/></svg>`);
            return place.innerHTML.replace(/\\s+/g, " ");
        }"""
    )

    chat.tolerate("Content Security Policy")  # the browser tells what it has stopped
    assert chat.page.evaluate("window.hurt") is None
    assert shown == '<svg> <rect id="state-A" width="3"></rect></svg>'


def test_the_policy_of_the_page_forbids_everything_else(serve):
    policy = httpx.get(serve(Brain()).url).headers["content-security-policy"]

    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "unsafe" not in policy
