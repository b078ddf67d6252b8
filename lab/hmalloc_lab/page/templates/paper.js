// On paper and as picture files: light, complete, without controls.

let onScreen = null;  // what printing has to put back

function toPaper() {
  onScreen = { theme: state.theme, folded: [...document.querySelectorAll('details:not([open])')] };
  for (const details of onScreen.folded) details.open = true;
  state.theme = document.documentElement.dataset.theme = 'light';
  for (const [element, plot] of plots) {
    if (element.offsetParent === null) continue;
    const size = element.closest('.panels') ? { width: 330, height: 200 } : { width: 680, height: 300 };
    draw(element, size);
    plot.stale = true;
  }
}

function fromPaper() {
  if (!onScreen) return;
  for (const details of onScreen.folded) details.open = false;
  state.theme = onScreen.theme;
  onScreen = null;
  for (const [element, plot] of plots) if (plot.drawn) Plotly.purge(element);
  showTheme();
  redraw();
}

/** [file name, id] of the plots that are worth a file: the overview, the papers' figures, the simulated cores. */
function pictureNames() {
  const named = [...plots.keys()].filter(element => element.id);
  return named.map(element => [element.id.replace('plot-', '').replace(/-1$/, ''), element.id]);
}

/** A data: address.  A plot without the page around it has its title and legend inside. */
function picture(id, format) {
  const element = byId(id), { traces, layout } = plots.get(element).build(), size = { width: 860, height: 480 };
  const alone = { ...size, title: { text: plain(element.dataset.title), font: { size: 16 }, x: 0.02 },
    margin: { t: 54, l: 16, r: 16, b: 16 }, paper_bgcolor: ink('paper'), showlegend: id !== 'plot-overview' };
  const whole = merged(merged(baseLayout(), layout), alone);
  return Plotly.toImage({ data: traces, layout: whole }, { format, ...size, scale: format === 'png' ? 2 : 1 });
}

window.addEventListener('beforeprint', toPaper);
window.addEventListener('afterprint', fromPaper);
