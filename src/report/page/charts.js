/* Who sends how much to whom, and time against memory. */

/* The matrix ----------------------------------------------------------------------------------------- */

const { traffic } = data;
const cells = new Map();
for (let i = 0; i < traffic.cells.length; i += 4) {
    const [row, column, level, bytes] = traffic.cells.slice(i, i + 4);
    cells.set(row * traffic.rows + column, { row, column, level, bytes });
}
const mostSent = Math.max(0, ...[...cells.values()].map((cell) => cell.bytes));
const leastSent = Math.min(mostSent, ...[...cells.values()].map((cell) => cell.bytes));
const MATRIX = 26;

/** How strong a cell is: from little to much, by powers. */
function strength(bytes) {
    return mostSent > leastSent ? 0.3 + 0.7 * Math.log(bytes / leastSent) / Math.log(mostSent / leastSent) : 1;
}

function nameOfRow(row) {
    if (traffic.ranks_in_row === 1) return 'rank ' + row;
    const first = row * traffic.ranks_in_row, last = first + traffic.ranks_in_row - 1;
    return traffic.hosts ? `host ${row}, ranks ${first} to ${last}` : `ranks ${first} to ${last}`;
}

function paintMatrix() {
    const canvas = byId('matrix');
    const { context, width } = openCanvas(canvas, canvas.clientWidth);
    const size = (width - MATRIX - 6) / traffic.rows;
    const every = Math.max(1, 2 ** Math.ceil(Math.log2(traffic.rows / 8)));
    context.fillStyle = colour('faint');
    context.fillRect(MATRIX, MATRIX, size * traffic.rows, size * traffic.rows);
    context.fillStyle = colour('dim');
    context.strokeStyle = colour('line');
    for (let i = 0; i < traffic.rows; i += every) {
        const at = MATRIX + i * size;
        context.textAlign = 'right';
        context.fillText(String(i), MATRIX - 5, at + Math.max(size / 2, 5));
        context.textAlign = 'center';
        context.fillText(String(i), at + Math.max(size / 2, 5), MATRIX - 9);
        context.strokeRect(Math.round(at) + 0.5, MATRIX, 0, size * traffic.rows);
        context.strokeRect(MATRIX, Math.round(at) + 0.5, size * traffic.rows, 0);
    }
    const gap = size > 8 ? 1 : 0;
    for (const { row, column, level, bytes } of cells.values()) {
        context.globalAlpha = strength(bytes);
        context.fillStyle = colour('l' + level);
        context.fillRect(MATRIX + column * size, MATRIX + row * size, size - gap, size - gap);
    }
    context.globalAlpha = 1;
}

function startMatrix() {
    if (cells.size === 0) return;
    const levels = [...new Set([...cells.values()].map((cell) => cell.level))].sort();
    byId('traffic').hidden = false;
    byId('matrix-key').append(
        make('span', {}, `from row to column, ${traffic.ranks_in_row === 1 ? 'by rank' : traffic.hosts ? 'by host' : 'by group of ranks'}; rings of collectives; stronger is more`),
        ...levels.map((level) => make('span', {}, make('i', { class: 'dot l' + level }), traffic.levels[level])));
    byId('traffic').style.maxWidth = traffic.rows * 72 + MATRIX + 8 + 'px';
    painters.push(paintMatrix);
    const canvas = byId('matrix');
    canvas.addEventListener('pointermove', (event) => {
        const size = (canvas.clientWidth - MATRIX - 6) / traffic.rows;
        const row = Math.floor((event.offsetY - MATRIX) / size), column = Math.floor((event.offsetX - MATRIX) / size);
        const inside = Math.min(row, column) >= 0 && Math.max(row, column) < traffic.rows;
        const cell = inside ? cells.get(row * traffic.rows + column) : null;
        if (!inside) { hideTip(); return; }
        showTip(event.clientX, event.clientY, `${nameOfRow(row)} → ${nameOfRow(column)}`,
            cell ? [['sends', bytesText(cell.bytes)], ['over', traffic.levels[cell.level]]] : [['sends', 'nothing']]);
    });
    canvas.addEventListener('pointerleave', hideTip);
}

/* Time against memory -------------------------------------------------------------------------------- */

const WIDE = 560, HIGH = 340, LEFT = 62, BOTTOM = 36, RIGHT = 16, TOP = 26;
const WAYS = { none: 'k0', cheap: 'k3', layer: 'k4', full: 'k5' };
const shades = (way) => `var(--${WAYS[way] || 'ink'})`;

function scaleOf(values, from, to) {
    const low = Math.min(...values), high = Math.max(...values);
    const room = high > low ? 0.08 * (high - low) : Math.max(high, 1e-12) * 0.1;
    const [least, most] = [Math.max(0, low - room), high + room];
    const scale = (value) => from + (value - least) / (most - least) * (to - from);
    return Object.assign(scale, { least, most });
}

