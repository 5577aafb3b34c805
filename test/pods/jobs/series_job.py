"""A program with JOB_SERIES numbers that do not change, beside the process's own that do, on JOB_PORT until it is killed: what being read costs it."""
import os
import signal

from prometheus_client import Gauge, start_http_server

rows = Gauge("job_rows", "Rows that are left.", ["kind", "part"])
for index in range(int(os.environ["JOB_SERIES"])):
    rows.labels(f"kind-{index % 10}", f"{index:06}").set(index / 3)
start_http_server(int(os.environ["JOB_PORT"]), "127.0.0.1")
print("ready", flush=True)
signal.pause()
