// Small multiples: time over threads, memory over time, latency percentiles.

function curve(place, x, y, hover, more = {}) {
  return { ...look(place), x, y, mode: 'lines+markers', hovertemplate: `<b>%{fullData.name}</b>${hover}<extra></extra>`,
    ...more };
}

/** group: cells that differ in their number of threads only. */
function threadsPlot(group) {
  const cells = group.cells.map(index => data.cells[index]), answers = cells.map(cell => cell.answers.time);
  const counts = cells.map(cell => cell.threads), unit = answers[0].unit, speedup = state.curve === 'speedup';
  const reference = answers[0].median[placeOf(data.reference)] ?? answers[0].median.find(value => value !== null);
  const traces = speedup ? [idealLine(counts)] : [];
  for (const place of drawnAllocators()) {
    const times = answers.map(answer => answer.median[place]);
    if (times.every(value => value === null)) continue;
    const y = speedup ? times.map(value => value && reference / value) : times;
    const shown = value => (speedup ? `${ratioText(value)} ×` : quantity(value, unit));
    const text = y.map(value => (value === null ? '' : shown(value)));
    traces.push(curve(place, counts, y, ', %{x} threads: %{text}', { text }));
  }
  const yaxis = speedup ? { rangemode: 'tozero' } : logAxis(traces.flatMap(trace => trace.y));
  const title = speedup ? 'speed-up' : unit === 'ns' ? 'ns per operation' : unit;
  return { traces, layout: { shapes: crowd(counts), xaxis: threadAxis(counts),
    yaxis: { ...yaxis, title: { text: title } } } };
}

function idealLine(counts) {
  return { x: counts, y: counts.map(count => count / counts[0]), mode: 'lines', name: 'ideal', hoverinfo: 'skip',
    line: { color: ink('quiet'), width: 1, dash: 'dot' } };
}

function threadAxis(counts) {
  return { type: 'log', range: [Math.log10(counts[0] / 1.12), Math.log10(counts.at(-1) * 1.12)], tickvals: counts,
    ticktext: counts.map(String), title: { text: 'threads' } };
}

/** More threads than CPUs: from there on they wait for each other. */
function crowd(counts) {
  if (!data.cpus || counts.at(-1) <= data.cpus) return [];
  return [{ type: 'rect', yref: 'paper', x0: data.cpus, x1: counts.at(-1) * 1.2, y0: 0, y1: 1, layer: 'below',
    line: { width: 0 }, fillcolor: ink('raised') }];
}

function residentPlot(cell) {
  const traces = [];
  for (const place of drawnAllocators()) {
    if (!cell.resident[place]) continue;
    const [step, kb] = cell.resident[place];
    const seconds = kb.map((_, at) => step * (at + 0.5) / 1000), mb = kb.map(value => value / 1024);
    traces.push(curve(place, seconds, mb, ': %{y:.3~s} MB after %{x:.3~s} s', { mode: 'lines' }));
  }
  return { traces, layout: { xaxis: { title: { text: 'seconds' }, rangemode: 'tozero' },
    yaxis: { title: { text: 'MB resident' }, rangemode: 'tozero' } } };
}

const MARKS = [50, 90, 99, 99.9, 99.99];

/** The rarer, the further right: each step of the axis is a tenth of the calls. */
function latencyPlot(cell, kind) {
  const rarity = percentile => -Math.log10(1 - percentile / 100), traces = [];
  for (const place of drawnAllocators()) {
    const points = cell.latency[kind][place];
    if (!points) continue;
    const text = points.map(([percentile, ns]) => `${percentile} % take at most ${quantity(ns, 'ns')}`);
    const x = points.map(([percentile]) => rarity(percentile)), y = points.map(([, ns]) => Math.max(ns, 1));
    traces.push(curve(place, x, y, ': %{text}', { mode: 'lines', text }));
  }
  return { traces, layout: {
    xaxis: { tickvals: MARKS.map(rarity), ticktext: MARKS.map(mark => mark + ' %'), range: [0, 4.2],
      ticklabeloverflow: 'allow', title: { text: 'of the calls take at most' } },
    yaxis: logAxis(traces.flatMap(trace => trace.y), value => quantity(value, 'ns').replace(/\.0+ /, ' ')),
  } };
}
