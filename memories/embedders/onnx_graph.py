"""Just enough of the ONNX file format to hand a graph to onnxruntime.

An ONNX model is one protocol-buffer message (onnx.proto3, github.com/onnx/onnx). Writing the dozen
fields that an encoder needs takes less than the ``onnx`` package, which nothing else here wants.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

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
