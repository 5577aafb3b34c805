"""A task that serves its own metrics, changes them in its last instant, and has no line for lastscrape: `python3 task.py`.

TASK_SECONDS: how long it works. TASK_EXIT: its exit code; 137 skips its exit handlers, as a kill does. TASK_RETRY: the number of this
try, where the first is to fail. TASK_XCOM: a file that gets a result. Its last line is JSON: the final value, the one that the last read
showed, and the moment of the end.
"""
import http.server
import json
import os
import signal
import sys
import threading
import time

value = shown = 0


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global shown
        shown = value
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"# TYPE job_worked_total counter\njob_worked_total %d\n" % value)

    def log_message(self, *args):
        pass


signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
server = http.server.ThreadingHTTPServer(("", 8000), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
end = time.monotonic() + float(os.environ.get("TASK_SECONDS", "8"))
try:
    while time.monotonic() < end:
        time.sleep(0.005)
        value += 1
    if "TASK_XCOM" in os.environ:
        with open(os.environ["TASK_XCOM"], "w") as file:
            file.write("{}")
finally:
    value += 1000000
    print(json.dumps({"final": value, "shown": shown, "endedAtMs": time.time() * 1000}), flush=True)
code = 1 if os.environ.get("TASK_RETRY") == "0" else int(os.environ.get("TASK_EXIT", "0"))
if code == 137:
    os._exit(code)
sys.exit(code)
