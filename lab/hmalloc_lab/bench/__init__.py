"""The laboratory: what is measured (catalogue), on whom (allocators), how (campaign, process, gaps), where it is kept
(store), and what it says (results, statistics, summary, versus).  The pictures are in ../page."""
