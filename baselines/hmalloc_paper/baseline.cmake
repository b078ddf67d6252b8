hm_baseline(hmalloc_paper FOLDER hmalloc_paper PREFIX HMALLOC_PAPER_
  SOURCES api.cc hmalloc_paper.cc local_heap.cc shared_heap.cc superblock.cc threads.cc)
