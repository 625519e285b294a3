"""PyTorch: `sf.torch.export` makes a step of a module, `sf.torch.compile` trains one. docs/start/pytorch.md is the way in."""

from .torch_compile import Trainer, compile
from .torch_export import TorchStep, export

__all__ = ["TorchStep", "Trainer", "compile", "export"]
