"""Links as pages really have them, and where the URL standard says they lead (case W7); spellings of one URL
(case W6).
"""

import itertools

BASE = "/shelf/deep/page.html?x=1"
"""The `base href` of the page with the odd links."""


def odd_links(origin: str) -> dict[str, str | None]:
    """href → the absolute URL without fragment that it leads to, None when it leads to no page.

    `origin` is `http://host:port` of the site. Worked out by hand from the URL standard's state machine.
    """
    return {
        "item": f"{origin}/shelf/deep/item",
        "./item?a=1": f"{origin}/shelf/deep/item?a=1",
        "../up": f"{origin}/shelf/up",
        "../../../../too-far-up": f"{origin}/too-far-up",
        "/rooted": f"{origin}/rooted",
        "//other.example/host": "http://other.example/host",
        "?only=query": f"{origin}/shelf/deep/page.html?only=query",
        "#only-fragment": f"{origin}/shelf/deep/page.html?x=1",
        "": f"{origin}/shelf/deep/page.html?x=1",
        "with-fragment#part": f"{origin}/shelf/deep/with-fragment",
        "  padded \n": f"{origin}/shelf/deep/padded",
        "line\nbreak\tand-tab": f"{origin}/shelf/deep/linebreakand-tab",
        "with space": f"{origin}/shelf/deep/with%20space",
        "back\\slash": f"{origin}/shelf/deep/back/slash",
        "a/./b/%2e%2E/c": f"{origin}/shelf/deep/a/c",
        "caf%c3%a9": f"{origin}/shelf/deep/caf%c3%a9",
        "café?q=é": f"{origin}/shelf/deep/caf%C3%A9?q=%C3%A9",
        "100%": f"{origin}/shelf/deep/100%",
        "http:same-scheme": f"{origin}/shelf/deep/same-scheme",
        "HTTP://Upper.Example/Case": "http://upper.example/Case",
        "http://port.example:80/": "http://port.example/",
        "https://port.example:443/a": "https://port.example/a",
        "https://port.example:80/a": "https://port.example:80/a",
        "http://dot.example./": "http://dot.example./",
        "http://bücher.example/": "http://xn--bcher-kva.example/",
        "http://faß.example/": "http://xn--fa-hia.example/",
        "http://0x7f.1/": "http://127.0.0.1/",
        "http://empty.example": "http://empty.example/",
        "javascript:void(0)": None,
        "mailto:shop@example.org": None,
        "tel:+6512345678": None,
        "data:text/html,hello": None,
        "blob:http://127.0.0.1/0b1c": None,
        "about:blank": None,
        "ftp://files.example/": None,
        "http://": None,
        "http://bad host/": None,
        "http://port.example:99999/": None,
    }


def spellings(host: str, port: int, path: str = "/one/page") -> list[str]:
    """50 different spellings of `http://<host>:<port><path>`; `host` is a dotted IPv4 address."""
    numbers = [int(part) for part in host.split(".")]
    whole = int.from_bytes(bytes(numbers), "big")
    hosts = (
        host,
        str(whole),
        hex(whole),
        ".".join(hex(number) for number in numbers),
        f"0{numbers[0]:o}.{whole & 0xFFFFFF}",
    )
    first, last = path.strip("/").split("/")
    starts = ("http://", "HTTP://", "http:\\\\", "\t http://")
    paths = (
        path,
        f"/./{first}/{last}",
        f"/{first}/x/../{last}",
        f"/%2e/{first}/%2E%2e/{first}/{last}",
        f"\\{first}\\{last}",
        f"{path}#top",
        f"{path}#",
        f"/{first}/\n{last}",
    )  # fmt: skip
    ports = (f":{port}", f":0{port}")
    every = [
        start + name + number + rest
        for rest, start, name, number in itertools.product(paths, starts, hosts, ports)
    ]
    step = len(every) // 50
    return every[::step][:50]
