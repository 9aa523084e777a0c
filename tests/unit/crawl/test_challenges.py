"""Challenge pages that answer 200 (case W3)."""

import pytest

from pageslots_agent.challenges import MAX_CHALLENGE_CHARACTERS, challenge_rule, is_empty

CLOUDFLARE = "<title>Just a moment...</title><script>window._cf_chl_opt={}</script>"


@pytest.mark.parametrize(
    ("html", "rule"),
    [
        (CLOUDFLARE, "cloudflare-challenge"),
        ("<script>var dd={'rt':'c'}</script><script src='https://ct.captcha-delivery.com/c.js'>", "datadome"),
        ('<title>Access to this page has been denied</title><div id="px-captcha">', "human-captcha"),
        ("<title>Access Denied</title>see https://errors.edgesuite.net/18.6f", "akamai-denied"),
        ('<iframe src="/_Incapsula_Resource?x">Incapsula incident ID: 1-2', "imperva-incident"),
        ('<form action="/errors/validateCaptcha">Type the characters you see', "amazon-captcha"),
    ],
)
def test_well_known_challenges_are_named(html, rule):
    assert challenge_rule(html, {}) == rule


@pytest.mark.parametrize(
    "html",
    [
        "<title>Just a moment in time</title><p>A novel.</p>",
        "<title>How _cf_chl_opt works</title><pre>window._cf_chl_opt</pre>",
        "<title>Shop</title><script src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'></script><p>Kettle</p>",
        "<title>Access denied</title><p>Only for staff.</p>",
        "<title>Log in</title><div class='g-recaptcha'></div>",
        CLOUDFLARE + "x" * MAX_CHALLENGE_CHARACTERS,
    ],
)
def test_pages_about_challenges_and_pages_with_their_scripts_are_content(html):
    assert challenge_rule(html, {}) is None


def test_a_header_is_enough():
    assert challenge_rule("<p>Hello</p>", {"cf-mitigated": "challenge"}) == "cloudflare-challenge"
    assert challenge_rule("<p>Hello</p>", {"x-amzn-waf-action": "captcha"}) == "aws-waf"


def test_a_page_is_empty_when_nothing_can_be_seen_on_it():
    assert is_empty("<html><head></head><body></body></html>", has_text=False)
    assert not is_empty("<html><body><img src=x></body></html>", has_text=False)
    assert not is_empty("<html><head></head><body>Hello</body></html>", has_text=True)
