"""Files that are written whole or not at all."""

import os

import pytest

from agent_brain.common.files import replace_file


@pytest.fixture
def private_umask():
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize(("mode", "expected"), [(0o600, 0o600), (0o644, 0o600)])
def test_a_file_is_no_more_open_than_the_umask_says(tmp_path, private_umask, mode, expected):
    file = tmp_path / "cases.jsonl"
    file.write_text("before")
    replace_file(file, "after\n", mode=mode)
    assert file.read_bytes() == b"after\n"
    assert file.stat().st_mode & 0o777 == expected


def test_a_text_that_cannot_be_written_changes_nothing(tmp_path):
    file = tmp_path / "file"
    file.write_text("before")
    with pytest.raises(UnicodeEncodeError):
        replace_file(file, "\ud800")
    assert [*tmp_path.iterdir()] == [file]
    assert file.read_text() == "before"


def test_a_database_is_not_replaced(tmp_path):
    file = tmp_path / "journal.db"
    file.write_bytes(b"SQLite format 3\0")
    with pytest.raises(FileExistsError, match="is not replaced"):
        replace_file(file, "text")
    assert file.read_bytes() == b"SQLite format 3\0"
