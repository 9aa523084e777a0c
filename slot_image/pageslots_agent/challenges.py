"""Pages that answer 200 and are no content: challenges and CAPTCHAs of well-known protections, and empty
pages.

Conservative: each rule asks for two marks, of which one is machinery (a script, a form, an element's id) and
not prose, so that an article about a protection is not taken for one; and challenges are small, so large
pages are not looked at. A page that is blocked in another way needs a rule of its own.
"""

from collections.abc import Mapping

MAX_CHALLENGE_CHARACTERS = 400_000

_BY_HEADER = (
    ("cf-mitigated", ("challenge",), "cloudflare-challenge"),
    ("x-amzn-waf-action", ("challenge", "captcha"), "aws-waf"),
)

# rule, one of these machine marks, and one of these in the title or anywhere in the page
_BY_CONTENT: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "cloudflare-challenge",
        ("_cf_chl_opt", "/cdn-cgi/challenge-platform/", "challenges.cloudflare.com"),
        ("<title>just a moment", "<title>attention required! | cloudflare", 'id="challenge-form"'),
    ),
    ("cloudflare-block", ("/cdn-cgi/styles/cf.errors.css",), ("<title>attention required! | cloudflare",)),
    ("datadome", ("captcha-delivery.com/",), ("var dd={", "var dd = {", "<title>datadome captcha")),
    (
        "human-captcha",
        ('id="px-captcha"', "window._pxappid"),
        ("<title>access to this page has been denied",),
    ),
    ("akamai-denied", ("errors.edgesuite.net",), ("<title>access denied",)),
    (
        "imperva-incident",
        ("_incapsula_resource",),
        ("incapsula incident id", "<title></title>", "visid_incap"),
    ),
    (
        "aws-waf",
        (".token.awswaf.com/", "awswafcookiedomainlist"),
        ('id="challenge-container"', "captcha-container"),
    ),
    ("amazon-captcha", ('action="/errors/validatecaptcha"',), ("type the characters", "continue shopping")),
    (
        "google-sorry",
        ('action="index"', 'id="captcha-form"'),
        ("unusual traffic from your computer network",),
    ),
)

_CONTENT_ELEMENTS = (
    "<img",
    "<iframe",
    "<script",
    "<svg",
    "<canvas",
    "<video",
    "<object",
    "<embed",
    "<frame",
    "<input",
)


def challenge_rule(html: str, headers: Mapping[str, str]) -> str | None:
    """The name of the rule by which this page is a challenge, or None."""
    for header, values, rule in _BY_HEADER:
        if headers.get(header, "").strip().lower() in values:
            return rule
    if len(html) > MAX_CHALLENGE_CHARACTERS:
        return None
    page = html.lower()
    for rule, machinery, marks in _BY_CONTENT:
        if any(mark in page for mark in machinery) and any(mark in page for mark in marks):
            return rule
    return None


def is_empty(html: str, *, has_text: bool) -> bool:
    """Whether an HTML page shows nothing and brings nothing that could show something."""
    if has_text or len(html) > MAX_CHALLENGE_CHARACTERS:
        return False
    page = html.lower()
    return not any(element in page for element in _CONTENT_ELEMENTS)
