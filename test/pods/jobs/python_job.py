"""A batch job with the official client library: its counter holds the milliseconds that it has worked so far.

JOB_MS: how long it works; JOB_PORT: it serves /metrics there; JOB_SNAPSHOT_URL: it sends a POST there after the last change;
JOB_SLEEP_MS: it stays for so long after its end, as people have it; JOB_TEXTFILE: it writes that file every 200 ms and after the last change. It exits 50 ms
after the last change. It says "started" when it serves; its last line is JSON: the final value, and the value at the beginning of each read of its page.
"""
import json
import os
import time
import urllib.request

from prometheus_client import REGISTRY, CollectorRegistry, Counter, start_http_server, write_to_textfile

value = 0
reads = []


class Reads:
    """Stands before the counter in the registry, and so sees the value that a read shows, or an older one."""

    def describe(self):
        return []

    def collect(self):
        reads.append(value)
        return []


textfile = os.environ.get("JOB_TEXTFILE")
# As its documentation has it: a textfile is of a registry of its own, without the numbers of the process.
registry = CollectorRegistry() if textfile else REGISTRY
registry.register(Reads())
worked = Counter("job_worked_milliseconds", "How long the job has worked.", registry=registry)
snapshot_url = os.environ.get("JOB_SNAPSHOT_URL")
if "JOB_PORT" in os.environ:
    start_http_server(int(os.environ["JOB_PORT"]), "127.0.0.1")

print("started", flush=True)
started_at = time.monotonic()
written_at = 0
while value < int(os.environ["JOB_MS"]):
    elapsed = int((time.monotonic() - started_at) * 1000)
    worked.inc(elapsed - value)
    value = elapsed
    if textfile and elapsed - written_at >= 200:
        write_to_textfile(textfile, registry)
        written_at = elapsed
    time.sleep(0.005)

if textfile:
    write_to_textfile(textfile, registry)
if snapshot_url:
    with urllib.request.urlopen(urllib.request.Request(snapshot_url, method="POST"), timeout=10) as answer:
        answer.read()
time.sleep(0.05 + int(os.environ.get("JOB_SLEEP_MS", "0")) / 1000)
print(json.dumps({"final": value, "reads": reads}), flush=True)
# The hook runs at Python's own end, which os._exit() leaves out.
if "LASTSCRAPE_SNAPSHOT_URL" not in os.environ:
    os._exit(0)
