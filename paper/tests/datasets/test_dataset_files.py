"""Finding, downloading and checking files."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from paper.datasets import files
from paper.datasets.files import DataFile, obtain

pooch = pytest.importorskip("pooch", reason='downloads need pip install "mtclust[data]"')

CONTENT = b"0123456789" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def read(path: Path) -> bytes:
    return path.read_bytes()


def get(file, parse=read):
    return obtain([file], parse)


def put(directory: Path, content: bytes = CONTENT) -> Path:
    path = directory / "set" / "file.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


def files_below(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def test_the_variable_comes_before_the_cache(no_data, server, tmp_path, monkeypatch):
    url, directory = server
    (directory / "f").write_bytes(b"server")
    file = DataFile("set/file.bin", None, f"{url}/f")
    put(no_data, b"cache")
    assert get(file) == b"cache"
    put(tmp_path / "variable", b"variable")
    monkeypatch.setenv(files.DATA_VARIABLE, str(tmp_path / "variable"))
    assert get(file) == b"variable"


def test_first_of_interchangeable_files_that_is_there_is_used(no_data, tmp_path, monkeypatch):
    put(tmp_path)
    monkeypatch.setenv(files.DATA_VARIABLE, str(tmp_path))
    assert obtain([DataFile("set/other.bin", SHA256), DataFile("set/file.bin", SHA256)], read) == CONTENT


def test_download_goes_to_the_cache_and_is_used_from_there(no_data, server):
    url, directory = server
    (directory / "f").write_bytes(CONTENT)
    file = DataFile("set/file.bin", SHA256, f"{url}/f")
    assert get(file) == CONTENT
    assert files_below(no_data) == [no_data / "set" / "file.bin"]
    (directory / "f").unlink()
    assert get(file) == CONTENT


def test_wrong_checksum_of_a_download_leaves_nothing_behind(no_data, server):
    url, directory = server
    (directory / "f").write_bytes(CONTENT + b"x")
    with pytest.raises(ValueError, match="does not match the known hash"):
        get(DataFile("set/file.bin", SHA256, f"{url}/f"))
    assert files_below(no_data) == []


def test_content_that_does_not_parse_leaves_nothing_behind(no_data, server):
    url, directory = server
    (directory / "f").write_bytes(CONTENT)

    def refuse(path):
        raise ValueError("not the rows we know")

    with pytest.raises(ValueError, match="not the rows"):
        get(DataFile("set/file.bin", None, f"{url}/f"), refuse)
    assert files_below(no_data) == []


def test_broken_connection_leaves_nothing_behind_and_says_what_to_do(no_data, server):
    url, directory = server
    (directory / "f").write_bytes(CONTENT * 100)
    with pytest.raises(FileNotFoundError, match="could not be downloaded") as caught:
        get(DataFile("set/file.bin", SHA256, f"{url}/cut/f"))
    assert "MTCLUST_DATA" in str(caught.value)
    assert f"{url}/cut/f" in str(caught.value)
    assert files_below(no_data) == []


def test_damaged_local_file_is_an_error_and_not_replaced(no_data, tmp_path, monkeypatch):
    path = put(tmp_path, CONTENT[:-1])
    monkeypatch.setenv(files.DATA_VARIABLE, str(tmp_path))
    with pytest.raises(ValueError, match="wrong checksum"):
        get(DataFile("set/file.bin", SHA256, "http://127.0.0.1/f"))
    assert path.read_bytes() == CONTENT[:-1]


def test_missing_package_names_the_extra_to_install(no_data, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[data\]"'):
        get(DataFile("set/file.bin", SHA256, "http://127.0.0.1/f"))


def test_local_files_need_no_pooch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.setenv(files.DATA_VARIABLE, str(tmp_path))
    put(tmp_path)
    assert get(DataFile("set/file.bin", SHA256)) == CONTENT
