// The controls, and what they show and hide.
const boxes = [...document.querySelectorAll('input[name=allocator]')];
const panels = [];  // {panel, cells}: shown while one of its cells matches

function fillPanels() {
  const grid = name => document.querySelector(`[data-panels=${name}]`);
  const add = (name, cells, ...panel) => panels.push({ cells, panel: addPanel(grid(name), ...panel) });
  for (const group of data.threadGroups)
    add('threads', group.cells.map(index => data.cells[index]), group.title, group.family, () => threadsPlot(group));
  for (const cell of mostThreads()) add('memory', [cell], cell.name, cell.family, () => residentPlot(cell));
  for (const cell of data.cells) {
    for (const kind of Object.keys(cell.latency || {}))
      add('latency', [cell], cell.name.replace(' latency=1', ''), kind, () => latencyPlot(cell, kind));
  }
  for (const filled of document.querySelectorAll('[data-panels]:not(:empty)')) filled.before(sectionLegend());
}

/** Of each workload the cell with most threads; of those that are about memory all. */
function mostThreads() {
  const found = new Map();
  for (const cell of data.cells.filter(one => one.resident && one.family !== 'latency')) {
    const key = cell.family === 'memory' ? cell.name : cell.workload;
    if (cell.threads >= (found.get(key)?.threads || 0)) found.set(key, cell);
  }
  return found.values();
}

function fillFigures() {
  addPlot(byId('plot-overview'), () => overviewPlot(byId('plot-overview')));
  for (const [id, charts] of Object.entries(data.figures)) {
    if (!charts.length) continue;
    for (const element of byId(id).querySelectorAll('[data-chart]'))
      addPlot(element, () => figurePlot(charts, charts[element.dataset.chart]));
    byId(id).querySelector('.shows').append(figureLegend(charts));
  }
}

// ---- Showing the choices. -------------------------------------------------------------------------------------------

function showEverything() {
  showControls();
  hideUnwanted();
  showHeat();
  redraw();
}

function showControls() {
  for (const box of boxes) box.checked = !state.hidden.has(box.value);
  byId('search').value = state.search;
  byId('family').value = state.family;
  byId('thread-count').value = state.threads;
  for (const name of ['question', 'curve']) {
    for (const button of byId(name).children)
      button.setAttribute('aria-pressed', String(button.dataset[name] === state[name]));
  }
  showTheme();
}

/** What the page was written with carries the names that it depends on. */
function hideUnwanted() {
  const cells = new Map(data.cells.map(cell => [cell.name, cell]));
  for (const element of document.querySelectorAll('[data-allocator], [data-cell], [data-search]')) {
    const { allocator, cell, search } = element.dataset;
    element.hidden = state.hidden.has(allocator) || (cell !== undefined && !matches(cells.get(cell)))
      || (search !== undefined && !matchesText(search));
  }
  for (const paper of document.querySelectorAll('details.paper')) {
    paper.hidden = !paper.querySelector('[data-search]:not([hidden])');
    if (state.search) paper.open = true;
  }
  for (const { panel, cells: members } of panels) panel.hidden = !members.some(matches);
}

// ---- Listening. -----------------------------------------------------------------------------------------------------

function takeBoxes() {
  change({ hidden: new Set(boxes.filter(box => !box.checked).map(box => box.value)) });
}

function allOrNone(kind) {
  const group = boxes.filter(box => box.dataset.kind === kind), on = group.some(box => !box.checked);
  for (const box of group) box.checked = on;
  takeBoxes();
}

function listenToFilters() {
  byId('filters').addEventListener('submit', event => event.preventDefault());
  for (const box of boxes) box.addEventListener('change', takeBoxes);
  for (const button of document.querySelectorAll('.only'))
    button.addEventListener('click', () => allOrNone(button.dataset.kind));
  byId('search').addEventListener('input', event => change({ search: event.target.value }));
  byId('family').addEventListener('change', event => change({ family: event.target.value }));
  byId('thread-count').addEventListener('change', event => change({ threads: event.target.value }));
  byId('reset').addEventListener('click', () => change({ hidden: new Set(), family: '', threads: '', search: '' }));
  byId('theme').addEventListener('click', switchTheme);
  for (const name of ['question', 'curve']) {
    for (const button of byId(name).children)
      button.addEventListener('click', () => change({ [name]: button.dataset[name] }));
  }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showEverything);
}
