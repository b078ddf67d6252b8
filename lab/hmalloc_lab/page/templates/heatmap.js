// The table of every cell, and what lies behind a row.
const heat = document.getElementById('heat');
const opened = new Set();  // names of the cells whose details are shown

function ratios(answer) {
  const best = Math.min(...answer.median.filter((value, index) => value !== null && data.allocators[index].dropIn));
  return answer.median.map(value => value === null || !(best > 0) || best === Infinity ? null : value / best);
}

function tooltip(index, answer, ratio) {
  const lines = [`${data.allocators[index].name}: ${quantity(answer.median[index], answer.unit)}, median of ${answer.rounds[index].length} rounds`,
    `spread ${quantity(answer.low[index], answer.unit)} to ${quantity(answer.high[index], answer.unit)}`];
  if (ratio !== null) lines.push(`${ratioText(ratio)} × the best of the row`);
  const against = answer.against[index];
  if (against) lines.push(`${ratioText(against[0])} × hmalloc, 95 % interval ${ratioText(against[1])}–${ratioText(against[2])}: ${against[3]}`);
  return lines.join('\n');
}

function valueCell(index, answer, ratio) {
  if (answer.median[index] === null) return make('td', { class: 'value gap', text: '–', title: data.allocators[index].name + ': not measured' });
  const depth = ratio === null ? 0 : Math.min(Math.max(Math.log(ratio) / Math.log(4), 0), 1);
  const kind = ratio === null ? '' : ratio <= 1.01 ? ' best' : '';
  return make('td', { class: 'value' + kind, style: `--t:${depth.toFixed(2)}`, title: tooltip(index, answer, ratio),
    text: ratio === null ? significant(answer.median[index]) : ratioText(ratio) });
}

function headRow(shown) {
  return make('tr', {}, make('th', { scope: 'col', text: 'Cell' }), ...shown.map(index => make('th', { scope: 'col', class: data.allocators[index].kind === 'hmalloc' ? 'us' : '' },
    make('span', { text: data.allocators[index].name }), make('i', { class: 'dot', style: `--c:var(--a${index})` }))));
}

function cellRow(cell, shown) {
  const answer = cell.answers[state.question], of = ratios(answer), open = opened.has(cell.name);
  const button = make('button', { type: 'button', 'aria-expanded': String(open), text: cell.name });
  button.addEventListener('click', () => { opened[open ? 'delete' : 'add'](cell.name); showHeat(cell.name); });
  const note = answer.metric === 'ns_per_op' || answer.metric === 'vm_hwm_kb' || state.question === 'tail' ? '' : ` (${answer.unit})`;
  return make('tr', { id: cell.id, 'data-row': cell.name }, make('th', { scope: 'row' }, button, note && make('small', { text: note })), ...shown.map(index => valueCell(index, answer, of[index])));
}

/** Draws the table anew; focus stays on the row that was acted upon. */
function showHeat(focus) {
  const asked = data.cells.filter(cell => cell.answers[state.question] && matches(cell));
  const shown = shownAllocators().sort((a, b) => a - b);
  dropPlots(heat);
  const table = make('table', { class: 'heat' }, make('thead', {}, headRow(shown)));
  for (const family of new Set(asked.map(cell => cell.family))) {
    const body = make('tbody', {}, make('tr', { class: 'family' }, make('th', { scope: 'rowgroup', colspan: shown.length + 1, text: family })));
    for (const cell of asked.filter(one => one.family === family)) {
      body.append(cellRow(cell, shown));
      if (opened.has(cell.name)) body.append(detailsRow(cell, shown));
    }
    table.append(body);
  }
  heat.replaceChildren(table);
  heat.hidden = !asked.length;
  document.getElementById('heat-none').hidden = asked.length > 0;
  fitHeat();
  if (focus) heat.querySelector(`[data-row="${CSS.escape(focus)}"] button`)?.focus({ preventScroll: true });
}

/** A table wider than its column scrolls in itself; else its head sticks to the window. */
function fitHeat() {
  heat.classList.remove('scrolls');
  heat.classList.toggle('scrolls', heat.scrollWidth > heat.clientWidth + 1);
}

function detailsRow(cell, shown) {
  const panels = make('div', { class: 'panels' });
  addPanel(panels, 'Every round', cell.answers[state.question].unit, () => roundsPlot(cell.answers[state.question], shown), 14 + shown.length * 18);
  if (cell.resident) addPanel(panels, 'Memory over time', 'one typical run', () => residentPlot(cell), 14 + shown.length * 18);
  return make('tr', { class: 'opened' }, make('td', { colspan: shown.length + 1 }, make('div', { class: 'details' }, panels, countersTable(cell, shown))));
}

/** Every round a dot, noisy ones hollow, the median a stroke. */
function roundsPlot(answer, shown) {
  const listed = shown.filter(index => answer.rounds[index]).reverse();
  const traces = listed.map((index, row) => {
    const rounds = answer.rounds[index], style = look(index, 7);
    return { x: rounds.map(one => one[1]), y: rounds.map((_, at) => row + ((at * 7) % 11 - 5) / 26), mode: 'markers', name: style.name,
      marker: { color: colour(index), size: 7, opacity: 0.85, symbol: rounds.map(one => data.noisy.includes(one[0]) ? 'circle-open' : 'circle') },
      hovertemplate: '%{text}<extra></extra>', text: rounds.map(one => `<b>${style.name}</b>, round ${one[0]}: ${quantity(one[1], answer.unit)}${data.noisy.includes(one[0]) ? ', noisy' : ''}`) };
  });
  const shapes = listed.map((index, row) => ({ type: 'line', x0: answer.median[index], x1: answer.median[index], y0: row - 0.38, y1: row + 0.38, line: { color: colour(index), width: 2 } }));
  const all = listed.flatMap(index => [answer.low[index], answer.high[index]]).filter(value => value > 0);
  const wide = all.length && Math.max(...all) / Math.min(...all) > 8;
  const kb = answer.unit === 'KB' ? { tickformat: '.3~s' } : {};
  return { traces, layout: { shapes, showlegend: false, xaxis: { title: { text: answer.unit }, ...kb, ...(wide ? logTicks(all) : {}) },
    yaxis: { tickvals: listed.map((_, row) => row), ticktext: listed.map(index => plain(data.allocators[index].name)), range: [-0.6, listed.length - 0.4], showgrid: false } } };
}

function countersTable(cell, shown) {
  const served = shown.filter(index => cell.counters.some(counter => counter.values[index] !== null));
  if (!served.length) return null;
  const head = make('tr', {}, make('th', { scope: 'col', text: 'Median of the rounds' }), ...served.map(index => make('th', { scope: 'col', text: data.allocators[index].name })));
  const rows = cell.counters.map(counter => make('tr', {}, make('th', { scope: 'row', text: counter.title }), ...served.map(index => make('td', { text: counter.values[index] === null ? '–' : quantity(counter.values[index], counter.unit) }))));
  return make('div', { class: 'wide' }, make('table', { class: 'plain' }, make('thead', {}, head), make('tbody', {}, ...rows)));
}

function addPanel(grid, title, small, build, height) {
  const plot = make('div', { class: 'plot', role: 'img', 'aria-label': `${title}, ${small}`, style: height && `height:${Math.max(height, 160)}px` });
  const panel = make('figure', { class: 'panel' }, make('figcaption', { text: title }, make('small', { text: small })), plot);
  grid.append(panel);
  addPlot(plot, build);
  return panel;
}
