// The page of `hmalloc profile` can be read without this: it sorts, finds, opens, and turns the light off.
'use strict';
const byId = id => document.getElementById(id);
const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const root = document.documentElement;

// ---- Light and dark. ------------------------------------------------------------------------------------------------

const isDark = () => (root.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';

function showTheme() { byId('theme').textContent = isDark() ? 'Light' : 'Dark'; }

function switchTheme() {
  root.dataset.theme = isDark() ? 'light' : 'dark';
  showTheme();
}

// ---- The matrix. ----------------------------------------------------------------------------------------------------

/** A table wider than its column scrolls in itself; else its head sticks to the window. */
function fitMatrix() {
  const matrix = byId('matrix');
  if (!matrix) return;
  matrix.classList.remove('scrolls');
  matrix.classList.toggle('scrolls', matrix.scrollWidth > matrix.clientWidth + 1);
}

/** The threads of a group, as rows and as columns. */
function openGroup(button) {
  const open = button.getAttribute('aria-expanded') !== 'true';
  button.setAttribute('aria-expanded', String(open));
  for (const each of all(`#matrix [data-of="${button.dataset.opens}"]`)) each.hidden = !open;
  fitMatrix();
}

// ---- The places. ----------------------------------------------------------------------------------------------------

const table = document.querySelector('.sites');
const sites = table ? [...table.tBodies] : [];

function openSite(site, open) {
  site.rows[1].hidden = !open;
  site.querySelector('.name button').setAttribute('aria-expanded', String(open));
}

/** The most first; pressed again, the least.  Places with the same amount stay in their order. */
function sortBy(button) {
  const head = button.closest('th'), falls = head.getAttribute('aria-sort') !== 'descending';
  for (const each of all('[aria-sort]', table)) each.setAttribute('aria-sort', 'none');
  head.setAttribute('aria-sort', falls ? 'descending' : 'ascending');
  const key = button.dataset.order.replace(/_(.)/, (_, letter) => letter.toUpperCase()), sign = falls ? -1 : 1;
  table.append(...[...table.tBodies].sort((a, b) => sign * (a.dataset[key] - b.dataset[key])));
}

const texts = new Map();

/** Names of the place, its file, its callers and of where its blocks are freed. */
function textOf(site) {
  if (!texts.has(site)) texts.set(site, all('code, bdi', site).map(each => each.textContent).join(' ').toLowerCase());
  return texts.get(site);
}

function find(text) {
  const words = text.toLowerCase().split(/\s+/);
  for (const site of sites) site.hidden = !words.every(word => textOf(site).includes(word));
  const found = sites.filter(site => !site.hidden).length;
  byId('found').textContent = text.trim() ? `${found} of ${sites.length}` : '';
  byId('none-found').hidden = found > 0;
}

/** A link to a place shows it, whatever hides it. */
function visit() {
  const site = sites.find(each => '#' + each.id === location.hash);
  if (!site) return;
  if (site.hidden) {
    byId('search').value = '';
    find('');
  }
  openSite(site, true);
  site.scrollIntoView();
  site.querySelector('button').focus({ preventScroll: true });
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const search = byId('search'), inside = event.target === search;
  if (event.key === 'Escape' && inside) {
    search.value = '';
    find('');
  } else if (event.key === '/' && search && !inside) {
    event.preventDefault();
    search.focus();
  } else if (event.key === 't' && !inside) {
    switchTheme();
  }
}

// ---- Listening. -----------------------------------------------------------------------------------------------------

byId('theme').addEventListener('click', switchTheme);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showTheme);
for (const button of all('[data-opens]')) button.addEventListener('click', () => openGroup(button));
for (const button of all('[data-order]')) button.addEventListener('click', () => sortBy(button));
for (const site of sites)
  site.querySelector('.name button').addEventListener('click', () => openSite(site, site.rows[1].hidden));
for (const link of all('a[data-site]')) link.addEventListener('click', () => setTimeout(visit));
byId('search')?.addEventListener('input', event => find(event.target.value));
document.addEventListener('keydown', onKey);
window.addEventListener('hashchange', visit);
window.addEventListener('resize', fitMatrix);
showTheme();
fitMatrix();
visit();
