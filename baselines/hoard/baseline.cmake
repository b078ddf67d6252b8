hm_baseline(hoard FOLDER hoard SOURCES heap.cc heaps.cc hoard.cc options.cc size_classes.cc superblock.cc upkeep.cc)
