// What the reader has chosen.  It lives in the address, #SECTION?hide=a,b&family=local, so that a view can be sent on.
let data;  // what was measured; start.js reads it
const DEFAULTS = { family: '', threads: '', search: '', theme: '', question: 'time', curve: 'time' };
const state = { ...DEFAULTS, hidden: new Set(), anchor: '' };
const listeners = [];

function onChange(listener) { listeners.push(listener); }

/** Takes the changes, writes the address, tells everyone. */
function change(changes) {
  Object.assign(state, changes);
  const chosen = new URLSearchParams();
  if (state.hidden.size) chosen.set('hide', [...state.hidden].join(','));
  for (const [key, usual] of Object.entries(DEFAULTS)) if (state[key] !== usual) chosen.set(key, state[key]);
  const words = String(chosen);
  history.replaceState(null, '', '#' + state.anchor + (words ? '?' + words : ''));
  for (const listener of listeners) listener();
}

/** What the address says.  A link inside the page carries an anchor alone: the choices stay. */
function readAddress() {
  const [anchor, words] = location.hash.slice(1).split('?');
  if (words === undefined) return { anchor };
  const chosen = new URLSearchParams(words);
  const hidden = new Set((chosen.get('hide') || '').split(',').filter(name => placeOf(name) >= 0));
  const others = Object.entries(DEFAULTS).map(([key, usual]) => [key, chosen.get(key) || usual]);
  return { anchor, hidden, ...Object.fromEntries(others) };
}

function matchesText(text) {
  const sought = text.toLowerCase();
  return state.search.toLowerCase().split(/\s+/).every(word => sought.includes(word));
}

function matches(cell) {
  return (!state.family || cell.family === state.family)
    && (!state.threads || String(cell.threads) === state.threads)
    && matchesText(cell.name + ' ' + cell.family);
}

function placeOf(name) { return data.allocators.findIndex(one => one.name === name); }

/** Places of the allocators that are shown, in the order of the tables. */
function shownAllocators() {
  return [...data.allocators.keys()].filter(place => !state.hidden.has(data.allocators[place].name));
}

/** The same, hmalloc last: what is drawn last lies on top. */
function drawnAllocators() {
  const layer = place => ({ explicit: 1, hmalloc: 2 })[data.allocators[place].kind] || 0;
  return shownAllocators().sort((a, b) => layer(a) - layer(b) || a - b);
}

function isDark() {
  return state.theme ? state.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

function switchTheme() { change({ theme: isDark() ? 'light' : 'dark' }); }

function showTheme() {
  byId('theme').textContent = isDark() ? 'Light' : 'Dark';
  if (state.theme) document.documentElement.dataset.theme = state.theme;
  else delete document.documentElement.dataset.theme;
}

// ---- Numbers as people read them; formats.py does the same. ---------------------------------------------------------

/** Three digits: 1,234 · 123 · 12.0 · 1.23 · 0.0123 */
function significant(value) {
  if (value === 0 || Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-GB');
  return value.toFixed(2 - Math.floor(Math.log10(Math.abs(value))));
}

/** A count is a whole number. */
function numberText(value) {
  if (Math.abs(value) >= 1e6) return significant(value / 1e6) + ' M';
  return Number.isInteger(value) ? value.toLocaleString('en-GB') : significant(value);
}

function ratioText(value) {
  return value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : Math.round(value).toLocaleString('en-GB');
}

const TIMES = [[1e3, 1, 'ns'], [1e6, 1e3, 'µs'], [1e9, 1e6, 'ms'], [Infinity, 1e9, 's']];

function quantity(value, unit) {
  if (unit === 's') return quantity(value * 1e9, 'ns');
  if (unit === 'ns') {
    const [, factor, name] = TIMES.find(([limit]) => Math.abs(value) < limit);
    return `${significant(value / factor)} ${name}`;
  }
  if (unit === 'KB' && Math.abs(value) >= 1024) return `${significant(value / 1024)} MB`;
  return unit ? `${significant(value)} ${unit}` : numberText(value);
}

// ---- Elements. ------------------------------------------------------------------------------------------------------

const byId = id => document.getElementById(id);

/** make('td', {class: 'value', text: '1.0'}, child, ...).  Text is never markup. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'text') element.textContent = value;
    else if (value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter(Boolean));
  return element;
}
