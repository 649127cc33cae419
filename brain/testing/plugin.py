"""The pytest plugin: fixtures, and a switch that forbids real models.

pytest loads it wherever this library is installed, also into test suites that have nothing to do
with it. So it imports nothing but pytest until a fixture is used, adds no autouse fixture, and
forbids nothing unless a project says so (``agent_brain_real_models = "forbid"``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from agent_brain.testing import Cassette, FakeMemory, ScriptedLLM, Turn

_passed = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options on the command line and in the configuration file."""
    group = parser.getgroup("agent-brain", "Agent Brain")
    group.addoption(
        "--cassette",
        choices=("replay", "record", "auto"),
        default="replay",
        help="what the cassette fixture does: replay (default), record anew, or auto: record what "
        "is missing",
    )
    group.addoption(
        "--real-models",
        choices=("forbid", "allow"),
        default=None,
        help="whether tests may call real models; default: agent_brain_real_models in the "
        "configuration file",
    )
    parser.addini(
        "agent_brain_real_models",
        "forbid or allow (default) calls of real models in tests without the mark real_models",
        default="allow",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Tell the marks; set up the ban, if it is wanted."""
    config.addinivalue_line("markers", "real_models: this test may call real models")
    config.addinivalue_line(
        "markers",
        "cassette(name=None, match='strict', scrub=()): options of the fixture cassette",
    )
    policy = config.getoption("--real-models") or config.getini("agent_brain_real_models")
    if policy not in ("forbid", "allow"):
        raise pytest.UsageError(
            f"agent_brain_real_models = {policy!r}: it must be 'forbid' or 'allow'"
        )
    if policy == "forbid":
        config.pluginmanager.register(_Ban(), "agent-brain-ban")


class _Ban:
    """Registered only where real models are forbidden."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Forbid real models around a test and its fixtures, unless it is marked."""
        recording = "cassette" in getattr(item, "fixturenames", ()) and _records(item.config)
        if recording or item.get_closest_marker("real_models"):
            return (yield)
        from agent_brain.testing.guard import no_real_models

        with no_real_models():
            return (yield)


def _records(config: pytest.Config) -> bool:
    return str(config.getoption("--cassette")) != "replay"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep whether the test itself passed, for the fixtures that look back on it."""
    report = yield
    if report.when == "call":
        item.stash[_passed] = report.passed
    return report


@pytest.fixture
def scripted_llm(request: pytest.FixtureRequest) -> Iterator[Callable[..., ScriptedLLM]]:
    """A function that makes scripted models, such as ``scripted_llm(["Hello."])``.

    They take what :class:`agent_brain.testing.ScriptedLLM` takes. After a test that passed, a
    script with turns left fails it; ``complete=False`` allows that.
    """
    from agent_brain.testing.scripted import ScriptedLLM

    watched: list[ScriptedLLM] = []

    def make(turns: Iterable[Turn] = (), *, complete: bool = True, **options: Any) -> ScriptedLLM:
        llm = ScriptedLLM(turns, **options)
        if complete:
            watched.append(llm)
        return llm

    yield make
    if request.node.stash.get(_passed, False):
        for llm in watched:
            llm.assert_complete()


@pytest.fixture
def fake_memory() -> type[FakeMemory]:
    """A function that makes fake memories, as in ``fake_memory("the goal", tools=[add])``."""
    from agent_brain.testing.fake_memory import FakeMemory

    return FakeMemory


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """A cassette around the test, in ``cassettes/`` beside its file, one for each test.

    ``pytest --cassette=record`` makes the real calls and writes the file if the test passes;
    without it the file is replayed, and recorded calls that were not made fail the test. The mark
    ``cassette(name=…, match=…, scrub=…)`` sets options; tests with one name share a file.
    """
    from agent_brain.testing.cassettes import Cassette

    mode: Any = request.config.getoption("--cassette")
    mark = request.node.get_closest_marker("cassette")
    options = dict(mark.kwargs) if mark else {}
    name = options.pop("name", None) or (mark.args[0] if mark and mark.args else None)
    path = request.path.parent / "cassettes" / (name or _file_name(request))
    if mode == "replay" and not path.exists():
        pytest.fail(
            f"There is no cassette {_shown(path, request)}: record it with "
            f"'pytest --cassette=record {request.node.nodeid}'",
            pytrace=False,
        )
    with Cassette(path, mode, **options) as tape:
        yield tape
        if not request.node.stash.get(_passed, False):
            tape.discard()
        else:
            tape.assert_complete()


def _file_name(request: pytest.FixtureRequest) -> str:
    """``test_module.Class.test_name[params].json``; the same on every event loop."""
    node = request.node
    params = getattr(getattr(node, "callspec", None), "params", {})
    name = node.originalname if set(params) == {"anyio_backend"} else node.name
    parts = [request.path.stem, *([request.cls.__name__] if request.cls else []), name]
    return re.sub(r"[^\w.\-\[\]]+", "_", ".".join(parts)) + ".json"


def _shown(path: Path, request: pytest.FixtureRequest) -> str:
    root = request.config.rootpath
    return str(path.relative_to(root) if path.is_relative_to(root) else path)
