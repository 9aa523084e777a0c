"""Manifests that `pageslots crawl` makes."""

import io

import pytest

from pageslots.api import load_manifests
from pageslots.cli.app import main
from pageslots.cli.making import Wanted, as_yaml, home_country, load_made
from pageslots.cli.problems import UsageProblem

URL = "https://www.shop.example/a"


def wanted(**more):
    return Wanted(**({"urls": [URL], "countries": ["SG"]} | more))


def made(**more):
    return load_made(wanted(**more))


def test_the_options_become_a_pool_and_a_request():
    loaded = made(
        css=["price=.price", "next@href=a[rel='next']"], xpath=["name=//h1"], follow="prefix", max_pages=9
    )
    [pool], [request] = loaded.pools, loaded.requests
    assert [country.code for country in pool.spec.countries] == ["SG"]
    assert request.spec.pool_name == pool.name
    price, link, name = request.spec.extract
    assert (price.name, price.css) == ("price", ".price")
    assert (link.name, link.css, link.attribute) == ("next", "a[rel='next']", "href")
    assert (name.name, name.xpath) == ("name", "//h1")
    assert request.spec.follow.scope == "prefix"
    assert request.spec.max_pages == 9


def test_several_countries_are_a_request_for_each():
    loaded = made(countries=["SG", "DE", "SG"])
    assert [request.spec.country for request in loaded.requests] == ["SG", "DE"]
    assert loaded.pools[0].spec.max_concurrent == 2
    assert len({request.name for request in loaded.requests}) == 2


def test_the_same_options_make_the_same_request_and_others_another():
    [first], [same], [other] = (made(css=[css]).requests for css in ("a=b", "a=b", "a=c"))
    assert first.name == same.name != other.name
    assert first.name.startswith("shop-example-")


def test_what_is_printed_is_what_is_run(capsys):
    assert main(["crawl", URL, "--country", "NO", "--extract", "n=on", "--print"]) == 0
    loaded = load_manifests(["-"], stdin=io.BytesIO(capsys.readouterr().out.encode()))
    assert loaded.requests[0].spec.country == "NO"
    assert loaded.requests[0].spec.extract[0].css == "on"
    assert loaded.requests == made(countries=["NO"], css=["n=on"]).requests


def test_a_url_without_a_scheme_is_https(capsys):
    assert main(["crawl", "shop.example", "--print"]) == 0
    assert "https://shop.example" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"countries": ["sgp"]}, '--country: "sgp" is not a two-letter country code; did you mean "SG"?'),
        ({"css": ["price"]}, '--extract: "price" is not name=selector'),
        ({"css": ["a=b"], "xpath": ["x=//["]}, '--xpath: "//[" is not an XPath expression'),
        ({"css": ["a=.b[["]}, '--extract: ".b[[" is not a CSS selector'),
        ({"urls": ["ftp://x/"]}, 'URL: "ftp://x/" is not an absolute URL'),
        ({"name": "Not A Name"}, '--name: "Not A Name" '),
        ({"follow": "host", "parallel": 3}, "--parallel: parallelism and follow don't go together"),
    ],
)
def test_mistakes_are_told_in_the_words_of_the_options(options, sentence):
    """Case U1."""
    with pytest.raises(UsageProblem) as problem:
        made(**options)
    [told] = problem.value.sentences
    assert told.startswith(sentence)


def test_the_country_of_the_locale_is_home():
    assert home_country({"LANG": "en_SG.UTF-8"}) == "SG"
    assert home_country({"LC_ALL": "de_AT", "LANG": "en_SG.UTF-8"}) == "AT"
    assert home_country({"LANG": "C.UTF-8"}) == "US"


def test_private_addresses_are_allowed_only_when_asked():
    assert "allowPrivateAddresses" not in as_yaml(wanted())
    assert made(allow_private=True).pools[0].spec.network.allow_private_addresses
