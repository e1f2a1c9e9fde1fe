"""Name the engines, with none of their libraries in sight: the command line reads the names before it runs anything."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

__all__ = ["EngineName"]


class EngineName(StrEnum):
    """Name what can be asked to run the network."""

    auto = "auto"
    torch = "torch"
    torch_bf16 = "torch-bf16"
    onnx = "onnx"
    openvino = "openvino"

    @classmethod
    def recorded(cls, name: str) -> Self:
        """Return what to ask for to get the engine that a manifest names.

        Example:
            >>> EngineName.recorded("openvino-int8-0a1b2c3d").value, EngineName.recorded("torch-fp32-cpu").value
            ('openvino', 'torch')
        """
        built = (cls.torch_bf16, cls.onnx, cls.openvino)
        return cls(next((kind for kind in built if name.startswith(f"{kind}-")), cls.torch))
