"""What PyTorch's optimizers, clipping and GradScaler do, so that it can be recorded: their state and numbers are tensors, which become
arguments of the step."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections import defaultdict
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

from .errors import usage


def is_tensor(value) -> bool:
    return isinstance(value, torch.Tensor)


class Optimizer:
    """A torch.optim optimizer, whose state and numbers become arguments."""

    def __init__(self, optimizer: torch.optim.Optimizer, parameters: dict[str, torch.nn.Parameter]):
        self.optimizer = optimizer
        names = {id(parameter): name for name, parameter in parameters.items()}
        self.groups = []
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if id(parameter) not in names:
                    raise usage("the optimizer has a parameter that is not the model's",
                                "make the optimizer of model.parameters(), after the model is where it stays")
            self.groups.append([names[id(parameter)] for parameter in group["params"]])
        self.state = self.first_state(parameters)

    def first_state(self, parameters) -> dict[tuple[str, str], torch.Tensor]:
        """By name of the state and of the parameter. What the optimizer has already is taken; the rest is made as it makes it."""
        optimizer, found = self.optimizer, {}
        made = self.made_state(parameters)
        for group, names in zip(optimizer.param_groups, self.groups):
            for name in names:
                state = optimizer.state.get(parameters[name]) or made.get(name, {})
                for key, value in state.items():
                    if value is None:
                        continue
                    if not is_tensor(value):
                        raise usage(f"the optimizer's state {key!r} of {name} is {type(value).__name__}, not a tensor",
                                    "optimizers of torch.optim have tensors alone")
                    found[key, name] = value.detach()
        return found

    def made_state(self, parameters) -> dict[str, dict]:
        """Calls the optimizer's own `_init_group` on parameters whose gradients are zero."""
        optimizer = self.optimizer
        kind = type(optimizer)
        if all(optimizer.state.get(parameters[name]) for names in self.groups for name in names):
            return {}
        if not hasattr(optimizer, "_init_group"):
            raise usage(f"{kind.__name__} does not say which state it begins with", "make one step with it, and export then")
        stand_ins, before, fields = {}, optimizer.state, len(inspect.signature(kind._init_group).parameters) - 2
        optimizer.state = defaultdict(dict)
        try:
            for group, names in zip(optimizer.param_groups, self.groups):
                names = [name for name in names if parameters[name].requires_grad]
                for name in names:
                    parameter = parameters[name].detach()
                    parameter.grad = torch.zeros((), dtype=parameter.dtype, device=parameter.device).expand(parameter.shape)
                    stand_ins[name] = parameter
                optimizer._init_group({**group, "params": [stand_ins[name] for name in names]}, *([] for _ in range(fields)))
            state = {name: optimizer.state[parameter] for name, parameter in stand_ins.items()}
        finally:
            optimizer.state = before
        if isinstance(optimizer, torch.optim.SGD):
            self.add_momentum(parameters, state)
        return state

    def add_momentum(self, parameters, state) -> None:
        """SGD's buffer is the gradient after the first step, which a buffer of zeros gives as well, unless it is damped."""
        for group, names in zip(self.optimizer.param_groups, self.groups):
            if group["momentum"] and group["dampening"] and not all(parameters[name] in self.optimizer.state for name in names):
                raise usage("SGD with dampening begins with another formula than it goes on with",
                            "make one step with it, and export then")
            for name in names if group["momentum"] else []:
                state[name] = {"momentum_buffer": torch.zeros_like(parameters[name])}

    @contextlib.contextmanager
    def on(self, parameters: dict, state: dict, rates: list):
        """The optimizer has these parameters, this state and these rates meanwhile; `state` has the new state afterwards. Counts
        are computed with in double precision, as PyTorch does with Python's numbers."""
        optimizer, groups, before = self.optimizer, self.optimizer.param_groups, self.optimizer.state
        taken = {"fused": False, "foreach": False}
        try:
            optimizer.param_groups = [
                group | {"params": [parameters[name] for name in names], "lr": rate} | {key: taken[key] for key in taken if key in group}
                | ({"capturable": True} if "capturable" in group else {})
                for group, names, rate in zip(groups, self.groups, rates)]
            optimizer.state = defaultdict(dict)
            shaped = {key for (key, _), value in state.items() if value.ndim}
            for (key, name), value in state.items():
                is_count = key not in shaped and (key == "step" or parameters[name].ndim)
                optimizer.state[parameters[name]][key] = value.double() if is_count else value
            with mock.patch("torch.compiler.is_compiling", lambda: True), NumbersAsTensors(), adafactor_numbers():
                yield optimizer
            for (key, name), value in state.items():
                state[key, name] = optimizer.state[parameters[name]][key].to(value.dtype)
        finally:
            optimizer.param_groups, optimizer.state = groups, before


