"""Word, PowerPoint, Excel and OpenDocument files."""

from __future__ import annotations

import datetime as dt
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from sources_builders import STYLES, W, docx, paragraph, zipped

from hmars.errors import EmptyInputError, InputError
from hmars.indexing.sources import load

BOX = (
    "<w:p><w:r><mc:AlternateContent><mc:Choice><w:drawing><wps:txbx><w:txbxContent>"
    "<w:p><w:r><w:t>BOX: the gate is shut.</w:t></w:r></w:p>"
    "</w:txbxContent></wps:txbx></w:drawing></mc:Choice><mc:Fallback><w:pict><w:txbxContent>"
    "<w:p><w:r><w:t>BOX: the gate is shut.</w:t></w:r></w:p>"
    "</w:txbxContent></w:pict></mc:Fallback></mc:AlternateContent></w:r></w:p>"
).replace("<w:p><w:r><mc:", '<w:p xmlns:mc="m" xmlns:wps="s"><w:r><mc:', 1)


def save(tmp_path: Path, data: bytes, name: str) -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def read(tmp_path: Path, body: str, **parts: str) -> Any:
    named = {f"{name}.xml": text for name, text in parts.items()}
    return load(save(tmp_path, docx(body, named), "rules.docx"))


def row(*cells: str) -> str:
    return f"<w:tr>{''.join(f'<w:tc>{paragraph(cell)}</w:tc>' for cell in cells)}</w:tr>"


# ---------------------------------------------------------------- Word


def test_tables_stand_where_they_stood_and_rows_on_one_line(tmp_path: Path) -> None:
    table = f"<w:tbl>{row('Berth', 'Fee')}{row('South', '12 crowns')}</w:tbl>"
    text = read(tmp_path, paragraph("Above.") + table + paragraph("Below.")).text
    assert text == "Above.\n\nBerth | Fee\nSouth | 12 crowns\n\nBelow.\n"


def test_a_long_table_repeats_its_header_row_in_each_part(tmp_path: Path) -> None:
    rows = "".join(row(f"Berth {n}", f"{n} crowns a night, paid in advance") for n in range(200))
    text = read(tmp_path, f"<w:tbl>{row('Berth', 'Fee')}{rows}</w:tbl>").text
    parts = text.strip().split("\n\n")
    assert len(parts) > 3
    assert all(part.startswith("Berth | Fee\n") for part in parts)
    assert [text.count(f"Berth {n} |") for n in (0, 99, 199)] == [1, 1, 1]


def test_deleted_revisions_are_left_out_and_inserted_ones_kept(tmp_path: Path) -> None:
    body = (
        '<w:p><w:r><w:t xml:space="preserve">The limit is </w:t></w:r>'
        "<w:del><w:r><w:delText>9</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>6</w:t></w:r></w:ins><w:r><w:t> knots.</w:t></w:r></w:p>"
        "<w:p><w:moveFrom><w:r><w:t>Moved away.</w:t></w:r></w:moveFrom>"
        "<w:moveTo><w:r><w:t>Moved here.</w:t></w:r></w:moveTo></w:p>"
    )
    assert read(tmp_path, body).text == "The limit is 6 knots.\n\nMoved here.\n"


def test_deleted_table_rows_and_hidden_text_are_left_out(tmp_path: Path) -> None:
    gone = row("Old", "fee").replace("<w:tr>", "<w:tr><w:trPr><w:del/></w:trPr>")
    hidden = "<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r></w:p>"
    table = f"<w:tbl>{row('A', 'B')}{gone}</w:tbl>"
    assert read(tmp_path, table + hidden).text == "A | B\n"


def test_text_boxes_are_read_once(tmp_path: Path) -> None:
    text = read(tmp_path, BOX + paragraph("Last line.")).text
    assert text.count("BOX: the gate is shut.") == 1
    assert text.index("BOX") < text.index("Last line.")


