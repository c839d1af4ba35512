"""What is put before the answer model: de-duplicated, in order, within the budget.

The unit adapts. Selected pages go in whole while all of them fit. Where they do not, a page is cut
to its passages (as its selector judged them) and the most confident passages of the whole scope are
taken, so that one page may give a sentence and the next one all it has. Evidence that breaks off in
the middle of a sentence at the edge of its page is widened to the end of that sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hmars.lexical import sentences
from hmars.model import DocumentIndex, EvidenceSpan, Page
from hmars.query.agents import EvidenceBlock, RegionSelection, Scope, SelectedPage
from hmars.tokens import Tokenizer

RegionKey = tuple[str, int]

DECAY = 0.8
"""Each further passage of a page counts this much less, where the selector gave no weights."""
REST = 0.5
"""What a page's other stretches count, against its weakest passage."""
WIDEST = 1200
"""Characters looked at over the edge of a page for the end of a sentence."""

_SENTENCE_ENDS = ".!?…。！？．।॥؟۔:;\"'”’)]»\n"


@dataclass(frozen=True, slots=True)
class Evidence:
    """`left_out` counts selected pages of which nothing fitted the budget."""

    blocks: tuple[EvidenceBlock, ...] = ()
    spans: tuple[EvidenceSpan, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of one page. `place` orders documents as the scope does."""

    place: int
    page: Page
    start: int
    end: int
    confidence: float
    tokens: int = 0
    """Counted when the piece is about to be taken."""

    @property
    def text(self) -> str:
        return self.page.text[self.start - self.page.start : self.end - self.page.start]


def assemble(
    scope: Scope,
    selections: Mapping[RegionKey, RegionSelection],
    budget_tokens: int,
    tokenizer: Tokenizer,
    divide: Callable[[Sequence[tuple[str, SelectedPage]]], Sequence[SelectedPage]] | None = None,
) -> Evidence:
    """Fit what the regions selected into `budget_tokens`, the least confident left out first.

    Tokens are those of the evidence text, counted both by block and by span: neither sum exceeds
    the budget. Headers around the blocks are the prompt's affair. `divide` gives passages to pages
    of documents, for a selector that gives none.
    """
    selected = list(_selected(scope, selections))
    whole = [_whole(place, choice) for place, choice in selected]
    if sum(piece.tokens for piece in whole) <= budget_tokens:
        chosen = whole
    else:
        if divide is not None:
            documents = [scope.indexes[place].document.id for place, _ in selected]
            divided = divide([(key, it) for key, (_, it) in zip(documents, selected, strict=True)])
            selected = [(place, it) for (place, _), it in zip(selected, divided, strict=True)]
        pieces = [
            piece
            for place, choice in selected
            for piece in _pieces(place, choice)
            if piece.text.strip()
        ]
        chosen = _fill(pieces, budget_tokens, tokenizer)
    chosen = _widened(scope, chosen, budget_tokens, tokenizer)
    return _fitted(scope, chosen, selected, budget_tokens, tokenizer)


def _selected(
    scope: Scope, selections: Mapping[RegionKey, RegionSelection]
) -> Iterator[tuple[int, SelectedPage]]:
    """Every selected page once, with the highest confidence given and all its passages."""
    for place, index in enumerate(scope.indexes):
        best: dict[int, SelectedPage] = {}
        for region in index.regions:
            selection = selections.get((index.document.id, region.index), RegionSelection())
            for choice in selection.pages:
                known = best.get(choice.page.index)
                best[choice.page.index] = choice if known is None else _joined(known, choice)
        for number in sorted(best):
            yield place, best[number]


def _joined(first: SelectedPage, second: SelectedPage) -> SelectedPage:
    better, other = sorted((first, second), key=lambda choice: -choice.confidence)
    weights = dict(_weighted(other)) | dict(_weighted(better))
    ranked = sorted(weights.items(), key=lambda item: -item[1])
    return replace(
        better,
        passages=tuple(span for span, _ in ranked),
        weights=tuple(weight for _, weight in ranked),
    )


def _weighted(choice: SelectedPage) -> Iterator[tuple[tuple[int, int], float]]:
    for at, span in enumerate(choice.passages):
        known = at < len(choice.weights)
        yield span, choice.weights[at] if known else choice.confidence * DECAY**at


def _counted(piece: _Piece, tokenizer: Tokenizer) -> _Piece:
    return replace(piece, tokens=tokenizer.count(piece.text))


def _whole(place: int, choice: SelectedPage) -> _Piece:
    page = choice.page
    return _Piece(place, page, page.start, page.end, choice.confidence, page.tokens)


def _pieces(place: int, choice: SelectedPage) -> Iterator[_Piece]:
    """The passages of a page, without overlaps, and what lies between them."""
    if not choice.passages:
        yield _whole(place, choice)
        return
    page = choice.page
    taken: list[tuple[int, int]] = []
    for (low, high), weight in sorted(_weighted(choice), key=lambda item: -item[1]):
        for span in _gaps(max(low, page.start), min(high, page.end), taken):
            taken.append(span)
            yield _Piece(place, page, *span, weight)
    weakest = min(weight for _, weight in _weighted(choice))
    for span in _gaps(page.start, page.end, taken):
        yield _Piece(place, page, *span, weakest * REST)


def _gaps(start: int, end: int, taken: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """What of `start..end` is not taken yet."""
    gaps: list[tuple[int, int]] = []
    for low, high in sorted(taken):
        if low > start:
            gaps.append((start, min(low, end)))
        start = max(start, high)
        if start >= end:
            break
    if start < end:
        gaps.append((start, end))
    return [(low, high) for low, high in gaps if low < high]


def _fill(pieces: Iterable[_Piece], budget: int, tokenizer: Tokenizer) -> list[_Piece]:
    """From the most confident down; the first that does not fit is cut at a sentence."""
    chosen: list[_Piece] = []
    left = budget
    for rough in sorted(pieces, key=lambda item: (-item.confidence, item.place, item.start)):
        piece = _counted(rough, tokenizer)
        if piece.tokens > left:
            if (part := _head(piece, left, tokenizer)) is not None:
                chosen.append(part)
            break
        chosen.append(piece)
        left -= piece.tokens
    return chosen


def _head(piece: _Piece, budget: int, tokenizer: Tokenizer) -> _Piece | None:
    """As many of the piece's first sentences as fit."""
    best = None
    for _, end in sentences(piece.text):
        part = _counted(replace(piece, end=piece.start + end), tokenizer)
        if part.tokens > budget:
            break
        best = part
    return best


def _widened(
    scope: Scope, chosen: Sequence[_Piece], budget: int, tokenizer: Tokenizer
) -> list[_Piece]:
    """Finish the sentences that the edge of a page cuts, as far as the budget allows."""
    left = budget - sum(piece.tokens for piece in chosen)
    pieces = list(chosen)
    taken = {(piece.place, offset) for piece in chosen for offset in (piece.start, -piece.end)}
    for piece in sorted(chosen, key=lambda item: (-item.confidence, item.place, item.start)):
        for extra in _continuations(scope.indexes[piece.place], piece, tokenizer):
            edge = (piece.place, extra.start if extra.start == piece.end else -extra.end)
            if edge not in taken and extra.tokens <= left:
                taken.add(edge)
                pieces.append(extra)
                left -= extra.tokens
    return pieces


def _continuations(index: DocumentIndex, piece: _Piece, tokenizer: Tokenizer) -> Iterator[_Piece]:
    pages = index.pages
    at = piece.page.index - 1
    if piece.end == piece.page.end and at + 1 < len(pages) and _runs_on(piece.page):
        page = pages[at + 1]
        if spans := sentences(page.text[:WIDEST]):
            span = (page.start, page.start + spans[0][1])
            yield _counted(_Piece(piece.place, page, *span, piece.confidence), tokenizer)
    if piece.start == piece.page.start and at > 0 and _runs_on(pages[at - 1]):
        page = pages[at - 1]
        tail = max(0, len(page.text) - WIDEST)
        if spans := sentences(page.text[tail:]):
            span = (page.start + tail + spans[-1][0], page.end)
            yield _counted(_Piece(piece.place, page, *span, piece.confidence), tokenizer)


def _runs_on(page: Page) -> bool:
    """Whether a page ends in the middle of a sentence."""
    bare = page.text.rstrip(" \t")
    return bool(bare) and bare[-1] not in _SENTENCE_ENDS


def _fitted(
    scope: Scope,
    chosen: list[_Piece],
    selected: Sequence[tuple[int, SelectedPage]],
    budget: int,
    tokenizer: Tokenizer,
) -> Evidence:
    """Blocks and spans of what was chosen; drops more where joined text counts more tokens."""
    while True:
        spans = _merged(chosen)
        blocks = _blocks(scope, spans, tokenizer)
        counted = [_counted(span, tokenizer) for span in spans]
        tokens = max(sum(b.tokens for b in blocks), sum(s.tokens for s in counted))
        if tokens <= budget:
            break
        chosen.remove(min(chosen, key=lambda item: (item.confidence, -item.place, -item.start)))
    present = {(piece.place, piece.page.index) for piece in counted}
    return Evidence(
        blocks=blocks,
        spans=tuple(
            EvidenceSpan(
                document=scope.indexes[span.place].document.id,
                page=span.page.index,
                start=span.start,
                end=span.end,
                tokens=span.tokens,
                confidence=span.confidence,
            )
            for span in counted
        ),
        left_out=sum((place, choice.page.index) not in present for place, choice in selected),
    )


def _merged(pieces: Iterable[_Piece]) -> list[_Piece]:
    """Pieces in reading order, those that touch on one page joined into one."""
    merged: list[_Piece] = []
    for piece in sorted(pieces, key=lambda item: (item.place, item.start, item.end)):
        last = merged[-1] if merged else None
        if last and _one_page(last, piece) and piece.start <= last.end:
            merged[-1] = replace(
                last,
                end=max(last.end, piece.end),
                confidence=max(last.confidence, piece.confidence),
            )
        else:
            merged.append(piece)
    return merged


def _one_page(first: _Piece, second: _Piece) -> bool:
    return (first.place, first.page.index) == (second.place, second.page.index)


def _blocks(
    scope: Scope, spans: Sequence[_Piece], tokenizer: Tokenizer
) -> tuple[EvidenceBlock, ...]:
    """Spans that touch, under one header. A page whose context differs (another date, another
    heading) begins a new block: its header would say something untrue of the rest."""
    runs: list[list[_Piece]] = []
    for span in spans:
        last = runs[-1][-1] if runs else None
        if (
            last is not None
            and last.place == span.place
            and last.end == span.start
            and last.page.context == span.page.context
        ):
            runs[-1].append(span)
        else:
            runs.append([span])
    return tuple(_block(scope, number, run, tokenizer) for number, run in enumerate(runs, start=1))


def _block(scope: Scope, number: int, run: Sequence[_Piece], tokenizer: Tokenizer) -> EvidenceBlock:
    document = scope.indexes[run[0].place].document
    first, last = run[0].page, run[-1].page
    text = "".join(piece.text for piece in run)
    return EvidenceBlock(
        number=number,
        document=document.id,
        title=document.title,
        label=first.label if first.label == last.label else f"{first.label} – {last.label}",
        context=first.context,
        pages=tuple(dict.fromkeys(piece.page.index for piece in run)),
        start=run[0].start,
        end=run[-1].end,
        text=text,
        tokens=tokenizer.count(text),
        confidence=max(piece.confidence for piece in run),
    )
