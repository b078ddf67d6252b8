"""The report: one self-contained HTML page out of a campaign."""
