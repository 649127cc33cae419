"""Fixtures for all tests."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn.server
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import HealthCheck, settings

from tests.support.thorough import THOROUGH, examples

settings.register_profile(  # do not fail on a busy machine
    "agent-brain",
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("agent-brain")

RAM = Path("/dev/shm")
if RAM.is_dir() and shutil.disk_usage(RAM).free > 2**30:  # writing to disks makes tests wait
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(RAM))

# No test asks a server on the internet. To read the authorities of all takes 25 ms, and is done
# for each client that a test, or a program that it starts, makes: also if the caller names a file.
os.environ.setdefault("CALLERS_SSL_CERT_FILE", os.environ.get("SSL_CERT_FILE", ""))
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("support") / "authority.pem")

# By default httpx waits five seconds for an answer, which a busy machine may miss.
for wait in ("connect", "read", "write", "pool"):
    setattr(DEFAULT_TIMEOUT_CONFIG, wait, 60.0)

# A shell that starts the tests in the background lets them ignore Ctrl-C, and what they start too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop of tests that are marked ``anyio``: see :func:`pytest_generate_tests`."""
    return str(request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests on asyncio, and on trio if they are marked ``also_on_trio`` or in CI."""
    test = metafunc.definition
    if THOROUGH or "anyio_backend" not in metafunc.fixturenames:
        return
    chosen = any("anyio_backend" in mark.args[0] for mark in test.iter_markers("parametrize"))
    if not chosen and not test.get_closest_marker("also_on_trio"):
        test.add_marker(pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests that are marked ``thorough`` to CI, and to those who name the mark.

    Those that are marked ``peers`` are left to those who name the mark, in CI too.
    """
    chosen = config.option.markexpr
    marks = [mark for mark in ("peers", "thorough") if mark not in chosen]
    if THOROUGH and "thorough" in marks:
        marks.remove("thorough")
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (left_out if any(map(item.get_closest_marker, marks)) else kept).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


@pytest.fixture(scope="session", autouse=True)
def _servers_end_promptly() -> Generator[None]:
    """Servers in this process look every 10 ms whether they are to end; uvicorn waits 100 ms."""

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 10)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            uvicorn.server, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": sleep})
        )
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect garbage less often: by default it takes a tenth of the time, and more here."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()  # what is there now stays
        gc.set_threshold(10_000, *gc.get_threshold()[1:])
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI everything that a test may need is there: a skipped test has failed."""
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, which CI does not allow: {reason}"
    return report
