"""Finding a browser: the order, and one clear sentence when there is none that works (case U2)."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.fakes.processes import alive, eventually, pids_in, put_away

from pageslots.local import browser
from pageslots.local.browser import BrowserKind, Machine, NoBrowserError, find_browser


def executable(
    path: Path, says: str = "Chromium 156.0.8078.114 built on Debian", *, script: str = ""
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + (script or f'[ "$1" = --version ] && echo "{says}"\n'))
    path.chmod(0o755)
    return path


class Disk:
    """A made-up machine with its own PATH, home and applications."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "usr/bin"
        self.home = root / "home"
        self.os_release = root / "os-release"

    def machine(self, platform: str = "linux", environment: Mapping[str, str] | None = None) -> Machine:
        return Machine(
            environment={"PATH": str(self.bin)} | dict(environment or {}),
            home=self.home,
            platform=platform,
            os_release=self.os_release,
            root=self.root,
        )

    def playwright(self, revision: int, platform: str = "linux") -> Path:
        caches = "Library/Caches" if platform == "darwin" else ".cache"
        folder = self.home / caches / f"ms-playwright/chromium_headless_shell-{revision}"
        return executable(folder / "chrome-linux/headless_shell", f"HeadlessChrome {revision}.0.1.2")


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def find(disk: Disk, setting: str = "", platform: str = "linux", **environment: str) -> browser.Browser:
    return asyncio.run(find_browser(setting, machine=disk.machine(platform, environment)))


def test_the_order_is_setting_variable_playwright_debian_chromium_chrome(disk: Disk):
    chosen = executable(disk.root / "mine/chromium")
    named = executable(disk.root / "theirs/chromium")
    found = [
        chosen,
        named,
        disk.playwright(1200),
        executable(disk.bin / "chromium-headless-shell"),
        executable(disk.bin / "chromium"),
        executable(disk.bin / "google-chrome", "Google Chrome 141.0.7390.54"),
    ]
    assert find(disk, str(chosen), PAGESLOTS_CHROMIUM=str(named)).path == found[0]
    assert find(disk, PAGESLOTS_CHROMIUM=str(named)).path == found[1]
    for path in found[2:]:
        assert find(disk).path == path
        path.unlink()
    with pytest.raises(NoBrowserError):
        find(disk)


def test_what_was_found_is_described(disk: Disk):
    executable(disk.bin / "google-chrome", "Google Chrome 141.0.7390.54")
    assert find(disk) == browser.Browser(
        disk.bin / "google-chrome", version="141.0.7390.54", kind=BrowserKind.CHROME
    )
    executable(disk.bin / "chromium-headless-shell")
    assert find(disk).kind is BrowserKind.HEADLESS_SHELL


def test_of_several_playwright_shells_the_newest_is_taken(disk: Disk):
    disk.playwright(999)
    newest = disk.playwright(1200)

    assert find(disk).path == newest


def test_playwrights_own_variable_says_where_its_browsers_are(disk: Disk):
    disk.playwright(1200)
    elsewhere = disk.root / "browsers"
    shell = executable(elsewhere / "chromium_headless_shell-1/chrome-linux/headless_shell")

    assert find(disk, PLAYWRIGHT_BROWSERS_PATH=str(elsewhere)).path == shell


def test_on_macos_applications_and_caches_are_looked_at(disk: Disk):
    application = disk.root / "Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
    executable(application, "Google Chrome 141.0.7390.54")
    assert find(disk, platform="darwin").path == application

    shell = disk.playwright(1200, platform="darwin")
    assert find(disk, platform="darwin").path == shell


def test_a_setting_may_be_a_name_on_the_path(disk: Disk):
    executable(disk.bin / "chromium")
    mine = executable(disk.bin / "my-chromium")

    assert find(disk, "my-chromium").path == mine


@pytest.mark.parametrize(
    ("system", "command"),
    [
        ('ID=debian\nVERSION_ID="13"\n', "apt-get install -y chromium-headless-shell"),
        ("ID=ubuntu\nID_LIKE=debian\n", "python -m playwright install --only-shell chromium"),
        ("ID=fedora\n", "python -m playwright install --only-shell chromium"),
        (None, "python -m playwright install --only-shell chromium"),
    ],
)
def test_without_any_browser_the_command_for_this_system_is_named(
    disk: Disk, system: str | None, command: str
):
    if system is not None:
        disk.os_release.write_text(system)

    with pytest.raises(NoBrowserError, match=command):
        find(disk)


def test_a_browser_that_was_asked_for_and_is_not_there_is_never_replaced_by_another(disk: Disk):
    executable(disk.bin / "chromium")

    with pytest.raises(NoBrowserError, match=r"/nowhere/chrome: no such browser \(the setting\)"):
        find(disk, "/nowhere/chrome")
    with pytest.raises(NoBrowserError, match=r"/nowhere/chrome: no such browser \(PAGESLOTS_CHROMIUM\)"):
        find(disk, PAGESLOTS_CHROMIUM="/nowhere/chrome")


def test_a_file_that_is_not_executable_is_named(disk: Disk):
    path = executable(disk.root / "chromium")
    path.chmod(0o644)

    with pytest.raises(NoBrowserError, match=r"not an executable file.*chmod \+x"):
        find(disk, str(path))
    with pytest.raises(NoBrowserError, match="not an executable file"):
        find(disk, str(disk.root))


def test_missing_libraries_are_named(disk: Disk):
    said = "chromium: error while loading shared libraries: {}: cannot open shared object file: No such file"
    script = (
        "".join(f"echo '{said.format(name)}' >&2\n" for name in ("libnss3.so", "libgbm.so.1")) + "exit 127\n"
    )
    path = executable(disk.bin / "chromium", script=script)

    with pytest.raises(NoBrowserError, match=r"libgbm\.so\.1, libnss3\.so.*\n.*install-deps chromium"):
        find(disk, str(path))


def test_a_file_that_is_no_program_is_named(disk: Disk):
    path = executable(disk.bin / "chromium")
    path.write_bytes(b"\x7fELF garbage")

    with pytest.raises(NoBrowserError, match="does not start"):
        find(disk, str(path))


def test_a_browser_that_fails_is_quoted(disk: Disk):
    path = executable(disk.bin / "chromium", script="echo 'no usable sandbox' >&2; exit 1\n")

    with pytest.raises(NoBrowserError, match="status 1 and said: no usable sandbox"):
        find(disk, str(path))


def test_a_browser_that_hangs_is_given_up_and_ended(disk: Disk, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(browser, "VERSION_SECONDS", 0.3)
    pids = disk.root / "pids"
    path = executable(disk.bin / "chromium", script=f"sleep 600 & echo $! $$ > {pids}; wait\n")
    try:
        with pytest.raises(NoBrowserError, match=r"no answer within 0\.3 s"):
            find(disk, str(path))
        eventually(lambda: not alive(pids_in(pids)))
    finally:
        put_away(pids_in(pids))


def test_one_that_does_not_work_is_passed_over_but_named_when_it_is_the_only_one(disk: Disk):
    executable(disk.bin / "chromium-headless-shell", script="exit 1\n")
    with pytest.raises(NoBrowserError, match=r"chromium-headless-shell --version ended.*\n.*install"):
        find(disk)

    chromium = executable(disk.bin / "chromium")
    assert find(disk).path == chromium
