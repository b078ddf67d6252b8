"""The tools of hmalloc: what it costs and gains a program (compare), and whether it is in use (doctor)."""
