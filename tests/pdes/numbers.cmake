add_pdes_test(random random_test.cc)
add_pdes_test(report report_test.cc statistics_test.cc)
add_pdes_test(delays delays_test.cc)
