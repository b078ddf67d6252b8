# The engine for other languages: in C; and in Python, by the distribution's interpreter, which has Numba and pandas from there
# (lab/shell/setup.sh asks for them).
if(NOT TARGET hmalloc-pdes)
  return()
endif()
add_pdes_test(foreign foreign_test.cc foreign_vacancies_test.cc foreign_model.c)
target_link_libraries(pdes_foreign PRIVATE hmalloc-pdes)

# A sanitizer would have to be there before the interpreter.
if(HM_SANITIZE)
  return()
endif()

function(add_python_pdes_test name seconds)  # arguments of pytest...
  list(JOIN ARGN " " arguments)
  add_test(NAME pdes.${name} COMMAND sh -c "PYTHONPATH=$1/pdes/python:$1/tests/pdes/python; export PYTHONPATH
    /usr/bin/python3 -c 'import nbclient, ipykernel, matplotlib, numba, pandas, pytest, tqdm' || exit 77
    cd $1/tests/pdes/python && exec /usr/bin/python3 -B -m pytest -q -rs -p no:cacheprovider ${arguments}" sh ${PROJECT_SOURCE_DIR})
  set_tests_properties(pdes.${name} PROPERTIES LABELS pdes TIMEOUT ${seconds} SKIP_RETURN_CODE 77
    SKIP_REGULAR_EXPRESSION "${all_skipped}" ENVIRONMENT "HM_PDES_LIBRARY=$<TARGET_FILE:hmalloc-pdes>;HM_PDES_PROGRAMS=${CMAKE_BINARY_DIR}/pdes")
  pdes_later(${name})
endfunction()

add_python_pdes_test(python 1200 test_python.py test_processes.py test_docs.py)
add_python_pdes_test(python_observing 900 test_observing.py test_watching.py)
add_python_pdes_test(python_outside 1200 test_outside.py test_pickles.py test_partition.py)
add_python_pdes_test(python_vacancies 1200 test_vacancies.py test_pickled_guests.py)
add_python_pdes_test(python_sweeps 900 test_sweeps.py)
# Needs pyarrow, which Debian 12 lacks.
add_python_pdes_test(python_arrow 900 test_arrow.py)
add_python_pdes_test(python_ranks 1200 test_ranks.py)
add_python_pdes_test(python_command_line 1200 test_command_line.py)
add_python_pdes_test(python_notebook 1200 test_notebook.py)
# Builds the wheel, for which it asks the registry.
add_python_pdes_test(python_wheel 3600 test_wheel.py)
set_property(TEST pdes.python_wheel APPEND PROPERTY LABELS slow)
