"""Ctrl-C works in the tests' own processes, also where a shell that runs them in the background ignores it:
what is ignored here would be inherited by every process that a test starts."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
