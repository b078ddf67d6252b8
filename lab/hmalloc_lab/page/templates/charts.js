// What the plots show: the overview's scatter, curves over threads, time and percentiles, the papers' figures.

function placeOf(name) { return data.allocators.findIndex(one => one.name === name); }

// ---- Overview. --------------------------------------------------------------------------------------------------------

/** Each label on the side where it covers the fewest points and labels. */
function labelSides(points, width, height) {
  const sides = { 'middle right': [1, 0], 'middle left': [-1, 0], 'top center': [0, 1], 'bottom center': [0, -1],
    'top right': [1, 1], 'bottom right': [1, -1], 'top left': [-1, 1], 'bottom left': [-1, -1] };
  const span = axis => { const all = points.map(p => Math.log(p[axis])); return [Math.min(...all), Math.max(...all) - Math.min(...all) || 1]; };
  const [x0, dx] = span('x'), [y0, dy] = span('y');
  const at = points.map(p => [(Math.log(p.x) - x0) / dx * width, (Math.log(p.y) - y0) / dy * height]);
  const taken = at.map(([x, y]) => [x - 9, y - 9, x + 9, y + 9]);
  return points.map((point, index) => {
    const wide = point.name.length * 7.2, [x, y] = at[index];
    let best = null;
    for (const [side, [sx, sy]] of Object.entries(sides)) {
      const left = sx > 0 ? x + 8 : sx < 0 ? x - 8 - wide : x - wide / 2, low = sy > 0 ? y + 6 : sy < 0 ? y - 22 : y - 8;
      const box = [left, low, left + wide, low + 16];
      const cost = taken.reduce((sum, other) => sum + overlap(box, other), 0) + (box[2] > width * 1.08 ? 300 : 0) + (box[0] < -width * 0.06 ? 300 : 0);
      if (!best || cost < best.cost) best = { side, box, cost };
    }
    taken.push(best.box);
    return best.side;
  });
}

function overlap(a, b) { return Math.max(0, Math.min(a[2], b[2]) - Math.max(a[0], b[0])) * Math.max(0, Math.min(a[3], b[3]) - Math.max(a[1], b[1])); }

function overviewPlot(element) {
  const points = data.scatter.filter(point => !state.hidden.has(point.name));
  const sides = labelSides(points, Math.max(element.clientWidth - 130, 200), Math.max(element.clientHeight - 110, 150));
  const traces = points.map((point, at) => {
    const style = look(placeOf(point.name), 11), spread = (low, high, value) => ({ type: 'data', symmetric: false, array: [high - value],
      arrayminus: [value - low], thickness: 1, width: 0, color: style.marker.color });
    return { ...style, x: [point.x], y: [point.y], mode: 'markers+text', text: [plain(point.name)], textposition: sides[at], cliponaxis: false,
      textfont: { color: style.marker.color, size: 13, weight: point.name === 'hmalloc' ? 700 : 500 },
      error_x: spread(...point.dx, point.x), error_y: spread(...point.dy, point.y),
      hovertemplate: `<b>${plain(point.name)}</b><br>time ${ratioText(point.x)} × the best<br>memory ${ratioText(point.y)} × the best<extra></extra>` };
  });
  const range = axis => { const all = points.flatMap(p => [p[axis], ...p['d' + axis]]); return all.length ? all : [1, 2]; };
  const axis = (values, text) => ({ ...logTicks(values), range: [Math.log10(Math.min(...values)) - 0.03, Math.log10(Math.max(...values)) + 0.03], title: { text } });
  return { traces, layout: { xaxis: axis(range('x'), 'time, × the best'), yaxis: axis(range('y'), 'memory, × the best'),
    annotations: [{ text: '↙ fast and lean', xref: 'paper', yref: 'paper', x: 0.01, y: 0.01, showarrow: false, font: { color: ink('quiet'), size: 11 } }],
    showlegend: false } };
}

// ---- Curves. ----------------------------------------------------------------------------------------------------------

function curve(index, x, y, hover, extra = {}) {
  return { ...look(index), x, y, mode: 'lines+markers', hovertemplate: hover, connectgaps: false, ...extra };
}

function threadsPlot(group) {
  const cells = group.cells.map(index => data.cells[index]), counts = cells.map(cell => cell.threads);
  const answers = cells.map(cell => cell.answers.time), unit = answers[0].unit, speedup = state.curve === 'speedup';
  const reference = answers[0].median[placeOf(data.reference)] ?? answers[0].median.find(value => value !== null);
  const traces = [];
  if (speedup) traces.push({ x: counts, y: counts.map(count => count / counts[0]), mode: 'lines', name: 'ideal', hoverinfo: 'skip', line: { color: ink('quiet'), width: 1, dash: 'dot' } });
  for (const index of shownAllocators()) {
    const times = answers.map(answer => answer.median[index]);
    if (times.every(value => value === null)) continue;
    const y = speedup ? times.map(value => value && reference / value) : times;
    const text = times.map((value, at) => value === null ? '' : speedup ? ratioText(y[at]) + ' ×' : quantity(value, unit));
    traces.push(curve(index, counts, y, '<b>%{fullData.name}</b>, %{x} threads: %{text}<extra></extra>', { text }));
  }
  const all = traces.flatMap(trace => trace.y).filter(Boolean);
  const yaxis = speedup ? { rangemode: 'tozero', title: { text: 'speed-up' } } : { ...logTicks(all.length ? all : [1, 10]), title: { text: unit === 'ns' ? 'ns per operation' : unit } };
  // More threads than CPUs: from there on they wait for each other.
  const crowd = data.cpus && counts.at(-1) > data.cpus ? [{ type: 'rect', xref: 'x', yref: 'paper', x0: data.cpus, x1: counts.at(-1) * 1.15, y0: 0, y1: 1,
    layer: 'below', line: { width: 0 }, fillcolor: ink('raised') }] : [];
  return { traces, layout: { shapes: crowd, xaxis: { type: 'log', range: [Math.log10(counts[0] / 1.12), Math.log10(counts.at(-1) * 1.12)], tickvals: counts, ticktext: counts.map(String), title: { text: 'threads' } }, yaxis } };
}

