// Filters, keys, theme, print: what the reader does, and what the page does about it.
const byId = id => document.getElementById(id);
const boxes = [...document.querySelectorAll('input[name=allocator]')];
const sections = [...document.querySelectorAll('main > section')];

// ---- Small multiples. -------------------------------------------------------------------------------------------------

const panels = [];  // {panel, cells}: shown while one of its cells matches
function fillPanels() {
  const grid = name => document.querySelector(`[data-panels=${name}]`);
  for (const group of data.threadGroups)
    remember(addPanel(grid('threads'), group.title, group.family, () => threadsPlot(group)), group.cells.map(index => data.cells[index]));
  const largest = new Map();  // of each workload the cell with most threads; in the memory family all
  for (const cell of data.cells) {
    const key = cell.family === 'memory' ? cell.name : cell.workload;
    if (cell.resident && cell.family !== 'latency' && cell.threads >= (largest.get(key)?.threads || 0)) largest.set(key, cell);
  }
  for (const cell of largest.values()) remember(addPanel(grid('memory'), cell.name, cell.family, () => residentPlot(cell)), [cell]);
  for (const cell of data.cells) for (const kind of ['malloc', 'free'])
    if (cell.latency?.[kind]) remember(addPanel(grid('latency'), cell.name.replace(' latency=1', ''), kind, () => latencyPlot(cell, kind)), [cell]);
  for (const element of document.querySelectorAll('[data-plot=figure]'))
    addPlot(element, () => { const charts = data.figures[element.dataset.figure]; return figurePlot(charts, charts[element.dataset.chart]); });
  addPlot(byId('plot-overview'), () => overviewPlot(byId('plot-overview')));
}

function remember(panel, cells) { panels.push({ panel, cells }); }

const CSS_LINES = { solid: 'solid', dash: 'dashed', dot: 'dotted', dashdot: 'dashed' };

function legendEntry(name, dashed, spare) {
  const index = placeOf(name), line = dashed ? 'dashed' : index < 0 ? 'solid' : CSS_LINES[data.allocators[index].line];
  const own = index < 0 ? `light-dark(${SPARE[spare % SPARE.length].join()})` : `var(--a${index})`;
  return make('li', index < 0 ? {} : { 'data-allocator': name }, make('i', { style: `--c:${own};--line:${line}`, 'aria-hidden': 'true' }), name);
}

function fillLegends() {
  for (const list of document.querySelectorAll('.panels[data-panels]')) {
    if (!list.children.length) continue;
    list.before(make('ul', { class: 'legend' }, ...data.allocators.map(one => legendEntry(one.name))));
  }
  for (const [id, charts] of Object.entries(data.figures)) {
    const names = new Map(charts.flatMap(chart => chart.series.map(series => [series.name, series.dashed])));
    const strange = [...names.keys()].filter(name => placeOf(name) < 0);
    byId(id).querySelector('.shows').append(make('ul', { class: 'legend' }, ...[...names].map(([name, dashed]) => legendEntry(name, dashed, strange.indexOf(name)))));
  }
}

// ---- Filters. ---------------------------------------------------------------------------------------------------------

function showControls() {
  for (const box of boxes) box.checked = !state.hidden.has(box.value);
  byId('search').value = state.search;
  byId('family').value = state.family;
  byId('thread-count').value = state.threads;
  for (const name of ['question', 'curve']) for (const button of document.querySelectorAll(`#${name} [data-${name}]`))
    button.setAttribute('aria-pressed', String(button.dataset[name] === state[name]));
  const dark = isDark();
  byId('theme').textContent = dark ? 'Light' : 'Dark';
  byId('theme').setAttribute('aria-pressed', String(dark));
  if (state.theme) document.documentElement.dataset.theme = state.theme;
  else delete document.documentElement.dataset.theme;
}

function filterStatic() {
  const named = new Map(data.cells.map(cell => [cell.name, cell]));
  for (const element of document.querySelectorAll('[data-allocator], [data-cell], [data-search]')) {
    const { allocator, cell, search } = element.dataset;
    element.hidden = (allocator !== undefined && state.hidden.has(allocator)) || (cell !== undefined && !matches(named.get(cell)))
      || (search !== undefined && !matchesText(search));
  }
  for (const { panel, cells } of panels) panel.hidden = !cells.some(matches);
}

function showEverything() {
  showControls();
  filterStatic();
  showHeat();
  redraw();
}

/** A cell that the filters hide, or that does not answer the question asked, is brought back by a link to it. */
function visit(anchor) {
  const cell = data.cells.find(one => one.id === anchor);
  if (cell) {
    opened.add(cell.name);
    const answers = Object.keys(cell.answers), changes = {};
    if (!answers.includes(state.question)) changes.question = answers[0];
    if (!matches(cell)) Object.assign(changes, { family: '', threads: '', search: '' });
    change(changes);
  }
  const target = anchor && byId(anchor);
  if (target) target.scrollIntoView();
  if (cell) target?.querySelector('button')?.focus({ preventScroll: true });
}

