"""A server with resources and prompts, which change when a tool says so."""

from __future__ import annotations

import base64

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts.base import AssistantMessage, Prompt, UserMessage

server = MCPServer("Offers", log_level="ERROR")
style = ["Write short sentences."]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@server.resource("docs://style", title="Style", mime_type="text/markdown")
def the_style() -> str:
    """How we write."""
    return style[-1]


@server.resource("docs://pages/{page}")
def page(page: str) -> str:
    """A page by its number."""
    return f"This is page {page}. " + "More text. " * (5_000 if page == "long" else 0)


@server.resource("docs://logo", mime_type="image/png")
def logo() -> bytes:
    return base64.b64decode(PIXEL)


@server.resource("docs://archive", mime_type="application/zip")
def archive() -> bytes:
    return bytes(3000)


@server.prompt()
def review(code: str, tone: str = "kind") -> list[UserMessage | AssistantMessage]:
    """How to review code."""
    return [UserMessage(f"Review {code} in a {tone} way."), AssistantMessage("Gladly.")]


@server.tool()
async def restyle(text: str, ctx: Context) -> str:
    """Change the style, and say so."""
    style.append(text)
    await ctx.notify_resource_updated("docs://style")
    return "changed"


@server.tool()
async def add_prompt(name: str, ctx: Context) -> str:
    """Add a prompt, and say so."""
    server.add_prompt(Prompt.from_function(lambda: f"Do {name}.", name=name))
    await ctx.notify_prompts_changed()
    return "added"


@server.tool()
def read_resource(uri: str) -> str:
    """A tool that happens to have this name."""
    return f"my own {uri}"


if __name__ == "__main__":
    server.run("stdio")
