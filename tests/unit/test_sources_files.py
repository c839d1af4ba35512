"""Finding files, telling their format, and refusing what costs too much."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from sources_builders import W, docx, epub, paragraph, pdf, zipped

from hmars.errors import EmptyInputError, InputError
from hmars.indexing.sources import find_files, limits, load


def save(tmp_path: Path, data: bytes, name: str) -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


# ---------------------------------------------------------------- search


def test_folders_are_searched_in_order_without_hidden_and_version_control(tmp_path: Path) -> None:
    names = ["b.txt", "a/z.py", "a/c.txt", ".git/config", "x/.env", "node_modules/m.js", "CVS/r"]
    for name in names:
        save(tmp_path, b"x", name)
    found = [path.relative_to(tmp_path).as_posix() for path in find_files([tmp_path])]
    assert found == ["b.txt", "a/c.txt", "a/z.py"]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.py", ["top.py", "src/deep/one.py"]),
        ("src/**/*.py", ["src/deep/one.py"]),
        ("**/*.md", ["read.md"]),
    ],
)
def test_a_glob_fits_names_and_paths(tmp_path: Path, glob: str, expected: list[str]) -> None:
    for name in ("top.py", "src/deep/one.py", "read.md"):
        save(tmp_path, b"x", name)
    found = [path.relative_to(tmp_path).as_posix() for path in find_files([tmp_path], glob)]
    assert found == expected


def test_a_file_is_listed_once_and_a_pattern_is_expanded(tmp_path: Path) -> None:
    one, two = save(tmp_path, b"x", "one.txt"), save(tmp_path, b"x", "two.txt")
    assert find_files([two, tmp_path, tmp_path / "*.txt"]) == [two, one]


def test_loops_of_links_end(tmp_path: Path) -> None:
    save(tmp_path, b"x", "a/one.txt")
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert find_files([tmp_path]) == [tmp_path / "a" / "one.txt"]


def test_paths_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere does not exist"):
        find_files([tmp_path / "nowhere"])
    with pytest.raises(InputError, match="no files that match"):
        find_files([tmp_path], "*.pdf")


# ---------------------------------------------------------------- format


def test_content_counts_more_than_the_name(tmp_path: Path) -> None:
    path = save(tmp_path, docx(paragraph("Rules.")), "rules.txt")
    source = load(path)
    assert source.text == "Rules.\n"
    assert source.warnings == ("Named .txt but is a Word document: read as that.",)


def test_a_page_saved_without_a_suffix_is_html(tmp_path: Path) -> None:
    path = save(tmp_path, b"\n<!DOCTYPE html><html><body><p>Oil</p></body></html>", "page")
    assert load(path).text == "Oil\n"


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        ("a.pdf", "PDF"),
        ("a.docx", "a Word document"),
        ("a.xlsx", "an Excel"),
        ("a.epub", "an EPUB"),
    ],
)
def test_a_file_that_is_not_what_its_name_claims_is_refused(
    tmp_path: Path, name: str, claim: str
) -> None:
    with pytest.raises(InputError, match=f"{name} claims to be {claim}"):
        load(save(tmp_path, b"<html>404 not found</html>", name))


OLE = bytes.fromhex("d0cf11e0a1b11ae1")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (OLE + b"\0" * 600, "old Office file: save it as"),
        (OLE + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le"), "encrypted Office file"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 20, "PNG image: run OCR"),
        (b"\x1f\x8b\x08\0\0\0", "gzip archive: unpack"),
        (zipped({"notes/a.txt": "hello"}), "an archive, not a document"),
        (zipped({"mimetype": "application/vnd.oasis.opendocument.graphics"}), "another kind"),
        (docx(paragraph("Text."))[:300], "damaged"),
    ],
)
def test_what_cannot_be_read_says_what_to_do(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        load(save(tmp_path, data, "a.docx"))
    assert "a.docx" in str(caught.value)


def test_empty_missing_and_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(EmptyInputError, match="0 bytes"):
        load(save(tmp_path, b"", "a.pdf"))
    with pytest.raises(InputError, match="does not exist"):
        load(tmp_path / "gone.pdf")
    with pytest.raises(InputError, match="is not a file"):
        load(tmp_path)


# ---------------------------------------------------------------- limits


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    body = "<w:p/>" * 6_000_000
    data = docx(body)
    assert len(data) < 200_000
    del body
    path = save(tmp_path, data, "bomb.docx")
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"refused: 'word/document\.xml' unpacks to over"):
            load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * limits.MIB


def test_a_container_of_too_many_entries_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hmars.indexing.sources.archive.MAX_MEMBERS", 3)
    with pytest.raises(InputError, match="entries, more than 3"):
        load(save(tmp_path, docx(paragraph("Text.")), "a.docx"))


def test_entries_that_unpack_to_more_than_the_container_may_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hmars.indexing.sources.archive.MAX_ARCHIVE_BYTES", 2000)
    chapters = dict.fromkeys("abc", f"<p>{'oil ' * 300}</p>")
    with pytest.raises(InputError, match="unpacks beyond"):
        load(save(tmp_path, epub(chapters, list(chapters)), "a.epub"))


def test_xml_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    body = "<w:sdt>" * 5000 + "</w:sdt>" * 5000
    with pytest.raises(InputError, match="nested or filled too much"):
        load(save(tmp_path, docx(body), "deep.docx"))


def test_entities_are_never_resolved(tmp_path: Path) -> None:
    secret = save(tmp_path, b"secret words", "secret.txt")
    document = (
        f'<!DOCTYPE d [<!ENTITY x SYSTEM "{secret.as_uri()}">]>'
        f"<w:document {W}><w:body><w:p><w:r><w:t>&x;</w:t></w:r></w:p></w:body></w:document>"
    )
    data = zipped({"[Content_Types].xml": "<Types/>", "word/document.xml": document})
    with pytest.raises(InputError, match="declares entities"):
        load(save(tmp_path, data, "a.docx"))


def test_external_parts_of_a_document_are_not_followed(tmp_path: Path) -> None:
    data = zipped(
        {
            "_rels/.rels": (
                '<Relationships><Relationship Id="r1" Type="http://x/officeDocument" '
                'TargetMode="External" Target="http://192.0.2.1/document.xml"/></Relationships>'
            ),
            "word/document.xml": f"<w:document {W}><w:body>{paragraph('Own text.')}</w:body>"
            "</w:document>",
        }
    )
    assert load(save(tmp_path, data, "a.docx")).text == "Own text.\n"


def test_a_deeply_nested_page_does_not_end_in_a_crash(tmp_path: Path) -> None:
    text = "<div>" * 20_000 + "oil" + "<table><tr><td>" * 2000
    assert "oil" in load(save(tmp_path, text.encode(), "a.html")).text


def test_a_file_larger_than_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hmars.indexing.sources.files.MAX_PLAIN_BYTES", 10)
    with pytest.raises(InputError, match="split it"):
        load(save(tmp_path, b"more than ten bytes", "a.txt"))


def test_a_pdf_without_pages_is_damaged(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    with pytest.raises(InputError, match="damaged PDF"):
        load(save(tmp_path, pdf([]), "a.pdf"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", "<!--" * 100_000),
        ("b.html", "<a " * 100_000),
        ("c.html", '<p x="' * 100_000 + ">"),
        ("d.vtt", "1\n00:00:01.000 --> 00:00:02.000\n" + "<v " * 100_000),
        ("e.rtf", "{\\rtf1 {\\fonttbl " + "{\\f0 " * 30_000),
        ("f.rtf", "{\\rtf1 {\\fonttbl " + "{\\f0 a;}" * 30_000 + "}}"),
        ("g.json", "[" * 100_000),
        ("h.eml", "Subject: " + "=?utf-8?q?" * 20_000),
    ],
)
def test_hostile_markup_ends_soon(tmp_path: Path, name: str, text: str) -> None:
    # Each of these took hours, or would, where time grows with the square of the size.
    path = save(tmp_path, text.encode(), name)
    try:
        assert load(path).text
    except InputError as error:
        assert name in str(error)
