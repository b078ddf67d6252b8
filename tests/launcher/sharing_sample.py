"""Made-up sharing maps: that of a server with threads for input and output, and of other sizes."""

import random
from itertools import count

REDIS_THREADS = ("redis-server", "io_thd_1", "io_thd_2", "io_thd_3", "bio_close_file", "bio_aof", "bio_lazy_free")
_SITES = (  # function, file, line, bytes of a block, allocated by, freed by, blocks, part that is freed, oldest class
    ("sdsnewlen", "sds.c", 145, 88, (0,), (0, 6), 61e6, 0.86, 10),
    ("createStringObject", "object.c", 103, 56, (0,), (0,), 44e6, 1.0, 3),
    ("readQueryFromClient", "networking.c", 2740, 16400, (1, 2, 3), (0, 1, 2, 3), 2.2e6, 1.0, 5),
    ("_addReplyProtoToList", "networking.c", 402, 16408, (0,), (1, 2, 3), 1.4e6, 1.0, 2),
    ("processMultibulkBuffer", "networking.c", 2461, 40, (1, 2, 3), (0,), 9.1e6, 1.0, 2),
    ("dictAddRaw", "dict.c", 541, 24, (0,), (0, 6), 8.7e6, 0.41, 10),
    ("_dictExpand", "dict.c", 246, 524288, (0,), (0,), 210, 0.9, 10),
    ("createClient", "networking.c", 131, 1960, (0,), (0,), 52000, 1.0, 10),
    ("listAddNodeTail", "adlist.c", 150, 24, (0,), (0, 4), 5.2e6, 1.0, 6),
    ("quicklistCreateNode", "quicklist.c", 170, 32, (0,), (0, 6), 1.9e6, 0.5, 10),
    ("bioCreateCloseJob", "bio.c", 188, 40, (0,), (4,), 4.1e5, 1.0, 4),
    ("feedAppendOnlyFile", "aof.c", 1311, 4112, (0,), (5,), 3.4e5, 1.0, 6),
    ("lpNew", "listpack.c", 226, 128, (0,), (0, 6), 2.2e6, 0.7, 10),
    ("raxNewNode", "rax.c", 168, 72, (0,), (0,), 6.1e5, 0.3, 10),
    ("zslCreateNode", "t_zset.c", 69, 48, (0,), (0, 6), 1.1e6, 0.6, 10),
    ("clientReplyBlockNew", "networking.c", 317, 16400, (0,), (1, 2, 3), 88000, 1.0, 3),
    ("luaM_realloc_", "lmem.c", 79, 64, (0,), (0,), 3.8e6, 1.0, 7),
    ("genericGetCommand", "t_string.c", 312, 48, (0,), (0,), 1.3e6, 1.0, 1),
    ("hashTypeConvertListpack", "t_hash.c", 460, 896, (0,), (0,), 41000, 0.8, 10),
    ("streamNew", "t_stream.c", 70, 112, (0,), (0,), 8200, 0.2, 10),
    (None, None, None, 256, (0,), (0,), 91000, 1.0, 5),
    ("evictionPoolAlloc", "evict.c", 106, 255, (0,), (0,), 16, 0.0, 0),
    ("connCreateSocket", "socket.c", 77, 96, (0,), (0,), 52000, 1.0, 10),
    ("aeCreateTimeEvent", "ae.c", 210, 64, (0,), (0,), 19000, 1.0, 9),
    ("std::vector<std::pair<std::string, unsigned long>>::_M_realloc_insert", "/usr/include/c++/12/bits/vector.tcc", 459, 1024,
     (1, 2), (0,), 5100, 1.0, 8),
    ("moduleCreateContext", "module.c", 873, 152, (0,), (0,), 3300, 1.0, 2),
    ("pubsubSubscribeChannel", "pubsub.c", 250, 24, (0,), (0,), 2900, 0.4, 10),
    ("ACLCreateUser", "acl.c", 322, 88, (0,), (0,), 12, 0.0, 0),
    (None, None, None, 72, (0,), (0, 1), 640, 1.0, 4),
    ("getaddrinfo", None, None, 64, (0,), (0,), 90, 1.0, 2))


def amount(objects: float, size: float, samples: int = 0) -> dict:
    return {"objects": float(objects), "bytes": float(objects * size), "samples": samples}


def added(amounts) -> dict:
    amounts = list(amounts)
    return {key: sum(each[key] for each in amounts) for key in ("objects", "bytes", "samples")}


