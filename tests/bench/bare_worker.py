"""The peer: what a person writes with Playwright when they need pages, and nothing else. Run as a script.

    python bare_worker.py CHROMIUM

Starts the browser with Playwright's defaults, opens a page, prints `{"ready": true}`; then reads lines of JSON
{"urls": […]} and answers each with {"seconds": …, "characters": …} after loading them one by one in that page.
Ends at the end of its input.
"""

import asyncio
import json
import sys
import time

from playwright.async_api import async_playwright


async def _work(chromium: str) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**22)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium)
        page = await (await browser.new_context()).new_page()
        print(json.dumps({"ready": True}), flush=True)
        while line := await reader.readline():
            began, characters = time.perf_counter(), 0
            for url in json.loads(line)["urls"]:
                await page.goto(url)
                characters += len(await page.content())
            print(json.dumps({"seconds": time.perf_counter() - began, "characters": characters}), flush=True)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1]))
