"""Regions, pages and groups: written as a difference, read back as they were.

A region whose text is unchanged keeps its row, its pages and its card wherever it moves to, so an
appended turn writes one region and an insertion at the start moves numbers only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from hmars.model import Group, Page, Region
from hmars.store.plan import DocumentPlan
from hmars.store.schema import groups, pages, regions

ROWS_AT_ONCE = 500


def save_regions(connection: Connection, document: int, plan: DocumentPlan) -> set[str]:
    """Bring the regions of a document to the plan; the keys of regions that went away."""
    there: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in connection.execute(
        select(regions).where(regions.c.document == document).order_by(regions.c.position.desc())
    ):
        there[row.key].append(row)
    group_of = {index: group.index for group in plan.groups for index in group.regions}
    moved: list[dict[str, Any]] = []
    for region, face in zip(plan.regions, plan.faces, strict=True):
        place = _place(region, face, group_of.get(region.index))
        if rows := there.get(region.key):
            row = rows.pop()
            if any(getattr(row, name) != value for name, value in place.items()):
                moved.append({"row": row.id, **place})
            if row.face != face:
                _rewrite_pages(connection, row.id, region)
        else:
            values = {"document": document, "key": region.key, "blank": region.blank, **place}
            added = insert(regions).values(values).returning(regions.c.id)
            _insert_pages(connection, connection.execute(added).scalar_one(), region)
    if moved:
        row_id = regions.c.id == bindparam("row")
        connection.execute(update(regions).where(row_id), moved)
    gone = [row for rows in there.values() for row in rows]
    for start in range(0, len(gone), ROWS_AT_ONCE):
        ids = [row.id for row in gone[start : start + ROWS_AT_ONCE]]
        connection.execute(delete(regions).where(regions.c.id.in_(ids)))
    return {row.key for row in gone}


def _place(region: Region, face: str, group: int | None) -> dict[str, Any]:
    return {
        "position": region.index,
        "start": region.start,
        "first_page": region.pages[0].index,
        "page_count": len(region.pages),
        "group_position": group,
        "face": face,
    }


def _insert_pages(connection: Connection, row: int, region: Region) -> None:
    values = [
        {
            "region": row,
            "position": position,
            "characters": page.end - page.start,
            "tokens": page.tokens,
            "label": page.label,
            "context": page.context,
            "text": page.text,
        }
        for position, page in enumerate(region.pages)
    ]
    for start in range(0, len(values), ROWS_AT_ONCE):
        connection.execute(insert(pages), values[start : start + ROWS_AT_ONCE])


def _rewrite_pages(connection: Connection, row: int, region: Region) -> None:
    """Labels and token counts: the only things that change under the same key."""
    statement = update(pages).where(
        pages.c.region == bindparam("row"), pages.c.position == bindparam("place")
    )
    values = [
        {"row": row, "place": position, "label": page.label, "tokens": page.tokens}
        for position, page in enumerate(region.pages)
    ]
    connection.execute(statement, values)


def save_groups(connection: Connection, document: int, plan: DocumentPlan) -> set[str]:
    """Bring the groups of a document to the plan; the keys of groups that went away."""
    mine = groups.c.document == document
    there = {
        row.key: row.body_id
        for row in connection.execute(select(groups.c.key, groups.c.body_id).where(mine))
    }
    connection.execute(delete(groups).where(mine))
    rows = [
        {
            "document": document,
            "position": group.index,
            "key": key,
            "body_id": there.get(key),
        }
        for group, key in zip(plan.groups, plan.group_keys, strict=True)
    ]
    if rows:
        connection.execute(insert(groups), rows)
    return there.keys() - set(plan.group_keys)


def read_regions(connection: Connection, document: int, identity: str) -> tuple[Region, ...]:
    rows = connection.execute(
        select(regions).where(regions.c.document == document).order_by(regions.c.position)
    ).all()
    all_pages = connection.execution_options(yield_per=ROWS_AT_ONCE).execute(
        select(pages)
        .join(regions, regions.c.id == pages.c.region)
        .where(regions.c.document == document)
        .order_by(regions.c.position, pages.c.position)
    )
    stream = iter(all_pages)
    return tuple(Region(identity, row.position, tuple(_pages_of(row, stream))) for row in rows)


def _pages_of(region: Row[Any], rows: Iterator[Row[Any]]) -> Iterator[Page]:
    """The pages of one region, whose rows come next in the stream."""
    start = region.start
    for number in range(region.first_page, region.first_page + region.page_count):
        row = next(rows)
        end = start + row.characters
        yield Page(number, start, end, row.tokens, row.label, row.context, row.text)
        start = end


def read_pages(connection: Connection, document: int, first: int, last: int) -> list[Page]:
    """The pages numbered `first` to `last`, both included, that exist."""
    found: list[Page] = []
    holding = (
        select(regions)
        .where(
            regions.c.document == document,
            regions.c.first_page <= last,
            regions.c.first_page + regions.c.page_count > first,
        )
        .order_by(regions.c.position)
    )
    for region in connection.execute(holding).all():
        rows = connection.execute(
            select(pages).where(pages.c.region == region.id).order_by(pages.c.position)
        )
        found += [page for page in _pages_of(region, iter(rows)) if first <= page.index <= last]
    return found


def read_groups(connection: Connection, document: int) -> tuple[Group, ...]:
    members: dict[int, list[int]] = defaultdict(list)
    for row in connection.execute(
        select(regions.c.position, regions.c.group_position)
        .where(regions.c.document == document, regions.c.group_position.is_not(None))
        .order_by(regions.c.position)
    ):
        members[row.group_position].append(row.position)
    return tuple(Group(index, tuple(members[index])) for index in sorted(members))
