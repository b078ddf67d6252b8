// What lies behind a row of the table: every round, memory over time, counters.

function detailsRow(cell, shown) {
  const answer = cell.answers[state.question], height = Math.max(160, 60 + shown.length * 16);
  const panels = make('div', { class: 'panels' });
  addPanel(panels, 'Every round', answer.unit, () => roundsPlot(answer, shown), height);
  if (cell.resident) addPanel(panels, 'Memory over time', 'one typical run', () => residentPlot(cell), height);
  const inside = make('div', { class: 'details' }, panels, countersTable(cell, shown));
  return make('tr', { class: 'opened' }, make('td', { colspan: shown.length + 1 }, inside));
}

/** A small multiple; height in pixels where the style sheet's is not right. */
function addPanel(grid, title, note, build, height) {
  const plot = make('div', { class: 'plot', role: 'img', 'aria-label': `${title}, ${note}`,
    style: height && `height:${height}px` });
  const caption = make('figcaption', { text: title }, make('small', { text: note }));
  const panel = make('figure', { class: 'panel' }, caption, plot);
  grid.append(panel);
  addPlot(plot, build);
  return panel;
}

/** Every round a dot, noisy ones hollow, the median a stroke. */
function roundsPlot(answer, shown) {
  const listed = shown.filter(place => answer.rounds[place]).reverse();
  const strokes = listed.map((place, row) => ({ type: 'line', x0: answer.median[place], x1: answer.median[place],
    y0: row - 0.38, y1: row + 0.38, line: { color: colour(place), width: 2 } }));
  const all = listed.flatMap(place => answer.rounds[place].map(round => round[1]));
  const scale = Math.min(...all) > 0 && Math.max(...all) / Math.min(...all) > 8 ? logAxis(all) : {};
  return { traces: listed.map((place, row) => roundDots(answer, place, row)), layout: {
    shapes: strokes, xaxis: { ...scale, title: { text: answer.unit } },
    yaxis: { tickvals: [...listed.keys()], ticktext: listed.map(place => plain(data.allocators[place].name)),
      range: [-0.6, listed.length - 0.4], showgrid: false },
  } };
}

function roundDots(answer, place, row) {
  const rounds = answer.rounds[place], name = plain(data.allocators[place].name);
  const noisy = ([number]) => data.noisy.includes(number);
  const text = rounds.map(round => `<b>${name}</b>, round ${round[0]}: ${quantity(round[1], answer.unit)}`
    + (noisy(round) ? ', noisy' : ''));
  const apart = rounds.map((_, at) => row + ((at * 7) % 11 - 5) / 26);
  const symbol = rounds.map(round => (noisy(round) ? 'circle-open' : 'circle'));
  return { x: rounds.map(round => round[1]), y: apart, mode: 'markers', name, text,
    marker: { color: colour(place), size: 7, opacity: 0.85, symbol }, hovertemplate: '%{text}<extra></extra>' };
}

function countersTable(cell, shown) {
  const served = shown.filter(place => cell.counters.some(counter => counter.values[place] !== null));
  if (!served.length) return null;
  const heads = served.map(place => make('th', { scope: 'col', text: data.allocators[place].name }));
  const text = ({ values, unit }, place) => (values[place] === null ? '–' : quantity(values[place], unit));
  const rows = cell.counters.map(counter => make('tr', {}, make('th', { scope: 'row', text: counter.title }),
    ...served.map(place => make('td', { text: text(counter, place) }))));
  const head = make('tr', {}, make('th', { scope: 'col', text: 'Median of the rounds' }), ...heads);
  const table = make('table', { class: 'plain' }, make('thead', {}, head), make('tbody', {}, ...rows));
  return make('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': `Counters of ${cell.name}` }, table);
}
