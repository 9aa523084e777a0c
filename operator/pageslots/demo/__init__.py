"""The demo: a small shop on this machine, and the manifests that crawl it.

`shop` serves it, `catalogue` says what it must serve (so a result can be compared with the truth),
`manifests` writes the pool and the crawl requests out for a given set of ports.
"""
