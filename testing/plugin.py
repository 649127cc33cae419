"""The pytest plugin: fixtures, and an option that forbids real models.

pytest loads it wherever this library is installed, including in unrelated test suites. So it
imports only pytest until a fixture is used, adds no autouse fixture, and forbids nothing unless a
project opts in (``agent_brain_real_models = "forbid"``).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from agent_brain.testing import Cassette, ExperimentRunner, FakeMemory, ScriptedLLM, Turn

_LONGEST = 100  # characters of the name of a test in that of its folder
_passed = pytest.StashKey[bool]()
_experiments = pytest.StashKey["ExperimentRunner"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the command line and the configuration file."""
    group = parser.getgroup("agent-brain", "Agent Brain")
    group.addoption(
        "--cassette",
        choices=("replay", "record", "auto"),
        default="replay",
        help="mode of the cassette fixture: replay (default), record, or auto: record what is "
        "missing",
    )
    group.addoption(
        "--real-models",
        choices=("forbid", "allow"),
        default=None,
        help="whether tests may call real models; default: agent_brain_real_models in the "
        "configuration file",
    )
    group.addoption(
        "--experiment-folder",
        metavar="DIR",
        default=None,
        help="keep the experiments of the experiment fixture in this folder, and continue those "
        "that it holds; default: the temporary folder of each test",
    )
    parser.addini(
        "agent_brain_real_models",
        "forbid or allow (default) calls of real models in tests without the mark real_models",
        default="allow",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks, and the ban of real models if it is enabled."""
    config.addinivalue_line("markers", "real_models: this test may call real models")
    config.addinivalue_line(
        "markers", "cassette(name=None, match='strict', scrub=()): options of the fixture cassette"
    )
    policy = config.getoption("--real-models") or config.getini("agent_brain_real_models")
    if policy not in ("forbid", "allow"):
        raise pytest.UsageError(
            f"agent_brain_real_models = {policy!r}: it must be 'forbid' or 'allow'"
        )
    if policy == "forbid":
        config.pluginmanager.register(_Ban(), "agent-brain-ban")


class _Ban:
    """A plugin that is registered only if real models are forbidden."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Forbid real models in a test and its fixtures, unless it is marked."""
        recording = "cassette" in getattr(item, "fixturenames", ())
        recording = recording and item.config.getoption("--cassette") != "replay"
        if recording or item.get_closest_marker("real_models"):
            return (yield)
        from agent_brain.testing.models import no_real_models

        with no_real_models():
            return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Store whether the test itself passed, for the fixtures that check it afterwards.

    The reports of its experiments become sections of the report of a test that failed.
    """
    report = yield
    if report.when == "call":
        item.stash[_passed] = report.passed
        if report.failed and (experiments := item.stash.get(_experiments, None)) is not None:
            report.sections += experiments.sections()
    return report


@pytest.fixture
def scripted_llm(request: pytest.FixtureRequest) -> Iterator[Callable[..., ScriptedLLM]]:
    """Return a function that makes scripted models, such as ``scripted_llm(["Hello."])``.

    It takes the arguments of :class:`agent_brain.testing.ScriptedLLM`. A test that passed fails if
    turns are left; ``complete=False`` allows that.
    """
    from agent_brain.testing.models import ScriptedLLM

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
    """Return a function that makes fake memories: ``fake_memory("the goal", tools=[add])``."""
    from agent_brain.testing.fake_memory import FakeMemory

    return FakeMemory


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """Run the test with its cassette, a file in ``cassettes/`` beside the test module.

    ``pytest --cassette=record`` makes the real calls and writes the file if the test passes.
    Otherwise the file is replayed, and the test fails if recorded calls are not made. The mark
    ``cassette(name=…, match=…, scrub=…)`` sets options; tests with the same name share a file.
    """
    from agent_brain.testing.cassettes import Cassette

    mode: Any = request.config.getoption("--cassette")
    mark = request.node.get_closest_marker("cassette")
    options = dict(mark.kwargs) if mark else {}
    name = options.pop("name", None) or (mark.args[0] if mark and mark.args else None)
    path = request.path.parent / "cassettes" / (name or _file_name(request))
    if mode == "replay" and not path.exists():
        root = request.config.rootpath
        shown = path.relative_to(root) if path.is_relative_to(root) else path
        pytest.fail(
            f"There is no cassette {shown}: record it with "
            f"'pytest --cassette=record {request.node.nodeid}'",
            pytrace=False,
        )
    with Cassette(path, mode, **options) as tape:
        yield tape
        if request.node.stash.get(_passed, False):
            tape.assert_complete()
        else:
            tape.discard()


@pytest.fixture
def experiment(request: pytest.FixtureRequest, tmp_path: Path) -> ExperimentRunner:
    """Return a function that runs experiments.

    ::

        report = await experiment(nets="react", memories=["messages", "vector"], tasks=TASKS)

    It takes the arguments of :class:`agent_brain.experiments.Experiment`; ``experiment.run_sync``
    is for tests that are not async. Each runs in a folder below ``tmp_path``, which gets report.md
    and report.html; ``pytest --experiment-folder=DIR`` keeps them, and continues what is there. A
    test that fails shows the reports.
    """
    from agent_brain.testing.experiment_runner import ExperimentRunner

    kept = request.config.getoption("--experiment-folder")
    folder = Path(kept) / _folder(request) if kept else tmp_path / "experiments"
    runner = request.node.stash[_experiments] = ExperimentRunner(folder)
    return runner


def _file_name(request: pytest.FixtureRequest) -> str:
    """Return ``test_module.Class.test_name[params].json``, the same on every event loop."""
    node = request.node
    params = getattr(getattr(node, "callspec", None), "params", {})
    test = node.originalname if set(params) == {"anyio_backend"} else node.name
    return f"{_name(request, test)}.json"


def _folder(request: pytest.FixtureRequest) -> Path:
    """Return a path for the test below those of its module, and of no other test."""
    path, root, test = request.path, request.config.rootpath, request.node.name
    above = path.parent.relative_to(root) if path.is_relative_to(root) else Path()
    name = _name(request, test)
    if test not in name or len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}-{hashlib.sha256(test.encode()).hexdigest()[:8]}"
    return above / name


def _name(request: pytest.FixtureRequest, test: str) -> str:
    """Return ``test_module.Class.test``, in characters that file names may have."""
    parts = [request.path.stem, *([request.cls.__name__] if request.cls else []), test]
    return re.sub(r"[^\w.\-\[\]]+", "_", ".".join(parts))
