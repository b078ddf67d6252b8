"""A service whose use of memory is known, recorded by memray: known.py FILE native | python."""

import sys
import threading

import memray


def keep():
    return [bytearray(100_000) for _ in range(50)]


def churn():
    for _ in range(200):
        bytearray(60_000)


with memray.Tracker(sys.argv[1], native_traces=sys.argv[2] == "native"):
    kept = keep()
    thread = threading.Thread(target=churn)
    thread.start()
    thread.join()
