"""HTML pages, EPUB books and mail."""

from __future__ import annotations

from pathlib import Path

import pytest
from sources_builders import epub, zipped

from hmars.errors import EmptyInputError, InputError
from hmars.indexing.sources import load
from hmars.model import SourceText


def save(tmp_path: Path, data: bytes | str, name: str) -> Path:
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def page(tmp_path: Path, body: str, head: str = "") -> SourceText:
    return load(save(tmp_path, f"<html><head>{head}</head><body>{body}</body></html>", "a.html"))


# ---------------------------------------------------------------- HTML


def test_scripts_styles_and_hidden_parts_are_not_text(tmp_path: Path) -> None:
    body = (
        "<p>Seen.</p><script>var a = '<p>no</p>';</script><style>p {}</style>"
        "<div style='display: none'><div>no</div>no</div><p hidden>no</p>"
        "<noscript>no</noscript><template><p>no</p></template><svg><text>no</text></svg>"
        "<p>Also &amp; seen.</p>"
    )
    source = page(tmp_path, body, "<title>Lamps &amp; oil</title><script>no</script>")
    assert source.text == "Seen.\n\nAlso & seen.\n"
    assert source.title == "Lamps & oil"


def test_navigation_gives_way_to_the_main_text(tmp_path: Path) -> None:
    text = "The lamp is lit at dusk and put out at dawn. " * 5
    body = f"<header>Site</header><nav><a>Home</a></nav><main><h1>Lamps</h1><p>{text}</p></main>"
    assert page(tmp_path, f"{body}<footer>Imprint</footer>").text == f"Lamps\n\n{text.strip()}\n"


def test_a_page_of_nothing_but_a_form_keeps_its_text(tmp_path: Path) -> None:
    body = "<form><p>All the text of the page is inside a form.</p></form>"
    assert page(tmp_path, body).text == "All the text of the page is inside a form.\n"


def test_tables_are_rows_and_spans_keep_columns(tmp_path: Path) -> None:
    body = (
        "<table><tr><th>Berth<th colspan=2>Fee</tr><tr><td>South<td>12<td>crowns</tr>"
        "<tr><td><td></td></tr></table>"
    )
    assert page(tmp_path, body).text == "Berth | Fee\nSouth | 12 | crowns\n"


def test_a_table_that_only_arranges_the_page_keeps_its_headings(tmp_path: Path) -> None:
    body = f"<table><tr><td>menu</td><td><h2>Oil</h2><p>{'It burns. ' * 100}</p></td></tr></table>"
    source = page(tmp_path, body)
    assert [mark.label for mark in source.marks] == ["§ Oil"]


def test_lists_line_breaks_and_code_keep_their_lines(tmp_path: Path) -> None:
    body = (
        "<ol><li>one<ul><li>inner</li></ul></li><li>two</li></ol><p>a<br>b</p>"
        "<pre>if x:\n    y()</pre>"
    )
    assert page(tmp_path, body).text == "1. one\n  - inner\n2. two\n\na\nb\n\nif x:\n    y()\n"


def test_the_declared_encoding_is_used_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    text = '<html><meta charset="{}"><body><p>Кефир и чай стоят на столе</p></body></html>'
    declared = save(tmp_path, text.format("koi8-r").encode("koi8-r"), "a.html")
    wrong = save(tmp_path, text.format("ascii-7").encode("utf-8"), "b.html")
    assert load(declared).text == load(wrong).text == "Кефир и чай стоят на столе\n"


def test_utf_32_without_a_mark_is_recognised(tmp_path: Path) -> None:
    data = "<html><body><p>Lamps and oil</p></body></html>".encode("utf-32-be")
    source = load(save(tmp_path, data, "a.html"))
    assert source.text == "Lamps and oil\n"
    assert "utf-32-be" in source.warnings[0]


def test_broken_markup_is_read_as_a_browser_would(tmp_path: Path) -> None:
    assert page(tmp_path, "<p>one<p>two</i></b><div>three").text == "one\n\ntwo\n\nthree\n"


def test_headings_of_articles_in_xml_are_found(tmp_path: Path) -> None:
    text = (
        '<!DOCTYPE article PUBLIC "-//NLM//DTD JATS v1.2//EN" "JATS.dtd">'
        '<article article-type="research"><front><title-group><article-title>Oil</article-title>'
        "</title-group></front><body><sec><title>Methods</title><p>We lit <italic>lamps</italic>."
        "</p><sec><title>Wicks</title><p>Cotton.</p></sec></sec></body></article>"
    )
    source = load(save(tmp_path, text, "a.xml"))
    assert [mark.context for mark in source.marks] == [
        "Oil",
        "Oil > Methods",
        "Oil > Methods > Wicks",
    ]
    assert "We lit lamps." in source.text


# ---------------------------------------------------------------- EPUB


def test_chapters_come_in_the_order_of_the_spine_without_navigation(tmp_path: Path) -> None:
    chapters = {
        "c": "<h1>Three</h1><p>Dark.</p>",
        "nav": "<nav>Jump to oil</nav>",
        "a": "<h1>One</h1><p>Oil.</p>",
        "b": "<h1>Two</h1><h2>Sale</h2><p>Sold.</p>",
    }
    data = epub(chapters, ["a", "b", "c"], items='<item id="n" href="nav.xhtml" properties="nav"/>')
    source = load(save(tmp_path, data, "book.epub"))
    assert source.text == "One\n\nOil.\n\nTwo\n\nSale\n\nSold.\n\nThree\n\nDark.\n"
    assert [mark.label for mark in source.marks] == ["§ One", "§ Two", "§ Sale", "§ Three"]
    assert source.title == "Tide Notes"


