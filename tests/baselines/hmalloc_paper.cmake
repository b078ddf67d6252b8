# HMalloc as published: its rules, one by one.
hm_baseline_test(hmalloc_paper_test hmalloc_paper
  hmalloc_paper_local_test.cc hmalloc_paper_shared_test.cc hmalloc_paper_threads_test.cc)
