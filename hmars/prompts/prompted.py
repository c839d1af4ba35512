"""A model together with the prompt it is asked with: what every model-driven agent is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import BaseModel

from hmars.llm.contract import ChatModel, ChatReply, ChatRequest, value_of
from hmars.model import Role
from hmars.prompts.load import Prompt
from hmars.tokens import Tokenizer

Output = TypeVar("Output", bound=BaseModel)


@dataclass(frozen=True)
class PromptedModel:
    """Renders the prompt, asks the model once and returns the validated reply."""

    role: Role
    model: ChatModel
    prompt: Prompt
    tokenizer: Tokenizer
    tokenizer_exact: bool = False
    """The tokenizer is the model's own, so a server that counts far fewer tokens cut the prompt."""

    async def ask(
        self,
        output: type[Output],
        *,
        affinity: str = "",
        documents: tuple[str, ...] = (),
        on_text: Callable[[str], None] | None = None,
        **values: str,
    ) -> Output:
        """Fill the prompt's placeholders with `values` and ask.

        Raises:
            CallFailed, EndpointError: as `ChatModel.complete`.
        """
        request = self._request(values, affinity, documents)
        request = replace(request, output=output, on_text=on_text)
        return value_of(await self.model.complete(request), output)

    async def first_token(
        self,
        alternatives: int,
        *,
        affinity: str = "",
        documents: tuple[str, ...] = (),
        **values: str,
    ) -> ChatReply:
        """Ask for one token and what else it might have been, in `extra["top_logprobs"]`.

        Raises:
            CallFailed, EndpointError: as `ChatModel.complete`.
        """
        request = self._request(values, affinity, documents)
        request = replace(request, max_tokens=1, top_logprobs=alternatives)
        return await self.model.complete(request)

    def _request(
        self, values: Mapping[str, str], affinity: str, documents: tuple[str, ...]
    ) -> ChatRequest:
        messages = self.prompt.render(**values)
        return ChatRequest(
            role=self.role,
            messages=messages,
            prompt=self.prompt.ref,
            affinity=affinity,
            documents=documents,
            prompt_tokens=sum(self.tokenizer.count(message.content) for message in messages),
            prompt_tokens_exact=self.tokenizer_exact,
        )
