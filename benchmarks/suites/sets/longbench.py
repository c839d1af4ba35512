"""LongBench v2: questions with four options over long documents. No evidence is marked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from benchmarks.suites.base import BenchDocument, Bundle, Case, Json, Options, read_lines, read_text


def load(options: Options) -> Iterator[Bundle]:
    folder = options.folder("longbench_v2")
    asked: defaultdict[str, list[Json]] = defaultdict(list)
    for item in read_lines(folder / "questions.jsonl"):
        asked[str(item["doc"])].append(item)
    for path, items in sorted(asked.items()):
        text = read_text(folder / path)
        document = BenchDocument(f"longbench_v2/{path.split('/')[-1]}", path.split("/")[-1], text)
        yield Bundle(document, tuple(_case(item) for item in items))


def _case(item: Json) -> Case:
    choices = tuple(sorted((str(key), str(text)) for key, text in item["choices"].items()))
    return Case(
        id=f"longbench_v2/{item['_id']}",
        set="longbench_v2",
        question=with_choices(str(item["question"]), choices),
        answers=(str(item["answer"]),),
        scoring="letter",
        kind=f"{item['domain']}: {item['sub_domain']}",
        choices=choices,
        labels=(("difficulty", str(item["difficulty"])), ("length", str(item["length"]))),
    )


def with_choices(question: str, choices: tuple[tuple[str, str], ...]) -> str:
    """The question with its options, and how to answer."""
    options = "\n".join(f"({key}) {text}" for key, text in choices)
    return f'{question}\n{options}\nEnd with "The correct answer is (LETTER)".'
