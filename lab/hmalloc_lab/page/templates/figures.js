// The papers' figures: lines or bars as the figure's module describes them.

/** Of each series its look; names that are no allocators take the spare colours in the figure's order. */
function figureLooks(charts) {
  const names = [...new Set(charts.flatMap(chart => chart.series.map(series => series.name)))];
  const strange = names.filter(name => placeOf(name) < 0);
  const lookOf = name => (placeOf(name) < 0 ? spareLook(name, strange.indexOf(name)) : look(placeOf(name)));
  return new Map(names.map(name => [name, lookOf(name)]));
}

function figurePlot(charts, chart) {
  const looks = figureLooks(charts), shown = chart.series.filter(series => !state.hidden.has(series.name));
  const traces = shown.map(series => figureTrace(chart, series, looks.get(series.name)));
  return { traces, layout: { xaxis: figureXAxis(chart, traces), yaxis: figureYAxis(chart, traces), barmode: 'group',
    bargap: 0.25, bargroupgap: 0.06 } };
}

function figureTrace(chart, series, style) {
  const [x, y, low, high] = [0, 1, 2, 3].map(place => series.points.map(point => point[place]));
  const common = { x, y, name: style.name, hovertemplate: '<b>%{fullData.name}</b>: %{y:.3~s} at %{x}<extra></extra>' };
  if (high.some(value => value !== null)) {
    common.error_y = { type: 'data', symmetric: false, thickness: 1, width: 2, color: style.line.color,
      array: high.map((value, at) => (value ?? y[at]) - y[at]),
      arrayminus: low.map((value, at) => y[at] - (value ?? y[at])) };
  }
  if (chart.kind === 'bars' && !series.dashed) return { ...common, type: 'bar', marker: { color: style.marker.color } };
  const line = series.dashed ? { ...style.line, dash: 'dash', width: 1.4 } : style.line;
  const mode = series.dashed || x.length > 40 ? 'lines' : 'lines+markers';
  return { ...common, type: 'scatter', mode, line, marker: style.marker };
}

function figureXAxis(chart, traces) {
  const title = { text: plain(chart.x_title) };
  if (chart.kind === 'bars') return { title, type: 'category' };
  const values = [...new Set(traces.flatMap(trace => trace.x))];
  const countable = values.length <= 12 && values.every(value => typeof value === 'number');
  return { title, ...(chart.log_x ? { type: 'log' } : {}),
    ...(countable ? { tickvals: values, ticktext: values.map(numberText) } : {}) };
}

function figureYAxis(chart, traces) {
  const scale = chart.log_y ? logAxis(traces.flatMap(trace => trace.y)) : { rangemode: 'tozero' };
  return { ...scale, title: { text: plain(chart.y_title) } };
}

// ---- Legends, outside of the plots: they wrap, they print, and they cost no height. ---------------------------------

const CSS_LINES = { solid: 'solid', dash: 'dashed', dot: 'dotted', dashdot: 'dashed' };

function legendEntry(name, dashed, spare) {
  const place = placeOf(name), known = place >= 0;
  const own = known ? `var(--a${place})` : `light-dark(${spareColours(name, spare).join()})`;
  const line = dashed ? 'dashed' : known ? CSS_LINES[data.allocators[place].line] : 'solid';
  const swatch = make('i', { style: `--c:${own};--line:${line}`, 'aria-hidden': 'true' });
  return make('li', { 'data-allocator': known ? name : undefined }, swatch, name);
}

function sectionLegend() {
  return make('ul', { class: 'legend' }, ...data.allocators.map(one => legendEntry(one.name)));
}

function figureLegend(charts) {
  const dashed = new Map(charts.flatMap(chart => chart.series.map(series => [series.name, series.dashed])));
  const strange = [...dashed.keys()].filter(name => placeOf(name) < 0);
  const entries = [...dashed].map(([name, isDashed]) => legendEntry(name, isDashed, strange.indexOf(name)));
  return make('ul', { class: 'legend' }, ...entries);
}
