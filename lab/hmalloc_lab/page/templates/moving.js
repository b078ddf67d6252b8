// Getting about: links, sections, keys.
const sections = [...document.querySelectorAll('main > section')];

/** A cell that the filters hide, or that does not answer the question asked, is brought back by a link to it. */
function visit(anchor) {
  const cell = data.cells.find(one => one.id === anchor);
  if (cell) {
    const changes = matches(cell) ? {} : { family: '', threads: '', search: '' };
    if (!cell.answers[state.question]) changes.question = Object.keys(cell.answers)[0];
    opened.add(cell.name);
    change(changes);
  }
  unfold(byId(anchor));
  byId(anchor)?.scrollIntoView();
  if (cell) byId(anchor).querySelector('button').focus({ preventScroll: true });
}

/** What a link leads to is seen, and so is a figure of the papers. */
function unfold(target) {
  if (target?.matches('.figure')) target.querySelector('details').open = true;
  for (let fold = target?.closest('details'); fold; fold = fold.parentElement.closest('details')) fold.open = true;
}

function step(by) {
  const here = sections.findLastIndex(section => section.getBoundingClientRect().top < 80);
  const target = sections[Math.min(Math.max(here + by, 0), sections.length - 1)];
  target.tabIndex = -1;
  target.focus({ preventScroll: true });
  target.scrollIntoView();
}

function fold(open) {
  document.querySelector('.side').classList.toggle('unfolded', open);
  byId('fold').setAttribute('aria-expanded', String(open));
}

const KEYS = {
  '/': () => { fold(true); byId('search').focus(); },
  j: () => step(1),
  k: () => step(-1),
  t: switchTheme,
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const inRow = event.target.closest('[data-row]'), does = KEYS[event.key];
  if (event.key === 'Escape' && event.target === byId('search')) {
    change({ search: '' });
    event.target.blur();
  } else if (inRow && ['ArrowDown', 'ArrowUp'].includes(event.key)) {
    const rows = [...heat.querySelectorAll('[data-row] button')], at = rows.indexOf(event.target);
    rows[at + (event.key === 'ArrowDown' ? 1 : -1)]?.focus();
    event.preventDefault();
  } else if (does && !event.target.matches('input[type=search], select')) {
    event.preventDefault();
    does();
  }
}

/** The contents mark the section that is being read. */
const reader = new IntersectionObserver(entries => {
  for (const { target } of entries.filter(entry => entry.isIntersecting)) {
    document.querySelector('nav a[aria-current]')?.removeAttribute('aria-current');
    document.querySelector(`nav a[href="#${target.id}"]`).setAttribute('aria-current', 'true');
  }
}, { rootMargin: '-20% 0px -75% 0px' });

function listenToMoves() {
  for (const section of sections) reader.observe(section);
  byId('fold').addEventListener('click', () => fold(!document.querySelector('.side.unfolded')));
  for (const link of document.querySelectorAll('nav a')) link.addEventListener('click', () => fold(false));
  for (const link of document.querySelectorAll('.duels a'))
    link.addEventListener('click', () => change({ question: link.dataset.question }));
  window.addEventListener('hashchange', () => {
    change(readAddress());
    visit(state.anchor);
  });
  window.addEventListener('resize', fitHeat);
  document.addEventListener('keydown', onKey);
}
