"""Long calls: interrupts, threads, progress, memory."""

import gc
import io
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

import libsheaf as sf
from conftest import EXAMPLES, TINY

LARGE = EXAMPLES / "llama3-8b.stablehlo.mlir.gz"
PROGRAM = """
import os, signal, sys, threading, time
import libsheaf as sf

def schedule(sch):
    data = sch.tune.choice("data", [1, 2, 4, 8])
    sch.mesh({"data": data, "model": 8 // data}).recipe("2d").recompute(sch.tune.choice("how", ["none", "layer", "full"]))

step = sf.load(sys.argv[2])
plan = sf.pin(step, "8xH100", recipe="zero3")
small = sf.load(sys.argv[3])
session = sf.Session(small)
session.init()
calls = {
    "load": lambda: sf.load(sys.argv[2]),
    "plan": lambda: sf.plan(step, "8xH100"),
    "simulate": lambda: plan.simulate(),
    "report": lambda: plan.report(),
    "explain": lambda: plan.explain(),
    "tune": lambda: sf.tune(step, schedule, "8xH100", algorithm="exhaustive"),
    "verify": lambda: sf.pin(small, recipe="dp", ranks=2).verify(steps=10**8),
    "train": lambda: sf.train(small, 10**9, data="synthetic"),
    "session": lambda: session.run(10**9),
    "calibrate": lambda: sf.calibrate(seconds=100),
}
timer = threading.Timer(float(sys.argv[4]), lambda: os.kill(os.getpid(), signal.SIGINT))
timer.start()
try:
    calls[sys.argv[1]]()
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
    if sys.argv[1] == "session":
        print(session.steps > 0, session.run(1) > 0)
"""


@pytest.mark.parametrize("name", ["load", "plan", "simulate", "report", "explain", "tune", "verify", "train", "session", "calibrate"])
def test_interrupts(name):
    """SIGINT ends a call of the main thread, soon, by KeyboardInterrupt, and the process ends well."""
    delay = 0.02 if name in ("load", "simulate", "report", "explain") else 0.3
    done = subprocess.run([sys.executable, "-c", PROGRAM, name, LARGE, EXAMPLES / "gpt-micro.stablehlo.mlir", str(delay)],
                          capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["interrupted"] + (["True True"] if name == "session" else []), done
    assert done.returncode == 0, done


def test_an_interrupted_training_has_saved(gpt, tmp_path):
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        sf.train(gpt, 10**9, data="synthetic", save=tmp_path / "run", save_every=10**8)
    assert sf.train(gpt, 1, data="synthetic", save=tmp_path / "run", resume=True).first > 1


def test_threads(gpt):
    """Plans, and runs of them, from several threads at once; the lock of the interpreter is free meanwhile."""
    plans, errors, ticks = [], [], 0

    def work(recipe):
        try:
            for _ in range(3):
                plan = sf.pin(gpt, recipe=recipe, ranks=2)
                plan.simulate()
                with sf.Session(plan, threads=1) as session:
                    session.init(seed=1)
                    plans.append((recipe, session.run(3)))
                with pytest.raises(sf.SheafError, match="params/nothing"):
                    sf.pin(gpt, mesh="data=2", pins=["params/nothing=R@data"])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[recipe]) for recipe in ("dp", "zero3", "megatron", "2d", "zero1") if recipe != "2d"]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        ticks += 1
        time.sleep(0.001)
    assert not errors and len(plans) == 12
    losses = [loss for _, loss in plans]
    assert max(losses) - min(losses) < 1e-4
    assert ticks > 10


def test_the_lock_is_free_while_c_works(gpt):
    """While one thread is in C for long, another goes on."""
    counted, ended = 0, threading.Event()

    def work():
        sf.train(gpt, 300, data="synthetic")
        ended.set()

    threading.Thread(target=work).start()
    while not ended.is_set():
        counted += 1
    assert counted > 1000


