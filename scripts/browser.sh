#!/bin/sh
# Make sure that there is a browser: one that pageslots finds by itself, else Debian's package where it can be
# installed, else Playwright's download.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=scripts/system.sh
. scripts/system.sh

found() {
    .venv/bin/python -m pageslots.cli browser >/dev/null 2>&1
}

download() {
    if [ "$(uname -s)" = Linux ] && [ "$(id -u)" -eq 0 ]; then
        .venv/bin/python -m playwright install --with-deps --only-shell chromium >&2
    else
        .venv/bin/python -m playwright install --only-shell chromium >&2
    fi
}

found && exit 0
say "no browser found: getting one"
if [ -r /etc/debian_version ] && can_install && install_packages chromium-headless-shell && found; then
    exit 0
fi
say "downloading a headless Chromium (playwright install --only-shell chromium)"
if download && found; then
    exit 0
fi
say "There is still no browser that runs:"
.venv/bin/python -m pageslots.cli browser >&2 || exit 1
