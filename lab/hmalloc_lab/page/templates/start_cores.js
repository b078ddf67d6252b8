async function start() {
  runLibrary(await unpacked('library'));
  data = JSON.parse(await unpacked('data'));
  fillCores();
  const show = () => { showTheme(); redraw(); };
  byId('theme').addEventListener('click', switchTheme);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', show);
  onChange(show);
  change(readAddress());
}

const started = start();
