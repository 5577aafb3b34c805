// What LASTSCRAPE_HOOKS puts into a folder that main mounts too: code that main's interpreter loads, so
// that the program's last act is a call for a snapshot. Loaded only where that is set.

import { dirname, join } from 'node:path';
import { mkdir, replaceFile } from '../base/files.ts';
import { prepareWriting } from '../base/thread-call.ts';

/**
 * Of a folder in PYTHONPATH, for Python 3.6 and later. `site` ignores an ImportError that names this module.
 * Python 3.12.1 refuses a thread to an atexit function ("can't create new thread at interpreter shutdown");
 * its C API does not, nor do 3.11.7, 3.13.0 and 3.14.10.
 */
const HOOK = String.raw`"""The hook of lastscrape: has it read this program's metrics before the exit handlers, and as the very last act.

Python's site loads it, because its folder is in PYTHONPATH. For Python 3.6 and later. It prints nothing, raises
nothing, changes no exit code, and gives way to the module of its name that the image has of its own.
"""
# New Relic's sitecustomize runs this in its own module.
IS_GUEST = "sys" in globals()
import atexit
import os
import sys

LOADED_BY = os.getpid()
URL = os.environ.get("LASTSCRAPE_SNAPSHOT_URL", "")
REGISTER = atexit.register
LEFT_SECONDS = 2
ASKERS = 0
STARTED = []


def register(*args, **kwargs):
    """As atexit's, for the newest runs first: it may close the server, or take series away as OpenTelemetry's does."""
    global ASKERS
    function = REGISTER(*args, **kwargs)
    ASKERS += 1
    try:
        # Few, and seldom: atexit.unregister compares all there are, each by the program's own __eq__.
        if ASKERS * 64 > atexit._ncallbacks():
            ASKERS = 0
            atexit.unregister(ask_first)
    except Exception:
        pass
    REGISTER(ask_first)
    return function


def ask_first():
    """Asks before all exit handlers, and not again before each of them."""
    while FIRST:
        FIRST.pop()()


def ask():
    """POSTs to URL and waits for the answer. Registered before all others, it runs after them too."""
    global LEFT_SECONDS
    try:
        # A fork serves nothing of its own, and a program that serves nothing has no last numbers here.
        if os.getpid() != LOADED_BY or LEFT_SECONDS <= 0 or not listens():
            return
        import socket
        from time import monotonic

        until = monotonic() + LEFT_SECONDS
        LEFT_SECONDS = 0
        revived = {}
        threading = sys.modules.get("threading")
        start = getattr(threading, "_start_joinable_thread", None)
        # Python 3.15 waits for threads of an exit handler, such as a pool's, which nothing ends by then.
        free = lambda function, handle, daemon: start(function, handle=handle, daemon=True)
        # A page may be the first to need a pool, whose module registers itself: refused by then.
        changes = [(threading, "_start_joinable_thread", free), (threading, "_register_atexit", callable)]
        # That of gevent starts none.
        if sys.version_info[:2] == (3, 12) and type(getattr(threading, "_start_new_thread", None)) is type(len):
            __import__("ctypes")
            changes.append((threading, "_start_new_thread", start_late))
        pools = sys.modules.get("concurrent.futures.thread")
        if getattr(pools, "_shutdown", False):
            executor = pools.ThreadPoolExecutor
            changes += (pools, "_shutdown", False), (executor, "submit", revive(executor.submit, revived))
        changes = [each for each in changes if hasattr(*each[:2])]
        before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
        # In its place may be that of PySocks, which is made of it and asks a proxy, or gevent's, which serves.
        kinds = [each for each in getattr(socket.socket, "__mro__", ()) if each.__module__ == "socket"]
        host, _, path = URL.partition("://")[2].partition("/")
        name, _, port = host.rpartition(":")
        request = "POST /%s HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % (path, host)
        try:
            for change in changes:
                setattr(*change)
            with (kinds or [socket.socket])[0](socket.AF_INET6 if ":" in name else socket.AF_INET) as connection:
                connection.settimeout(until - monotonic())
                connection.connect((name.strip("[]"), int(port)))
                connection.sendall(request.encode())
                connection.settimeout(max(until - monotonic(), 0.001))
                connection.recv(4096)
        finally:
            for change in before:
                setattr(*change)
            for pool, attributes in list(revived.items()):
                vars(pool).update(attributes)
            with STARTING:
                pass
        # One that failed has had them all.
        LEFT_SECONDS = until - monotonic()
    except BaseException:
        pass


def start_late(function, args):
    """As _thread.start_new_thread, which Python 3.12 alone refuses to an exit handler."""
    import ctypes

    has_begun = _thread.allocate_lock()
    has_begun.acquire()

    def begin(_):
        has_begun.release()
        function(*args)

    begins = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(begin)
    STARTED.append(begins)
    # Held until the thread has begun, which ends the process by SIGSEGV where Python has ended meanwhile.
    with STARTING:
        is_over = sys.modules["threading"]._start_new_thread is not start_late
        if is_over or ctypes.pythonapi.PyThread_start_new_thread(begins, None) == -1:
            raise RuntimeError("can't start new thread")
        has_begun.acquire()


def revive(submit, revived):
    """As ThreadPoolExecutor.submit, also where its threads have ended: asyncio.to_thread makes a page there."""

    def submit_late(pool, *args, **kwargs):
        with pool._shutdown_lock:
            if pool not in revived:
                revived[pool] = dict(vars(pool))
                vars(pool).update(_shutdown=False, _threads=set(), _work_queue=type(pool._work_queue)())
                vars(pool).update(_idle_semaphore=sys.modules["threading"].Semaphore(0))
        return submit(pool, *args, **kwargs)

    return submit_late


def listens():
    """Whether this process has a TCP port on which it listens; where that cannot be seen: yes."""
    tables = [name for name in ("/proc/self/net/tcp", "/proc/self/net/tcp6") if os.path.exists(name)]
    own = set()
    for fd in os.listdir(b"/proc/self/fd") if tables else ():
        try:
            own.add(os.readlink(b"/proc/self/fd/" + fd))
        except OSError:
            pass  # That of the listing itself.
    # A load test's pod may have 60,000 rows, and a probe of main that has no socket one second.
    for table in tables if b"socket:" in b"".join(own) else ():
        # Text needs a codec, which a program that gave up its rights may not read.
        with open(table, "rb") as rows:
            if any(row[3] == b"0A" and b"socket:[%s]" % row[9] in own for row in map(bytes.split, rows)):
                return True
    return not tables


def is_named(path):
    """Whether a .pth puts this into sys.path, which has it once at most."""
    for folder in filter(os.path.isdir, sys.path):
        for name in os.listdir(folder):
            if name.endswith(".pth"):
                with open(os.path.join(folder, name), encoding="utf-8", errors="surrogateescape") as lines:
                    if any(os.path.abspath(os.path.join(folder, line.strip())) == path for line in lines):
                        return True
    return False


FIRST = [ask]
# A program has any number of other interpreters, each of which loads this, and ends by itself. Before Python
# 3.12 the first alone has loaded what signals need. PyPy has but one.
IS_MAIN = getattr(sys.modules.get("_thread"), "_is_main_interpreter", lambda: {"_signal", "__pypy__"} & set(sys.modules))
# Python 2 empties this module.
if URL and sys.version_info >= (3,) and IS_MAIN():
    import _thread

    STARTING = _thread.allocate_lock()
    REGISTER(ask)
    register.__module__ = "atexit"  # Where pickle finds it.
    atexit.register = register
FOLDER = os.path.dirname(os.path.abspath(__file__))
__file__ = "<lastscrape>/" + os.path.basename(__file__)  # Left out of a report by coverage.
ADDED = [FOLDER]
NAMED = []
try:
    if os.environ.get("PYTHONPATH") == FOLDER + os.pathsep and "/python" not in os.getcwd():
        # As kustomize leaves it: Python takes what is behind the colon for the current folder.
        NAMED += filter(is_named, [os.getcwd()])
        ADDED.append(os.getcwd())
except (OSError, ValueError):
    pass
sys.path[:] = [each for each in sys.path if os.path.normpath(each) not in ADDED] + NAMED
MODULE = sys.modules.pop(__name__)
try:
    __import__(__name__)
except ImportError as error:
    if not IS_GUEST or error.name != __name__:
        raise
finally:
    if IS_GUEST:
        sys.modules[__name__] = MODULE
`;

/** Main waits as long for `--ready`. With 1 s two of 20 programs had no hook on a busy node. */
const WRITE_TIMEOUT_MS = 5_000;

/**
 * Writes `python/sitecustomize.py`, and the same as usercustomize.py, which Python gets to only where another
 * sitecustomize is first: each whole or not at all. Why it could not, or null; never rejects.
 */
export async function writeHooks(folder: string, pid: number): Promise<string | null> {
  const path = join(folder, 'python/sitecustomize.py');
  const work = async () => {
    // Not recursive: Node 24.21.0 does not return from that in a folder that takes no other, such as /proc.
    for (const each of [folder, dirname(path)]) await mkdir(each).catch(() => {});
    for (const each of [join(dirname(path), 'usercustomize.py'), path]) await replaceFile(each, HOOK, pid);
  };
  return prepareWriting(path, work, WRITE_TIMEOUT_MS)();
}
