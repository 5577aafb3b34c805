"""A job that serves its number by http.server and by prometheus_client, sets it in its last instant, and ends as the first
argument says. The others are the two ports."""
import asyncio
import atexit
import concurrent.futures
import http.server
import os
import pickle
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time

from prometheus_client import Gauge, start_http_server

ending, bare_port, client_port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
worked = Gauge("worked", "What the job has done.")
value = 0


pool = None
mine = threading.local()
if ending != "return":
    initializer = {"initializer": setattr, "initargs": (mine, "thread", 1)} if sys.version_info >= (3, 7) else {}
    pool = concurrent.futures.ThreadPoolExecutor(1, **initializer)
    pool.submit(int).result()
# Coverage leaves out what is in no file.
assert not getattr(atexit.register, "__globals__", {}).get("__file__", "").startswith("/")
lock = threading.Lock()
accepted = threading.Event()


def refresh():
    """What a page has done that holds the lock meanwhile."""
    with lock:
        return threading.current_thread()


async def get_value():
    return value


def render(loop):
    """Waits for the loop that waits for it, as asgiref does."""
    assert pool is None or sys.version_info < (3, 7) or mine.thread
    return b"worked %d\n" % asyncio.run_coroutine_threadsafe(get_value(), loop).result()


async def make():
    loop = asyncio.get_event_loop()
    return await loop.run_in_executor(pool, render, loop)


class Page(http.server.BaseHTTPRequestHandler):
    """Reads a request by itself, as Werkzeug 2.0 does, and has its page made by a thread, as asyncio.to_thread."""

    protocol_version = "HTTP/1.1"

    def handle_one_request(self):
        self.close_connection = True
        self.raw_requestline = self.rfile.readline()
        if self.raw_requestline and self.parse_request():
            self.answer()

    def answer(self):
        assert threading.current_thread() is not serving
        with lock:
            threads = [pool.submit(refresh) for _ in (1, 2) if pool]
        assert len({each.result() for each in threads}) < 2
        with concurrent.futures.ThreadPoolExecutor(1) as own:
            collected = own.submit(time.sleep, 0.01)
        assert collected.done()
        # As that of a pool, which nothing ends.
        threading.Thread(target=threading.Event().wait, daemon=False).start()
        # In a program that returns, its first work for a pool.
        loop = asyncio.new_event_loop()
        body = loop.run_until_complete(make())
        loop.close()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def verify_request(self, *args):
        accepted.set()
        return True

    def handle_error(self, *args):
        if sys.version_info[:2] != (3, 12) or "new thread" not in str(sys.exc_info()[1]):
            super().handle_error(*args)


server = Server(("127.0.0.1", bare_port), Page)
serving = threading.Thread(target=server.serve_forever, daemon=True)
serving.start()
start_http_server(client_port, "127.0.0.1")


class Handler:
    compared = 0

    def __call__(self):
        pass

    def __eq__(self, other):
        Handler.compared += 1
        return self is other


# As a client does that closes itself at exit, one for each item of work.
for _ in range(100):
    handler = Handler()
    atexit.register(handler)
    atexit.unregister(handler)
compared = [Handler.compared < 1000]


class Query(Handler):
    """One that makes an expression of ==, which is neither true nor false."""

    def __eq__(self, other):
        Handler.compared += 1
        if Handler.compared == 1000:
            raise TypeError("an expression has no truth value")
        return False


for _ in range(3000):
    atexit.register(Query())
compared.append(Handler.compared < 1000000)
is_pickled = pickle.loads(pickle.dumps(atexit.register)) is atexit.register
# As it is without the hook: only what a program sees of the folder is looked at.
print(sys.path, getattr(sys.modules.get("sitecustomize"), "__file__", None), compared, is_pickled, flush=True)
if ending == "fork":
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
if ending == "interpreter":
    interpreters = __import__("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    interpreters.destroy(interpreters.create())
if ending == "child":
    subprocess.check_call([sys.executable, "-c", "import socket; print(socket.gethostname() != '')"])
if ending == "bare":

    class Proxied(socket.socket):
        """As that of PySocks, which connects to a proxy."""

        def connect(self, address):
            raise ConnectionRefusedError("no proxy")

    socket.socket = Proxied
    # As where it gave up its rights to read it.
    sys.modules["encodings.ascii"] = None
value = 1000000
worked.set(value)
if ending == "handler":

    @atexit.register
    def take_away():
        # Of one that asks for nothing.
        accepted.clear()
        idle = socket.create_connection(server.server_address)
        accepted.wait()
        with lock:
            server.shutdown()
            idle.close()
        server.server_close()
        worked.set(0)
        try:
            print(pool.submit(int).result())
        except RuntimeError as error:
            print(error)
        # Python 3.15 does so after all exit handlers.
        getattr(threading, "_thread_shutdown", int)()


if ending == "exit":
    sys.exit(3)
if ending == "raise":
    raise ValueError("the job failed")
if ending == "sigint":
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
