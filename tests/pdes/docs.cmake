# What the documentation shows is run: the tutorial and the template, from an installed hmalloc; the table of options; the
# window model.
if(NOT HM_SANITIZE)
  add_pdes_pytest(docs test_tutorial.py)
endif()
