add_pdes_test(reducing_barrier reducing_barrier_test.cc)
add_pdes_test(channel channel_test.cc)
add_pdes_test(neighbours neighbours_test.cc)
