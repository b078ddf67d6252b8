// Many cores, simulated: a plot for each pattern, all with the same axes.

const FLOOR = 0.001;         // what is less lies on the bottom line: most of it is nothing at all
const MOST_IN_ONE_BOX = 10;  // names that fit into a plot's height

function coresPlot(charts, chart) {
  const { traces, layout } = figurePlot(charts, chart), together = traces.length <= MOST_IN_ONE_BOX;
  for (const trace of traces) {
    const text = trace.y.map(coresText), where = together ? '' : ' on %{x} cores';
    Object.assign(trace, { text, hovertemplate: `%{fullData.name}: %{text}${where}<extra></extra>` });
    trace.y = trace.y.map(value => Math.max(value, FLOOR));
  }
  return { traces, layout: { ...layout, hovermode: together ? 'x unified' : 'closest',
    xaxis: { ...layout.xaxis, ...coresAxis(charts) }, yaxis: { ...layout.yaxis, ...movesAxis(charts) } } };
}

function coresText(value) { return value === 0 ? '0' : value < FLOOR ? `less than ${FLOOR}` : value.toFixed(3); }

function valuesOf(charts, place) {
  return charts.flatMap(chart => chart.series.flatMap(series => series.points.map(point => point[place])));
}

function coresAxis(charts) {
  const counts = [...new Set(valuesOf(charts, 0))].sort((a, b) => a - b);
  const ticks = counts.length <= 12 ? counts : [1, 2, 4, 8, 16, 32, 64];
  return { type: 'log', tickmode: 'array', tickvals: ticks, ticktext: ticks.map(String),
    range: [Math.log10(counts[0] / 1.15), Math.log10(counts.at(-1) * 1.15)],
    unifiedhovertitle: { text: '%{x} cores' } };
}

function movesAxis(charts) {
  const most = Math.max(...valuesOf(charts, 1), 1);
  const ticks = [FLOOR, 0.01, 0.1, 1, 10, 100].filter(tick => tick < most * 1.4);
  return { type: 'log', tickmode: 'array', tickvals: ticks, ticktext: ['0', ...ticks.slice(1).map(String)],
    range: [Math.log10(FLOOR) - 0.15, Math.log10(most) + 0.15] };
}

function fillCores() {
  for (const element of document.querySelectorAll('[data-cores]'))
    addPlot(element, () => coresPlot(data.cores, data.cores[element.dataset.cores]));
  if (data.cores.length) byId('cores-panels').before(figureLegend(data.cores));
}
