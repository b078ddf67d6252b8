"""The laboratory: what is measured (catalogue), on whom (participants), how (campaign, trial, gaps), where it is kept
(store), and what it says (results, statistics, summary, versus).  The pictures are in ../page."""
