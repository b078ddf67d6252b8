hm_baseline(one_lock FOLDER one_lock SOURCES one_lock.cc)
