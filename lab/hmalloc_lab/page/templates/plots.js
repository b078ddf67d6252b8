// Every plot of the page: when it is drawn, and what all of them have in common.
const plots = new Map();  // element -> {build, drawn, stale, near}

// Only what is on the screen or near it is drawn: the page opens at once.
const watcher = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries) {
    const plot = plots.get(target);
    if (!plot) continue;
    plot.near = isIntersecting;
    if (isIntersecting && plot.stale) draw(target);
  }
}, { rootMargin: '400px' });

/** build() makes {traces, layout} of the choices as they are. */
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

/** size: {width, height} where the element's is not meant. */
function draw(element, size) {
  const plot = plots.get(element), { traces, layout } = plot.build();
  plot.stale = false;
  plot.drawn = true;
  element.setAttribute('aria-label', spoken(element, traces, layout));
  const whole = merged(merged(baseLayout(), layout), size ? { ...size, autosize: false } : {});
  Plotly.react(element, traces, whole, { displayModeBar: false, responsive: !size });
}

/** What a screen reader says in place of the picture: its name, its axes, and whose lines it has. */
function spoken(element, traces, layout) {
  element.dataset.name ??= element.getAttribute('aria-label');
  const across = layout.xaxis?.title?.text, up = layout.yaxis?.title?.text;
  const names = [...new Set(traces.map(trace => trace.name))].join(', ');
  return `${element.dataset.name}: ${up ? `${up} over ${across}` : across}, of ${names || 'nobody'}`;
}

function redraw() {
  for (const [element, plot] of plots) {
    plot.stale = true;
    if (plot.near) draw(element);
  }
}

function merged(base, more) {
  const result = { ...base }, isObject = value => value && typeof value === 'object' && !Array.isArray(value);
  for (const [key, value] of Object.entries(more))
    result[key] = isObject(value) && isObject(base[key]) ? merged(base[key], value) : value;
  return result;
}

// ---- Looks. ---------------------------------------------------------------------------------------------------------

/** A colour or font of the style sheet. */
function ink(name) { return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim(); }

function baseLayout() {
  const quiet = ink('quiet'), clear = 'rgba(0,0,0,0)', font = { family: ink('sans'), size: 12, color: ink('ink') };
  const axis = {
    gridcolor: ink('rule'), linecolor: quiet, zeroline: false, ticks: '', automargin: true, fixedrange: true,
    title: { standoff: 6, font: { size: 12, color: quiet } }, tickfont: { color: quiet },
  };
  return {
    paper_bgcolor: clear, plot_bgcolor: clear, margin: { l: 8, r: 10, t: 10, b: 8 }, font, xaxis: axis, yaxis: axis,
    showlegend: false, legend: { orientation: 'h', y: -0.2, yanchor: 'top' }, dragmode: false, hovermode: 'closest',
    hoverlabel: { bgcolor: ink('raised'), bordercolor: ink('rule'), font, align: 'left' },
  };
}

/** Names go into Plotly's own markup: there they stay text. */
function plain(text) { return String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;'); }

function colour(place) { return data.allocators[place][isDark() ? 'dark' : 'light']; }

/** An allocator's look, the same everywhere. */
function look(place, size = 6) { return lookOf(data.allocators[place], size); }

function lookOf(one, size = 6) {
  const ours = one.kind === 'hmalloc', color = one[isDark() ? 'dark' : 'light'];
  return {
    name: plain(one.name),
    line: { color, width: ours ? 3 : 1.6, dash: one.line },
    marker: { color, symbol: one.marker, size: ours ? size + 2 : size,
      line: { color, width: one.marker.includes('open') ? 1.6 : 0 } },
  };
}

// For series that are no allocators, and no guests from another campaign either: [light, dark].
const SPARE = [['#59626d', '#9ba5b0'], ['#0b5aa5', '#7db6f2'], ['#a8420a', '#f08c46'],
  ['#00805f', '#2fbf98'], ['#6a51b0', '#a793ea'], ['#7d7412', '#c9bd45']];

function guestOf(name) { return Object.hasOwn(data.guests, name) ? { ...data.guests[name], name } : null; }

function spareColours(name, place) {
  const guest = guestOf(name);
  return guest ? [guest.light, guest.dark] : SPARE[place % SPARE.length];
}

function spareLook(name, place) {
  const guest = guestOf(name);
  if (guest) return lookOf(guest);
  const color = SPARE[place % SPARE.length][isDark() ? 1 : 0];
  return { name: plain(name), line: { color, width: 1.6, dash: 'solid' }, marker: { color, size: 6 } };
}

/** A logarithmic axis with ticks at 1, 2 and 5: Plotly's own leave a short one bare. */
function logAxis(values, text = value => String(Number(value.toPrecision(3)))) {
  const known = values.filter(value => value > 0), low = Math.min(...known), high = Math.max(...known), ticks = [];
  if (!known.length) return { type: 'log' };
  const digits = high / low > 300 ? [1] : high / low < 4 ? [1, 1.2, 1.5, 2, 3, 4, 5, 7] : [1, 2, 5];
  for (let decade = Math.floor(Math.log10(low)) - 1; decade <= Math.ceil(Math.log10(high)); decade++)
    ticks.push(...digits.map(digit => digit * 10 ** decade));
  return { type: 'log', tickmode: 'array', tickvals: ticks, ticktext: ticks.map(text) };
}