def rss():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def make_and_drop(step, count):
    for i in range(count):
        plan = sf.pin(step, mesh="data=2", pins={"x": ("data",), "y": ("data",)})
        plan.layout("w")
        plan.explain().data
        with pytest.raises(sf.SheafError):
            sf.pin(step, mesh="data=3", pins={"x": ("data",)})
        if i % 10 == 0:
            sf.Step.from_text(TINY, state="w=0")
            with sf.Session(plan) as session:
                session.run(2, w=[0, 0])
            schedule = sf.Schedule(step)
            schedule.mesh("data=2").recipe("dp")
            sf.plan(step, "1x2xCPU", recipes=True, level=2, progress=lambda event: True)


def test_nothing_leaks_in_1000_plans(tiny):
    make_and_drop(tiny, 200)
    before = rss()
    make_and_drop(tiny, 1000)
    grown = rss() - before
    assert grown < 4 * 2**20, f"{grown / 2**20:.1f} MiB more after 1,000 plans"


def test_objects_are_freed(tiny):
    """Each handle is freed once, and not before its object is gone."""
    plan = sf.pin(tiny, mesh="data=2", pins={"x": ("data",), "y": ("data",)})
    freed = plan._handle.free
    view = plan.explain()
    del plan
    gc.collect()
    assert freed.alive  # the view makes its data from the plan
    assert view.data["ranks"] == 2
    del view
    gc.collect()
    assert not freed.alive


RANKS = """
import sys
import libsheaf as sf
from libsheaf.library import lib

plan = sf.pin(sf.load(sys.argv[1]), recipe="zero3", ranks=2)
if lib.sf_ranks_started() == 2:
    with sf.Session(plan, engine="cpu", threads=1) as session:
        session.init(seed=1)
        print(session.ranks, session.run(2), flush=True)
"""


def test_ranks_as_processes(gpt):
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed")
    with sf.Session(sf.pin(gpt, recipe="zero3", ranks=2), engine="cpu", threads=2) as session:
        session.init(seed=1)
        loss = session.run(2)
    quiet = dict(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1",
                 OMPI_MCA_rmaps_base_oversubscribe="1")
    command = ["mpirun", "-n", "2", sys.executable, "-W", "ignore", "-c", RANKS, EXAMPLES / "gpt-micro.stablehlo.mlir"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ | quiet)
    assert done.returncode == 0, done
    if not done.stdout:
        pytest.skip("the library is built without MPI")
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] {loss}" for rank in range(2)]


def test_progress_of_a_terminal():
    from libsheaf.progress import Line

    stream = io.StringIO()
    line = Line(stream)
    line(sf.Event("stage", "recipes: 2 of 9", 0, 0, float("nan")))
    line(sf.Event("step", "", 3, 10, 0.5))
    line.close()
    assert stream.getvalue().split("\r")[1:] == ["recipes: 2 of 9", "step 3 of 10, loss 0.5000".ljust(15), " " * 25, ""]


def test_progress_of_a_search(gpt):
    events = []
    sf.plan(gpt, "1x4xCPU", level=2, progress=events.append)
    assert events and {event.kind for event in events} == {"stage"} and all(event.text for event in events)


def test_a_listener_ends_a_search(gpt):
    events = []
    plan = sf.plan(gpt, "1x4xCPU", progress=lambda event: events.append(event) or False)
    assert len(events) == 1 and plan.ranks == 4


def test_objects_show_themselves_in_notebooks(gpt):
    plan = sf.plan(gpt, "1x4xCPU", level=2)
    page = plan._repr_html_()
    assert page.count("<table>") == 2 and "<svg" in page and "compute" in page and "1x4xCPU" in page
    assert plan.report()._repr_html_().startswith("<iframe srcdoc=")
    assert "&lt;" not in repr(plan.explain()) and plan.explain()._repr_html_().startswith("<pre>")
    assert gpt._repr_html_() and plan.cluster._repr_html_()
