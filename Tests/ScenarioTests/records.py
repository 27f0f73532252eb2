#!/usr/bin/env python3
"""Writes, reads, lists and follows records of a Stemma node over HTTP: updates with If-Match,
expected refusals, pages by the Link header, server-sent events.

Written from docs/PROTOCOL.md, and docs/JSON.md that it links, alone. The node needs the model
    type Task @model { tenant: ID! @primaryKey(sortKeyFields: ["id"]) id: ID! title: String ... }
Usage: python3 records.py URL    (environment variable STEMMA_TOKEN: the token, optional)
"""
import json, os, queue, re, sys, threading
from urllib import error, parse, request

TENANT = "a b/ü&c"

def send(path, body=None, expected=200, **headers):
    """Returns the answer; an unexpected status ends the script with the title of the problem."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if token := os.environ.get("STEMMA_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    call = request.Request(parse.urljoin(sys.argv[1], path), body, headers)
    try:
        answer = request.urlopen(call, timeout=60)
    except error.HTTPError as problem:
        answer = problem
    if answer.status != expected:
        sys.exit(json.load(answer)["title"] if answer.status >= 400 else answer.reason)
    return answer

def mutate(op, id, title, **options):
    mutation = {"op": op, "model": "Task", "key": {"tenant": TENANT, "id": id},
                "fields": {"title": title}}
    return send("/v1/mutations", json.dumps(mutation).encode(), **options)

def follow(stream, events):
    for line in stream:
        if line.startswith(b"data:"):  # The others are ids, names, comments and empty lines.
            events.put(json.loads(line[5:]))

events = queue.Queue()
stream = send("/v1/events?model=Task", Accept="text/event-stream")
threading.Thread(target=follow, args=(stream, events), daemon=True).start()

mutate("create", "1", "one")
record = send(f"/v1/records/Task/tenant={parse.quote(TENANT, safe='')}&id=1")
print("title:", json.load(record)["fields"]["title"])
stale = record.headers["ETag"]  # The revision in quotes, as If-Match wants it.
update = json.load(mutate("update", "1", "one, again", If_Match=stale))["records"][0]
print("new revision:", "present" if update["revision"] else "absent")
print("stale update:", mutate("update", "1", "late", If_Match=stale, expected=412).status)
print("second create:", mutate("create", "1", "one", expected=409).status)
mutate("create", "2", "two")
page = "/v1/records/Task?" + parse.urlencode({"limit": 1, "where": "tenant=" + TENANT})
while page:
    answer = send(page)
    print("page:", [row["fields"]["title"] for row in json.load(answer)])
    page = re.search(r'<([^>]*)>; rel="next"', answer.headers.get("Link", ""))
    page = page and page[1]
for event in iter(lambda: events.get(timeout=30), None):
    print("event:", event["op"], event["fields"]["title"])
    if event["op"] == "update":
        break
