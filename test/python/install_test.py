"""How the package finds what is around it: the shared library, the command, and the libraries of CUDA."""

import importlib
import os

import pytest

import libsheaf as sf
from libsheaf import command, library


@pytest.fixture
def nvidia(tmp_path, monkeypatch):
    """Packages like nvidia-cublas-cu12: folders without a module."""
    for name in ("cublas/lib/libcublasLt.so.12", "cu13/lib/libnvrtc.so.13", "cu13/lib/libnvrtc.alt.so.13", "cublas/lib/libother.so.1"):
        path = tmp_path / "nvidia" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    return tmp_path / "nvidia"


def test_cuda_is_found_in_packages(nvidia):
    ours = [path for path in library.find_cuda() if nvidia in path.parents]
    assert [path.name for path in ours] == ["libnvrtc.so.13", "libcublasLt.so.12"]


def test_the_command_gets_their_folders(nvidia, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sheaf").touch()
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/mine")
    monkeypatch.setattr("sys.argv", ["sheaf", "show", "step"])
    started = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: started.append((str(program), arguments)))
    command.main()
    assert started == [(str(tmp_path / "bin" / "sheaf"), ["sheaf", "show", "step"])]
    folders = os.environ["LD_LIBRARY_PATH"].split(":")
    assert folders[0] == "/mine" and {str(nvidia / "cublas" / "lib"), str(nvidia / "cu13" / "lib")} <= set(folders)


def test_a_library_that_is_not_there(monkeypatch):
    monkeypatch.setenv("SHEAF_LIBRARY", "/no/such/libsheaf.so")
    with pytest.raises(ImportError, match="SHEAF_LIBRARY names /no/such"):
        library.find()


def test_versions():
    assert sf.__version__.count(".") == 2
    assert isinstance(sf.has_gpu(), bool)
