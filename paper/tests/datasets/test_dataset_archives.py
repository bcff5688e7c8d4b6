"""Reading archives that may be broken or hostile."""

from __future__ import annotations

import io
import re
import tarfile

import numpy as np
import pytest

from paper.datasets.files import read_members

ANY = re.compile(r".*")
# noise, so that a share of the compressed file is about that share of the content
MEMBERS = {f"a/{number}": np.random.default_rng(number).bytes(5000) for number in (1, 2)}


@pytest.mark.parametrize("suffix", ["xz", "gz", "bz2"])
def test_members_come_with_their_content(tmp_path, write_archive, suffix):
    path = write_archive(tmp_path / f"x.{suffix}", {**MEMBERS, "other": b"-"})
    found = read_members(path, re.compile(r"a/(\d)"))
    assert {match[1]: content for match, content in found} == {"1": MEMBERS["a/1"], "2": MEMBERS["a/2"]}


@pytest.mark.parametrize("suffix", ["xz", "gz", "bz2"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_truncated_archive_is_a_clear_error(tmp_path, write_archive, suffix, share):
    path = write_archive(tmp_path / f"x.{suffix}", MEMBERS)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match="broken archive"):
        read_members(path, ANY)


def test_file_that_is_no_archive_is_a_clear_error(tmp_path):
    path = tmp_path / "x.tar.gz"
    path.write_text("<html>404</html>" * 100)
    with pytest.raises(ValueError, match="broken archive"):
        read_members(path, ANY)


def test_nothing_is_written_and_links_are_not_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("s")
    path = tmp_path / "sub" / "x.tar"
    path.parent.mkdir()
    with tarfile.open(path, "w") as archive:
        outside = tarfile.TarInfo("../outside")
        outside.size = 1
        archive.addfile(outside, io.BytesIO(b"x"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, str(secret)
        archive.addfile(link)
    found = read_members(path, ANY)
    assert [match[0] for match, _ in found] == ["../outside"]
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["secret", "sub", "x.tar"]


def test_a_member_that_claims_to_be_longer_than_the_archive_is_refused(tmp_path):
    member = tarfile.TarInfo("a/1")
    member.size = 10**5
    path = tmp_path / "x.tar"
    path.write_bytes(member.tobuf() + bytes(2048))
    with pytest.raises(ValueError, match="broken archive"):
        read_members(path, ANY)
