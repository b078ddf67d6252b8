add_pdes_test(rendezvous rendezvous_test.cc)
add_pdes_test(channel channel_test.cc)
add_pdes_test(neighbours neighbours_test.cc)
