async function start() {
  runLibrary(await unpacked('library'));
  const { traces, layout } = JSON.parse(await unpacked('data'));
  await Plotly.newPlot('plot', traces, layout, { displaylogo: false, responsive: true });
}

const started = start();
