"""Plans: how a step is split over ranks."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from ctypes import byref, c_char_p, c_int, c_void_p, create_string_buffer
from typing import TYPE_CHECKING, Any

from . import prototypes as c
from .clusters import Cluster, as_cluster
from .errors import usage
from .library import DIAG, Handle, Text, call, call_long, lib, make_struct, new_interrupt, output_to, str_of, text_of, to_bytes
from .progress import Listener, Progress
from .steps import Step, tree_path
from .views import Page, View, bytes_text, draw_bars, draw_table, seconds_text

if TYPE_CHECKING:
    from .schedules import Schedule

Pins = Mapping[str, Any] | Iterable[str]


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A plan that a search has considered."""

    name: str
    mesh: dict[str, int]
    seconds: float
    memory: int
    """bytes of the rank that needs most"""
    fits: bool
    lowered: bool
    """its programs were simulated; else it is an estimate"""


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a tensor is split: a share for each axis of the mesh, "R", "S(0)", ... str() is "[S(0), R]"."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    axes: dict[str, str]
    phase: str = ""
    """"forward", "backward", ...; of an argument "\""""

    def __str__(self) -> str:
        return f"[{', '.join(self.axes.values())}]"

    @property
    def spec(self) -> tuple[str | tuple[str, ...] | None, ...]:
        """For each dimension the axes that split it, as a PartitionSpec has them. An error for shares that one cannot say."""
        dims: list[list[str]] = [[] for _ in self.shape]
        for axis, share in self.axes.items():
            match = re.fullmatch(r"S\((\d+)\)", share)
            if match:
                dims[int(match[1])].append(axis)
            elif share != "R":
                raise usage(f"{self.name} is {share} over {axis}, which no PartitionSpec says")
        return tuple(None if not d else d[0] if len(d) == 1 else tuple(d) for d in dims)


class Spec:
    """An sf_plan_spec: what is fixed of a plan. The library parses each value."""

    def __init__(self, pins: Pins | None, **fields):
        self.struct = make_struct(c.sf_plan_spec)
        self.kept = []  # texts are borrowed
        for name, value in fields.items():
            if value is None:
                continue
            if isinstance(value, Mapping):
                value = ",".join(f"{axis}={size}" for axis, size in value.items())
            elif isinstance(value, (list, tuple)):
                value = ",".join(map(str, value))
            text = text_of(value if isinstance(value, os.PathLike) else str(value))
            self.kept.append(text)
            call("sf_plan_spec_set", byref(self.struct), name.encode(), text, DIAG)
        texts = [text_of(text) for text in pin_texts(pins)]
        if texts:
            self.kept.append((c_char_p * len(texts))(*texts))
            self.struct.pins, self.struct.npins = self.kept[-1], len(texts)

    @property
    def ref(self):
        return byref(self.struct)


def pin_texts(pins: Pins | None) -> list[str]:
    """ "PATTERN=LAYOUT@AXIS" of pins, which are a list of these, or a dictionary from tree paths to "S(0)@data", to lists of
    them, to {"data": "S(0)"}, or to a PartitionSpec, a tuple with an axis, several axes or None for each dimension."""
    if pins is None:
        return []
    if isinstance(pins, str):
        return [pins]
    if not isinstance(pins, Mapping):
        return [str(pin) for pin in pins]
    out = []
    for name, said in pins.items():
        if isinstance(said, str):
            shares = [said]
        elif isinstance(said, Mapping):
            shares = [f"{share}@{axis}" for axis, share in said.items()]
        elif isinstance(said, list):
            shares = said
        else:
            shares = [f"S({dim})@{axis}" for dim, axes in enumerate(said)
                      for axis in ((axes,) if isinstance(axes, str) else axes or ())] or ["R@*"]
        out += [f"{tree_path(name)}={share}" for share in shares]
    return out


