"""Profiles of the heap: who allocates, who frees, and what follows from it."""
