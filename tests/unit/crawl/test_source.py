"""Start URLs from lists and files."""

import json
import tracemalloc

import pytest
from tests.fakes.crawls import a_spec

from pageslots.wire import UrlsFrom
from pageslots_agent.source import MAX_LINE_BYTES, SourceError, Start, starts


def read(path, *, after: int = 0, part: tuple[int, int] = (0, 1)) -> list[Start]:
    return list(starts(a_spec(urls_from=UrlsFrom(str(path), *part)), after=after))


def a_file(tmp_path, name: str, content: str | bytes):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_listed_urls_come_in_order_and_a_wrong_one_says_why():
    good, bad = starts(a_spec("https://a.example/", "a.example"))
    assert (good.row, good.address.url) == (0, "https://a.example/")
    assert (bad.row, bad.address, bad.problem) == (1, None, "'a.example' is not a URL")


def test_the_other_columns_of_a_csv_travel_along(tmp_path):
    path = a_file(
        tmp_path,
        "urls.csv",
        '\ufeffsku, URL ,name\n1,https://a.example/1,"Kettle, big"\n2,https://a.example/2,\n',
    )

    first, second = read(path)

    assert first.address.url == "https://a.example/1"
    assert json.loads(first.input) == {"sku": "1", "name": "Kettle, big"}
    assert json.loads(second.input) == {"sku": "2", "name": ""}


def test_json_lines_keep_their_types(tmp_path):
    path = a_file(tmp_path, "urls.jsonl", '{"url": "https://a.example/1", "sku": 1, "tags": ["x"]}\n\n')
    [start] = read(path)
    assert json.loads(start.input) == {"sku": 1, "tags": ["x"]}


@pytest.mark.parametrize(
    ("content", "kind"), [('{"url": "https://a.example/"}\n', "JSON"), ("url\nhttps://a.example/\n", "CSV")]
)
def test_a_file_without_an_extension_is_recognised(tmp_path, content, kind):
    [start] = read(a_file(tmp_path, "urls", content))
    assert start.address.url == "https://a.example/", kind


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("u.jsonl", "{oops", "line 2 of u.jsonl: not JSON"),
        ("u.jsonl", "[1]", 'line 2 of u.jsonl: expected an object with a text "url"'),
        ("u.jsonl", '{"url": 7}', 'line 2 of u.jsonl: expected an object with a text "url"'),
        ("u.jsonl", '{"url": "nonsense"}', "'nonsense' is not a URL"),
        ("u.jsonl", "[" * 100_000, "line 2 of u.jsonl: not JSON"),
        ("u.jsonl", "x" * (MAX_LINE_BYTES + 9), f"line 2 of u.jsonl: longer than {MAX_LINE_BYTES} bytes"),
        (
            "u.jsonl",
            json.dumps({"url": "https://a.example/", "x": "y" * 70_000}),
            "the other columns are longer",
        ),
        ("u.csv", "2", "row 3 of u.csv: no url"),
        ("u.csv", "2,", "row 3 of u.csv: no url"),
        ("u.csv", "x" * (MAX_LINE_BYTES + 9), f"row 3 of u.csv: longer than {MAX_LINE_BYTES} bytes"),
        ("u.csv", f'2,"{"x" * 140_000}"', "row 3 of u.csv: field larger than field limit"),
    ],
)
def test_a_bad_row_is_reported_and_the_rest_is_read(tmp_path, name, line, said):
    good = '{"url": "https://a.example/%d"}' if name == "u.jsonl" else "1,https://a.example/%d"
    head = "" if name == "u.jsonl" else "sku,url\n"
    path = a_file(tmp_path, name, f"{head}{good % 1}\n{line}\n{good % 2}\n")

    rows = read(path)

    assert [row.row for row in rows] == [0, 1, 2]
    assert said in rows[1].problem
    assert rows[1].address is None
    assert rows[2].address.url == "https://a.example/2"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("u.csv", "sku,link\n1,2\n", "u.csv: expected a column named url in the first row, found sku, link"),
        ("u.csv", "", "found nothing"),
    ],
)
def test_a_file_without_urls_is_refused(tmp_path, name, content, said):
    with pytest.raises(SourceError, match=said):
        read(a_file(tmp_path, name, content))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"gone\.csv: No such file"):
        read(tmp_path / "gone.csv")


def test_only_local_files_are_read():
    with pytest.raises(SourceError, match="only local files"):
        read("https://a.example/urls.csv")


def test_parts_share_the_rows(tmp_path):
    path = a_file(tmp_path, "u.csv", "url\n" + "".join(f"https://a.example/{i}\n" for i in range(10)))
    rows = [[start.row for start in read(path, part=(i, 3))] for i in range(3)]
    assert rows == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    assert [start.row for start in read(path, part=(1, 3), after=5)] == [7]


def test_text_that_is_not_utf8_is_survived(tmp_path):
    [start] = read(a_file(tmp_path, "u.csv", b"url,name\nhttps://a.example/,Gr\xf6\xdfe\n"))
    assert json.loads(start.input) == {"name": "Gr��e"}


def test_a_large_file_is_not_held_in_memory(tmp_path):
    rows = "".join(f"https://a.example/{i},{'x' * 4_000}\n" for i in range(4_000))
    path = a_file(tmp_path, "u.csv", f"url,text\n{rows}")
    tracemalloc.start()
    count = sum(1 for _ in starts(a_spec(urls_from=UrlsFrom(path.as_uri()))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 4_000
    assert peak < 2 * 2**20
