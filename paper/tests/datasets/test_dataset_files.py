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


def get(file, data_home=None, parse=read, download_if_missing=True):
    return obtain([file], parse, data_home=data_home, download_if_missing=download_if_missing)


def put(directory: Path, content: bytes = CONTENT) -> Path:
    path = directory / "set" / "file.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


def files_below(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def test_data_home_comes_before_variable_before_cache(no_data, tmp_path, monkeypatch):
    home, variable = tmp_path / "home", tmp_path / "variable"
    put(home, b"home"), put(variable, b"variable"), put(no_data, b"cache")
    file = DataFile("set/file.bin", None)
    assert get(file) == b"cache"
    monkeypatch.setenv(files.DATA_VARIABLE, str(variable))
    assert get(file) == b"variable"
    assert get(file, home) == b"home"
    assert get(file, str(home)) == b"home"


def test_file_missing_from_data_home_is_still_looked_for_elsewhere(no_data, tmp_path):
    put(no_data)
    assert get(DataFile("set/file.bin", SHA256), tmp_path / "empty") == CONTENT


def test_first_of_interchangeable_files_that_is_there_is_used(no_data):
    put(no_data)
    files = [DataFile("set/other.bin", SHA256), DataFile("set/file.bin", SHA256)]
    assert obtain(files, read, data_home=None, download_if_missing=False) == CONTENT


@pytest.mark.parametrize("with_home", [False, True])
def test_download_goes_to_data_home_or_cache_and_is_used_from_there(no_data, tmp_path, server, with_home, capfd):
    url, directory = server
    (directory / "f").write_bytes(CONTENT)
    home = tmp_path / "home" if with_home else None
    file = DataFile("set/file.bin", SHA256, (f"{url}/f",))
    assert get(file, home) == CONTENT
    assert files_below(home or no_data) == [(home or no_data) / "set" / "file.bin"]
    assert "100%" in capfd.readouterr().err  # the progress bar
    (directory / "f").unlink()
    assert get(file, home) == CONTENT


def test_second_address_is_tried_when_the_first_fails(no_data, server):
    url, directory = server
    (directory / "f").write_bytes(CONTENT)
    assert get(DataFile("set/file.bin", SHA256, (f"{url}/gone", f"{url}/f"))) == CONTENT


def test_wrong_checksum_of_a_download_leaves_nothing_behind(no_data, server):
    url, directory = server
    (directory / "f").write_bytes(CONTENT + b"x")
    with pytest.raises(ValueError, match="does not match the known hash"):
        get(DataFile("set/file.bin", SHA256, (f"{url}/f",)))
    assert files_below(no_data) == []


def test_content_that_does_not_parse_leaves_nothing_behind(no_data, server):
    url, directory = server
    (directory / "f").write_bytes(CONTENT)

    def refuse(path):
        raise ValueError("not the rows we know")

    with pytest.raises(ValueError, match="not the rows"):
        get(DataFile("set/file.bin", None, (f"{url}/f",)), parse=refuse)
    assert files_below(no_data) == []


def test_broken_connection_leaves_nothing_behind_and_says_what_to_do(no_data, server):
    url, directory = server
    (directory / "f").write_bytes(CONTENT * 100)
    with pytest.raises(FileNotFoundError, match="could not be downloaded") as caught:
        get(DataFile("set/file.bin", SHA256, (f"{url}/cut/f",)))
    assert "MTCLUST_DATA" in str(caught.value)
    assert f"{url}/cut/f" in str(caught.value)
    assert files_below(no_data) == []


def test_interrupted_download_leaves_nothing_behind(no_data, monkeypatch):
    class Interrupted:
        def __init__(self, **options):
            pass

        def __call__(self, url, path, manager):
            Path(path).write_bytes(CONTENT[:10])
            raise KeyboardInterrupt

    monkeypatch.setattr(pooch, "HTTPDownloader", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        get(DataFile("set/file.bin", SHA256, ("http://127.0.0.1/f",)))
    assert files_below(no_data) == []


def test_damaged_local_file_is_an_error_and_not_replaced(no_data):
    path = put(no_data, CONTENT[:-1])
    with pytest.raises(ValueError, match=r"wrong checksum.*delete it"):
        get(DataFile("set/file.bin", SHA256, ("http://127.0.0.1/f",)))
    assert path.read_bytes() == CONTENT[:-1]


def test_missing_file_without_download_says_what_to_do(no_data, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        get(DataFile("set/file.bin", SHA256, ("http://here/f",)), tmp_path / "home", download_if_missing=False)
    message = str(caught.value)
    for part in ("set/file.bin", str(tmp_path / "home"), "http://here/f", "data_home", "MTCLUST_DATA"):
        assert part in message


@pytest.mark.parametrize("module", ["pooch", "tqdm"])
def test_missing_package_names_the_extra_to_install(no_data, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r'pip install "mtclust\[data\]"'):
        get(DataFile("set/file.bin", SHA256, ("http://127.0.0.1/f",)))


def test_local_files_need_no_pooch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.setenv(files.DATA_VARIABLE, str(tmp_path))
    put(tmp_path)
    assert get(DataFile("set/file.bin", SHA256)) == CONTENT
    assert files.search_directories(None) == [tmp_path]


def test_cache_is_pooch_directory(monkeypatch):
    monkeypatch.delenv(files.DATA_VARIABLE, raising=False)
    assert files.search_directories(None) == [Path(pooch.os_cache("mtclust"))]


@pytest.mark.parametrize(
    ("asked", "sent_on_to", "refused"),
    [
        ("https://here/f", "http://there/f", True),
        ("https://here/f", "ftp://there/f", True),
        ("https://here/f", "https://there/f", False),
        ("https://here/f", "/elsewhere", False),
        ("http://127.0.0.1/f", "http://127.0.0.1/g", False),
    ],
)
def test_an_encrypted_download_is_not_sent_on_to_an_open_line(asked, sent_on_to, refused):
    requests = pytest.importorskip("requests")
    response = requests.Response()
    response.status_code, response.url, response.headers["location"] = 302, asked, sent_on_to
    if refused:
        with pytest.raises(OSError, match=f"the server sends on to {sent_on_to}, which is not encrypted"):
            files.refuse_open_line(response)
    else:
        files.refuse_open_line(response)


def test_the_check_is_asked_about_every_answer_on_the_way(no_data, server, monkeypatch):
    url, directory = server
    (directory / "f").write_bytes(CONTENT)
    asked = []
    monkeypatch.setattr(files, "refuse_open_line", lambda response, *_, **__: asked.append(response.url))
    assert get(DataFile("set/file.bin", SHA256, (f"{url}/f",))) == CONTENT
    assert asked == [f"{url}/f"]


@pytest.mark.parametrize("largest", [5000, len(CONTENT)])
def test_a_download_that_grows_too_large_is_ended_and_leaves_nothing_behind(no_data, server, monkeypatch, largest):
    url, directory = server
    (directory / "f").write_bytes(CONTENT)
    monkeypatch.setattr(files, "LARGEST", largest)
    file = DataFile("set/file.bin", SHA256, (f"{url}/f",))
    if largest >= len(CONTENT):
        assert get(file) == CONTENT
        return
    with pytest.raises(FileNotFoundError, match="it sends more than the 0 MiB that a file may have"):
        get(file)
    assert files_below(no_data) == []


def test_the_progress_bar_ends_what_grows_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST", 5)
    (tmp_path / "f").write_bytes(CONTENT)
    with files._bounded_bar(tmp_path / "f") as bar, pytest.raises(OSError, match="it sends more than the 0 MiB"):
        bar.update(1)
