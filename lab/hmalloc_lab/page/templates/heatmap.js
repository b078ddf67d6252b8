// The table of every cell: each allocator's ratio to the best of the row.
const heat = byId('heat');
const opened = new Set();  // names of the cells whose details are shown

/** Draws the table anew; focus: the cell whose row keeps it. */
function showHeat(focus) {
  const asked = data.cells.filter(cell => cell.answers[state.question] && matches(cell)), shown = shownAllocators();
  const families = [...new Set(asked.map(cell => cell.family))];
  const bodies = families.map(family => familyRows(family, asked.filter(cell => cell.family === family), shown));
  dropPlots(heat);
  heat.replaceChildren(make('table', { class: 'heat' }, make('thead', {}, headRow(shown)), ...bodies));
  heat.hidden = !asked.length;
  byId('heat-none').hidden = asked.length > 0;
  fitHeat();
  if (focus) heat.querySelector(`[data-row="${CSS.escape(focus)}"] button`)?.focus({ preventScroll: true });
}

/** A table wider than its column scrolls in itself; else its head sticks to the window. */
function fitHeat() {
  heat.classList.remove('scrolls');
  heat.classList.toggle('scrolls', heat.scrollWidth > heat.clientWidth + 1);
}

function headRow(shown) {
  const heads = shown.map(place => make('th', { scope: 'col', class: data.allocators[place].kind },
    make('span', { text: data.allocators[place].name }), make('i', { class: 'dot', style: `--c:var(--a${place})` })));
  return make('tr', {}, make('th', { scope: 'col', text: 'Cell' }), ...heads);
}

function familyRows(family, cells, shown) {
  const head = make('th', { scope: 'rowgroup', colspan: shown.length + 1, text: family });
  const rows = cells.flatMap(cell => [cellRow(cell, shown), opened.has(cell.name) && detailsRow(cell, shown)]);
  return make('tbody', {}, make('tr', { class: 'family' }, head), ...rows);
}

function cellRow(cell, shown) {
  const answer = cell.answers[state.question], of = ratios(answer), open = opened.has(cell.name);
  const usual = ['ns_per_op', 'vm_hwm_kb', 'latency_p999_ns'].includes(answer.metric);
  const button = make('button', { type: 'button', 'aria-expanded': String(open), text: cell.name },
    !usual && make('small', { text: ` ${answer.unit}` }));
  button.addEventListener('click', () => {
    opened[open ? 'delete' : 'add'](cell.name);
    showHeat(cell.name);
  });
  return make('tr', { id: cell.id, 'data-row': cell.name }, make('th', { scope: 'row' }, button),
    ...shown.map(place => valueCell(place, answer, of[place])));
}

function ratios(answer) {
  const known = answer.median.filter((value, place) => value !== null && data.allocators[place].dropIn);
  const best = Math.min(...known);
  return answer.median.map(value => (value === null || !known.length || best <= 0 ? null : value / best));
}

const DEEPEST = Math.log(4);  // the ratio of the strongest colour

function valueCell(place, answer, ratio) {
  const name = data.allocators[place].name, median = answer.median[place];
  if (median === null) return make('td', { class: 'value gap', text: '–', title: `${name}: not measured` });
  const depth = ratio ? Math.min(Math.max(Math.log(ratio) / DEEPEST, 0), 1) : 0;
  return make('td', {
    class: ratio !== null && ratio <= 1.01 ? 'value best' : 'value', style: `--t:${depth.toFixed(2)}`,
    title: tooltip(place, answer, ratio), text: ratio === null ? significant(median) : ratioText(ratio),
  });
}

function tooltip(place, answer, ratio) {
  const text = value => quantity(value, answer.unit), against = answer.against[place];
  const lines = [`${data.allocators[place].name}: ${text(answer.median[place])}`,
    `median of ${answer.count[place]} rounds, from ${text(answer.low[place])} to ${text(answer.high[place])}`];
  if (ratio !== null) lines.push(`${ratioText(ratio)} × the best of the row`);
  if (against) {
    const [middle, low, high] = against.map(value => (typeof value === 'number' ? ratioText(value) : value));
    lines.push(`${middle} × hmalloc, 95 % interval ${low}–${high}: ${against[3]}`);
  }
  return lines.join('\n');
}
