"""Names and key phrases of a text, in its own spelling, without a model."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise

from hmars.lexical.sentences import sentences
from hmars.lexical.stopwords import STOP_WORDS
from hmars.lexical.terms import UNSPACED, WORD_SIGN, fold

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_DATE = re.compile(
    rf"""\b(?:\d{{4}}-\d{{2}}-\d{{2}}|\d{{1,2}}/\d{{1,2}}/\d{{2,4}}|\d{{1,2}}\.\d{{1,2}}\.\d{{4}}
      |(?:\d{{1,2}}(?:st|nd|rd|th)?\s+)?{_MONTH}\s+(?:\d{{1,2}}(?:st|nd|rd|th)?,?\s+)?\d{{4}}
      |\d{{1,2}}(?:st|nd|rd|th)?\s+{_MONTH}|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?)\b
      |\d{{4}}年(?:\d{{1,2}}月(?:\d{{1,2}}日)?)?""",
    re.VERBOSE,
)
_AMOUNT = re.compile(
    r"""(?:[$€£¥₹]|\b(?:USD|EUR|GBP|NGN|CHF)\s?)\d[\d,.]*\d?(?:\s?(?:million|billion|bn|m|k)\b)?
      |\b\d[\d,]*(?:\.\d+)?\s?%
      |\b\d[\d,]*(?:\.\d+)?\s(?:(?:business|calendar|working)\s)?
        (?:days?|hours?|minutes?|seconds?|weeks?|months?|years?|percent|million|billion|km|kg|miles?
        |tons?|tokens?|euros?|dollars?|pounds?)\b""",
    re.VERBOSE,
)
_IDENTIFIER = re.compile(
    r"(?<![\w.])(?:[A-Za-z]{2,}(?:[_.][A-Za-z0-9_]{2,})+(?:\(\))?|__\w+__|[A-Z][a-z]+(?:[A-Z][a-z0-9]+)+"
    r"|[A-Z]{1,6}-?\d[\w\-]*)(?![\w])"
)
_CAPITAL = rf"[A-ZÀ-ÖØ-ÞĀ-ſΆ-ΫЀ-Я](?:{WORD_SIGN}|['’\-])*"
_NAME = re.compile(
    rf"(?<![\w]){_CAPITAL}(?:[ \t]+(?:(?:of|and|de|la|van|von|the|for|&)[ \t]+)?{_CAPITAL}){{0,4}}"
)
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]{{2,}}")
_SPACED_WORD = re.compile(rf"[^\W\d_](?:{WORD_SIGN}|['’\-])*")
_UNSPACED_SIGN = re.compile(f"[{UNSPACED}]")


@dataclass(frozen=True, slots=True)
class Names:
    """What a text names, most frequent first."""

    proper: tuple[str, ...]
    identifiers: tuple[str, ...]
    dates: tuple[str, ...]
    amounts: tuple[str, ...]


def is_quantity(name: str) -> bool:
    """Whether a name is an amount, a date or another number worth comparing."""
    return bool(_DATE.fullmatch(name) or _AMOUNT.fullmatch(name))


def names(text: str, *, limit: int = 20) -> Names:
    """Capitalised sequences, identifiers, dates and amounts, each at most `limit`."""
    return Names(
        proper=_proper(text, limit),
        identifiers=_common(_IDENTIFIER, text, limit),
        dates=_common(_DATE, text, limit),
        amounts=_common(_AMOUNT, text, limit),
    )


def _common(pattern: re.Pattern[str], text: str, limit: int) -> tuple[str, ...]:
    counts = Counter(" ".join(found.split()) for found in pattern.findall(text))
    return tuple(name for name, _ in counts.most_common(limit))


def _proper(text: str, limit: int) -> tuple[str, ...]:
    """Names by how often they occur where a capital says something: not at a sentence's start."""
    inside: Counter[str] = Counter()
    opening: Counter[str] = Counter()
    for start, end in sentences(text):
        sentence = text[start:end]
        lead = len(sentence) - len(sentence.lstrip(" \t\n\r\"'“‘([*#-"))
        for match in _NAME.finditer(sentence):
            name = _trimmed(match.group())
            if name and (not name.isupper() or len(name) <= 6):
                (opening if match.start() <= lead else inside)[name] += 1
    for name, count in opening.items():
        if name in inside or " " in name:
            inside[name] += count
    scored = sorted(
        inside.items(), key=lambda item: (-item[1] * (1 + min(item[0].count(" "), 2) / 2), item[0])
    )
    chosen: dict[str, str] = {}
    for name, _ in scored:
        chosen.setdefault(fold(name), name)
    return tuple(chosen.values())[:limit]


