"""The interleaved benchmark runner behind bench/run.py: cells, allocators, measuring, statistics, report."""
