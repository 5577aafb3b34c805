"""job-main.ts once more, in Python, without a line for lastscrape: `python3 job-main.py PORT`."""
import http.server
import signal
import socketserver
import sys
import threading
import time

FILES_COUNT = 100
FILE_SECONDS = 0.06
files = success = 0


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        page = "# TYPE backup_files_total counter\nbackup_files_total %d\n# TYPE backup_success gauge\nbackup_success %d\n"
        self.wfile.write((page % (files, success)).encode())

    def log_message(self, *args):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
threading.Thread(target=Server(("127.0.0.1", int(sys.argv[1])), Page).serve_forever, daemon=True).start()
print("serves its own /metrics", flush=True)
signal.sigwait([signal.SIGUSR2])
# By the clock: on a busy machine it ends when it should.
began = time.monotonic()
while files < FILES_COUNT:
    time.sleep(FILE_SECONDS)
    files = min(FILES_COUNT, int((time.monotonic() - began) / FILE_SECONDS))
success = 1
