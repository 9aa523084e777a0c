#!/bin/sh
# Make .venv, or make it anew when its Python is gone or out of range, and install what constraints.txt locks.
#
#   PYTHON=/path/to/python3.12 scripts/venv.sh     takes that Python and no other
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=scripts/system.sh
. scripts/system.sh

# A pyenv shim of a version that isn't active stands in PATH and doesn't run: only running one tells.
is_usable() {
    "$1" -c 'import sys, ssl, sqlite3; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' >/dev/null 2>&1
}

makes_venvs() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

candidates() {
    if [ -n "${PYTHON:-}" ]; then
        printf '%s\n' "$PYTHON"
        return
    fi
    printf '%s\n' python3.14 python3.13 python3.12 python3.11 python3 python \
        /usr/bin/python3.14 /usr/bin/python3.13 /usr/bin/python3.12 /usr/bin/python3.11 /usr/bin/python3 \
        /opt/homebrew/bin/python3 /usr/local/bin/python3
}

# Prints the first Python that will do; with "venv" only one that can make a virtual environment.
find_python() {
    for candidate in $(candidates); do
        if is_usable "$candidate" && { [ "$1" != venv ] || makes_venvs "$candidate"; }; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

# Called when there is no Python that can make a virtual environment: install what is missing, or say it.
provide_python() {
    if [ -n "${PYTHON:-}" ]; then
        is_usable "$PYTHON" || fail "PYTHON=$PYTHON is not a Python 3.11 to 3.14 that runs."
        package="python$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
    elif python=$(find_python any); then
        package="python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
    else
        package="python3 python3-venv"
    fi
    if can_install; then
        # shellcheck disable=SC2086  # two words are two packages
        install_packages $package || true
        find_python venv && return 0
    fi
    say "No Python 3.11 to 3.14 that can make virtual environments was found. Get one, then run make again:"
    say "  Debian, Ubuntu   sudo apt-get install $package"
    say "  macOS            brew install python@3.13"
    say "  anywhere         https://docs.astral.sh/uv/ : uv python install 3.13 && PYTHON=\$(uv python find 3.13) make"
    return 1
}

# Whether .venv stands on the Python that was asked for, if one was.
is_of() {
    [ -z "$1" ] || [ "$("$1" -c "$base" 2>/dev/null)" = "$(.venv/bin/python -c "$base")" ]
}
base='import sys; print(sys.base_prefix, sys.version)'

if ! is_usable .venv/bin/python || ! is_of "${PYTHON:-}"; then
    python=$(find_python venv) || python=$(provide_python) || exit 1
    say "making .venv with $("$python" -c 'import sys; print(sys.executable, sys.version.split()[0])')"
    "$python" -m venv --clear .venv
fi

pip() {
    .venv/bin/python -m pip --disable-pip-version-check --no-input --quiet "$@"
}

say "installing the locked packages into .venv"
pip install --require-hashes -r constraints.txt
pip install --no-deps --no-build-isolation -e .
