"""Whole programs that nobody here wrote, each with a fixed input: what they print must be the same on every allocator."""