def test_navigation_in_the_spine_is_left_out(tmp_path: Path) -> None:
    data = epub({"a": "<p>Oil.</p>", "nav": "<p>Jump</p>"}, ["nav", "a"])
    marked = data  # the manifest is rewritten below, so that the page is declared as navigation
    chapters = {"a": "<p>Oil.</p>"}
    item = '<item id="nav" href="text/nav.xhtml" properties="nav" media-type="text/html"/>'
    marked = epub(chapters, ["a"], items=item, extra={"OEBPS/text/nav.xhtml": "<p>Jump to oil</p>"})
    assert "Jump" not in load(save(tmp_path, marked, "book.epub")).text


def test_one_missing_chapter_does_not_lose_the_book(tmp_path: Path) -> None:
    data = epub({"a": "<h1>One</h1>", "b": "<h1>Two</h1>"}, ["a", "gone", "b"])
    source = load(save(tmp_path, data, "book.epub"))
    assert source.text == "One\n\nTwo\n"
    assert source.warnings == ("A chapter was left out: 'OEBPS/text/gone.xhtml' is missing.",)


def test_a_chapter_whose_bytes_are_damaged_is_named(tmp_path: Path) -> None:
    good = "<h1>One</h1><p>" + "Oil. " * 50 + "</p>"
    data = bytearray(epub({"a": good, "b": "<p>" + "Bad. " * 300 + "</p>"}, ["a", "b"]))
    place = data.index(b"OEBPS/text/b.xhtml") + len(b"OEBPS/text/b.xhtml") + 8
    data[place] ^= 0xFF
    source = load(save(tmp_path, bytes(data), "book.epub"))
    assert "Oil." in source.text
    assert "OEBPS/text/b.xhtml" in source.warnings[0]


def test_a_protected_book_is_refused_and_scrambled_fonts_are_not(tmp_path: Path) -> None:
    def with_method(name: str) -> bytes:
        note = f'<encryption><EncryptionMethod Algorithm="{name}"/></encryption>'
        return epub({"a": "<p>Oil.</p>"}, ["a"], extra={"META-INF/encryption.xml": note})

    fonts = save(tmp_path, with_method("http://www.idpf.org/2008/embedding"), "fonts.epub")
    assert load(fonts).text == "Oil.\n"
    with pytest.raises(InputError, match="protected against copying"):
        load(save(tmp_path, with_method("http://www.w3.org/2001/04/xmlenc#aes128"), "drm.epub"))


def test_a_book_of_pictures_is_empty_and_one_without_a_package_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(EmptyInputError, match="need OCR"):
        load(save(tmp_path, epub({"a": "<img src='a.png'/>"}, ["a"]), "book.epub"))
    data = zipped({"mimetype": "application/epub+zip"})
    with pytest.raises(InputError, match="damaged EPUB book"):
        load(save(tmp_path, data, "book.epub"))


def test_furigana_is_not_mixed_into_words(tmp_path: Path) -> None:
    data = epub({"a": "<p><ruby>山<rp>(</rp><rt>やま</rt><rp>)</rp></ruby>道</p>"}, ["a"])
    assert load(save(tmp_path, data, "book.epub")).text == "山道\n"


# ---------------------------------------------------------------- mail

MAIL = """\
Subject: =?utf-8?q?Caf=C3=A9?= fees
From: Ada <ada@example.org>
To: Bo <bo@example.org>
Date: Mon, 01 Jan 2024 10:00:00 +0000
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=X

--X
Content-Type: multipart/alternative; boundary=Y

--Y
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

The caf=E9 pays 12 crowns.
--Y
Content-Type: text/html

<p>The caf&eacute; pays 12 crowns.</p>
--Y--
--X
Content-Type: application/zip; name=fees.zip
Content-Disposition: attachment; filename=fees.zip
Content-Transfer-Encoding: base64

UEsDBAoA
--X--
"""


def test_mail_shows_headers_and_body_and_names_attachments(tmp_path: Path) -> None:
    source = load(save(tmp_path, MAIL, "a.eml"))
    assert source.title == "Café fees"
    assert source.text.startswith("Subject: Café fees\nFrom: Ada <ada@example.org>\n")
    assert source.text.count("pays 12 crowns") == 1
    assert "The café pays" in source.text
    assert source.text.endswith("Attachments, not opened: fees.zip (application/zip)\n")


def test_mail_saved_as_utf_16_and_mail_in_mail_are_read(tmp_path: Path) -> None:
    inner = "Content-Type: message/rfc822\n\nSubject: Inner\n\nInner words.\n"
    outer = (
        "Subject: Outer\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=X\n\n"
        f"--X\n\nOuter words.\n--X\n{inner}--X--\n"
    )
    source = load(save(tmp_path, outer.encode("utf-16"), "a.eml"))
    assert [mark.context for mark in source.marks] == ["Outer", "Outer > Inner"]
    assert source.text.index("Outer words.") < source.text.index("Inner words.")


def test_a_wrong_charset_does_not_lose_the_mail(tmp_path: Path) -> None:
    text = "Subject: A\nContent-Type: text/plain; charset=no-such\n\nKeeper’s words.\n"
    source = load(save(tmp_path, text, "a.eml"))
    assert "Keeper’s words." in source.text
    assert source.warnings


def test_a_file_without_headers_is_no_mail(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a mail message"):
        load(save(tmp_path, "  \n\n just words\n", "a.eml"))
