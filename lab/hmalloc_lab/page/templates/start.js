fillPanels();
fillFigures();
listenToFilters();
listenToMoves();
onChange(() => showEverything());
change(readAddress());
if (state.anchor) visit(state.anchor);