function listen() {
  byId('filters').addEventListener('submit', event => event.preventDefault());
  for (const box of boxes) box.addEventListener('change', () => change({ hidden: new Set(boxes.filter(one => !one.checked).map(one => one.value)) }));
  for (const button of document.querySelectorAll('.only')) button.addEventListener('click', () => {
    const group = boxes.filter(box => box.dataset.kind === button.dataset.kind), on = group.some(box => !box.checked);
    for (const box of group) box.checked = on;
    change({ hidden: new Set(boxes.filter(one => !one.checked).map(one => one.value)) });
  });
  byId('search').addEventListener('input', event => change({ search: event.target.value }));
  byId('family').addEventListener('change', event => change({ family: event.target.value }));
  byId('thread-count').addEventListener('change', event => change({ threads: event.target.value }));
  byId('reset').addEventListener('click', () => change({ hidden: new Set(), family: '', threads: '', search: '' }));
  byId('theme').addEventListener('click', switchTheme);
  byId('fold').addEventListener('click', () => byId('fold').setAttribute('aria-expanded', String(document.querySelector('.side').classList.toggle('unfolded'))));
  for (const name of ['question', 'curve']) byId(name).addEventListener('click', event => {
    if (event.target.dataset[name]) change({ [name]: event.target.dataset[name] });
  });
  for (const link of document.querySelectorAll('#overview a[data-question]')) link.addEventListener('click', () => change({ question: link.dataset.question }));
  window.addEventListener('hashchange', () => { const changes = readAddress(); change(changes); visit(changes.anchor); });
  window.addEventListener('resize', fitHeat);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => change({}));
}

function switchTheme() { change({ theme: isDark() ? 'light' : 'dark' }); }

// ---- Keys. ------------------------------------------------------------------------------------------------------------

function step(by) {
  const here = sections.findLastIndex(section => section.getBoundingClientRect().top < 80);
  const target = sections[Math.min(Math.max(here + by, 0), sections.length - 1)];
  target.setAttribute('tabindex', '-1');
  target.focus({ preventScroll: true });
  target.scrollIntoView();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const row = event.target.closest?.('[data-row]');
  if (event.key === 'Escape' && event.target === byId('search')) { change({ search: '' }); event.target.blur(); return; }
  if (row && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
    const buttons = [...heat.querySelectorAll('[data-row] button')];
    buttons[buttons.indexOf(event.target) + (event.key === 'ArrowDown' ? 1 : -1)]?.focus();
    event.preventDefault();
    return;
  }
  if (event.target.matches?.('input, select, textarea')) return;
  const does = { '/': () => { document.querySelector('.side').classList.add('unfolded'); byId('search').focus(); }, j: () => step(1), k: () => step(-1), t: switchTheme }[event.key];
  if (does) { event.preventDefault(); does(); }
}

// ---- Print. -----------------------------------------------------------------------------------------------------------

let onScreen = null;  // what printing has to put back
function toPaper() {
  onScreen = { theme: document.documentElement.dataset.theme, chosen: state.theme, folded: [...document.querySelectorAll('details:not([open])')] };
  for (const details of onScreen.folded) details.open = true;
  state.theme = document.documentElement.dataset.theme = 'light';
  for (const [element, plot] of plots) {
    if (element.offsetParent === null) continue;
    draw(element);
    const half = element.closest('.panels') !== null;
    Plotly.relayout(element, half ? { autosize: false, width: 330, height: 200 } : { autosize: false, width: 680, height: 300 });
    plot.stale = true;
  }
}

function fromPaper() {
  if (!onScreen) return;
  for (const details of onScreen.folded) details.open = false;
  state.theme = onScreen.chosen;
  onScreen = null;
  for (const element of plots.keys()) if (plots.get(element).drawn) Plotly.purge(element);
  showControls();
  redraw();
}

window.addEventListener('beforeprint', toPaper);
window.addEventListener('afterprint', fromPaper);
document.addEventListener('keydown', onKey);

const reader = new IntersectionObserver(entries => {
  for (const { target } of entries.filter(entry => entry.isIntersecting)) {
    document.querySelector('nav a[aria-current]')?.removeAttribute('aria-current');
    document.querySelector(`nav a[href="#${target.id}"]`)?.setAttribute('aria-current', 'true');
  }
}, { rootMargin: '-20% 0px -75% 0px' });
for (const section of sections) reader.observe(section);

fillPanels();
fillLegends();
listen();
onChange(showEverything);
const first = readAddress();
change(first);
if (first.anchor) visit(first.anchor);
