// Every plot of the page: when it is drawn, and what all have in common.
const plots = new Map();  // element -> {build, drawn, stale, near}
const CONFIG = { displayModeBar: false, responsive: true, doubleClick: 'reset' };

const watcher = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries) {
    const plot = plots.get(target);
    if (!plot) continue;
    plot.near = isIntersecting;
    if (isIntersecting && plot.stale) draw(target);
  }
}, { rootMargin: '400px' });

/** build(): {traces, layout}, or null where the filters leave nothing. */
function addPlot(element, build) {
  plots.set(element, { build, stale: true, drawn: false, near: false });
  watcher.observe(element);
}

function dropPlots(within) {
  for (const element of within.querySelectorAll('.plot')) {
    watcher.unobserve(element);
    if (plots.get(element)?.drawn) Plotly.purge(element);
    plots.delete(element);
  }
}

function draw(element) {
  const plot = plots.get(element);
  const made = plot.build();
  plot.stale = false;
  plot.drawn = true;
  return Plotly.react(element, made.traces, merged(baseLayout(), made.layout), CONFIG);
}

function redraw() {
  for (const [element, plot] of plots) {
    plot.stale = true;
    if (plot.near) draw(element);
  }
}

/** For print, export and those who cannot scroll. */
function drawAll() {
  const drawn = [];
  for (const [element, plot] of plots) if (plot.stale && element.offsetParent !== null) drawn.push(draw(element));
  return Promise.all(drawn);
}

function merged(base, more) {
  const result = { ...base };
  for (const [key, value] of Object.entries(more)) {
    const nested = value && typeof value === 'object' && !Array.isArray(value) && base[key] && typeof base[key] === 'object';
    result[key] = nested ? merged(base[key], value) : value;
  }
  return result;
}

function ink(name) { return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim(); }

function baseLayout() {
  const axis = { gridcolor: ink('rule'), linecolor: ink('quiet'), zeroline: false, ticks: '', automargin: true, fixedrange: true,
    title: { standoff: 6, font: { size: 12, color: ink('quiet') } }, tickfont: { color: ink('quiet') } };
  return {
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', margin: { l: 8, r: 10, t: 10, b: 8 }, hovermode: 'closest',
    font: { family: ink('sans'), size: 12, color: ink('ink') }, xaxis: axis, yaxis: axis, showlegend: false,
    legend: { orientation: 'h', y: -0.2, yanchor: 'top', font: { size: 12 } }, dragmode: false,
    hoverlabel: { bgcolor: ink('raised'), bordercolor: ink('rule'), font: { family: ink('sans'), color: ink('ink'), size: 12 }, align: 'left' },
  };
}

/** Names go into Plotly's own markup: there they stay text. */
function plain(text) { return String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;'); }

function colour(index) { return data.allocators[index][isDark() ? 'dark' : 'light']; }

/** An allocator's look, the same everywhere. */
function look(index, size = 6) {
  const one = data.allocators[index];
  const ours = one.kind === 'hmalloc';
  return { name: plain(one.name), line: { color: colour(index), width: ours ? 3 : 1.6, dash: one.line },
    marker: { color: colour(index), symbol: one.marker, size: ours ? size + 2 : size, line: { color: colour(index), width: one.marker.includes('open') ? 1.6 : 0 } } };
}

// For series that are no allocators: [light, dark].
const SPARE = [['#59626d', '#9ba5b0'], ['#0b5aa5', '#7db6f2'], ['#a8420a', '#f08c46'], ['#00805f', '#2fbf98'], ['#6a51b0', '#a793ea'], ['#7d7412', '#c9bd45']];

function spareLook(name, place) {
  const own = SPARE[place % SPARE.length][isDark() ? 1 : 0];
  return { name: plain(name), line: { color: own, width: 1.6, dash: 'solid' }, marker: { color: own, size: 6 } };
}

/** Ticks of a logarithmic axis at 1, 2 and 5: Plotly's own leave a short axis bare. */
function logTicks(values, text = value => String(Number(value.toPrecision(3)))) {
  const low = Math.min(...values), high = Math.max(...values), ticks = [];
  for (let decade = Math.floor(Math.log10(low)) - 1; decade <= Math.ceil(Math.log10(high)); decade++)
    for (const digit of high / low > 300 ? [1] : high / low < 4 ? [1, 1.2, 1.5, 2, 3, 4, 5, 7] : [1, 2, 5]) ticks.push(digit * 10 ** decade);
  return { type: 'log', tickmode: 'array', tickvals: ticks, ticktext: ticks.map(text), minor: {} };
}

/** [file name, id of the plot] of those worth a file: the overview and the papers' figures. */
function pictureNames() {
  return [...plots.keys()].filter(element => element.id).map(element => [element.id.replace(/^plot-/, '').replace(/-1$/, ''), element.id]);
}

/** Alone, without the page around it: the plot has its title and legend inside. */
function picture(id, format) {
  const element = document.getElementById(id), made = plots.get(element).build();
  const title = element.dataset.title;
  const size = { width: 860, height: 480 };
  const layout = merged(merged(baseLayout(), made.layout), { ...size, title: { text: plain(title), font: { size: 16 }, x: 0.02 },
    margin: { t: 54, l: 16, r: 16, b: 16 }, paper_bgcolor: ink('paper'), showlegend: made.layout.showlegend ?? made.traces.length > 1 });
  return Plotly.toImage({ data: made.traces, layout }, { format, ...size, scale: format === 'png' ? 2 : 1 });
}