class NumbersAsTensors(TorchFunctionMode):
    """What optimizers take out of tensors as numbers stays in tensors: rates and counts are values of the step."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "item":
            return args[0]
        if is_tensor(kwargs.get("alpha")) and name.strip("_") in ("add", "sub"):
            return func(args[0], args[1] * kwargs["alpha"])
        if is_tensor(kwargs.get("value")) and name.strip("_") in ("addcmul", "addcdiv"):
            return func(args[0], args[1] * kwargs["value"], args[2])
        return func(*args, **kwargs)


@contextlib.contextmanager
def adafactor_numbers():
    """Adafactor compares numbers that it takes out of tensors."""

    def chosen(of_tensors, of_numbers):
        def choose(a, b):
            if is_tensor(a) or is_tensor(b):
                return of_tensors(*(x if is_tensor(x) else torch.tensor(float(x)) for x in (a, b)))
            return of_numbers(a, b)

        return choose

    module = sys.modules["torch.optim._adafactor"]
    with mock.patch.object(module, "min", chosen(torch.minimum, min), create=True), \
            mock.patch.object(module, "max", chosen(torch.maximum, max), create=True):
        yield


def clip(parameters, norm, value, **options) -> None:
    parameters = list(parameters)
    if value is not None:
        torch.nn.utils.clip_grad_value_(parameters, value, **options)
    if norm is not None:
        torch.nn.utils.clip_grad_norm_(parameters, norm, **options)


def scaler_state(scaler) -> dict[str, torch.Tensor]:
    state = scaler.state_dict()
    return {"scale": torch.tensor(state["scale"], dtype=torch.float32), "growth": torch.tensor(state["_growth_tracker"], dtype=torch.int32)}


class Scaling:
    """What a GradScaler does around the optimizer's step, without a branch: a step whose gradients are not finite leaves the
    parameters and the optimizer's state as they are."""

    def __init__(self, scaler, values, trained, state):
        """Brings the gradients to their size."""
        self.values, self.numbers = values, scaler.state_dict()
        with torch.no_grad():
            gradients = [tensor.grad for tensor in trained if tensor.grad is not None]
            self.is_off = torch.stack([torch.isfinite(gradient).all() for gradient in gradients]).all().logical_not()
            for gradient in gradients:
                gradient.mul_(values["scale",].double().reciprocal().float())
            self.before = [tensor.clone() for tensor in trained], {key: tensor.clone() for key, tensor in state.items()}

    def finish(self, trained, state) -> None:
        values, numbers = self.values, self.numbers
        parameters, others = self.before
        with torch.no_grad():
            for tensor, before in zip(trained, parameters):
                tensor.copy_(torch.where(self.is_off, before, tensor))
            for key, before in others.items():
                state[key] = torch.where(self.is_off, before, state[key])
            count = torch.where(self.is_off, 0, values["growth",] + 1)
            grows = count == numbers["growth_interval"]
            factor = torch.where(self.is_off, numbers["backoff_factor"], torch.where(grows, numbers["growth_factor"], 1.0))
            values["scale",] = (values["scale",] * factor).float()
            values["growth",] = torch.where(grows, 0, count).to(torch.int32)
