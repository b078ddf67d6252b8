// The first picture: time against memory, a named point for each allocator.

const SIDES = {
  'middle right': [1, 0], 'middle left': [-1, 0], 'top center': [0, 1], 'bottom center': [0, -1],
  'top right': [1, 1], 'bottom right': [1, -1], 'top left': [-1, 1], 'bottom left': [-1, -1],
};

function overviewPlot(element) {
  const points = data.scatter.filter(point => !state.hidden.has(point.name));
  const sides = labelSides(points, Math.max(element.clientWidth - 130, 200), Math.max(element.clientHeight - 110, 150));
  return {
    traces: points.map((point, at) => overviewPoint(point, sides[at])),
    layout: {
      xaxis: overviewAxis(points, 'x', 'time, × the best'), yaxis: overviewAxis(points, 'y', 'memory, × the best'),
      annotations: [{ text: '↙ fast and lean', xref: 'paper', yref: 'paper', x: 0.01, y: 0.01, showarrow: false,
        font: { color: ink('quiet'), size: 11 } }],
    },
  };
}

function overviewPoint(point, side) {
  const style = look(placeOf(point.name), 11), color = style.marker.color;
  const interval = ([low, high], value) => ({ type: 'data', symmetric: false, array: [high - value],
    arrayminus: [value - low], thickness: 1, width: 0, color });
  return {
    ...style, x: [point.x], y: [point.y], mode: 'markers+text', cliponaxis: false,
    error_x: interval(point.dx, point.x), error_y: interval(point.dy, point.y),
    text: [style.name], textposition: side, textfont: { color, size: 13, weight: point.name === 'hmalloc' ? 700 : 500 },
    hovertemplate: `<b>${style.name}</b><br>time ${ratioText(point.x)} × the best<br>`
      + `memory ${ratioText(point.y)} × the best<extra></extra>`,
  };
}

function overviewAxis(points, key, text) {
  const values = points.length ? points.flatMap(point => [point[key], ...point['d' + key]]) : [1, 2];
  const range = [Math.log10(Math.min(...values)) - 0.03, Math.log10(Math.max(...values)) + 0.03];
  return { ...logAxis(values), range, title: { text } };
}

/** Each label on the side where it covers the least of points and other labels. */
function labelSides(points, width, height) {
  const across = pixels(points.map(point => point.x), width), up = pixels(points.map(point => point.y), height);
  const taken = points.map((_, at) => [across[at] - 9, up[at] - 9, across[at] + 9, up[at] + 9]);
  return points.map((point, at) => {
    const options = Object.entries(SIDES).map(([side, direction]) => {
      const box = labelBox(point.name.length * 7.2, across[at], up[at], direction);
      const outside = box[2] > width * 1.08 || box[0] < width * -0.06 ? 300 : 0;
      return { side, box, cost: taken.reduce((sum, other) => sum + overlap(box, other), outside) };
    });
    const best = options.reduce((a, b) => (b.cost < a.cost ? b : a));
    taken.push(best.box);
    return best.side;
  });
}

function pixels(values, length) {
  const logs = values.map(Math.log), low = Math.min(...logs), span = Math.max(...logs) - low || 1;
  return logs.map(value => (value - low) / span * length);
}

function labelBox(wide, x, y, [across, up]) {
  const left = across > 0 ? x + 8 : across < 0 ? x - 8 - wide : x - wide / 2;
  const low = up > 0 ? y + 6 : up < 0 ? y - 22 : y - 8;
  return [left, low, left + wide, low + 16];
}

function overlap(a, b) {
  const wide = Math.min(a[2], b[2]) - Math.max(a[0], b[0]), high = Math.min(a[3], b[3]) - Math.max(a[1], b[1]);
  return Math.max(0, wide) * Math.max(0, high);
}
