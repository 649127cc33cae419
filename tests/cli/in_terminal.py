"""Makes the terminal on stdin the one whose Ctrl-C this process gets, then runs the command."""

from __future__ import annotations

import fcntl
import os
import runpy
import sys
import termios

if os.getsid(0) != os.getpid():
    os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.path[0] = ""
sys.argv = ["agent-brain", *sys.argv[1:]]
runpy.run_module("agent_brain", run_name="__main__")
