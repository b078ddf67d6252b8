'use strict';
// What the reader has chosen.  It lives in the address, #SECTION?hide=a,b&family=local&..., so that a view can be sent on.
const data = JSON.parse(document.getElementById('data').textContent);
const state = { hidden: new Set(), family: '', threads: '', search: '', theme: '', question: 'time', curve: 'time', anchor: '' };
const listeners = [];
const KEPT = ['family', 'threads', 'search', 'theme', 'question', 'curve'];
const DEFAULTS = { question: 'time', curve: 'time' };

function onChange(listener) { listeners.push(listener); }

/** Takes the changes, tells everyone, writes the address. */
function change(changes) {
  Object.assign(state, changes);
  const chosen = new URLSearchParams();
  if (state.hidden.size) chosen.set('hide', [...state.hidden].join(','));
  for (const key of KEPT) if (state[key] && state[key] !== DEFAULTS[key]) chosen.set(key, state[key]);
  const words = String(chosen);
  history.replaceState(null, '', '#' + state.anchor + (words ? '?' + words : ''));
  for (const listener of listeners) listener(changes);
}

/** A link inside the page carries an anchor only: the choices stay. */
function readAddress() {
  const [anchor, words] = location.hash.slice(1).split('?');
  const changes = { anchor };
  if (words !== undefined) {
    const chosen = new URLSearchParams(words);
    const known = new Set(data.allocators.map(one => one.name));
    changes.hidden = new Set((chosen.get('hide') || '').split(',').filter(name => known.has(name)));
    for (const key of KEPT) changes[key] = chosen.get(key) || DEFAULTS[key] || '';
  }
  return changes;
}

function matchesText(text) {
  const sought = text.toLowerCase();
  return state.search.toLowerCase().split(/\s+/).every(word => sought.includes(word));
}

function matches(cell) {
  return (!state.family || cell.family === state.family) && (!state.threads || String(cell.threads) === state.threads)
    && matchesText(cell.name + ' ' + cell.family);
}

/** Numbers of the allocators that are shown; hmalloc's last, to be drawn on top. */
function shownAllocators() {
  const shown = data.allocators.map((_, index) => index).filter(index => !state.hidden.has(data.allocators[index].name));
  const rank = index => ({ explicit: 1, hmalloc: 2 })[data.allocators[index].kind] || 0;
  return shown.sort((a, b) => rank(a) - rank(b) || a - b);
}

function isDark() {
  return state.theme ? state.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

// ---- Numbers as people read them; formats.py does the same. -----------------------------------------------------------

function significant(value) {
  if (value === 0 || Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-GB');
  return value.toFixed(2 - Math.floor(Math.log10(Math.abs(value))));
}

function numberText(value) { return Number.isInteger(value) ? value.toLocaleString('en-GB') : significant(value); }

function ratioText(value) {
  return value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : Math.round(value).toLocaleString('en-GB');
}

function quantity(value, unit) {
  if (unit === 'ns') {
    const [limit, name] = [[1e3, 'ns'], [1e6, 'µs'], [1e9, 'ms'], [Infinity, 's']].find(step => Math.abs(value) < step[0]);
    return significant(value / { ns: 1, 'µs': 1e3, ms: 1e6, s: 1e9 }[name]) + ' ' + name;
  }
  if (unit === 'KB' && Math.abs(value) >= 1024) return significant(value / 1024) + ' MB';
  if (unit === 's' && value && Math.abs(value) < 1) return quantity(value * 1e9, 'ns');
  if (!unit && Math.abs(value) >= 1e6) return significant(value / 1e6) + ' M';
  return unit ? significant(value) + ' ' + unit : numberText(value);
}

/** An element: make('td', {class: 'value', text: '1.0'}, child, ...).  Text is never markup. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'text') element.textContent = value;
    else if (value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.filter(Boolean));
  return element;
}
