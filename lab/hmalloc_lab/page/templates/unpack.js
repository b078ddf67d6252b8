'use strict';
// What the page carries is packed; here it becomes text, and the numbers what the other scripts work with.

/** The text of a block that packing.py has made: gzip in Base64. */
async function unpacked(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), letter => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
}

function runLibrary(text) {
  const script = document.createElement('script');
  script.textContent = text;
  document.head.append(script);
}

/** The data as heatmap.py and curves.py have shortened them, with everything in its place. */
function expanded(short) {
  for (const cell of short.cells) {
    for (const answer of Object.values(cell.answers)) expandAnswer(answer, short.verdicts);
    cell.counters = short.counters.map((counter, row) => ({ ...counter, values: cell.counters[row] }))
      .filter(counter => counter.values);
    cell.resident = cell.resident?.map(curve => curve && [curve[0], summed(curve[1])]);
  }
  return short;
}

function expandAnswer(answer, verdicts) {
  const absolute = (share, place) => share === null ? null : fromShare(share, answer.median[place]);
  answer.low = answer.low.map(absolute);
  answer.high = answer.high.map(absolute);
  answer.rounds = answer.rounds.map((shares, place) => shares && shares
    .map((share, round) => [round + 1, absolute(share, place)]).filter(([, value]) => value !== null));
  answer.against = answer.against.map(found => found && [...found.slice(0, 3), verdicts[found[3]]]);
}

/** Thousandths of the median above it; of a median of 0 the value itself. */
function fromShare(share, median) { return median ? median * (1 + share / 1000) : share; }

/** The first value and then the steps from each to the next. */
function summed(steps) {
  let sum = 0;
  return steps.map(each => (sum += each));
}