class _Maker:
    """Counts up the matrix while it makes sites, so that the sums agree."""

    def __init__(self, threads, period: int) -> None:
        self.random, self.period, self.addresses = random.Random(7), period, count(0x401230, 0x5c)
        self.threads = [{"name": name, "id": 1240 + place} for place, name in enumerate(threads)]
        self.cells, self.sites = {}, []

    def site(self, function, file, line, size, by, freed_by, blocks, part, oldest) -> None:
        ends = [(a, f, self.random.uniform(0.4, 1.6)) for a in by for f in freed_by]
        whole = sum(weight for _, _, weight in ends)
        lives = [(a, f, self.sampled(blocks * part * weight / whole, size)) for a, f, weight in ends]
        for a, f, found in lives:
            self.cells.setdefault((a, f), []).append(found)
        address = hex(next(self.addresses))
        source = f"{file}:{line}" if file else "??"
        self.sites.append({
            "function": function, "file": file and (file if file[0] == "/" else f"/src/redis/src/{file}"),
            "line": line, "object": "redis-server" if file else "libc.so.6", "address": address,
            "stack": [f"{function or address} ({source})", "processCommand (server.c:4202)", "call (server.c:3575)",
                      "aeProcessEvents (ae.c:436)", "main (server.c:7215)"],
            "allocated": amount(blocks, size), "held": amount(blocks * (1 - part), size),
            "freed": added(found for _, _, found in lives),
            "handed_over": added(found for a, f, found in lives if a != f), "block_bytes": float(size),
            "ages": self.ages(blocks * part, size, oldest), "freed_at": self.freed_at(lives)})

    def sampled(self, blocks, size) -> dict:
        return amount(blocks, size, round(blocks * size / self.period))

    def ages(self, blocks, size, oldest) -> list[dict]:
        if not blocks:
            return []
        weights = [self.random.uniform(0.2, 1) * 3.0 ** -abs(place - oldest * 0.6) for place in range(oldest + 1)]
        return [{"from_ns": 10 ** (place + 2) if place else 0, "to_ns": 10 ** (place + 3),
                 "amount": self.sampled(blocks * weight / sum(weights), size)} for place, weight in enumerate(weights)]

    def freed_at(self, lives) -> list[dict]:
        places = {False: "decrRefCount (object.c:370)", True: "lazyfreeFreeObject (lazyfree.c:13)"}
        found = [{"place": place, "by_other": other, "amount": added(each for a, f, each in lives if (a != f) == other)}
                 for other, place in places.items()]
        return sorted((each for each in found if each["amount"]["bytes"]), key=lambda each: -each["amount"]["bytes"])

    def document(self, program: str) -> dict:
        sites = sorted(self.sites, key=lambda each: (-each["handed_over"]["bytes"], -each["allocated"]["bytes"]))
        total = {key: added(each[key] for each in sites) for key in ("allocated", "held", "freed", "handed_over")}
        return {"schema": "hmalloc-sharing-map", "version": 1, "program": program, "period": self.period, "missing": "",
                "total": total, "threads": self.threads,
                "matrix": [{"allocated_by": a, "freed_by": f, "amount": added(found)}
                           for (a, f), found in sorted(self.cells.items())],
                "sites": sites, "advice": []}


def redis() -> dict:
    maker = _Maker(REDIS_THREADS, 524288)
    for row in _SITES:
        maker.site(*row)
    document = maker.document("redis-server")
    for kind, name, saves in (("shared", "_addReplyProtoToList", 13), ("local", "createStringObject", 34),
                              ("local", "luaM_realloc_", 34), ("shared", "feedAppendOnlyFile", 13)):
        place = next(i for i, site in enumerate(document["sites"]) if site["function"] == name)
        document["advice"].append(advised(document["sites"][place], place, kind, saves))
    return document


def advised(site: dict, place: int, kind: str, saves: int) -> dict:
    samples, blocks = site["freed"]["samples"], site["freed"]["objects"]
    where = f"{site['file'].rsplit('/')[-1]}:{site['line']} ({site['function']})"
    says = {"local": f"freed by its own thread in {samples} of {samples} samples: hm_local_alloc and hm_local_free_sized",
            "shared": f"freed by another thread in {samples} of {samples} samples, all of one size: a cache handle "
                      "(hm_cache_of, hm_cache_alloc), or hm_shared_alloc"}
    return {"kind": kind, "site": place, "samples": samples, "of": samples, "blocks": blocks,
            "saves_instructions": round(saves * blocks),
            "text": f"{where}: {says[kind]}, about {saves} instructions less for each of {blocks:.1e} blocks"}


def many_threads(threads: int = 40) -> dict:
    """A main thread that feeds workers of one name, which hand blocks round."""
    names = ["main", *(f"worker-{place}" for place in range(threads - 3)), "log", "other threads"][:threads]
    maker = _Maker(names, 65536)
    if names[-1] == "other threads":
        maker.threads[-1]["id"] = 0
    workers = range(1, max(threads - 2, 2))
    maker.site("feed", "feed.cc", 31, 64, (0,), workers, 2e7, 1.0, 4)
    for worker in workers:
        maker.site(f"work_{worker}", "work.cc", worker, 256, (worker,), (worker, worker % (threads - 2) + 1, threads - 1), 1e5,
                   0.9, 6)
    return maker.document("crowd")


def one_thread() -> dict:
    maker = _Maker(["alone"], 524288)
    maker.site("parse", "parse.c", 12, 100, (0,), (0,), 3e6, 0.99, 5)
    return maker.document("alone")


def empty() -> dict:
    return _Maker([], 524288).document("true")
