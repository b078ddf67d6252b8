set(ar_malloc ar_malloc.cc arena.cc thread_cache.cc)
hm_baseline(ar_malloc FOLDER ar_malloc SOURCES ${ar_malloc})
hm_baseline(ar_malloc-lock FOLDER ar_malloc SOURCES ${ar_malloc} DEFINITIONS HM_AR_MALLOC_GLOBAL_LOCK)
