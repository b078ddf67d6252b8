#!/usr/bin/env python3
"""Flights of a year (origin,destination,count on each line) as routes of the model pandemic (from,to,passengers), to
standard output:  flights_to_routes.py FLIGHTS.csv

A plane leaves each day and carries one passenger for each flight of a day; routes with less than half a flight a day are
left out.  Airports are numbered from the one with most passengers on.
"""

import collections
import csv
import sys


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: flights_to_routes.py FLIGHTS.csv")
    with open(sys.argv[1], encoding="utf-8") as file:
        routes = [(row["origin"], row["destination"], round(int(row["count"]) / 365)) for row in csv.DictReader(file)]
    routes = [route for route in routes if route[2] > 0]
    leave = collections.Counter()
    for origin, destination, passengers in routes:
        leave[origin] += passengers
        leave[destination] += 0
    number = {airport: i for i, (airport, _) in enumerate(leave.most_common())}
    print("from,to,passengers")
    for origin, destination, passengers in routes:
        print(f"{number[origin]},{number[destination]},{passengers}")


if __name__ == "__main__":
    main()