def test_footnotes_follow_the_paragraph_that_refers_to_them(tmp_path: Path) -> None:
    body = paragraph("Closed on Sunday").replace(
        "</w:r></w:p>", '</w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    )
    notes = (
        f'<w:footnotes {W}><w:footnote w:type="separator" w:id="-1">{paragraph("---")}'
        f'</w:footnote><w:footnote w:id="2">{paragraph("Except in May.")}</w:footnote>'
        "</w:footnotes>"
    )
    text = read(tmp_path, body + paragraph("Next."), footnotes=notes).text
    assert text == "Closed on Sunday[1]\n\n[1] Except in May.\n\nNext.\n"


def test_headings_come_from_styles_and_give_the_path(tmp_path: Path) -> None:
    body = (
        paragraph("Mooring", "H1")
        + paragraph("Boats moor at the pier.")
        + paragraph("Fees", "Mine")
        + paragraph("Fees are due at noon.")
    )
    source = read(tmp_path, body, styles=STYLES)
    assert [(mark.label, mark.level) for mark in source.marks] == [("§ Mooring", 1), ("§ Fees", 2)]
    assert source.marks[1].context == "Mooring > Fees"
    assert source.text[source.marks[1].start :].startswith("Fees\n\nFees are due")


def test_automatic_numbers_of_headings_and_clauses_are_written_out(tmp_path: Path) -> None:
    levels = "".join(
        f'<w:lvl w:ilvl="{n}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/>'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
        for n, (kind, text) in enumerate(
            [("decimal", "%1."), ("decimal", "%1.%2"), ("lowerLetter", "(%3)")]
        )
    )
    numbering = (
        f'<w:numbering {W}><w:abstractNum w:abstractNumId="7">{levels}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num></w:numbering>'
    )

    def clause(text: str, depth: int, style: str = "") -> str:
        place = f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="1"/></w:numPr>'
        return paragraph(text, style, place)

    body = (
        clause("Term", 0, "H1")
        + clause("Two years.", 1)
        + clause("End", 0, "H1")
        + clause("By notice:", 1)
        + clause("in writing;", 2)
        + clause("by post.", 2)
    )
    source = read(tmp_path, body, styles=STYLES, numbering=numbering)
    assert [mark.label for mark in source.marks] == ["§ 1. Term", "§ 2. End"]
    assert "2.1 By notice:\n(a) in writing;\n(b) by post.\n" in source.text


def test_page_headers_are_read_once_and_comments_are_counted(tmp_path: Path) -> None:
    header = f"<w:hdr {W}>{paragraph('Harbour rules')}</w:hdr>"
    comments = f"<w:comments {W}><w:comment>{paragraph('why?')}</w:comment></w:comments>"
    source = read(tmp_path, paragraph("Body."), header1=header, header2=header, comments=comments)
    assert source.text == "Body.\n\nHarbour rules\n"
    assert source.warnings == ("1 review comment left out.",)


def test_nine_hundred_pages_are_read(tmp_path: Path) -> None:
    body = "".join(
        paragraph(f"Chapter {n}", "H1") + paragraph(f"The keeper writes entry {n}. " * 60)
        for n in range(900)
    )
    source = read(tmp_path, body, styles=STYLES)
    assert len(source.marks) == 900
    assert "The keeper writes entry 899." in source.text


def test_a_document_with_one_broken_part_is_damaged(tmp_path: Path) -> None:
    data = docx(paragraph("Text.")).replace(b"word/document.xml", b"word/documenx.xml")
    with pytest.raises(InputError, match=r"damaged Word document: 'word/document\.xml'"):
        load(save(tmp_path, data, "a.docx"))


def test_xml_that_is_not_well_formed_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"damaged Word document.*not well-formed"):
        read(tmp_path, "<w:p><w:r></w:p>")


def test_a_document_without_text_is_empty(tmp_path: Path) -> None:
    with pytest.raises(EmptyInputError, match="holds no text"):
        read(tmp_path, "<w:p/>")


# ---------------------------------------------------------------- PowerPoint


def shape(text: str, kind: str = "") -> str:
    place = f'<p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>' if kind else ""
    lines = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    return f"<p:sp>{place}<p:txBody>{lines}</p:txBody></p:sp>"


def deck(slides: list[str], order: list[int]) -> bytes:
    names = 'xmlns:p="p" xmlns:a="a" xmlns:r="r"'
    ids = "".join(f'<p:sldId id="{256 + n}" r:id="r{n}"/>' for n in order)
    links = "".join(
        f'<Relationship Id="r{n}" Type="http://x/slide" Target="slides/slide{n}.xml"/>'
        for n in range(len(slides))
    )
    return zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "ppt/presentation.xml": f"<p:presentation {names}><p:sldIdLst>{ids}</p:sldIdLst>"
            "</p:presentation>",
            "ppt/_rels/presentation.xml.rels": f"<Relationships>{links}</Relationships>",
        }
        | {
            f"ppt/slides/slide{n}.xml": f"<p:sld {names}><p:spTree>{text}</p:spTree></p:sld>"
            for n, text in enumerate(slides)
        }
    )


