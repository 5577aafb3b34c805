"""A batch job that pushes its rows with the official client library, and ends in that instant.

Arguments: URL of the Pushgateway, RUN (a label of its group), FINAL (its rows at the end), MS (how long it works), and WAY: push, pushadd,
auth (with a user and a password) or delete (its group, as its last act).
"""
import os
import sys
import time

from prometheus_client import CollectorRegistry, Gauge, delete_from_gateway, push_to_gateway, pushadd_to_gateway
from prometheus_client.exposition import basic_auth_handler, default_handler

url, run, final, ms, way = sys.argv[1:]
registry = CollectorRegistry()
rows = Gauge("job_rows", "Rows that were written.", registry=registry)
group = {"job": f"python-{way}", "grouping_key": {"run": run}}


def authenticate(url, method, timeout, headers, data):
    return basic_auth_handler(url, method, timeout, headers, data, "user", "password")


push = pushadd_to_gateway if way == "pushadd" else push_to_gateway
handler = authenticate if way == "auth" else default_handler
rows.set(1)
push(url, registry=registry, handler=handler, **group)
time.sleep(int(ms) / 1000)
rows.set(int(final))
push(url, registry=registry, handler=handler, **group)
if way == "delete":
    delete_from_gateway(url, handler=handler, **group)
os._exit(0)
