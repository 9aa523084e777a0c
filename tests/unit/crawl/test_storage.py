"""Files that are written whole or not at all, inside their folder."""

import pytest

from pageslots_agent.storage import LocalFolder, StorageError, local_path, open_storage


def test_a_file_is_read_back_and_listed(tmp_path):
    storage = LocalFolder(tmp_path / "out")
    storage.put_atomic("a.jsonl", [b"1\n", b"2\n"])
    storage.put_atomic("captures/b.png", [b"x"])
    assert storage.get("a.jsonl") == b"1\n2\n"
    assert storage.list() == ["a.jsonl"]


def test_nothing_is_there_before_it_is_written(tmp_path):
    storage = LocalFolder(tmp_path / "out")
    assert storage.list() == []
    assert storage.get("a.jsonl") is None
    storage.delete("a.jsonl")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    storage = LocalFolder(tmp_path)
    storage.put_atomic("a.jsonl", [b"old"])

    def broken():
        yield b"new"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        storage.put_atomic("a.jsonl", broken())
    assert storage.get("a.jsonl") == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_what_a_killed_writer_left_half_written_is_cleared_away(tmp_path):
    (tmp_path / ".pageslots-1-1").write_bytes(b"half")
    assert LocalFolder(tmp_path).list() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "a/../b", "a/b/c", ".hidden", "a\n", "", "a" * 200, "captures/.x"]
)
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    with pytest.raises(StorageError):
        LocalFolder(tmp_path / "out").put_atomic(name, [b"x"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/a/b", "/a/b"),
        ("file:///a/b%20c", "/a/b c"),
        ("file:/a", "/a"),
        ("s3://b/k", None),
        ("file://host/a", None),
    ],
)
def test_a_uri_names_a_path(uri, path):
    found = local_path(uri)
    assert (None if found is None else str(found)) == path


@pytest.mark.parametrize(
    ("uri", "said"),
    [("s3://bucket/x", "scheme 's3' is not supported"), ("out/x", "expected an absolute path")],
)
def test_an_output_that_can_not_be_used_says_why(uri, said):
    with pytest.raises(StorageError, match=said):
        open_storage(uri)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("x")
    with pytest.raises(NotADirectoryError):
        LocalFolder(tmp_path / "out").prepare()
