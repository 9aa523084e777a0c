"""A stand-in for the slot agent's process, started as `python -I -S`: it listens nowhere, but lives and dies.

STANDIN in its environment, words separated by commas:
    silent      never tells an address
    garbled     tells something that is no address
    stubborn    ignores SIGTERM and the end of its parent
    detached    starts a process in a session of its own, as Playwright's driver starts Chromium
    titled      the detached one has no marker in its environment, as Chromium's zygotes
    orphan      starts a detached process through one that ends at once, so that it has no parent
    exits       says something and ends with status 3 at once
    greedy      fills 150 MiB of memory once it listens
    chatty      prints 3 MB
Every detached process ignores SIGTERM and writes its id into the file named by STANDIN_PIDS. What the
stand-in does last, when it ends in order, is to write "ended" into STANDIN_PIDS.ended.
"""

import argparse
import json
import os
import select
import signal
import sys
import time
from pathlib import Path

WORDS = set(os.environ.get("STANDIN", "").split(","))
PIDS = os.environ.get("STANDIN_PIDS", "")
ENDLESS = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "file = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n"
    "os.write(file, f'{os.getpid()}\\n'.encode())\n"
    "time.sleep(3600)\n"
)


def detach(*, marked: bool, through_another: bool) -> None:
    child = os.fork()
    if child:
        if through_another:
            os.waitpid(child, 0)
        return
    os.setsid()
    if through_another and os.fork():
        os._exit(0)
    environment = dict(os.environ) if marked else {}
    os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", ENDLESS, PIDS], environment)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config")
    parser.add_argument("--ready-fd", type=int)
    parser.add_argument("--parent-fd", type=int)
    arguments = parser.parse_args()
    config = json.loads(Path(arguments.config).read_text())
    Path(config["scratch_dir"]).mkdir(parents=True, exist_ok=True)
    if "exits" in WORDS:
        print("no such browser: /nowhere", file=sys.stderr)
        raise SystemExit(3)
    started = 0
    for word in ("detached", "titled", "orphan"):
        if word in WORDS:
            detach(marked=word != "titled", through_another=word == "orphan")
            started += 1
    while started and (not Path(PIDS).exists() or Path(PIDS).read_text().count("\n") < started):
        time.sleep(0.01)
    ending, told = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: os.write(told, b"."))
    if "chatty" in WORDS:
        for n in range(30_000):
            print(f"line {n} ".ljust(99, "."))
        sys.stdout.flush()
    if "silent" not in WORDS:
        line = "what?" if "garbled" in WORDS else json.dumps({"host": "127.0.0.1", "port": 9})
        os.write(arguments.ready_fd, line.encode() + b"\n")
    os.close(arguments.ready_fd)
    hoard = b"x" * 150_000_000 if "greedy" in WORDS else b""
    while True:
        select.select([ending, arguments.parent_fd], [], [])
        if "stubborn" not in WORDS:
            break
        time.sleep(3600)
    del hoard
    if PIDS:
        Path(PIDS + ".ended").write_text("ended")


main()
