"""Many cores, by simulation: which lines of memory an allocator moves between the cores' caches."""
