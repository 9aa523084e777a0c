"""Finds a browser on this machine, and says what to do when there is none that works.

Looked for in this order: what the user said, `PAGESLOTS_CHROMIUM`, Playwright's own headless shell, Debian's
chromium-headless-shell, Chromium, Google Chrome. The headless shell comes first because it needs half the
memory and start time of a full browser.
"""

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

VERSION_SECONDS = 20.0
"""Deadline of `--version`: a cold disk may take seconds, a browser that hangs takes for ever."""
ENVIRONMENT = "PAGESLOTS_CHROMIUM"
_DEBIAN = "sudo apt-get install -y chromium-headless-shell"
_PLAYWRIGHT = "python -m playwright install --only-shell chromium"
_NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
)
_MAC_APPLICATIONS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


class BrowserKind(StrEnum):
    """What was found: decides nothing but what a person is told."""

    HEADLESS_SHELL = "headless shell"
    CHROMIUM = "Chromium"
    CHROME = "Google Chrome"


@dataclass(frozen=True, slots=True)
class Browser:
    """A browser that answered `--version`."""

    path: Path
    version: str
    kind: BrowserKind


class NoBrowserError(Exception):
    """There is no usable browser; the text says why, and the command that helps."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where browsers are looked for: this machine's, or a made-up one's."""

    environment: Mapping[str, str]
    home: Path
    platform: str = sys.platform
    os_release: Path = Path("/etc/os-release")
    root: Path = Path("/")

    @classmethod
    def this(cls) -> "Machine":
        """The one that this program runs on."""
        return cls(environment=os.environ, home=Path.home())


async def find_browser(setting: str = "", *, machine: Machine | None = None) -> Browser:
    """The first browser that is there. One that was asked for by name must work; raises NoBrowserError."""
    machine = machine or Machine.this()
    for chosen, by in ((setting, "the setting"), (machine.environment.get(ENVIRONMENT, ""), ENVIRONMENT)):
        if chosen:
            path = _named(chosen, by, machine)
            try:
                return await _try(path)
            except NoBrowserError as error:
                raise NoBrowserError(f"{error} ({by})") from None
    problems = []
    for path in _candidates(machine):
        try:
            return await _try(path)
        except NoBrowserError as error:
            problems.append(str(error))
    if problems:
        raise NoBrowserError(f"{problems[0]}\nOr install another one: {install_command(machine)}")
    raise NoBrowserError(
        f"no browser was found: install one with\n  {install_command(machine)}\n"
        f"or name yours with {ENVIRONMENT}=/path/to/chromium"
    )


def install_command(machine: Machine) -> str:
    """The command that installs a browser on this kind of system."""
    with suppress(OSError):
        words = machine.os_release.read_text(encoding="utf-8").lower()
        # Ubuntu's package is a snap, which a process of ours can't start in its own folders.
        if re.search(r'^id="?debian"?$', words, re.MULTILINE):
            return _DEBIAN
    return _PLAYWRIGHT


def _named(chosen: str, by: str, machine: Machine) -> Path:
    """The executable that somebody asked for: a path, or a name to be found on PATH."""
    found = shutil.which(chosen, path=machine.environment.get("PATH"))
    path = Path(found) if found else Path(chosen).expanduser()
    if not path.exists():
        raise NoBrowserError(f"{chosen}: no such browser ({by}): give the path of a Chromium executable")
    if not _is_executable(path):
        raise NoBrowserError(f"{path} is not an executable file ({by}): check the path, or: chmod +x {path}")
    return path


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _candidates(machine: Machine) -> Iterator[Path]:
    """Executables that exist, best first."""
    yield from _playwright_shells(machine)
    for name in _NAMES:
        if found := shutil.which(name, path=machine.environment.get("PATH")):
            yield Path(found)
    if machine.platform == "darwin":
        for application in _MAC_APPLICATIONS:
            for path in (machine.root / application.lstrip("/"), machine.home / application.lstrip("/")):
                if _is_executable(path):
                    yield path


def _playwright_shells(machine: Machine) -> Iterator[Path]:
    """Playwright's own headless shells on this disk, newest first."""
    caches = machine.home / ("Library/Caches" if machine.platform == "darwin" else ".cache")
    folder = machine.environment.get("PLAYWRIGHT_BROWSERS_PATH", "")
    registry = Path(folder) if folder not in ("", "0") else caches / "ms-playwright"
    revisions = [
        (int(revision), path)
        for path in registry.glob("chromium_headless_shell-*")
        if (revision := path.name.rpartition("-")[2]).isdigit()
    ]
    for _, path in sorted(revisions, reverse=True):
        for pattern in ("*/headless_shell", "*/chrome-headless-shell"):
            yield from filter(_is_executable, sorted(path.glob(pattern)))


async def _try(path: Path) -> Browser:
    """Ask it for its version; NoBrowserError says what is wrong with it."""
    try:
        status, output = await _version(path)
    except TimeoutError:
        raise NoBrowserError(f"{path} --version gave no answer within {VERSION_SECONDS:g} s") from None
    except OSError as error:
        raise NoBrowserError(f"{path} does not start: {error.strerror}") from None
    match = re.search(r"\b(\d+(?:\.\d+){1,3})\b", output)
    if status == 0 and match:
        return Browser(path, match[1], _kind(path, output))
    missing = sorted(set(re.findall(r"(\S+\.so[.\d]*): cannot open shared object file", output)))
    if missing:
        raise NoBrowserError(
            f"{path} does not start: it needs the libraries {', '.join(missing)}; install them with\n"
            "  sudo python -m playwright install-deps chromium"
        )
    said = output.strip().splitlines()[-1:] or ["nothing"]
    raise NoBrowserError(f"{path} --version ended with status {status} and said: {said[0][:300]}")


async def _version(path: Path) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        str(path),
        "--version",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(VERSION_SECONDS):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # Debian's is a script that starts the browser
            await process.wait()
    assert process.returncode is not None
    return process.returncode, output.decode(errors="replace")


def _kind(path: Path, output: str) -> BrowserKind:
    if "headless" in path.name and "shell" in path.name:
        return BrowserKind.HEADLESS_SHELL
    return BrowserKind.CHROME if "Google Chrome" in output else BrowserKind.CHROMIUM
