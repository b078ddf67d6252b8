async function start() {
  runLibrary(await unpacked('library'));
  data = expanded(JSON.parse(await unpacked('data')));
  fillPanels();
  fillFigures();
  fillCores();
  listenToFilters();
  listenToMoves();
  listenToSharing();
  onChange(() => showEverything());
  change(readAddress());
  if (state.anchor) visit(state.anchor);
}

const started = start();
