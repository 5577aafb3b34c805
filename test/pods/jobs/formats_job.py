"""Every kind of metric of prometheus_client, with units, exemplars and start times. Nothing changes; it serves on JOB_PORT until it is killed."""
import os
import signal

from prometheus_client import CollectorRegistry, Counter, Enum, Gauge, Histogram, Info, Summary, start_http_server

registry = CollectorRegistry()
rows = Counter("rows", 'Rows that "were"\n\\written.', ["kind"], registry=registry)
rows.labels(kind='a "b"\n\\c').inc(2.5, {"trace_id": "0123"})
Gauge("left_bytes", "What is left.", unit="bytes", registry=registry).set(float("-inf"))
seconds = Histogram("row_seconds", "How long a row took.", unit="seconds", registry=registry)
for value in (0.004, 0.3, 80):
    seconds.observe(value, {"trace_id": f"{value}"})
Summary("row_size", "Of each.", registry=registry).observe(3)
Info("job", "What it is.", registry=registry).info({"version": "1.2"})
Enum("job_state", "Where it is.", states=["begun", "ended"], registry=registry).state("ended")
start_http_server(int(os.environ["JOB_PORT"]), "127.0.0.1", registry)
signal.pause()