function residentPlot(cell) {
  const traces = [];
  for (const index of shownAllocators()) {
    const found = cell.resident[index];
    if (!found) continue;
    const [step, kb] = found;
    traces.push(curve(index, kb.map((_, at) => step * (at + 0.5) / 1000), kb.map(value => value / 1024), '<b>%{fullData.name}</b>: %{y:.3~s} MB after %{x:.3~s} s<extra></extra>', { mode: 'lines' }));
  }
  return { traces, layout: { xaxis: { title: { text: 'seconds' }, rangemode: 'tozero' }, yaxis: { title: { text: 'MB resident' }, rangemode: 'tozero' } } };
}

function latencyPlot(cell, kind) {
  const rarity = percentile => -Math.log10(1 - percentile / 100), marks = [50, 90, 99, 99.9, 99.99];
  const traces = [];
  for (const index of shownAllocators()) {
    const points = cell.latency[kind][index];
    if (points) traces.push(curve(index, points.map(point => rarity(point[0])), points.map(point => Math.max(point[1], 1)), '<b>%{fullData.name}</b>: %{customdata}<extra></extra>',
      { mode: 'lines', customdata: points.map(point => `${point[0]} % take at most ${quantity(point[1], 'ns')}`) }));
  }
  const all = traces.flatMap(trace => trace.y);
  return { traces, layout: { xaxis: { tickvals: marks.map(rarity), ticktext: marks.map(mark => mark + ' %'), range: [0, 4.1], title: { text: 'of the calls take at most' } },
    yaxis: logTicks(all.length ? all : [1, 10], value => quantity(value, 'ns')) } };
}

// ---- The papers' figures. ---------------------------------------------------------------------------------------------

/** Of each series its look; names that are no allocators take the spare colours in the figure's order. */
function figureLooks(charts) {
  const names = [...new Set(charts.flatMap(chart => chart.series.map(series => series.name)))];
  const strange = names.filter(name => placeOf(name) < 0);
  return new Map(names.map(name => [name, placeOf(name) < 0 ? spareLook(name, strange.indexOf(name)) : look(placeOf(name))]));
}

function figurePlot(charts, chart) {
  const looks = figureLooks(charts);
  const traces = chart.series.filter(series => !state.hidden.has(series.name)).map(series => {
    const style = looks.get(series.name);
    const [x, y, low, high] = [0, 1, 2, 3].map(place => series.points.map(point => point[place]));
    const spread = high.some(value => value !== null) ? { type: 'data', symmetric: false, thickness: 1, width: 2, color: style.line.color,
      array: high.map((value, i) => (value ?? y[i]) - y[i]), arrayminus: low.map((value, i) => y[i] - (value ?? y[i])) } : undefined;
    const common = { x, y, name: style.name, error_y: spread, hovertemplate: '<b>%{fullData.name}</b>: %{y:.3~s} at %{x}<extra></extra>' };
    if (chart.kind === 'bars' && !series.dashed) return { ...common, type: 'bar', marker: { color: style.marker.color } };
    const dashed = series.dashed ? { dash: 'dash', width: 1.4 } : {};
    return { ...common, type: 'scatter', mode: series.dashed || x.length > 40 ? 'lines' : 'lines+markers', line: { ...style.line, ...dashed }, marker: style.marker };
  });
  const all = traces.flatMap(trace => trace.y).filter(value => value > 0), xs = [...new Set(traces.flatMap(trace => trace.x))].filter(x => x !== null);
  const few = xs.length <= 12 && xs.every(x => typeof x === 'number');
  const xaxis = { title: { text: plain(chart.x_title) }, ...(chart.log_x ? { type: 'log' } : {}), ...(few && chart.kind === 'lines' ? { tickvals: xs, ticktext: xs.map(numberText) } : {}),
    ...(chart.kind === 'bars' ? { type: 'category' } : {}) };
  const yaxis = { title: { text: plain(chart.y_title) }, ...(chart.log_y && all.length ? logTicks(all) : { rangemode: 'tozero' }) };
  return { traces, layout: { xaxis, yaxis, barmode: 'group', bargap: 0.25, bargroupgap: 0.06 } };
}
