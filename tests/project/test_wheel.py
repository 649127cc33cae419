"""The wheel contains exactly the tree: the list of packages in pyproject.toml is explicit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath

import pytest

from tests.project.repository import PACKAGE_FOLDERS, ROOT, repository_files

pytestmark = pytest.mark.thorough

METADATA = ("pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel_files(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names of the files in a wheel built from a clean copy of the tree, metadata left out."""
    directory = tmp_path_factory.mktemp("wheel")
    checkout = directory / "checkout"
    for name in [*METADATA, *expected_files().values()]:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    command += [str(directory), *build_options(), str(checkout)]
    done = subprocess.run(
        command, env=build_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = directory.glob("agent_brain-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def build_options() -> list[str]:
    """Build with the environment's setuptools if it will do: that needs no network."""
    try:
        recent = int(version("setuptools").split(".")[0]) >= 77
    except PackageNotFoundError:
        recent = False
    return ["--no-build-isolation"] if recent else []


def build_environment() -> dict[str, str]:
    """Without that, pip may download setuptools: it asks a server whom the tests do not know."""
    others = {k: v for k, v in os.environ.items() if k != "SSL_CERT_FILE"}
    callers = os.environ["CALLERS_SSL_CERT_FILE"]
    return others | {"SSL_CERT_FILE": callers} if callers else others


def expected_files() -> dict[str, str]:
    """Every file in a package folder: its name in a wheel, and in the tree."""
    expected = {}
    for name in repository_files():
        folder, _, rest = name.partition("/")
        if rest and folder in PACKAGE_FOLDERS:
            package = PACKAGE_FOLDERS[folder].replace(".", "/")
            expected[f"{package}/{rest}"] = name
    return expected


def test_everything_in_the_package_folders_is_in_the_wheel(wheel_files: set[str]) -> None:
    missing = {name: source for name, source in expected_files().items() if name not in wheel_files}

    assert not missing, "Not in the wheel:\n" + "\n".join(
        f"  {source}: {advice(name)}" for name, source in sorted(missing.items())
    )


def advice(name: str) -> str:
    if name.endswith(".py"):
        package = ".".join(PurePosixPath(name).parent.parts)
        return f'add "{package}" to [tool.setuptools] packages in pyproject.toml'
    return "list it under [tool.setuptools.package-data] in pyproject.toml"


def test_the_wheel_has_nothing_else(wheel_files: set[str]) -> None:
    assert sorted(wheel_files - expected_files().keys()) == []


def test_the_wheel_says_that_it_is_typed(wheel_files: set[str]) -> None:
    assert "agent_brain/py.typed" in wheel_files


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {Path(name).parent for name in expected_files().values() if name.endswith(".py")}

    assert [
        str(folder) for folder in sorted(folders) if not (ROOT / folder / "__init__.py").is_file()
    ] == []