function drawFrontierAxes(svg, x, y) {
    for (const tick of byteTicks(x.least, x.most, 6)) svg.append(
        makeSvg('line', { class: 'axis', x1: x(tick), x2: x(tick), y1: TOP, y2: HIGH - BOTTOM }),
        makeSvg('text', { x: x(tick), y: HIGH - BOTTOM + 14, 'text-anchor': 'middle' }, bytesText(tick)));
    for (const tick of ticks(y.least, y.most, 5)) svg.append(
        makeSvg('line', { class: 'axis', x1: LEFT, x2: WIDE - RIGHT, y1: y(tick), y2: y(tick) }),
        makeSvg('text', { x: LEFT - 8, y: y(tick) + 4, 'text-anchor': 'end' }, secondsText(tick)));
    svg.append(makeSvg('text', { x: WIDE - RIGHT, y: HIGH - 6, 'text-anchor': 'end' }, 'memory of a rank'),
        makeSvg('text', { x: LEFT - 8, y: 14, 'text-anchor': 'end' }, 'step'));
}

const pathOf = (points, x, y) => points.map((p, i) => `${i ? 'L' : 'M'}${x(p.memory)} ${y(p.seconds)}`).join('');

/** Those that no other is both faster and smaller than. */
function bestOf(points) {
    const best = [];
    for (const point of [...points].sort((a, b) => a.memory - b.memory || a.seconds - b.seconds))
        if (!best.length || point.seconds < best[best.length - 1].seconds) best.push(point);
    return best;
}

function drawPoint(svg, point, x, y) {
    const [cx, cy] = [x(point.memory), y(point.seconds)];
    const name = `recompute ${point.recompute}, ${point.micro_batches} micro-batch${point.micro_batches > 1 ? 'es' : ''}`;
    const pairs = [['step', secondsText(point.seconds)], ['memory', bytesText(point.memory)],
        ['slower by', ((point.seconds / data.time.seconds - 1) * 100).toFixed(1) + ' %'], ['fits', point.fits ? 'yes' : 'no']];
    const shape = point.fits ? { class: 'point', fill: shades(point.recompute) }
        : { class: 'misfit', stroke: shades(point.recompute) };
    const dot = makeSvg('circle', { ...shape, cx, cy, r: 5.5, tabindex: 0, role: 'img',
        'aria-label': name + ': ' + pairs.map((pair) => pair.join(' ')).join(', ') });
    const show = (px, py) => showTip(px, py, name, pairs);
    dot.addEventListener('pointermove', (event) => show(event.clientX, event.clientY));
    dot.addEventListener('focus', () => { const box = dot.getBoundingClientRect(); show(box.right, box.bottom); });
    for (const kind of ['pointerleave', 'blur']) dot.addEventListener(kind, hideTip);
    svg.append(dot);
    if (point.chosen) svg.append(makeSvg('circle', { class: 'mine', cx, cy, r: 9 }));
    svg.append(makeSvg('text', { x: cx + 8, y: cy - 7 }, String(point.micro_batches)));
}

function startFrontier() {
    const points = data.frontier.filter((point) => point.seconds !== undefined);
    if (points.length < 2) return;
    const { limit } = data.memory, most = Math.max(...points.map((p) => p.memory));
    const showsLimit = limit <= 1.5 * most;
    const x = scaleOf(points.map((p) => p.memory).concat(showsLimit ? [limit] : []), LEFT, WIDE - RIGHT);
    const y = scaleOf(points.map((p) => p.seconds), HIGH - BOTTOM, TOP);
    const svg = makeSvg('svg', { viewBox: `0 0 ${WIDE} ${HIGH}`, role: 'group',
        'aria-label': 'Time of a step against memory of a rank; the table has the numbers' });
    drawFrontierAxes(svg, x, y);
    if (showsLimit) svg.append(makeSvg('line', { class: 'limit', x1: x(limit), x2: x(limit), y1: TOP, y2: HIGH - BOTTOM }),
        makeSvg('text', { x: x(limit) - 4, y: TOP + 10, 'text-anchor': 'end' }, 'limit'));
    svg.append(makeSvg('path', { class: 'best', d: pathOf(bestOf(points), x, y) }));
    for (const way of Object.keys(WAYS)) svg.append(makeSvg('path', { class: 'way', stroke: shades(way),
        d: pathOf(points.filter((point) => point.recompute === way), x, y) }));
    for (const point of points) drawPoint(svg, point, x, y);
    const figure = byId('frontier-chart');
    figure.hidden = false;
    figure.append(svg, make('figcaption', {},
        ...Object.keys(WAYS).map((way) => make('span', {}, make('i', { class: 'dot ' + WAYS[way] }), 'recompute ' + way)),
        make('span', {}, 'numbers are micro-batches; a ring is this plan; hollow does not fit; dots lead along what nothing beats')));
}
