"""Objects that must be accepted."""

from tests.contract.objects.table import (
    NOW,
    Good,
    a_condition,
    a_country,
    a_pool,
    a_proxy,
    a_request,
    a_slot,
    an_output,
)

POOLS = (
    Good("the smallest pool", a_pool()),
    Good("a pool's name of 40 characters", a_pool(name="p" * 40)),
    Good("a cap of zero, as `kubectl scale --replicas=0` sets it", a_pool(maxConcurrent=0)),
    Good("more permits than slots", a_pool(maxPageSlots=1, maxConcurrent=9)),
    Good("a variant of a country beside it", a_pool(countries=[
        {"code": "SG", "direct": True}, {"code": "SG-mobile", "direct": True},
    ])),
    Good("Norway", a_country(code="NO")),
    Good("every field of a country", a_pool(countries=[{
        "code": "CH-residential1",
        "proxies": [
            {"name": "one", "server": "http://proxy.example:8080", "credentialsSecretRef": {"name": "proxy"},
            "weight": 3},
            {"name": "two", "server": "socks5://10.0.0.7:1080"},
            {"name": "three", "server": "https://[2001:db8::1]:443/"},
        ],
        "locale": "de-CH", "timeZone": "Europe/Zurich", "minReady": 1, "maxSlots": 5, "suspend": True,
        "exitCheck": {"url": "https://ip.example/country", "country": "CH"},
    }])),
    Good("a time zone without a region", a_country(timeZone="UTC")),
    Good("a time zone of three parts", a_country(timeZone="America/Argentina/Buenos_Aires")),
    Good("a locale with a script", a_country(locale="zh-Hant-TW")),
    Good("a locale with a region by number", a_country(locale="es-419")),
    Good("minReady of all slots", a_country(minReady=20)),
    Good("maxSlots of none", a_country(maxSlots=0)),
    Good("a proxy of weight 1000", a_proxy(weight=1000)),
    Good("whole requests per slot", a_pool(preparation={"minRequestsPerSlot": 2})),
    Good("whole requests per slot, quoted", a_pool(preparation={"minRequestsPerSlot": "2"})),
    Good("three slots for two requests", a_pool(preparation={"minRequestsPerSlot": "2/3"})),
    Good("reopening and giving up at once", a_pool(
        preparation={"reopenAfterFailures": 3, "giveUpAfterFailures": 3})),
    Good("a target and fresh pages", a_pool(
        preparation={"targetUrl": "https://shop.example/?a=b#c", "reuse": "Never"})),
    Good("no cooldown", a_pool(dispatch={"siteCooldownSeconds": 0})),
    Good("sites of every form", a_pool(sites=[
        {"name": "shop.example", "maxPerSite": 1, "cooldownSeconds": 60, "pageDelaySeconds": 2,
        "suspend": True},
        {"name": "localhost:8080"}, {"name": "10.1.2.3:80"}, {"name": "[::1]:8080"},
        {"name": "xn--bcher-kva.example"},
    ])),
    Good("nothing blocked", a_pool(blocking={"resourceTypes": []})),
    Good("blocked URLs", a_pool(blocking={"urlPatterns": ["*://*.ads.example/*"]})),
    Good("private addresses of two families", a_pool(
        network={"allowedCidrs": ["10.20.0.0/16", "fd00::/8"]})),
    Good("an output with every placeholder",
        an_output("s3://bucket/{namespace}/{country}/{date}/{request}/")),
    Good("an output in a Google bucket", an_output("gs://bucket")),
    Good("an output in an Azure container", an_output("abfs://container@account.dfs.core.windows.net/x")),
    Good("an output in a folder", an_output("file:///var/lib/records")),
    Good("a folder whose name has dots", an_output("file:///a/..b/c..")),
    Good("a pod template", a_pool(podTemplate={"terminationGracePeriodSeconds": 30, "memoryMiB": 512})),
    Good("a status", a_pool() | {"status": {
        "observedGeneration": 3, "slots": 2, "ready": 1, "running": 1, "permitsHeld": 2, "queued": 9,
        "selector": "pageslots.dev/pool=default",
        "countries": [{"code": "SG", "score": 270, "allocated": 2, "wanted": 2, "oldestQueuedTime": NOW}],
        "backoffs": [
            {"country": "SG", "until": NOW, "failures": 7},
            {"country": "SG", "site": "shop.example", "until": NOW, "failures": 2},
        ],
        "conditions": [a_condition(type="Ready", reason="SlotsReady"),
        a_condition(type="Progressing", reason="UpToDate")],
    }}),
)  # fmt: skip

