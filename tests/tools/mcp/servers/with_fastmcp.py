"""A server made with FastMCP, over stdio; it needs that package."""

from __future__ import annotations

from typing import Literal

from fastmcp import Context, FastMCP  # type: ignore[import-not-found]

server = FastMCP("Fast")


@server.tool
async def order(ctx: Context) -> str:
    """Order a drink."""
    result = await ctx.elicit("Which drink?", response_type=Literal["tea", "coffee"])
    return f"{result.action}: {getattr(result, 'data', None)}"


@server.resource("menu://{day}")
def menu(day: str) -> str:
    """What there is to eat."""
    return f"Soup on {day}"


@server.prompt
def greet(name: str) -> str:
    """How to greet."""
    return f"Greet {name} warmly"


if __name__ == "__main__":
    server.run(show_banner=False)
