"""The papers' figures and tables, each with its claim, our picture and our verdict; one module per paper."""
