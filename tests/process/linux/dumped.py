"""Runs two loops that it generates at one address, one after the other, and writes of them what JIT compilers write into a jitdump file.

  dumped.py DIRECTORY

The second one runs on a thread of its own. The file is removed at the end, unless KEEP is in the environment. Prints its name.
"""
import ctypes
import mmap
import os
import struct
import sys
import threading
import time

LOOP = bytes.fromhex("b9 00 00 01 00 ff c9 75 fc c3")  # mov ecx, 65536; dec ecx; jnz; ret

path = os.path.join(sys.argv[1], "jit-%d.dump" % os.getpid())
file = open(path, "w+b")
file.write(struct.pack("<6IQQ", 0x4A695444, 1, 40, 62, 0, os.getpid(), time.clock_gettime_ns(time.CLOCK_MONOTONIC), 0))
file.flush()
marker = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(LOOP)
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
loop = ctypes.CFUNCTYPE(None)(address)


def load(name):
    body = struct.pack("<2I4Q", os.getpid(), threading.get_native_id(), address, address, len(LOOP), 0) + name.encode() + b"\0" + LOOP
    file.write(struct.pack("<2IQ", 0, 16 + len(body), time.clock_gettime_ns(time.CLOCK_MONOTONIC)) + body)


def work():
    begin = time.thread_time()
    while time.thread_time() - begin < 0.4:
        loop()


load("first loop")
work()
load("second loop")
thread = threading.Thread(target=work)
thread.start()
thread.join()
# Only now the file has the names.
file.flush()
if "KEEP" not in os.environ:
    os.unlink(path)
print(path)
