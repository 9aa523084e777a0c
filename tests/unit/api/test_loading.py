"""Manifests are loaded whole or refused with every error at its place."""

import io
import json
from textwrap import dedent

import pytest

from pageslots.api import ManifestErrors, check_references, load_manifests
from pageslots.api.loading import MAX_FILE_BYTES

POOL = """\
apiVersion: pageslots.dev/v1alpha1
kind: PageSlotPool
metadata: {name: default}
spec:
  countries:
    - {code: SG, direct: true}
    - {code: MY, direct: true}
  outputs:
    - {name: records, uriPrefix: file:///records}
"""
REQUEST = """\
apiVersion: pageslots.dev/v1alpha1
kind: CrawlRequest
metadata:
  name: shop-sg
spec:
  country: SG
  startUrls: [https://shop.example/]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusals(*paths, **options):
    with pytest.raises(ManifestErrors) as caught:
        load_manifests(paths, **options)
    return [str(error) for error in caught.value.errors]


def refusals_of(folder, text, **options):
    (folder / "a.yaml").write_text(dedent(text))
    return refusals("a.yaml", **options)


def request_with(line):
    return REQUEST + f"  {line}\n"


def test_pools_and_requests_of_several_documents_are_loaded_in_order(folder):
    (folder / "a.yaml").write_text(f"{POOL}---\n{REQUEST}---\n{REQUEST.replace('shop-sg', 'b')}")

    loaded = load_manifests(["a.yaml"])

    assert [pool.name for pool in loaded.pools] == ["default"]
    assert [request.name for request in loaded.requests] == ["shop-sg", "b"]
    assert loaded.objects[1].place.line == 11
    assert loaded.objects[1].label == 'CrawlRequest "shop-sg"'


def test_the_example_of_a_message(folder):
    """case U1"""
    (folder / "examples").mkdir()
    (folder / "examples/shop.yaml").write_text("# words\n" * 8 + REQUEST.replace("SG", "sgp"))

    assert refusals("examples/shop.yaml") == [
        (
            'examples/shop.yaml:14:12  CrawlRequest "shop-sg": spec.country: '
            '"sgp" is not a two-letter country code; did you mean "SG"?'
        )
    ]


def test_every_error_of_every_file_is_told_at_once(folder):
    """case U1"""
    (folder / "a.yaml").write_text(REQUEST.replace("country", "contry") + "---\n" + POOL.replace("SG", "sg"))
    (folder / "b.yaml").write_text("kind: [\n---\n" + request_with("priority: 1000"))

    assert refusals("a.yaml", "b.yaml", "c.yaml") == [
        'a.yaml:5:1  CrawlRequest "shop-sg": spec.country: is missing; expected a two-letter country code such as "SG"',
        'a.yaml:6:3  CrawlRequest "shop-sg": spec.contry: unknown field; did you mean "country"?',
        (
            'a.yaml:14:14  PageSlotPool "default": spec.countries[0].code: '
            '"sg" is not a two-letter country code; did you mean "SG"?'
        ),
        "b.yaml:2:1  not YAML: expected the node content, but found '<stream end>'",
        'b.yaml:10:13  CrawlRequest "shop-sg": spec.priority: 1000 is not a whole number from -100 to 100',
        "c.yaml  no such file",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("priorty: 1", '8:3 spec.priorty: unknown field; did you mean "priority"?'),
        ("zzz: 1", "8:3 spec.zzz: unknown field; spec has poolName, country, startUrls"),
        ("follow: {scope: hots}", ('8:19 spec.follow.scope: "hots" is not one of page, prefix, host, domain;'
            ' did you mean "host"?')),
        ("follow: {depth: 1}", '8:12 spec.follow.depth: unknown field; did you mean "maxDepth"?'),
        ("maxPages: many", '8:13 spec.maxPages: "many" is not a whole number from 1 to 10000000'),
        ("maxPages: 1e3", "8:13 spec.maxPages: 1000.0 is not a whole number"),
        ("maxPages:", "8:3 spec.maxPages: has no value: give it one, or remove it"),
        ("stop: 1", "8:9 spec.stop: 1 is not true or false"),
        ("poolName: 12", '8:13 spec.poolName: 12 without quotes is read as a number: write "12"'),
        ("poolName: Default",
        ('8:13 spec.poolName: "Default" is not a name of lower-case letters, digits and hyphens;'
            ' did you mean "default"?')),
        ("poolName: [a]", "8:13 spec.poolName: a list is not a name"),
        ("output: records", '8:11 spec.output: "records" is not a mapping'),
        ("output: {path: ../x, name: a}", "8:18 spec.output.path: is a plain path below the output"),
        ("site: https://shop.example/x", ('8:9 spec.site: "https://shop.example/x" is not a lower-case domain;'
            ' did you mean "shop.example"?')),
        ("capture: html", '8:12 spec.capture: "html" is not a list of 0 to 4 entries'),
        ("capture: [html, html]", '8:19 spec.capture[1]: two entries have the value "html"'),
        ("urlsFrom: {uri: s3://b/a.csv}", "5:1 spec: give it either startUrls or urlsFrom"),
        ("extract: [{name: a, css: 'h1['}]", '8:28 spec.extract[0].css: "h1[" is not a CSS selector'),
        ("extract: [{name: a, xpath: '//a['}]",
        '8:30 spec.extract[0].xpath: "//a[" is not an XPath expression'),
        ("extract: [{name: a, css: b, regex: c}]", "8:31 spec.extract[0].regex: unknown field;"),
        ("capture: [html, ]\n  capture: [text]",
        "9:3 spec.capture: stands twice: the first one is in line 8"),
        ("waitFor: {selector: " + "x" * 1025 + "}",
        "8:23 spec.waitFor.selector: has 1025 characters; at most 1024"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_words(folder, line, message):
    (told,) = refusals_of(folder, request_with(line))

    place, _, rest = told.removeprefix("a.yaml:").partition("  ")
    words = rest.removeprefix('CrawlRequest "shop-sg": ')
    assert f"{place} {words}".startswith(message)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("code: SG", "code: NO", 'NO without quotes is read as false: write "NO"'),
        ("code: SG", "code: UK", '"UK" is not an ISO 3166-1 country code; did you mean "GB"?'),
        ("direct: true}", "direct: true, timeZone: Asia/Singapur}",
        ('"Asia/Singapur" is not an IANA time zone;'
            ' did you mean "Asia/Singapore"?')),
        ("outputs:", "preparation: {minRequestsPerSlot: 0.33}\n  outputs:",
        ('0.33 is not a whole number or a fraction'
            ' such as "1/3"; write "1/3"')),
        ("outputs:", "preparation: {minRequestsPerSlot: 0.5}\n  outputs:", 'write "1/2"'),
        ("outputs:", "maxPageSlots: 0\n  outputs:", "0 is not a whole number from 1 to 5000"),
        ("name: default", "name: " + "p" * 41, "a pool's name has at most 40 lower-case letters"),
        ("name: default", "name: My_Pool", 'did you mean "my-pool"?'),
        ("file:///records", "/records", '"/records" is not s3://bucket/…, gs://bucket/…'),
        ("countries:", "countries: []\n  sites:", "has no entry; expected a list of 1 to 300 entries"),
        ("direct: true", "direct: yes, proxies: [{name: a, server: 'http://u:p@h:1'}]", "put them into"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_pool_is_told_in_words(folder, old, new, message):
    told = refusals_of(folder, POOL.replace(old, new, 1))

    assert message in told[0]


def test_norway_is_fine_in_quotes(folder):
    (folder / "a.yaml").write_text(POOL.replace("SG", "'NO'"))

    assert load_manifests(["a.yaml"]).pools[0].spec.countries[0].code == "NO"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.yaml  no objects in it"),
        ("# nothing yet\n", "a.yaml  no objects in it"),
        ("hello\n", 'a.yaml:1:1  "hello" is not an object with apiVersion, kind, metadata and spec'),
        ("spec: {}\n", "a.yaml:1:1  object: kind is missing; expected one of CrawlRequest, PageSlotPool"),
        ("kind: CrawlRequests\n", ('a.yaml:1:7  CrawlRequests: kind: "CrawlRequests" is an unknown kind;'
            ' did you mean "CrawlRequest"?')),
        ("kind: Secret\n", 'a.yaml:1:7  Secret: kind: "Secret" is an unknown kind; expected one of'),
        ("kind: PageSlot\n", "a.yaml:1:7  PageSlot: kind: page slots are made by their pool, not applied"),
        (REQUEST.replace("dev/v1alpha1", "dev/v1"), ('a.yaml:1:13  CrawlRequest "shop-sg": apiVersion:'
            ' "pageslots.dev/v1" is not pageslots.dev/v1alpha1')),
        (REQUEST.split("\n", 1)[1], 'a.yaml:1:1  CrawlRequest "shop-sg": apiVersion: is missing; expected'),
        (REQUEST.replace("  name: shop-sg\n", "  labels: {}\n"),
        ("a.yaml:3:1  CrawlRequest: metadata.name: is missing;"
            ' expected a name of lower-case letters, digits, "-" and "."')),
        (REQUEST.replace("metadata:\n  name: shop-sg\n", ""),
        "a.yaml:1:1  CrawlRequest: metadata: is missing"),
        (REQUEST.replace("name: shop-sg", "name: Shop_SG"), 'did you mean "shop-sg"?'),
        (REQUEST.replace("name: shop-sg", "name: a\n  lables: {}"), 'unknown field; did you mean "labels"?'),
        (REQUEST.replace("name: shop-sg", "name: a\n  labels: {team: 1}"),
        '1 without quotes is read as a number'),
    ],
)  # fmt: skip
def test_what_is_no_object_is_told_in_words(folder, text, message):
    (folder / "a.yaml").write_text(text)

    assert message in refusals("a.yaml")[0]


def test_a_file_that_is_not_utf_8_is_refused_at_the_byte(folder):
    (folder / "a.yaml").write_bytes(b"kind: A\nname: M\xfcnchen\n")

    assert refusals("a.yaml") == ["a.yaml:2:8  not UTF-8 (byte 0xfc): save the file as UTF-8"]


def test_a_byte_order_mark_is_no_part_of_the_text(folder):
    (folder / "a.yaml").write_bytes(b"\xef\xbb\xbf" + REQUEST.encode())

    assert len(load_manifests(["a.yaml"]).requests) == 1


def test_a_huge_file_is_refused(folder):
    with (folder / "a.yaml").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)

    (told,) = refusals("a.yaml")

    assert told.startswith("a.yaml  larger than 8 MiB")


def test_a_folder_stands_for_its_yaml_and_json_files(folder):
    (folder / "m").mkdir()
    (folder / "m/b.yml").write_text(REQUEST)
    (folder / "m/a.json").write_text(
        json.dumps(
            {
                "apiVersion": "pageslots.dev/v1alpha1",
                "kind": "CrawlRequest",
                "metadata": {"name": "from-json"},
                "spec": {"country": "SG", "startUrls": ["https://shop.example/"]},
            }
        )
    )
    (folder / "m/notes.txt").write_text("no manifest")

    assert [request.name for request in load_manifests(["m"]).requests] == ["from-json", "shop-sg"]


def test_a_folder_without_manifests_is_refused(folder):
    (folder / "m").mkdir()

    assert refusals("m") == ["m  a folder without .yaml, .yml or .json files"]


def test_no_files_are_refused():
    assert refusals() == ["no file given"]


def test_a_dash_is_stdin(folder):
    loaded = load_manifests(["-"], stdin=io.BytesIO(REQUEST.encode()))

    assert loaded.objects[0].file == "<stdin>"


def test_a_list_holds_objects_whose_errors_have_their_own_fields(folder):
    items = "".join(
        f"- {text.replace(chr(10), chr(10) + '  ').rstrip()}\n" for text in (POOL, request_with("x: 1"))
    )

    assert refusals_of(folder, f"kind: List\napiVersion: v1\nitems:\n{items}") == [
        'a.yaml:20:5  CrawlRequest "shop-sg": spec.x: unknown field; spec has ' + ", ".join(fields_of_spec())
    ]


def fields_of_spec():
    from pageslots.api import CrawlRequest  # noqa: PLC0415

    return [info.alias for info in CrawlRequest.model_fields["spec"].annotation.model_fields.values()]


def test_an_object_that_is_there_twice_is_refused_across_files(folder):
    (folder / "a.yaml").write_text(REQUEST)
    (folder / "b.yaml").write_text("\n" + REQUEST)

    assert refusals("a.yaml", "b.yaml") == [
        'b.yaml:5:9  CrawlRequest "shop-sg": metadata.name: is there twice: the first one is a.yaml:1'
    ]


def test_one_name_in_two_namespaces_is_two_objects(folder):
    other = REQUEST.replace("name: shop-sg", "name: shop-sg\n  namespace: b")
    (folder / "a.yaml").write_text(f"{REQUEST}---\n{other}")

    assert len(load_manifests(["a.yaml"]).requests) == 2


def test_what_the_server_adds_is_no_error(folder):
    """`kubectl get -o yaml` can be loaded again; its status is not."""
    text = REQUEST.replace(
        "name: shop-sg",
        "name: shop-sg\n  uid: u\n  resourceVersion: '7'\n  generation: 2\n  creationTimestamp: null\n"
        "  managedFields: [{}]",
    )
    (folder / "a.yaml").write_text(text + "status: {state: Failed, anything: null}\n")

    (request,) = load_manifests(["a.yaml"]).requests

    assert request.status.state == "Queued"


def test_a_file_of_urls_is_found_beside_its_manifest(folder):
    (folder / "m").mkdir()
    (folder / "m/urls.csv").write_text("url\n")
    (folder / "m/a.yaml").write_text(
        REQUEST.replace("startUrls: [https://shop.example/]", "urlsFrom: {uri: urls.csv}")
    )

    (request,) = load_manifests(["m/a.yaml"]).requests

    assert request.spec.urls_from.uri == str(folder / "m/urls.csv")


@pytest.mark.parametrize("uri", ["urls.csv", "file:///nowhere/urls.csv", "/nowhere/urls.csv"])
def test_a_file_of_urls_that_is_missing_is_an_error_unless_switched_off(folder, uri):
    text = REQUEST.replace("startUrls: [https://shop.example/]", f"urlsFrom: {{uri: {uri}}}")

    (told,) = refusals_of(folder, text)
    loaded = load_manifests(["a.yaml"], files_must_exist=False)

    assert "spec.urlsFrom.uri: there is no file /" in told
    assert loaded.requests[0].spec.urls_from.uri.endswith("urls.csv")


def test_a_file_of_urls_elsewhere_is_not_looked_for(folder):
    (folder / "a.yaml").write_text(
        REQUEST.replace("startUrls: [https://shop.example/]", "urlsFrom: {uri: 's3://b/urls.csv'}")
    )

    assert load_manifests(["a.yaml"]).requests[0].spec.urls_from.uri == "s3://b/urls.csv"


def wrong_references(folder, request):
    (folder / "a.yaml").write_text(f"{POOL}---\n{request}")
    return [str(error) for error in check_references(load_manifests(["a.yaml"]))]


@pytest.mark.parametrize(
    ("request_text", "message"),
    [
        (request_with("poolName: defualt"), ('a.yaml:18:13  CrawlRequest "shop-sg": spec.poolName: '
            'namespace default has no pool "defualt"; did you mean "default"?')),
        (REQUEST.replace("country: SG", "country: TH"), ('a.yaml:16:12  CrawlRequest "shop-sg": spec.country: '
            'pool "default" has no country "TH"; it has SG, MY')),
        (REQUEST.replace("country: SG", "country: SG-mobile"),
        ('a.yaml:16:12  CrawlRequest "shop-sg": spec.country: '
            'pool "default" has no country "SG-mobile"; it has SG, MY')),
        (request_with("output: {name: record}"), ('a.yaml:18:18  CrawlRequest "shop-sg": spec.output.name: '
            'pool "default" has no output "record"; did you mean "records"?')),
        (REQUEST.replace("name: shop-sg", "name: shop-sg\n  namespace: b"),
        ('a.yaml:16:1  CrawlRequest "shop-sg": '
            'spec.poolName: namespace b has no pool "default"; it has none')),
    ],
)  # fmt: skip
def test_a_request_that_names_what_its_pool_lacks_is_told_so(folder, request_text, message):
    """case D9"""
    assert wrong_references(folder, request_text) == [message]


def test_a_request_that_fits_its_pool_is_fine(folder):
    assert wrong_references(folder, request_with("output: {name: records, path: x}")) == []


def test_without_a_pool_there_is_nothing_to_compare_with(folder):
    (folder / "a.yaml").write_text(request_with("poolName: other"))

    assert check_references(load_manifests(["a.yaml"])) == []