def test_slides_come_in_the_order_of_the_show_with_title_first(tmp_path: Path) -> None:
    slides = [
        shape("Boats\nand lamps") + shape("Winter plan", "title") + shape("12", "sldNum"),
        shape("Welcome", "ctrTitle"),
    ]
    source = load(save(tmp_path, deck(slides, [1, 0]), "talk.pptx"))
    assert source.text == "Welcome\n\nWinter plan\n\nBoats\nand lamps\n"
    assert [(mark.label, mark.context) for mark in source.marks] == [
        ("slide 1", "Welcome"),
        ("slide 2", "Winter plan"),
    ]


def test_a_broken_slide_does_not_lose_the_others(tmp_path: Path) -> None:
    source = load(save(tmp_path, deck(["<a:p>", shape("Fine.")], [0, 1]), "talk.pptx"))
    assert source.text == "Fine.\n"
    assert source.warnings[0].startswith("Slide 1 was left out")
    assert source.marks[0].label == "slide 2"


# ---------------------------------------------------------------- Excel


def test_sheets_give_places_by_rows_with_the_header_near(tmp_path: Path) -> None:
    openpyxl: Any = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Fees"
    sheet.append(["Berth", "Fee", "Since", "Share"])
    for n in range(2, 152):
        sheet.append([f"Berth {n} at the northern pier", n * 1.5, dt.date(2020, 1, 2), 0.25])
        sheet.cell(n, 4).number_format = "0%"
    book.create_sheet("Empty")
    path = tmp_path / "fees.xlsx"
    book.save(path)
    source = load(path)
    labels = [mark.label for mark in source.marks]
    assert labels[0].startswith("Fees rows 1–")
    assert labels[-1].endswith("–151")
    assert "Berth 2 at the northern pier | 3 | 2020-01-02 | 25%" in source.text
    parts = source.text.strip().split("\n\n")
    assert len(parts) == len(labels) > 2
    assert all(part.startswith("[Fees]\nBerth | Fee | Since | Share\n") for part in parts)


def test_row_numbers_are_those_of_the_sheet_also_below_titles_and_gaps(tmp_path: Path) -> None:
    openpyxl: Any = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["Annual fees"])
    book.active.append([])
    book.active.append(["Berth", "Fee"])
    book.active.append(["South", 12])
    path = tmp_path / "fees.xlsx"
    book.save(path)
    source = load(path)
    assert source.text == "[Sheet]\nAnnual fees\nBerth | Fee\nSouth | 12\n"
    assert source.marks[0].label == "Sheet rows 1–4"


def test_a_damaged_workbook_is_an_input_error(tmp_path: Path) -> None:
    import_module("openpyxl")
    data = zipped({"[Content_Types].xml": "<Types/>", "xl/workbook.xml": "<workbook/>"})
    with pytest.raises(InputError, match="damaged workbook"):
        load(save(tmp_path, data, "a.xlsx"))


# ---------------------------------------------------------------- OpenDocument


def test_opendocument_headings_lists_tables_notes_and_revisions(tmp_path: Path) -> None:
    names = 'xmlns:office="o" xmlns:text="t" xmlns:table="b"'
    body = (
        "<text:tracked-changes><text:p>deleted words</text:p></text:tracked-changes>"
        '<text:h text:outline-level="1">Lamps</text:h>'
        '<text:p>Oil<text:s text:c="2"/>burns<text:note><text:note-citation>1</text:note-citation>'
        "<text:note-body><text:p>slowly</text:p></text:note-body></text:note>.</text:p>"
        "<text:list><text:list-item><text:p>one</text:p></text:list-item>"
        "<text:list-item><text:p>two</text:p></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>A</text:p></table:table-cell>"
        '<table:table-cell table:number-columns-repeated="99999"/></table:table-row></table:table>'
    )
    data = zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"<office:document-content {names}><office:body><office:text>{body}"
            "</office:text></office:body></office:document-content>",
        }
    )
    source = load(save(tmp_path, data, "a.odt"))
    assert source.text == "Lamps\n\nOil  burns [slowly].\n\n- one\n- two\n\nA\n"
    assert source.marks[0].label == "§ Lamps"
