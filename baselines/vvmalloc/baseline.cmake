# The report's four approaches.
foreach(approach 1 2 3 4)
  set(files common.cc free_lists.cc heap.cc locks.cc segregated_list.cc)
  if(approach EQUAL 1)
    list(APPEND files global_lock.cc)
  else()
    list(APPEND files central_queue.cc fifo.cc thread_heaps.cc thread_list.cc thread_lists.cc)
  endif()
  hm_baseline(vvmalloc-${approach} FOLDER vvmalloc PREFIX VVMALLOC_ SOURCES ${files}
    DEFINITIONS HM_VVMALLOC_APPROACH=${approach})
endforeach()
