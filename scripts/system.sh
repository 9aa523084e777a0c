# shellcheck shell=sh
# Sourced by the scripts beside it: how they speak, and how they install packages of the system.

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "$@"
    exit 1
}

# Whether system packages can be installed here without asking anybody: Debian or Ubuntu, as root or with a
# sudo that needs no password.
can_install() {
    command -v apt-get >/dev/null 2>&1 || return 1
    [ "$(id -u)" -eq 0 ] || sudo -n true >/dev/null 2>&1
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Install packages, quietly unless it goes wrong: apt's own words are shown then.
install_packages() {
    say "installing $* (apt-get)"
    log=$(mktemp)
    if as_root env DEBIAN_FRONTEND=noninteractive apt-get update >"$log" 2>&1 &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >"$log" 2>&1; then
        rm -f "$log"
        return 0
    fi
    tail -n 5 "$log" >&2
    rm -f "$log"
    return 1
}
