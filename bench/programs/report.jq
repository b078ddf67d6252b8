# The records by their first tag: how many, for how much, the first three by name.
group_by(.tags[0])[] | {tag: .[0].tags[0], count: length, price: (map(.price) | add | floor), names: (map(.name) | sort | .[0:3])}