class Plan:
    """A plan of a step. Made by `plan`, `pin`, `tune` or `load_plan`. It does not change; threads may share it."""

    def __init__(self, handle: int | None, step: Step, cluster: Cluster | None):
        self._handle = Handle(handle, "sf_plan_free", owner=step)
        self.step = step
        self.cluster = cluster
        """the cluster that it was made for; None: it was pinned without one"""

    @classmethod
    def _of(cls, handle: int, step: Step, cluster: Cluster | None, owner) -> Plan:
        """A plan that `owner` frees."""
        made = cls.__new__(cls)
        made._handle, made.step, made.cluster = Handle(handle, owner=owner), step, cluster
        return made

    @property
    def ranks(self) -> int:
        return lib.sf_plan_ranks(self._handle)

    @property
    def mesh(self) -> dict[str, int]:
        """The axes and their sizes. Ranks are numbered row-major."""
        return {str_of(lib.sf_plan_axis_name(self._handle, i)): lib.sf_plan_axis_size(self._handle, i)
                for i in range(lib.sf_plan_axes(self._handle))}

    @property
    def seconds(self) -> float | None:
        """Of a step, as the search that made the plan expects; None: no search made it."""
        return lib.sf_plan_seconds(self._handle) or None

    @property
    def memory(self) -> int:
        """Bytes of the rank that needs most, simulated."""
        return self.explain().data["memory"]

    @property
    def passes(self) -> str:
        """The passes that rewrite its programs."""
        return str_of(lib.sf_plan_passes_of(self._handle))

    @property
    def candidates(self) -> list[Candidate]:
        """The plans that the search has considered, best first; [] where no search for its cluster made the plan."""
        return [Candidate(row["name"], _read_mesh(row["mesh"]), row["seconds"], row["memory"], row["fits"], row["lowered"])
                for row in self.explain().data.get("alternatives", [])]

    def layout(self, name: str | int) -> Layout:
        """The layout of an argument by its tree path, "params.layer_0.mlp.up.kernel", or of what an op computes, by
        "layer_0/mlp/up/dot_general". `layouts` has all that match."""
        found = self.layouts(name if isinstance(name, str) else self.step.argument(name).path)
        if not found:
            raise usage(f"the step has no tensor {name!r}", "plan.layouts() lists all")
        return found[0]

    def layouts(self, name: str | None = None) -> list[Layout]:
        """The layouts of the tensors that a name or a pattern matches; None: all."""
        pattern = None if name is None else tree_path(name).encode()
        count = lib.sf_plan_tensors(self._handle, self.step._handle, pattern, 0, None)
        if count < 0:
            raise MemoryError("there is no memory for the names of tensors")
        numbers = (c_int * max(count, 1))()
        lib.sf_plan_tensors(self._handle, self.step._handle, pattern, count, numbers)
        return [self._tensor(number) for number in numbers[:count]]

    def _tensor(self, number: int) -> Layout:
        view = make_struct(c.sf_plan_tensor_view)
        lib.sf_plan_tensor(self._handle, self.step._handle, number, byref(view))
        return Layout(str_of(view.name), str_of(view.dtype), tuple(view.dims[: view.rank]), self._axes(view.layout),
                      str_of(view.phase))

    def _axes(self, text: bytes) -> dict[str, str]:
        shares = re.findall(r"(?:[^,()]|\([^)]*\))+", str_of(text)[1:-1])
        return dict(zip(self.mesh, (share.strip() for share in shares)))

    def argument_layout(self, name: str | int) -> Layout:
        """The layout of an argument."""
        argument, text = self.step.argument(name), create_string_buffer(c.SF_LAYOUT_TEXT)
        lib.sf_plan_argument_layout(self._handle, self.step._handle, argument.index, text)
        return Layout(argument.name, argument.dtype, argument.shape, self._axes(text.value))

    def result_layout(self, name: str | int) -> Layout:
        """The layout of a result, as the step returns it."""
        result, text = self.step.result(name), create_string_buffer(c.SF_LAYOUT_TEXT)
        lib.sf_plan_result_layout(self._handle, self.step._handle, result.index, text)
        return Layout(result.name, result.dtype, result.shape, self._axes(text.value))

    def boxes(self, name: str | int, rank: int) -> list[tuple[slice, ...]]:
        """The parts of an argument that a rank has; one, unless the split is strided. [] on a rank without it."""
        return self._boxes("sf_plan_boxes", "sf_plan_box", self.step.argument(name).index, rank)

    def result_boxes(self, name: str | int, rank: int) -> list[tuple[slice, ...]]:
        """The same of a result."""
        return self._boxes("sf_plan_result_boxes", "sf_plan_result_box", self.step.result(name).index, rank)

    def _boxes(self, count, get, index, rank):
        handles, box, found = (self._handle, self.step._handle), make_struct(c.sf_box), []
        for i in range(getattr(lib, count)(*handles, index, rank)):
            getattr(lib, get)(*handles, index, rank, i, byref(box))
            found.append(tuple(slice(o, o + e) for o, e in zip(box.offset[: box.rank], box.extent[: box.rank])))
        return found

    def _cluster(self, cluster) -> Cluster:
        """That one, or its own, or, as of the command, cores of one machine."""
        return as_cluster(cluster) or self.cluster or Cluster(f"1x{self.ranks}xCPU")

    def explain(self, what: str | None = None, *, cluster: Cluster | str | None = None, all: bool = False) -> View:
        """What the plan costs: time, memory by kind, collectives, and the candidates that were considered. With `what`, a name or
        a pattern: the layouts of these tensors, their resharding, and what other layouts of arguments would cost."""
        on = self._cluster(cluster)
        pattern = None if what is None else tree_path(what).encode()

        def write(json_text):
            out = Text()
            show = make_struct(c.sf_show_options, json=json_text, all=all)
            call_long("sf_plan_explain", self._handle, self.step._handle, on._handle, pattern, byref(show), out.ref, DIAG)
            return str(out)

        return View(write(False), lambda: write(True))

    def simulate(self, *, cluster: Cluster | str | None = None, trace: str | os.PathLike | None = None, ranks: int = 0,
                 against: str | os.PathLike | None = None, all: bool = False) -> View:
        """Simulates a step: compute, waits, links and memory.

        trace: a file for the timeline, for Perfetto and chrome://tracing, of at most `ranks` ranks; against: the timeline of a
        run, for both side by side.
        """
        on = self._cluster(cluster)

        def write(json_text):
            out = Text()
            to = output_to(trace) if trace is not None and not json_text else None
            options = make_struct(c.sf_sim_options, ranks=ranks, against=against)
            if to is not None:
                options.trace = c.POINTER(c.sf_output)(to)
            show = make_struct(c.sf_show_options, json=json_text, all=all)
            call_long("sf_plan_simulate", self._handle, self.step._handle, on._handle, byref(options), byref(show), out.ref, DIAG)
            return str(out)

        return View(write(False), lambda: write(True))

    def report(self, path: str | os.PathLike | None = None, *, cluster: Cluster | str | None = None, title: str | None = None,
               against: str | os.PathLike | None = None, threads: int = 0) -> Page:
        """A page about the plan: the timeline of a rank, memory, traffic, costs by module, other recompute and recipes.
        Notebooks show it inline; `path` is a file that it is written to as well."""
        on = self._cluster(cluster)

        def write(json_text):
            out = Text()
            options = make_struct(c.sf_report_options, title=title or self.step.name, against=against, json=json_text,
                                  threads=threads)
            call_long("sf_plan_report", self._handle, self.step._handle, on._handle, byref(options), out.ref, DIAG)
            return str(out)

        page = Page(write(False), lambda: write(True))
        if path is not None:
            page.save(path)
        return page

    def diff(self, other: Plan, *, cluster: Cluster | str | None = None, names: tuple[str, str] = ("this", "other"),
             all: bool = False) -> View:
        """What differs between two plans of one step. With a cluster, both are simulated on it."""
        on = as_cluster(cluster)
        if other.step.hash != self.step.hash:
            raise usage(f"the plans are of different steps, {self.step.name} and {other.step.name}")

        def write(json_text):
            out = Text()
            show = make_struct(c.sf_show_options, json=json_text, all=all)
            call_long("sf_plan_diff_on" if on else "sf_plan_diff", self.step._handle, self._handle, other._handle,
                      names[0].encode(), names[1].encode(), *([on._handle] if on else []), byref(show), out.ref, DIAG)
            return str(out)

        return View(write(False), lambda: write(True))

    def shardings(self, devices=None, *, layouts: str = "exact"):
        """NamedShardings of JAX for arguments and results; see `libsheaf.jax_shardings.shardings`."""
        from .jax_shardings import shardings

        return shardings(self, devices, layouts)

    def axis_rules(self, names: dict) -> list:
        """Rules of logical axes that say its layouts; see `libsheaf.jax_shardings.axis_rules`."""
        from .jax_shardings import axis_rules

        return axis_rules(self, names)

    def jit(self, function=None, devices=None, *, layouts: str = "exact", donate: bool | None = None):
        """The step as a function of JAX that runs by this plan on devices; see `libsheaf.jax_run.jit`."""
        from .jax_run import jit

        return jit(self, function, devices, layouts=layouts, donate=donate)

    def torch(self, *, approximate: bool = False) -> str:
        """The plan as a program for PyTorch itself, of a step that `sf.torch.export` made; see `libsheaf.torch_plan.source_of`."""
        return _for_torch().source_of(self, approximate)

    def program(self, rank: int = 0) -> str:
        """The local program of a rank, a line per instruction."""
        out = Text()
        call_long("sf_plan_show_program", self._handle, self.step._handle, rank, out.ref, DIAG)
        return str(out)

    def check(self, *, memory: int | str = 0) -> None:
        """Checks, without running anything, that the plan computes the step, in so much memory of a rank. Raises SheafError."""
        call_long("sf_plan_check", self._handle, self.step._handle, to_bytes(memory), DIAG)

    def verify(self, **options):
        """Runs the plan beside the unsplit step; see `verify`."""
        from .runs import verify

        return verify(self, **options)

    def shrink(self) -> Plan:
        """The plan of the same step at dimensions as small as they can be, which runs on a small machine."""
        step, made, about = c_void_p(), c_void_p(), c_char_p()
        call_long("sf_plan_shrink", self._handle, self.step._handle, DIAG, byref(step), byref(made), byref(about))
        return Plan(made.value, Step(step.value, self.step.name + ", shrunk"), self.cluster)

    def use_passes(self, passes: str | Sequence[str], *, cluster: Cluster | str | None = None, memory: int | str = 0) -> Plan:
        """The plan with these passes in place of its own."""
        made = self.from_dict(self.to_dict(), self.step, cluster=self.cluster)
        passes = passes if isinstance(passes, str) else ",".join(passes)
        call_long("sf_plan_use_passes", made._handle, passes.encode(), self._cluster(cluster)._handle, to_bytes(memory), DIAG)
        return made

    def to_dict(self) -> dict:
        """The plan as its file has it (docs/reference/plan-file.md)."""
        out = Text()
        call("sf_plan_save", self._handle, self.step._handle, out.ref, DIAG)
        return json.loads(str(out))

    @classmethod
    def from_dict(cls, plan: dict, step: Step, *, cluster: Cluster | str | None = None) -> Plan:
        """A plan that `to_dict` gave, of this step."""
        import tempfile

        with tempfile.TemporaryDirectory(prefix="sheaf-") as folder:
            file = os.path.join(folder, "plan.json")
            with open(file, "w", encoding="utf-8") as out:
                json.dump(plan, out)
            return load_plan(file, step, cluster=cluster)

    def save(self, path: str | os.PathLike) -> None:
        """Writes a plan file, which the command `sheaf` reads too."""
        call("sf_plan_save", self._handle, self.step._handle, byref(output_to(path)), DIAG)

    def show(self) -> View:
        """A summary: shards of the state, collectives of a step, memory of a rank."""

        def write(json_text):
            out = Text()
            show = make_struct(c.sf_show_options, json=json_text)
            call("sf_plan_show", self._handle, self.step._handle, byref(show), out.ref, DIAG)
            return str(out)

        return View(write(False), lambda: write(True))

    def _what(self) -> str:
        mesh = ",".join(f"{axis}={size}" for axis, size in self.mesh.items())
        return f"{self.ranks} ranks, {mesh}"

    def __repr__(self) -> str:
        time = f", {seconds_text(self.seconds)} a step" if self.seconds else ""
        return f"<Plan of {self.step.name}: {self._what()}{time}>"

    def _repr_html_(self) -> str:
        data = self.explain().data
        other = max(0.0, data["seconds"] - data["compute"] - data["exposed"])
        time = [("compute", data["compute"]), ("exposed communication", data["exposed"]), ("idle", other)]
        kinds = sorted(data["memory_by_kind"].items(), key=lambda kind: -kind[1])
        picture = draw_bars([("time", time, seconds_text), ("memory", kinds, bytes_text)])
        rows = [["step", self.step.name], ["ranks", self._what()], ["cluster", data.get("cluster") or "cores of one machine"],
                ["recipe", data.get("recipe") or "-"], ["passes", self.passes or "-"],
                ["step time", seconds_text(data["seconds"])], ["memory of a rank", bytes_text(data["memory"])]]
        others = [[a.name, ",".join(f"{k}={v}" for k, v in a.mesh.items()), ("" if a.lowered else "~") + seconds_text(a.seconds),
                   bytes_text(a.memory), "yes" if a.fits else "no"] for a in self.candidates[:8]]
        head = ["candidate", "mesh", "step", "memory", "fits"]
        return draw_table(rows) + picture + (draw_table(others, head) if others else "")


