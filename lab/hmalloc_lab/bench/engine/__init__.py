"""How fast the simulation engine is: against a bare loop, with more threads, and what of that is the allocator's."""
