"""A BERT encoder as an ONNX graph, made from the weights of a published checkpoint.

Architecture: Devlin et al. 2019 (arXiv:1810.04805); mean pooling over tokens as in Sentence-BERT,
Reimers and Gurevych 2019 (arXiv:1908.10084).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.embedders.onnx_graph import FLOAT, Graph

Floats = NDArray[np.float32]
DTYPES = {"F32": np.float32, "F16": np.float16}
INPUTS = ("ids", "mask")


def read_safetensors(path: Path) -> dict[str, Floats]:
    """The float tensors of a safetensors file: a JSON header, then the raw numbers."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header: dict[str, Any] = json.loads(file.read(size))
        data = file.read()
    tensors: dict[str, Floats] = {}
    for name, entry in header.items():
        if entry.get("dtype") in DTYPES:
            start, end = entry["data_offsets"]
            flat = np.frombuffer(data[start:end], DTYPES[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"]).astype(np.float32)
    return tensors


def encoder(tensors: Mapping[str, Floats], heads: int) -> bytes:
    """The ONNX file of an encoder: ``ids`` and ``mask`` (texts x tokens) in, pooled vectors out.

    Args:
        tensors: Weights under their names in the published checkpoints.
        heads: Attention heads of each layer.
    """
    return _Builder(tensors, heads).build()


class _Builder:
    def __init__(self, tensors: Mapping[str, Floats], heads: int) -> None:
        self._tensors = tensors
        self._heads = heads
        self._graph = Graph()

    def build(self) -> bytes:
        graph = self._graph
        mask = graph.add("Cast", "mask", to=FLOAT)
        hidden = self._far_from(mask)
        x = self._embed()
        layers = {n.split(".")[2] for n in self._tensors if n.startswith("encoder.layer.")}
        for number in range(len(layers)):
            x = self._layer(x, hidden, f"encoder.layer.{number}")
        return graph.to_bytes(INPUTS, self._pool(x, mask))

    def _weights(self, name: str) -> str:
        return self._graph.constant(self._tensors[name])

    def _number(self, value: float) -> str:
        return self._graph.constant(np.array(value, np.float32))

    def _integers(self, *values: int) -> str:
        return self._graph.constant(np.array(values, np.int64))

    def _embed(self) -> str:
        """Words, kinds and places; the first kind is the only one where there is one text."""
        add = self._graph.add
        kind = self._tensors["embeddings.token_type_embeddings.weight"][0]
        places = self._tensors["embeddings.position_embeddings.weight"] + kind
        words = add("Gather", self._weights("embeddings.word_embeddings.weight"), "ids")
        length = add("Shape", "ids", start=1, end=2)
        first = add("Slice", self._graph.constant(places), self._integers(0), length)
        return self._normalise(add("Add", words, first), "embeddings.LayerNorm")

    def _far_from(self, mask: str) -> str:
        """What is added to attention before the softmax: nothing, or far below for padding."""
        add = self._graph.add
        padding = add("Sub", self._number(1), mask)
        return add("Unsqueeze", add("Mul", padding, self._number(-1e9)), self._integers(1, 2))

    def _dense(self, x: str, name: str) -> str:
        weight = self._graph.constant(np.ascontiguousarray(self._tensors[f"{name}.weight"].T))
        product = self._graph.add("MatMul", x, weight)
        return self._graph.add("Add", product, self._weights(f"{name}.bias"))

    def _normalise(self, x: str, name: str) -> str:
        scale, shift = self._weights(f"{name}.weight"), self._weights(f"{name}.bias")
        return self._graph.add("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-12)

    def _layer(self, x: str, hidden: str, name: str) -> str:
        add = self._graph.add
        attention = self._dense(self._attend(x, hidden, name), f"{name}.attention.output.dense")
        x = self._normalise(add("Add", x, attention), f"{name}.attention.output.LayerNorm")
        inner = add("Gelu", self._dense(x, f"{name}.intermediate.dense"))
        outer = self._dense(inner, f"{name}.output.dense")
        return self._normalise(add("Add", x, outer), f"{name}.output.LayerNorm")

    def _attend(self, x: str, hidden: str, name: str) -> str:
        add = self._graph.add
        width = self._tensors[f"{name}.attention.self.query.weight"].shape[0]
        size = width // self._heads
        apart = self._integers(0, 0, self._heads, size)

        def heads(part: str, *order: int) -> str:
            flat = self._dense(x, f"{name}.attention.self.{part}")
            return add("Transpose", add("Reshape", flat, apart), perm=order)

        alike = add("MatMul", heads("query", 0, 2, 1, 3), heads("key", 0, 2, 3, 1))
        scaled = add("Add", add("Mul", alike, self._number(size**-0.5)), hidden)
        mixed = add("MatMul", add("Softmax", scaled, axis=-1), heads("value", 0, 2, 1, 3))
        return add(
            "Reshape", add("Transpose", mixed, perm=(0, 2, 1, 3)), self._integers(0, 0, width)
        )

    def _pool(self, x: str, mask: str) -> str:
        """The mean over real tokens."""
        add = self._graph.add
        real = add("Unsqueeze", mask, self._integers(2))
        total = add("ReduceSum", add("Mul", x, real), self._integers(1), keepdims=0)
        return add("Div", total, add("ReduceSum", real, self._integers(1), keepdims=0))
