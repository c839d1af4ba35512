"""What an answer and its price are measured by. Every measure is tested on examples by hand.

Evidence recall and precision, intervals and paired differences are those of `hmars.coverage`.
"""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

from hmars.model import Usage

_ARTICLES = frozenset({"a", "an", "the"})
_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation, ""))
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_NO_ANSWER = re.compile(
    r"\b(no answer|not in the (document|text|evidence|context|conversation)|unanswerable"
    r"|(not|isn't|wasn't|never) (mentioned|stated|specified|provided|discussed|found)"
    r"|insufficient (information|evidence)|(cannot|can't|could not|unable to) "
    r"(be )?(answer|answered|determine|determined|find)"
    r"|(do|does|did) not (contain|say|mention|state|provide)|no (relevant )?(information|evidence)"
    r"|unknown|i do not know|i don't know)\b",
    re.IGNORECASE,
)
_LETTER = (
    re.compile(r"correct answer is:?\s*\**\(?([A-D])\b", re.IGNORECASE),
    re.compile(r"answer(?: is)?:?\s*\**\(?([A-D])\b(?!\s+[a-z])", re.IGNORECASE),
    re.compile(r"^\W*([A-D])\W*$", re.MULTILINE),
    re.compile(r"^\W{0,2}([A-D])[).:,]"),
)


def normalise(text: str) -> str:
    """Lower case without punctuation, articles and double spaces, as SQuAD and HotpotQA do."""
    folded = unicodedata.normalize("NFKC", text).lower().translate(_PUNCTUATION)
    return " ".join(word for word in folded.split() if word not in _ARTICLES)


def words(text: str) -> list[str]:
    """Words of the normalised text; a script without spaces counts by its characters."""
    return _IDEOGRAPH.sub(lambda match: f" {match[0]} ", normalise(text)).split()


def is_no_answer(text: str) -> bool:
    """The text says that there is no answer, or is empty."""
    return not text.strip() or _NO_ANSWER.search(text) is not None


def exact_match(prediction: str, answers: Sequence[str]) -> float:
    """1 where the normalised prediction equals a normalised gold answer."""
    return float(any(normalise(prediction) == normalise(answer) for answer in answers))


def f1(prediction: str, answers: Sequence[str]) -> float:
    """Overlap of words with the best gold answer; yes and no are right or wrong, never half."""
    return max((_f1(prediction, answer) for answer in answers), default=0.0)


def _f1(prediction: str, answer: str) -> float:
    got, wanted = words(prediction), words(answer)
    for plain in (["yes"], ["no"]):
        if plain in (got, wanted):
            return float(got == wanted)
    common = sum((Counter(got) & Counter(wanted)).values())
    if not common:
        return 0.0
    precision, recall = common / len(got), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


def sub_em_paper(prediction: str, answers: Sequence[str]) -> float:
    """Sub_EM as S-PARSER's released code has it: either string contains the other.

    With its hole: "No answer found" contains "no". An empty prediction is contained in anything.
    """
    got = normalise(prediction)
    return float(any(got in normalise(gold) or normalise(gold) in got for gold in answers))


def sub_em(prediction: str, answers: Sequence[str]) -> float:
    """Sub_EM with the hole closed.

    Whole words only; a prediction that says there is no answer matches no answer but one that says
    the same; for yes and no the first of the two words that the prediction holds decides.
    """
    if is_no_answer(prediction):
        return float(any(is_no_answer(answer) for answer in answers))
    got = words(prediction)
    return float(any(_contains(got, words(answer)) for answer in answers))


def _contains(got: list[str], wanted: list[str]) -> bool:
    if wanted in (["yes"], ["no"]):
        return next(([word] for word in got if word in ("yes", "no")), None) == wanted
    if not got or not wanted:
        return False
    return _contains_all(got, wanted) or _contains_all(wanted, got)


def named_share(prediction: str, answers: Sequence[str]) -> float:
    """Share of the answers that a prediction names, all of which are asked for (RULER)."""
    got = words(prediction)
    return sum(_contains_all(got, words(answer)) for answer in answers) / max(1, len(answers))


def _contains_all(got: list[str], wanted: list[str]) -> bool:
    return bool(wanted) and any(
        got[at : at + len(wanted)] == wanted for at in range(len(got) - len(wanted) + 1)
    )


def letter(prediction: str) -> str | None:
    """The option a reply chooses, A to D; None where it cannot be told."""
    for pattern in _LETTER:
        found = pattern.findall(prediction)
        if found:
            return str(found[-1]).upper()
    return None


def letter_accuracy(prediction: str, answer: str) -> float:
    """1 where the chosen option is the gold one; a reply without one is wrong (LongBench-v2)."""
    return float(letter(prediction) == answer.strip().upper())


# ------------------------------------------------------------------ price (S-HMARS App. D)


def parameters(model: str, known: Mapping[str, float]) -> float | None:
    """Parameters of a model: as told, else from its name ("qwen3-8b": 8e9), else not known."""
    if model in known:
        return known[model]
    found = re.findall(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", model.lower())
    if not found:
        return None
    size, unit = found[0]
    return float(size) * (1e9 if unit == "b" else 1e6)


def flops(usage: Mapping[str, Usage], sizes: Mapping[str, float | None]) -> float | None:
    """2 x parameters x tokens, over all roles; None where a role's model size is not known.

    Tokens are those processed: prompt and reply. Cached prefixes count in full, as in the paper.
    """
    total = 0.0
    for role, spent in usage.items():
        tokens = spent.prompt_tokens + spent.completion_tokens
        size = sizes.get(role)
        if tokens and size is None:
            return None
        total += 2 * (size or 0.0) * tokens
    return total


def index_flops(
    tokens: int, capacity: int, group: int, sub: float, mid: float, card: float, region: float
) -> float:
    """Eq. 10: what indexing `tokens` costs, with mean tokens a card and a regional memory."""
    regions, groups = hierarchy(tokens, capacity, group)
    return 2 * sub * regions * card + 2 * mid * groups * region


def query_flops(
    tokens: int,
    capacity: int,
    group: int,
    *,
    mid: float,
    select: float,
    base: float,
    broadcast_tokens: float,
    select_tokens: float,
    answer_tokens: float,
) -> float:
    """Eq. 11: what one question costs, with mean tokens of the three kinds of calls."""
    regions, groups = hierarchy(tokens, capacity, group)
    return (
        2 * mid * groups * broadcast_tokens
        + 2 * select * regions * select_tokens
        + 2 * base * answer_tokens
    )


def hierarchy(tokens: int, capacity: int, group: int) -> tuple[int, int]:
    """Eq. 9: numbers of regions and of mid-agents."""
    regions = math.ceil(tokens / capacity)
    return regions, math.ceil(regions / group)
