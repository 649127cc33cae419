"""Stands for a program that a server runs in a fork: see :mod:`tests.support.forked`.

It gives it its own files, environment and folder, passes signals on, and ends as it does.
"""

import json
import os
import signal
import socket
import struct
import sys

PASSED_ON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}

with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    folder = os.getcwd()  # noqa: PTH109 - to import pathlib takes a third of the time
    given = {"arguments": sys.argv[2:], "environment": {**os.environ}, "folder": folder}
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    for number in PASSED_ON:
        signal.signal(number, lambda number, _: connection.sendall(bytes([number])))
    socket.send_fds(connection, [json.dumps(given).encode()], [0, 1, 2])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in (0, 1, 2):
        os.dup2(nothing, file)
    status = connection.recv(4)
code = os.waitstatus_to_exitcode(struct.unpack("i", status)[0]) if status else 1
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
