#!/usr/bin/env bash
# The Python package: test/python, in a virtual environment of the build with JAX from PyPI; and the package as it is installed, with
# the library and the command beside its modules, in an environment that has NumPy alone and no compiler: the page
# docs/start/python.md, there and with JAX. SHEAF_PYTHON names a python of 3.10 or newer. The tests of JAX run on eight devices of the host.
set -euo pipefail

python=${SHEAF_PYTHON:-python3}
if [ -n "${SHEAF_SANITIZE:-}" ]; then
    echo "a library with sanitizers is not for a Python without them"
    exit 77
fi
if ! "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "there is no Python of 3.10 or newer with venv ($python; SHEAF_PYTHON names another)"
    exit 77
fi
[ -e "$SHEAF_BUILD/libsheaf.so" ] || { echo "FAILED: $SHEAF_BUILD/libsheaf.so is not built"; exit 1; }

# environment NAME PACKAGES...: makes it once for these packages.
environment() {
    local folder=$SHEAF_BUILD/python/$1 wanted
    shift
    wanted="$("$python" --version) $* $(cat "${1#-r}" 2>/dev/null || true)"
    if [ "$(cat "$folder/made-for" 2>/dev/null)" != "$wanted" ]; then
        rm -rf "$folder"
        "$python" -m venv "$folder"
        if ! "$folder/bin/pip" install --quiet "$@" >"$folder/log" 2>&1; then
            tail -n 2 "$folder/log"
            echo "PyPI does not give $*"
            exit 77
        fi
        echo "$wanted" >"$folder/made-for"
    fi
}
environment tests "-r$SHEAF_SOURCE/test/python/requirements.txt"
environment user numpy

cd "$SHEAF_SOURCE"
export XDG_CACHE_HOME=$SHEAF_BUILD/python/cache
SHEAF_LIBRARY=$SHEAF_BUILD/libsheaf.so PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 JAX_PLATFORMS=cpu \
    XLA_FLAGS=--xla_force_host_platform_device_count=8 \
    "$SHEAF_BUILD/python/tests/bin/python" -m pytest -q -p no:cacheprovider --durations=5 test/python

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r python/libsheaf "$work/"
rm -rf "$work/libsheaf/__pycache__"
cmake --install "$SHEAF_BUILD" --prefix "$work" --component python >/dev/null
for name in user tests; do
    test/python/page "$SHEAF_BUILD/python/$name/bin/python" "$work"
done
