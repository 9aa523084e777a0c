"""Pages of the shop that go wrong on purpose, so that the demo can show what happens then.

They stand under `/trouble/` and nothing in the shop links to them. What they do is told in `TROUBLES`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from aiohttp import web

from pageslots.demo.pages import Pages
from pageslots.demo.serving import html

MAX_SLOW_SECONDS = 600.0

TROUBLES: Mapping[str, str] = MappingProxyType(
    {
        "slow": "answers after 3 s, or ?seconds=",
        "guarded/<name>": "403 for the first ?tries= visits, or for ?seconds= after the first; then 200",
        "forbidden": "403, always",
        "broken": "500, always",
        "challenge": "status 200, but a test for robots in the place of the page",
        "crash": "kills the renderer a moment after it has loaded",
        "endless": "a script that never ends, a moment after the page has loaded",
    }
)

# The shape of a challenge that is seen in the wild: its heading, its form, and the script that would judge.
CHALLENGE = """
<script src="/cdn-cgi/challenge-platform/check.js" defer></script>
<form id="challenge-form" action="/trouble/challenge" method="get">
<p>Checking your browser before you enter. Verify that you are human: this takes a few seconds.</p>
<div class="captcha" data-sitekey="demo">
<label><input type="checkbox" name="human"> I am not a robot</label></div>
</form>
"""

AFTER_LOAD = """<script>
addEventListener("load", () => setTimeout(() => {{ {script} }}, {milliseconds}));
</script>
"""

# The first one ends Chromium 156's renderer in 80 ms: its CSS parser recurses once per parenthesis and has no
# limit. The others are for a Chromium that has one: rules nested as deeply, then an array that V8 can't allot
# (which ends the process, as no exception can be thrown there; 0.5 s, 600 MiB for that moment).
CRASH = """
try { document.querySelector(":not(".repeat(100000) + "a" + ")".repeat(100000)); } catch {}
const sheet = document.createElement("style");
sheet.textContent = "a{".repeat(100000) + "color:red" + "}".repeat(100000);
document.head.append(sheet);
document.body.offsetHeight;
"x".repeat(2 ** 29 - 25).split("");
"""

ENDLESS = "while (true) {}"


def after_load(script: str, milliseconds: int) -> str:
    """A script element that runs `script` some time after the page's load event."""
    return AFTER_LOAD.format(script=script, milliseconds=milliseconds)


class Troubles:
    """The pages under `/trouble/`; it remembers who has come to a guarded one before."""

    def __init__(self, *, slow_seconds: float) -> None:
        self._slow_seconds = slow_seconds
        self._guards: dict[tuple[str, str], _Guard] = {}

    async def answer(
        self, country: str, path: Sequence[str], request: web.Request, pages: Pages
    ) -> web.Response:
        """The answer for the rest of a path, split at its slashes."""
        page, status = pages.not_found(), 404
        match path:
            case ["slow"]:
                await asyncio.sleep(min(_number(request, "seconds", self._slow_seconds), MAX_SLOW_SECONDS))
                page, status = pages.message("Sorry for the wait", "The answer took a while."), 200
            case ["guarded", name]:
                guard = self._guards.setdefault((country, name), _Guard())
                if guard.refuses(request, now=asyncio.get_running_loop().time()):
                    page, status = pages.refused(), 403
                else:
                    page, status = pages.message("Welcome back", "The door is open again."), 200
            case ["forbidden"]:
                page, status = pages.refused(), 403
            case ["broken"]:
                page, status = pages.message("Out of order", "Something broke behind the counter."), 500
            case ["challenge"]:
                page, status = pages.message("Just a moment", "", more=CHALLENGE), 200
            case ["crash" | "endless" as name]:
                script = CRASH if name == "crash" else ENDLESS
                head = after_load(script, int(_number(request, "after_ms", 50)))
                page, status = pages.message("Mind the step", TROUBLES[name], head=head), 200
        return html(page, status=status)


class _Guard:
    """A door that stays shut for some visits, or for some seconds after the first one."""

    def __init__(self) -> None:
        self._visits = 0
        self._first: float | None = None

    def refuses(self, request: web.Request, *, now: float) -> bool:
        """Count a visit and judge it by the `tries` and `seconds` that its URL asks for."""
        self._visits += 1
        if self._first is None:
            self._first = now
        return self._visits <= _number(request, "tries", 0) or now - self._first < _number(
            request, "seconds", 0
        )


def _number(request: web.Request, name: str, default: float) -> float:
    """A query parameter as a number ≥ 0; 400 when it is none."""
    try:
        value = float(request.query.get(name, default))
    except ValueError:
        value = -1
    if not 0 <= value < float("inf"):
        raise web.HTTPBadRequest(text=f"{name}: expected a number, such as {name}=2\n")
    return value