def _trimmed(name: str) -> str:
    """Without leading and trailing function words ("The", "If"), possessives and line breaks."""
    words = name.replace("’", "'").removesuffix("'s").split()
    while words and fold(words[0]) in STOP_WORDS:
        words.pop(0)
    while words and fold(words[-1]) in STOP_WORDS:
        words.pop()
    return " ".join(words) if words and len(words[0]) > 1 and words[0][0].isupper() else ""


def key_phrases(text: str, *, limit: int = 10) -> tuple[str, ...]:
    """Phrases of one to three words that recur, in the text's own spelling, weightiest first."""
    counts: Counter[str] = Counter()
    spellings: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for start, end in sentences(text):
        for phrase in _phrases(text[start:end]):
            key = fold(phrase)
            counts[key] += 1
            spellings[key][phrase] += 1
    if not counts:
        return _unspaced_phrases(text, limit)
    scored = sorted(
        counts.items(), key=lambda item: (-item[1] * (1 + 0.7 * item[0].count(" ")), item[0])
    )
    chosen: list[str] = []
    for key, count in scored:
        if len(chosen) == limit or (count < 2 and len(chosen) >= limit // 2):
            break
        if not any(f" {key} " in f" {other} " or f" {other} " in f" {key} " for other in chosen):
            chosen.append(key)
    phrases = tuple(spellings[key].most_common(1)[0][0] for key in chosen)
    return phrases if len(phrases) > 2 else (*phrases, *_unspaced_phrases(text, limit))[:limit]


def _phrases(sentence: str) -> list[str]:
    """Runs of content words that stand together, their pairs and their single words."""
    found: list[str] = []
    run: list[re.Match[str]] = []
    for match in _SPACED_WORD.finditer(sentence):
        word = match.group()
        content = fold(word) not in STOP_WORDS and len(word) > 2 and not _UNSPACED_SIGN.search(word)
        joined = run and sentence[run[-1].end() : match.start()] == " "
        if run and (not content or not joined or len(run) == 3):
            found.extend(_spread(run))
            run = []
        if content:
            run.append(match)
    found.extend(_spread(run))
    return found


def _spread(run: list[re.Match[str]]) -> list[str]:
    words = [match.group() for match in run]
    singles = [word for word in words if len(word) > 3]
    pairs = [" ".join(pair) for pair in pairwise(words)]
    return [*([" ".join(words)] if len(words) > 2 else []), *pairs, *singles]


def _unspaced_phrases(text: str, limit: int) -> tuple[str, ...]:
    """For scripts without spaces: character sequences that recur and are part of no longer one."""
    counts: Counter[str] = Counter()
    for run in _UNSPACED_RUN.findall(text):
        for size in (2, 3, 4):
            counts.update(run[at : at + size] for at in range(len(run) - size + 1))
    scored = sorted(
        ((count * (len(phrase) - 1), phrase) for phrase, count in counts.items() if count > 1),
        key=lambda item: (-item[0], item[1]),
    )
    chosen: list[str] = []
    for _, phrase in scored[: limit * 20]:
        if len(chosen) == limit:
            break
        if not any(phrase in other or other in phrase for other in chosen):
            chosen.append(phrase)
    return tuple(chosen)