def _read_mesh(text: str) -> dict[str, int]:
    return {axis: int(size) for axis, size in re.findall(r"([^,=]+)=(\d+)", text)}


def load_plan(path: str | os.PathLike, step: Step | None = None, *, cluster: Cluster | str | None = None) -> Plan:
    """Reads a plan file. The step and the cluster are those that it was made from, unless they are given."""
    origin = make_struct(c.sf_plan_origin)
    call("sf_plan_origin_of", os.fsencode(path), DIAG, byref(origin))
    if step is None:
        out = c_void_p()
        call_long("sf_plan_load_step", os.fsencode(path), None, None, DIAG, byref(out), made=(out, "sf_graph_free"))
        step = Step(out.value, os.path.basename(str_of(origin.step)), str_of(origin.step))
    if cluster is None and origin.cluster:
        cluster = str_of(origin.cluster)
    out = c_void_p()
    call_long("sf_plan_load", step._handle, os.fsencode(path), DIAG, byref(out), made=(out, "sf_plan_free"))
    return Plan(out.value, step, as_cluster(cluster))


def _primitives(step: Step, schedule, ranks: int, unsafe: bool) -> tuple[Schedule | None, str | None]:
    """The schedule that is meant, or the name of a pipeline schedule."""
    from .schedules import Schedule

    if schedule is None or isinstance(schedule, Schedule):
        if schedule is not None and schedule.step.hash != step.hash:
            raise usage(f"the schedule is of another step, {schedule.step.name}")
        return schedule, None
    if callable(schedule):
        made = Schedule(step, ranks=ranks)
        schedule(made)
        return made, None
    if os.fspath(schedule).endswith(".lua"):
        made = Schedule(step, ranks=ranks)
        made.run_lua(schedule, unsafe=unsafe)
        return made, None
    return None, os.fspath(schedule)


