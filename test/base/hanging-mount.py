"""Mounts a FUSE file system on the folder argv[1] that never answers, and makes the file argv[2] when it is there. What waits for it
can be killed, as with NFS: no request was taken by the server yet. Its end ends the waiting: the kernel answers ENOTCONN."""

import ctypes
import os
import pathlib
import signal
import sys

if not os.path.exists('/dev/fuse'):
    # Character device 10:229 (Linux documentation, "Linux allocated devices").
    os.mknod('/dev/fuse', 0o600 | 0o020000, os.makedev(10, 229))
device = os.open('/dev/fuse', os.O_RDWR)
options = f'fd={device},rootmode=40000,user_id=0,group_id=0,allow_other'
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b'hanging', sys.argv[1].encode(), b'fuse', 0, options.encode()) != 0:
    sys.exit(f'Cannot mount FUSE: {os.strerror(ctypes.get_errno())}')
pathlib.Path(sys.argv[2]).touch()
signal.pause()
