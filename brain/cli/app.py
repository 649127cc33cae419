"""The commands. Each imports what it needs when it is called. Private."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from agent_brain.cli.compare.command import compare
from agent_brain.cli.exit_codes import ExitCode, UserError, notify, user_errors
from agent_brain.cli.keyboard import read_keyboard
from agent_brain.cli.options import (
    AGENT,
    DECISIONS,
    NET,
    OUTPUT,
    STORAGE,
    Options,
    option,
    with_options,
)
from agent_brain.cli.sessions.commands import sessions

question_argument = click.argument("question", nargs=-1, required=True, metavar="QUESTION…")


@click.group(
    epilog="Start with: agent-brain demo",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="agent-brain", message="agent-brain %(version)s")
def app() -> None:
    """LLM agents as finite state machines."""


@app.command()
@with_options()
@click.argument("question", nargs=-1)
def demo(question: tuple[str, ...], options: Options) -> ExitCode:
    """Watch an agent think, call tools and answer: offline, without a key."""
    from agent_brain.cli.chat import DEMO_QUESTIONS, show_demo

    return show_demo([" ".join(question)] if question else DEMO_QUESTIONS)


@app.command()
@with_options(NET, *AGENT, *STORAGE, *OUTPUT)
@question_argument
def ask(question: tuple[str, ...], options: Options) -> ExitCode:
    """Ask one question: words, or - for what is on stdin.

    On a terminal everything is shown as it happens. In a pipe, stdout gets the answer alone and
    stderr the steps that led to it.

    Exit codes: 0 answered, 1 failed, 2 wrong usage, 3 stopped by a limit, stuck or waiting for a
    person, 130 cancelled.
    """
    return _ask(question, options)


def _ask(question: tuple[str, ...], options: Options) -> ExitCode:
    from agent_brain.cli.session import open_session

    from_stdin = question == ("-",)
    text = (sys.stdin.read() if from_stdin else " ".join(question)).strip()
    if not text:
        raise UserError('The question is empty. Try: agent-brain ask "What is 17 times 23?"')
    with open_session(options) as session:
        result = session.run(text)
        if sys.stdin.isatty() and not from_stdin:
            result = session.settle(result, read_keyboard)
        return session.conclude(result)


@app.command()
@with_options(*AGENT, *STORAGE, *OUTPUT)
@click.argument("net", metavar="FILE")
@question_argument
def run(question: tuple[str, ...], options: Options) -> ExitCode:
    """Ask the agent that a file describes (see agent-brain nets schema).

    FILE is a net in a .toml or .yaml file. The options given here override it. Exit codes are those
    of ask.
    """
    from agent_brain.cli.net_reference import is_file

    if not is_file(options.net):
        raise UserError(f"{options.net!r} is not a .toml, .yaml or .yml file; ask --net takes all")
    return _ask(question, options)


@app.command()
@with_options(*DECISIONS, NET, *AGENT, *STORAGE, *OUTPUT)
def resume(options: Options) -> ExitCode:
    """Continue a stored run that waits for a decision or was interrupted.

    On a terminal, it asks for the decisions. Exit codes are those of ask.
    """
    from agent_brain.cli.decisions import ask_person, read_decisions
    from agent_brain.cli.session import open_session

    if options.folder is None:
        raise UserError("--folder is missing: where is the conversation stored?")
    if not options.folder.is_dir():
        raise UserError(f"--folder {str(options.folder)!r}: there is no such folder")
    with open_session(options) as session:
        memory, person = session.open_memory(), sys.stdin.isatty()
        decisions = read_decisions(options, memory)
        if person and not decisions:
            decisions = ask_person(memory, read_keyboard) or {}
        result = session.resume(**decisions)
        return session.conclude(session.settle(result, read_keyboard) if person else result)


@app.command()
@with_options(NET, *AGENT, *STORAGE, *OUTPUT)
def chat(options: Options) -> ExitCode:
    """Talk with an agent that remembers the conversation.

    Ctrl-C stops an answer, /exit or Ctrl-D ends the chat. Limits apply to each question. With piped
    input every line is a question, or the answer to what the agent asks.
    """
    from agent_brain.cli.chat import chat

    return chat(options)


@app.command()
@with_options(
    option(
        "--http",
        "[HOST:]PORT",
        "Serve over HTTP instead of stdin and stdout; other computers need --token.",
    ),
    option(
        "--token",
        "TEXT",
        "The bearer token that HTTP clients must send. Prefer AGENT_BRAIN_MCP_TOKEN: other users "
        "of this computer can read options.",
        envvar="AGENT_BRAIN_MCP_TOKEN",
    ),
    *AGENT,
)
@click.argument("net", default="react")
def mcp(http: str | None, token: str | None, options: Options) -> None:
    """Serve an agent over MCP: other programs call its tool, ask.

    NET is a name, a .toml or .yaml file, or module:name. Each client has a conversation of its own.
    """
    from agent_brain.brain import Brain
    from agent_brain.cli.session import build
    from agent_brain.serving import serve

    address = None if http is None else _address(http)
    first: list[Brain] = [build(options)]  # errors are reported now, not to the first client
    with user_errors():
        serve(
            lambda: first.pop() if first else build(options),
            address=address,
            token=token or None,
            servers=options.servers,
            on_ready=lambda url: notify(f"Serving {url}", kind=""),
        )


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise UserError(f"--http {text!r}: write a port, or host:port, such as 127.0.0.1:8000")
    return host.strip("[]") or "127.0.0.1", int(port)


@app.command()
@with_options(
    option(
        "--http",
        "[HOST:]PORT",
        "Where to listen. Other computers need a token.",
        default="127.0.0.1:8000",
        show_default=True,
    ),
    option(
        "--token",
        "TEXT",
        "The bearer token that clients must send. Prefer AGENT_BRAIN_TOKEN: other users of this "
        "computer can read options.",
        envvar="AGENT_BRAIN_TOKEN",
    ),
    option(
        "--users",
        "FILE",
        "A JSON file of users by their tokens, each with sessions of their own.",
        type=click.Path(path_type=Path),
    ),
    option(
        "--host hosts",
        "NAME",
        "A name of the server that requests may have, such as chat.example.org; repeatable. "
        "Without tokens, localhost is one.",
        multiple=True,
    ),
    option(
        "--origin origins",
        "URL",
        "The address of the chat page in browsers where a proxy sends another Host, or of other "
        "pages that may send requests; repeatable.",
        multiple=True,
    ),
    option(
        "--trust-proxy proxies",
        "ADDRESS",
        "A proxy in front of the server, whose X-Forwarded-For says who asks; repeatable.",
        multiple=True,
    ),
    option(
        "--rate",
        "N",
        "Requests of one client per minute.",
        type=click.IntRange(1),
        default=600,
        show_default=True,
    ),
    option(
        "--at-once",
        "N",
        "Requests in progress, streams included.",
        type=click.IntRange(1),
        default=2000,
        show_default=True,
    ),
    option(
        "--max-body",
        "BYTES",
        "The size of a request.",
        type=click.IntRange(1),
        default=5_000_000,
        show_default=True,
    ),
    option(
        "--show-tools",
        None,
        "Show tool calls to clients of the OpenAI, AG-UI and AI SDK endpoints.",
        is_flag=True,
    ),
    option(
        "--queue",
        "MODULE:QUEUE",
        "Let the workers of this RunQueue do the runs; NET is then the name of one of its brains.",
    ),
    *AGENT,
    STORAGE[0],
)
@click.argument("net", default="react")
def serve(
    http: str,
    token: str | None,
    users: Path | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    proxies: tuple[str, ...],
    rate: int,
    at_once: int,
    max_body: int,
    show_tools: bool,  # noqa: FBT001
    queue: str | None,
    options: Options,
) -> None:
    """Serve an agent over HTTP: a chat page, event streams and OpenAI-compatible endpoints.

    NET is a name, a .toml or .yaml file, or module:name. Needs the extra server. SIGTERM and Ctrl-C
    end the runs after their current steps.
    """
    from agent_brain.cli.serve import access_options, make_limits
    from agent_brain.cli.serve import serve as serve_agent

    host, port = _address(http)
    access = access_options(host, token, users, hosts=hosts, origins=origins)
    limits = make_limits(rate=rate, at_once=at_once, max_body=max_body)
    access |= {"show_tools": show_tools, "limits": limits}
    serve_agent(options, (host, port), access, queue=queue, proxies=proxies)


@app.command()
@with_options()
@click.argument("queue", metavar="MODULE:QUEUE")
def worker(queue: str, options: Options) -> ExitCode:
    """Do the runs of a queue, beside any number of other workers.

    MODULE:QUEUE names a RunQueue, as in app:queue or path/to/app.py:queue. Ctrl-C and SIGTERM stop
    it: runs end their step, and other workers continue them.
    """
    from agent_brain.cli.worker import work

    return work(queue)


@app.group(invoke_without_command=True)
@with_options(
    option("--draw", "NAME", "Write this net as a diagram."),
    click.option(
        "--format",
        "language",
        type=click.Choice(["mermaid", "dot", "svg"]),
        default="mermaid",
        show_default=True,
        help="The diagram's format.",
    ),
)
@click.pass_context
def nets(
    context: click.Context,
    draw: str | None,
    language: Literal["mermaid", "dot", "svg"],
    options: Options,
) -> None:
    """List the nets, or draw one."""
    from agent_brain.cli.net_reference import load_net
    from agent_brain.demo import DemoLLM
    from agent_brain.nets import describe_net, net_names

    if context.invoked_subcommand is not None:
        return
    if draw is not None:
        with user_errors():
            net = load_net(draw, DemoLLM())
        write = {"mermaid": net.to_mermaid, "dot": net.to_dot, "svg": net.to_svg}[language]
        sys.stdout.write(write())
    else:
        names = net_names()
        width = max(map(len, names), default=0)
        for name in names:
            print(f"{name.ljust(width)}  {describe_net(name)}".rstrip())


@nets.command()
@with_options()
@click.argument("net")
def check(options: Options) -> ExitCode:
    """Report every problem of NET: a name, a file, or an object in a module (module:name).

    Exit codes: 0 no problems, 1 problems, 2 there is no such net.
    """
    from agent_brain.cli.net_reference import load_net
    from agent_brain.demo import DemoLLM
    from agent_brain.nets import NetDefinitionError

    with user_errors():
        try:
            net = load_net(options.net, DemoLLM())
        except NetDefinitionError as error:
            notify(str(error))
            return ExitCode.FAILED
    states = len(net.states)
    print(f"{net.name}: {states} state{'s' * (states != 1)}, no problems")
    for problem in net.allowed():
        print(f"  allowed: [{problem.code}] {problem.message}")
    return ExitCode.ANSWERED


@nets.command()
@with_options()
def schema(options: Options) -> None:
    """Write the JSON Schema of net files."""
    import json

    from agent_brain.brainfile import file_schema

    print(json.dumps(file_schema(), indent=2))


app.add_command(compare)
app.add_command(sessions)
