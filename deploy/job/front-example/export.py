"""A nightly export that serves its own numbers while it runs. Nothing in here is lastscrape's but keep_last_numbers()."""

import http.server
import threading
import time
import urllib.request

rows = 0
last_success = 0.0


class Metrics(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = f"# TYPE export_rows_total counter\nexport_rows_total {rows}\n"
        if last_success:
            page += f"# TYPE export_last_success_timestamp_seconds gauge\nexport_last_success_timestamp_seconds {last_success}\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *args):
        pass


def keep_last_numbers():
    """Without it the timestamp, set in the last instant, is never seen."""
    try:
        urllib.request.urlopen("http://localhost:9469/-/snapshot", data=b"", timeout=20)
    except Exception as error:  # It must never fail the job.
        print(f"no snapshot: {error}")


server = http.server.ThreadingHTTPServer(("", 8000), Metrics)
threading.Thread(target=server.serve_forever, daemon=True).start()
for _ in range(50):
    time.sleep(0.1)
    rows += 100
last_success = time.time()
keep_last_numbers()
print(f"exported {rows} rows")