REQUESTS = (
    Good("the smallest request", a_request()),
    Good("a name with dots", a_request(name="shop.example.com")),
    Good("a name of 63 characters", a_request(name="r" * 63)),
    Good("a parallel request's name of 58 characters", a_request(name="r" * 58, parallelism=2)),
    Good("1000 start URLs",
        a_request(startUrls=[f"https://shop.example/{number}" for number in range(1000)])),
    Good("one URL twice", a_request(startUrls=["https://shop.example/"] * 2)),
    Good("URLs of every form", a_request(startUrls=[
        "http://localhost:8080", "https://bücher.example/straße", "https://[::1]/",
        "https://u:p@a.example/?q=a%20b#x",
    ])),
    Good("a file of URLs", a_request(startUrls=None, urlsFrom={"uri": "/data/urls.csv"}, parallelism=10)),
    Good("a file of URLs in a bucket", a_request(startUrls=None, urlsFrom={"uri": "s3://bucket/urls.jsonl"})),
    Good("a part of a file", a_request(
        startUrls=None, urlsFrom={"uri": "/data/urls.csv", "part": {"index": 9, "count": 10}})),
    Good("a crawl", a_request(
        follow={"scope": "domain", "maxDepth": 3, "include": ["*/product/*"], "exclude": ["*?sort=*"]},
        maxPages=50)),
    Good("a crawl that follows one link", a_request(follow={})),
    Good("every field of a request", a_request(
        poolName="default", parallelism=1, maxPages=5,
        extract=[
            {"name": "title", "css": "h1"},
            {"name": "links", "xpath": "//a", "attribute": "href", "all": True},
        ],
        capture=["text", "html", "links", "screenshot"], captureOnFailure=["html", "screenshot"],
        waitFor={"selector": ".price", "timeoutSeconds": 5}, site="shop.example", priority=-100,
        deadlineSeconds=60, pageTimeoutSeconds=1, pageRetries=0, queueTimeoutSeconds=60,
        failWhen={"failedPagesPercent": 0}, retries={"blocked": 0, "slotLost": 100},
        output={"name": "records", "path": "shop/sg.v1"}, suspend=True, stop=True,
        ttlSecondsAfterFinished=0)),
    Good("an output without a path", a_request(output={"name": "records"})),
    Good("a path with dots in its names", a_request(output={"name": "records", "path": "..a/b.."})),
    Good("a status", a_request(status={
        "observedGeneration": 1, "state": "Running", "slotName": "default-slot-0",
        "attempt": {"id": "u-2", "number": 2, "podUID": "p", "startedTime": "2026-05-01T12:00:00.123456Z"},
        "attempts": [{"outcome": "Blocked", "count": 1, "sinceProgress": 1},
        {"outcome": "SlotLost", "count": 2}],
        "firstStartTime": NOW, "nextAttemptTime": NOW, "pages": {"done": 3}, "bytes": 2**40,
        "children": {"total": 4, "succeeded": 1}, "result": {"uri": "s3://b/x", "records": 3},
        "conditions": [a_condition(), a_condition(type="Succeeded", status="Unknown", reason="NotFinished")],
    })),
    Good("a reason that this version doesn't know", a_request(
        status={"conditions": [a_condition(reason="WaitingForTheMoon")]})),
)  # fmt: skip

SLOTS = (
    Good("a slot", a_slot()),
    Good("a status", a_slot(status={
        "state": "PageReady", "permit": 0, "podName": "default-browser-0", "podUID": "u",
        "request": "shop-sg",
        "site": "shop.example", "readyTime": NOW, "idleSince": NOW, "pages": 4, "consecutiveFailures": 1,
        "lastFailure": {"outcome": "Blocked", "message": "403", "time": NOW},
        "conditions": [a_condition(type="Ready", reason="PageReady"),
        a_condition(type="Draining", reason="Rollout")],
    })),
)  # fmt: skip

GOOD = POOLS + REQUESTS + SLOTS
