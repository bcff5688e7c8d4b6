"""Files of many kinds: the same table whatever it is written in, and errors that name the file."""

import bz2
import gzip
import lzma

import pandas as pd
import pytest
from table_helpers import run_cli, shop_rows, write_table

from mtclust.app.tables.table import read_file, read_tables
from mtclust.exceptions import TableError
from mtclust.util.messages import on_command_line

ROWS = shop_rows(rows=6)
FRAME = pd.DataFrame(ROWS)
TEXT = FRAME.to_csv(index=False).encode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", TEXT),
        ("t.tsv", FRAME.to_csv(index=False, sep="\t").encode()),
        ("t.txt", FRAME.to_csv(index=False, sep=";").encode()),
        ("t.csv.gz", gzip.compress(TEXT)),
        ("t.csv.bz2", bz2.compress(TEXT)),
        ("t.csv.xz", lzma.compress(TEXT)),
        ("t.csv", TEXT.decode().encode("utf-16")),
    ],
)
def test_the_same_table_in_many_forms(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    frame = read_file(path).frame
    assert list(frame) == list(FRAME)
    assert frame.astype(str).to_numpy().tolist() == FRAME.astype(str).to_numpy().tolist()


def test_parquet_and_excel(tmp_path):
    FRAME.to_parquet(tmp_path / "t.parquet")
    FRAME.to_excel(tmp_path / "t.xlsx", index=False)
    for name in ("t.parquet", "t.xlsx"):
        assert read_file(tmp_path / name).frame["shop"].tolist() == FRAME["shop"].tolist()


def test_the_first_sheet_of_an_excel_file_is_read_file(tmp_path):
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        FRAME.to_excel(book, sheet_name="first", index=False)
        FRAME[["shop"]].to_excel(book, sheet_name="second", index=False)
    found = read_file(tmp_path / "t.xlsx")
    assert list(found.frame) == list(FRAME)
    assert list(found.notes) == ["t.xlsx: the sheet 'first' was read, not 'second'; save another one as CSV."]


def test_what_was_guessed_is_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("Stra\u00dfe;size\nGarten;1\n".encode("cp1252"))
    found = read_file(path)
    assert list(found.frame) == ["Straße", "size"]
    assert list(found.notes) == [
        "t.csv is not UTF-8; it was read as cp1252. If letters look wrong, save it as UTF-8.",
        "t.csv: the separator is ';'.",
    ]
    path.write_bytes(b"name,size\n\x81\x8d,1\n")  # no character of cp1252
    with pytest.raises(TableError, match=r"t\.csv is no text; .* If it is text, save it as UTF-8"):
        read_file(path)


def test_common_columns_of_several_files(tmp_path, capsys):
    paris = write_table(tmp_path / "paris.csv", [{**row, "note": "x"} for row in shop_rows(["Paris"])])
    rome = write_table(tmp_path / "rome.csv", [{**row, "extra": "y"} for row in shop_rows(["Rome"])])
    command = ["fit", paris, rome, "--key", "customer,shop,truth", "--clusters", 3, "--kernel", "linear"]
    assert run_cli(*command, "--sizes", "balanced", "--out", tmp_path / "out") == 0
    told = "Columns that only some of the tables have were left out: 'extra', 'note'."
    assert told in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv.gz", b"not packed", "t.csv.gz is damaged: it cannot be unpacked"),
        ("t.csv.xz", b"not packed", "t.csv.xz is damaged: it cannot be unpacked"),
        ("t.csv.gz", gzip.compress(TEXT, mtime=0)[:40], "t.csv.gz is damaged: it cannot be unpacked"),
        ("t.bin", b"\x00\xff\xfe\x00\x81", "t.bin is no text"),
        ("t.csv", b"  \n", "t.csv is empty"),
        ("t.csv", b"a,b\n", "t.csv has a header but no rows"),
        ("t.xls", b"\xd0\xcf\x11\xe0\x00", "t.xls is no text; give a table as CSV, TSV, Parquet or Excel"),
        ("t.zip", b"PK\x03\x04\x00", "t.zip is no text"),
        ("t.dat", b"a\x00b,\n", "t.dat is no text; give a table as CSV, TSV, Parquet or Excel"),
        ("t.xlsx", b"PK", "t.xlsx cannot be read as Excel"),
        ("t.csv", b"a,b\n1,2\n3,4,5\n", "t.csv cannot be read as a table with separator ','"),
        ("t.csv", b"a,a\n1,2\n", "t.csv has more than one column named 'a'"),
        ("t.parquet", b"a,b\n1,2\n", "t.parquet cannot be read as Parquet: .* A table of text is CSV or TSV."),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TableError, match=words.replace(".", r"\.").replace(r"\.*", ".*")):
        read_file(path)


def test_what_is_no_file(tmp_path):
    with pytest.raises(TableError, match=r"none\.csv: there is no such file; give a table as CSV"):
        read_file(tmp_path / "none.csv")
    with pytest.raises(TableError, match="is a directory; give a table as CSV, TSV, Parquet or Excel"):
        read_file(tmp_path)


def test_messages_name_options_as_the_user_writes_them(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT)
    with pytest.raises(TableError, match=r"^task is needed with a single file"):
        read_tables([read_file(path)], None)
    with on_command_line(), pytest.raises(TableError, match=r"^--task-column is needed with a single file"):
        read_tables([read_file(path)], None)


def test_a_compressed_file_is_a_task_named_without_its_endings(tmp_path):
    for name in ("paris", "rome.2024"):
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(TEXT))
    table = read_tables([read_file(tmp_path / "paris.csv.gz"), read_file(tmp_path / "rome.2024.csv.gz")], None)
    assert sorted(set(table.tasks)) == ["paris", "rome.2024"]
