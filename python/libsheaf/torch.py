"""PyTorch in: `sf.torch.export` and `sf.torch.compile`. docs/start/pytorch.md is the way in."""

from .torch_export import TorchStep, export

__all__ = ["TorchStep", "export"]
