"""What the tests of Python's clients share."""

import sys
import time

PATIENCE = 30

server = sys.argv[1]


def same(what, want, got):
    if want != got:
        raise AssertionError(f"{what}: {got!r}, want {want!r}")


def eventually(what, ok):
    end = time.monotonic() + PATIENCE
    while not ok():
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")
        time.sleep(0.01)


def fails(kind, what):
    """The error of this kind that what fails with."""
    try:
        what()
    except kind as e:
        return e
    raise AssertionError(f"no {kind.__name__}")


def run(tests):
    """Runs the tests that are named on the command line, after the server."""
    for name in sys.argv[2:]:
        tests[name]()
