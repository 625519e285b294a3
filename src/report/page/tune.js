/* The trials of a tuner: of each two variables a map of how much slower than the best settings are, with contour lines, and all trials. */

const MOST_VALUES = 64, CELL = 44, EDGE = 96, LEVELS = [1, 2, 5, 10, 20, 50, 100];
const { trials, variables } = data;
const best = trials.find((trial) => trial.seconds !== null && trial.seconds === data.seconds);
const slower = (trial) => (trial.seconds === null ? Infinity : (trial.seconds / best.seconds - 1) * 100);
const valuesOf = (name) => [...new Set(trials.map((trial) => trial[name]).filter((value) => value !== null))]
    .sort((a, b) => a - b || (a < b ? -1 : 1));

/** Of settings with these two values the best: [column][row]. */
function cellsOf(x, y, xs, ys) {
    return xs.map((xValue) => ys.map((yValue) => trials.filter((trial) => trial[x] === xValue && trial[y] === yValue)
        .reduce((least, trial) => (!least || slower(trial) < slower(least) ? trial : least), undefined)));
}

function cellSvg(trial, left, top, title) {
    const share = slower(trial), fits = Number.isFinite(share), isBest = trial === best;
    return makeSvg('g', {}, makeSvg('title', {}, title),
        makeSvg('rect', { x: left, y: top, width: CELL - 1, height: CELL - 1, fill: `var(--${fits ? 'accent' : 'bad'})`,
            'fill-opacity': fits ? 0.06 + 0.8 * Math.exp(-share / 25) : 0.15, ...(isBest ? { stroke: 'var(--ink)', 'stroke-width': 2 } : {}) }),
        makeSvg('text', { x: left + CELL / 2, y: top + CELL / 2 + 4, 'text-anchor': 'middle', style: `fill: var(--${share < 20 ? 'on-bar' : 'ink'})` },
            isBest ? 'best' : fits ? '+' + share.toFixed(share < 10 ? 1 : 0) : '×'));
}

/** Marching squares: between four settings that fit, a line from edge to edge. */
function contour(cells, level) {
    let path = '';
    for (let x = 0; x + 1 < cells.length; x++) for (let y = 0; y + 1 < cells[x].length; y++) {
        const corners = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1], [x, y]];
        const heights = corners.map(([i, j]) => (cells[i][j] ? slower(cells[i][j]) : Infinity));
        if (!heights.every(Number.isFinite)) continue;
        const points = [];
        for (let i = 0; i < 4; i++) if ((heights[i] < level) !== (heights[i + 1] < level)) {
            const share = (level - heights[i]) / (heights[i + 1] - heights[i]);
            const at = (d) => (corners[i][d] + share * (corners[i + 1][d] - corners[i][d]) + 0.5) * CELL;
            points.push(`${EDGE + at(0)} ${at(1)}`);
        }
        for (let i = 0; i + 1 < points.length; i += 2) path += `M${points[i]}L${points[i + 1]}`;
    }
    return path;
}

function showMap(x, y) {
    const xs = valuesOf(x), ys = valuesOf(y), cells = cellsOf(x, y, xs, ys), high = ys.length * CELL, wide = EDGE + xs.length * CELL;
    if (!best || Math.max(xs.length, ys.length) > MOST_VALUES || !xs.length || !ys.length) return;
    const svg = makeSvg('svg', { viewBox: `0 0 ${wide} ${high + 44}`, style: `max-width:${wide}px`, role: 'img', 'aria-label': 'How much slower than the best each setting is' });
    const label = (text, left, top, anchor) => svg.append(makeSvg('text', { x: left, y: top, 'text-anchor': anchor }, text));
    ys.forEach((value, j) => label(value, EDGE - 8, j * CELL + CELL / 2 + 4, 'end'));
    xs.forEach((value, i) => label(value, EDGE + i * CELL + CELL / 2, high + 16, 'middle'));
    label(x, EDGE + xs.length * CELL / 2, high + 36, 'middle');
    label(y, 4, 12, 'start');
    cells.forEach((column, i) => column.forEach((trial, j) => trial && svg.append(
        cellSvg(trial, EDGE + i * CELL, j * CELL, `${x} ${xs[i]}, ${y} ${ys[j]}: trial ${trials.indexOf(trial) + 1}`))));
    for (const level of LEVELS) svg.append(makeSvg('path', { d: contour(cells, level), fill: 'none', stroke: 'var(--ink)', 'stroke-opacity': 0.55 },
        makeSvg('title', {}, `${level} % slower than the best`)));
    byId('main').append(make('section', {}, make('h2', {}, `${y} by ${x}`), make('figure', {}, svg, note(
        'Percent slower than the best; × does not fit; an empty cell was not tried. Lines are at 1, 2, 5, 10, 20, 50 and 100 percent.'))));
}

startThemes();
byId('main').append(make('p', {}, `${trials.length} of ${data.settings} settings looked at.`,
    ...(best ? [' Best: ', make('b', {}, data.best), `, ${secondsText(best.seconds)} a step.`] : [])));
variables.forEach((y, i) => variables.slice(i + 1).forEach((x) => showMap(x, y)));
byId('main').append(make('section', {}, table('Trials', { '#trial': (row) => String(trials.indexOf(row) + 1),
    ...Object.fromEntries(variables.map((name) => [name, (row) => row[name] ?? '-'])),
    '#step': (row) => (row.seconds === null ? '-' : secondsText(row.seconds)), '#memory': (row) => (row.memory ? bytesText(row.memory) : '-'),
    '': (row) => row.why || (row.pruned ? 'does not fit' : row === best ? 'best' : ''),
}, trials, (row) => (row === best ? 'sum' : ''))));
