# ar_malloc and its variant with one lock around everything.
hm_baseline_test(baseline_ar_malloc_test ar_malloc ar_malloc_test.cc ar_malloc_slab_test.cc ar_malloc_threads_test.cc)
hm_baseline_test(baseline_ar_malloc_lock_test ar_malloc-lock ar_malloc_lock_test.cc ar_malloc_slab_test.cc)
