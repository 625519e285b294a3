"""Training of a PyTorch module by the library: `compile` gives a function that makes a step of a batch."""

from __future__ import annotations

import torch

from .errors import usage
from .plans import plan as make_plan
from .progress import Progress
from .sessions import Session
from .torch_export import export, uncompiled
from .torch_trace import tensors_of


class Trainer:
    """Makes a step each time it is called, and returns the loss.

    Parameters, buffers and the optimizer's state are with the library. The module and the optimizer have them whenever they are
    asked by PyTorch's own ways: `state_dict`, `load_state_dict`, and calls of the module; `read` brings them otherwise. Learning
    rates are read from the optimizer before each step, so schedulers work as they do.
    """

    def __init__(self, model, optimizer, loss, engine, threads, cluster, seed, progress, options):
        self.model, self.optimizer, self.loss, self.options = uncompiled(model), optimizer, loss, options
        self.cluster, self.engine, self.threads, self.seed, self.progress = cluster, engine, threads, seed, progress
        self.steps, self.session, self.shape = {}, None, None
        self.groups = [{key: value for key, value in group.items() if key not in ("params", "lr", "initial_lr")}
                       for group in optimizer.param_groups]
        self.is_ahead = False
        """the library's state is newer than the module's"""
        self.is_behind = True
        """the module's is newer"""
        self.hooks = []

    def __call__(self, *batch, **named) -> torch.Tensor:
        """A step: trainer(inputs, targets), trainer(input_ids=..., labels=...) or trainer(batch), as `loss` takes it."""
        if named and batch:
            raise usage("a batch comes in place or by keyword, not both")
        batch = named or (batch[0] if len(batch) == 1 else batch)
        self.check_groups()
        self.open(batch)
        if self.is_behind:
            self.step.write(self.session, self.seed)
            self.is_behind = False
        for argument, (_, tensor) in zip(self.step.arguments_of("batch"), tensors_of(batch)):
            self.session.write(argument.index, tensor)
        for argument, group in zip(self.step.arguments_of("lr"), self.optimizer.param_groups):
            self.session.write(argument.index, float(group["lr"]))
        self.is_ahead = True
        return torch.tensor(self.session.run())

    def check_groups(self) -> None:
        """Of the optimizer's numbers, rates alone may change: the step has the others as constants."""
        for now, then in zip(self.optimizer.param_groups, self.groups):
            for key, value in then.items():
                if now[key] != value:
                    raise usage(f"the optimizer's {key!r} is {now[key]}, and was {value}: only `lr` may change between steps",
                                "of schedulers that change others, cycle_momentum=False says not to; else call sf.torch.compile again")

    @property
    def step(self):
        """The step, as exported for the shapes of the last batch."""
        return self.session.step if self.session else None

    def open(self, batch) -> None:
        """The session for batches of this shape. It has the state that the last one had."""
        shape = tuple((path, tuple(tensor.shape), tensor.dtype) for path, tensor in tensors_of(batch)), self.model.training
        if shape == self.shape:
            return
        self.read()
        self.close()
        if shape not in self.steps:
            step = export(self.model, self.loss, self.optimizer, batch, **self.options)
            self.steps[shape] = make_plan(step, self.cluster, progress=self.progress) if self.cluster else step
        self.session = Session(self.steps[shape], engine=self.engine, threads=self.threads)
        self.shape, self.is_behind = shape, True
        read, stale, model, optimizer = lambda *_: self.read(), lambda *_: self.stale(), self.model, self.optimizer
        self.hooks = [model.register_state_dict_pre_hook(read), model.register_forward_pre_hook(read),
                      model.register_load_state_dict_post_hook(stale), optimizer.register_state_dict_pre_hook(read),
                      optimizer.register_load_state_dict_pre_hook(read), optimizer.register_load_state_dict_post_hook(stale)]

    def read(self) -> None:
        """The library's state goes to the module and the optimizer."""
        if self.is_ahead:
            self.is_ahead = False
            self.step.read(self.session)

    def stale(self) -> None:
        self.is_behind, self.is_ahead = True, False

    def close(self) -> None:
        """Brings the state to the module, and frees the library's."""
        self.read()
        for hook in self.hooks:
            hook.remove()
        if self.session:
            self.session.close()
        self.hooks = []
        self.session = self.shape = None

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def compile(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss=None, *, engine: str | None = None, threads: int = 0,
            cluster: str | None = None, seed: int = 0, progress: Progress = None, **options) -> Trainer:
    """A function that trains a module by Sheaf's own engine: trainer(inputs, targets) makes a step and returns the loss.

    engine, threads: as of `Session`. cluster: the step is planned for it, "1x4xCPU" say, and runs split here. seed: of dropout.
    loss and other options: as of `sf.torch.export`, which exports the step when the first batch of a shape comes.
    """
    return Trainer(model, optimizer, loss, engine, threads, cluster, seed, progress, options)