def plan(step: Step | str | os.PathLike, cluster: Cluster | str | os.PathLike | dict, *,
         mesh: str | Mapping[str, int] | None = None, pins: Pins | None = None, recipe: str | None = None,
         ranks: int | None = None, stages: int | str | Sequence[str] | None = None,
         schedule: str | os.PathLike | Callable[[Schedule], object] | Schedule | None = None,
         micro_batches: int | str | None = None, recompute: str | Sequence[str] | None = None,
         co_shard: int | str | None = None, shard_state: str | None = None, passes: str | Sequence[str] | None = None,
         kernels: str | None = None, memory: int | str | None = None, level: int = 0, seconds: float = 0,
         recipes: bool = False, margin: float | None = None, reserve: int | str = 0, threads: int = 0, unsafe: bool = False,
         target: str | None = None, progress: Progress = None) -> Plan:
    """Finds the fastest plan of a step on a cluster, among those that fit in memory and keep to what is fixed.

        plan = sf.plan(step, "4x8xH100", memory="75G")

    What is fixed, all of it optional (docs/reference/plan-file.md has the values):
        mesh: "data=2,model=4" or {"data": 2, "model": 4}.
        pins: {"params.wte.embedding": "S(0)@model"}, a PartitionSpec or a tuple in place of the text, or a list of
            "PATTERN=LAYOUT@AXIS".
        recipe: "dp", "zero3", "2d+zero1", ...
        stages, micro_batches, recompute, co_shard, shard_state, passes, kernels, ranks.
        schedule: a file .lua; a function that gets a Schedule and applies primitives to it; a Schedule; or the name of a
            pipeline schedule, "1f1b". `unsafe` lets a file in Lua open files and run programs.
        memory: bytes of a device that a plan may use, "75G".

    How it searches:
        level: 2: fewer meshes, faster; 3: all. seconds: stop improving then. recipes: consider recipes alone.
        margin: how much faster than the best recipe a searched plan has to be, 0.01; 0: the fastest is taken.
        reserve: bytes of each device that are left free.
        target: "jax": only plans that `Plan.jit` runs as they are, without stages and without strided layouts of arguments.
            "torch": only recipes, meshes and recompute of layers that `Plan.torch` can write.
        progress: False: none; True or None: shown in terminals and notebooks; a function is called with each Event, and
            ends the search when it returns False.
    """
    if target == "torch":
        plan_for_torch = _for_torch().plan_for
        given = {name: value for name, value in locals().items()
                 if name not in ("step", "cluster", "target", "recipe", "mesh", "recompute", "stages", "plan_for_torch")}
        return plan_for_torch(lambda **fixed: plan(step, cluster, stages=1, **fixed, **given), as_cluster(cluster), recipe, mesh,
                              recompute, stages)
    if target is not None:
        from .jax_shardings import plan_for

        given = {name: value for name, value in locals().items() if name not in ("step", "cluster", "target", "pins", "stages", "plan_for")}
        return plan_for(target, lambda pins, stages: plan(step, cluster, pins=pins, stages=stages, **given), pin_texts(pins), stages)
    step, on = _as_step(step), as_cluster(cluster)
    if on is None:
        raise usage("a plan is for a cluster", 'name one: sf.plan(step, "8xH100"); sf.Cluster.list() has those of the library')
    primitives, order = _primitives(step, schedule, ranks or on.devices, unsafe)
    spec = Spec(pins, mesh=mesh, recipe=recipe, ranks=ranks, stages=stages, schedule=order, micro_batches=micro_batches,
                recompute=recompute, co_shard=co_shard, shard_state=shard_state, passes=passes, kernels=kernels, memory=to_bytes(memory) or None)
    interrupt, out = new_interrupt(), c_void_p()
    with Listener(progress, interrupt) as listener:
        options = make_struct(c.sf_plan_options, cluster=on._handle, level=level, seconds=seconds, recipes=recipes,
                              margin=-1.0 if margin == 0 else margin, reserve=to_bytes(reserve), threads=threads, step_file=step.file,
                              cluster_name=on.name, listener=listener.callback, interrupt=interrupt)
        name, what = ("sf_primitives_search", primitives._list) if primitives else ("sf_plan_search", step._handle)
        call_long(name, what, spec.ref, byref(options), DIAG, byref(out), interrupt=interrupt, listener=listener,
                  made=(out, "sf_plan_free"))
    return Plan(out.value, primitives.result_step() if primitives else step, on)


