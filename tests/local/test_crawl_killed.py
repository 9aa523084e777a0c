"""An attempt in a process of its own, killed for real (case W15)."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.fakes.crawls import counted_records

PAGES = 600
ATTEMPT = """
import asyncio, sys
from tests.fakes.crawls import a_spec
from tests.fakes.site_tab import FakePage, FakeTab, HandClock, linking
from pageslots_agent.crawl import start_attempt

class SlowTab(FakeTab):
    async def visit(self, url, **more):
        await asyncio.sleep(0.002)
        return await super().visit(url, **more)

folder, number, pages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
urls = [f"https://shop.example/{i}" for i in range(pages)]
tab = SlowTab({url: linking() for url in urls}, HandClock())
spec = a_spec(*urls, number=number, output_uri=folder)
print(asyncio.run(start_attempt(spec, tab, lambda: None).run()).outcome)
"""


def start(folder: Path, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", ATTEMPT, str(folder), str(number), str(PAGES)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def wait_for_part(folder: Path, number: int, process: subprocess.Popen[str]) -> None:
    """Until the attempt has written a part; all attempts get on."""
    deadline = time.monotonic() + 30
    while not list(folder.glob(f"part-*.{number}-*")) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_an_attempt_killed_by_the_system_loses_and_doubles_nothing(tmp_path):
    """Three attempts die by SIGKILL at some moment after their first part; the fourth ends."""
    seed = random.randrange(10**6)
    moments = random.Random(seed)
    for number in (1, 2, 3):
        with start(tmp_path, number) as process:
            wait_for_part(tmp_path, number, process)
            time.sleep(moments.uniform(0, 0.2))  # a random moment, nothing is waited for
            process.send_signal(signal.SIGKILL)

    with start(tmp_path, 4) as process:
        assert process.communicate(timeout=60)[0] == "Ok\n"

    urls = [record["url"] for record in counted_records(tmp_path)]
    assert sorted(urls) == sorted(f"https://shop.example/{i}" for i in range(PAGES)), f"seed {seed}"
    parts = {part["name"] for part in json.loads((tmp_path / "_done.json").read_text())["parts"]}
    assert {path.name for path in tmp_path.iterdir()} == parts | {"_done.json"}
