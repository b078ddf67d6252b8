"""Real servers under real load, as programs of the laboratory: one JSON line each.

  python3 bench/servers redis|db_bench --library LIB [OPTIONS...]
"""

import sys

import db_bench
import redis

_SERVERS = {"redis": redis.main, "db_bench": db_bench.main}

if len(sys.argv) < 2 or sys.argv[1] not in _SERVERS:
    sys.exit(__doc__.strip())
_SERVERS[sys.argv.pop(1)]()