def pin(step: Step | str | os.PathLike, cluster: Cluster | str | os.PathLike | dict | None = None, *, ranks: int | None = None,
        mesh: str | Mapping[str, int] | None = None, pins: Pins | None = None, recipe: str | None = None,
        stages: int | str | Sequence[str] | None = None,
        schedule: str | os.PathLike | Callable[[Schedule], object] | Schedule | None = None,
        micro_batches: int | str | None = None, recompute: str | Sequence[str] | None = None, co_shard: int | str | None = None,
        shard_state: str | None = None, passes: str | Sequence[str] | None = None, kernels: str | None = None,
        memory: int | str | None = None, unsafe: bool = False) -> Plan:
    """Makes the plan that pins, a recipe or a schedule fix, without a search: all else follows by sharding propagation.

        sf.pin(step, recipe="2d", ranks=4)
        sf.pin(step, mesh="model=2", pins={"mlp/up/kernel": (None, "model")})

    The parts are those of `plan`. `cluster` has the costs that passes and simulations go by.
    """
    step, on = _as_step(step), as_cluster(cluster)
    ranks = ranks or (on.devices if on and mesh is None else None)
    primitives, order = _primitives(step, schedule, ranks or 0, unsafe)
    spec = Spec(pins, mesh=mesh, recipe=recipe, ranks=ranks, stages=stages, schedule=order, micro_batches=micro_batches,
                recompute=recompute, co_shard=co_shard, shard_state=shard_state, passes=passes, kernels=kernels, memory=to_bytes(memory) or None)
    out = c_void_p()
    name, what = ("sf_primitives_pin", primitives._list) if primitives else ("sf_pin_step", step._handle)
    call_long(name, what, spec.ref, DIAG, byref(out), made=(out, "sf_plan_free"))
    return Plan(out.value, primitives.result_step() if primitives else step, on)


def _for_torch():
    """The module of plans for PyTorch, which has to be here."""
    try:
        from . import torch_plan
    except ImportError as error:
        raise usage(f"plans for PyTorch need PyTorch and JAX ({error})", "pip install torch==2.10.0 jax==0.10.2") from error
    return torch_plan


def _as_step(step) -> Step:
    return step if isinstance(step, Step) else Step.load(step)


def recipes() -> dict[str, str]:
    """The recipes, with half a sentence about each."""
    return _table("sf_recipe_name", "sf_recipe_about")


def passes() -> dict[str, str]:
    """The passes, with half a sentence about each."""
    return _table("sf_pass_name", "sf_pass_about")


def _table(name: str, about: str) -> dict[str, str]:
    found, index = {}, 0
    while getattr(lib, name)(index):
        found[str_of(getattr(lib, name)(index))] = str_of(getattr(lib, about)(index))
        index += 1
    return found
