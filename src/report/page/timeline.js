/* The timeline: streams of ranks that do the same, below each other; and the memory below that, on the same scale. */

const GUTTER = 118, ROW = 30, AXIS = 22, HEAD = 20;
const PHASES = ['forward', 'backward', 'update'];
const KINDS = ['parameters', 'optimizer state', 'batch', 'gradients', 'activations', 'resharded tensors', 'gaps', 'scratch'];

/** A column in which most rows have the same value comes as places and values. */
function unpack(pairs, count, usual) {
    const column = new Float64Array(count).fill(usual);
    for (let i = 0; i < pairs.length; i += 2) column[pairs[i]] = pairs[i + 1];
    return column;
}

/** Columns of spans, times in seconds, and for each stream its range of them. */
function readGroup(group) {
    const { spans } = group, count = spans.start.length;
    const start = new Float64Array(count), end = new Float64Array(count);
    let at = 0;
    for (let i = 0; i < count; i++) {
        at += spans.start[i];
        start[i] = at * 1e-9;
        end[i] = (at + spans.length[i]) * 1e-9;
    }
    const ranges = group.streams.map(() => [0, 0]);
    for (let i = 0; i < count; i++) {
        const range = ranges[spans.stream[i]];
        if (range[1] === 0) range[0] = i;
        range[1] = i + 1;
    }
    return {
        ...group, start, end, ranges,
        bytes: unpack(spans.bytes, count, 0),
        exposed: unpack(spans.exposed, count, 0).map((x) => x * 1e-9),
        count: unpack(spans.count, count, 1),
        found: null,
    };
}

const groups = data.groups.map(readGroup);
const rows = [];
for (const group of groups) {
    rows.push({ group, head: true });
    group.streams.forEach((name, stream) => rows.push({ group, stream, name, sends: name !== 'compute' }));
}
const lastTime = Math.max(data.time.seconds, data.time.measured || 0, 1e-9);
const view = { from: 0, to: lastTime };
const chosen = { row: null, span: -1 };

const spanCanvas = byId('spans'), heldCanvas = byId('held');

function setView(from, to) {
    const width = Math.min(Math.max(to - from, lastTime * 1e-6), lastTime);
    view.from = Math.min(Math.max(from, 0), lastTime - width);
    view.to = view.from + width;
    hideTip();
    paint();
}

function zoomAt(time, factor) {
    setView(time - (time - view.from) * factor, time + (view.to - time) * factor);
}

const timeScale = (width) => (width - GUTTER - 8) / (view.to - view.from);
const timeAt = (canvas, x) => view.from + (x - GUTTER) / timeScale(canvas.clientWidth);

/** The first span of a range that ends after a time. */
function firstAfter(group, [first, end], time) {
    while (first < end) {
        const middle = (first + end) >> 1;
        if (group.end[middle] > time) end = middle;
        else first = middle + 1;
    }
    return first;
}

function rowTops() {
    let top = AXIS;
    return rows.map((row) => { const at = top; top += row.head ? HEAD : ROW; return at; });
}
const spansHeight = () => AXIS + rows.reduce((sum, row) => sum + (row.head ? HEAD : ROW), 0) + 4;

function drawTimeAxis(context, width, height, labels) {
    const scale = timeScale(width);
    context.strokeStyle = colour('line');
    context.fillStyle = colour('dim');
    context.lineWidth = 1;
    context.textAlign = 'center';
    for (const tick of ticks(view.from, view.to, (width - GUTTER) / 110)) {
        const x = Math.round(GUTTER + (tick - view.from) * scale) + 0.5;
        context.beginPath();
        context.moveTo(x, labels ? AXIS - 4 : 0);
        context.lineTo(x, height);
        context.stroke();
        if (labels) context.fillText(secondsText(tick), Math.min(x, width - 28), 10);
    }
}

function headText(group) {
    if (group.measured) return 'measured, rank ' + group.first;
    const last = group.first + group.ranks - 1;
    const stage = group.stages ? `${group.name}, stage${group.stages.length > 1 ? 's' : ''} ${group.stages.join(', ')}: ` : '';
    return group.ranks > 1 ? `${stage}ranks ${group.first} to ${last}, which all do the same` : `${stage}rank ${group.first}`;
}

/** One bar; of a collective, what is waited for stands at its end. Those too narrow to see share a pixel. */
function drawSpan(context, row, i, x, end, top, last) {
    const { group } = row, faded = group.found && !group.found[i];
    const name = row.sends ? 'sending' : PHASES[group.spans.phase[i]];
    const right = Math.max(end, x + 0.75);
    if (right <= last.x && name === last.name && !group.found) return;
    context.globalAlpha = faded ? 0.18 : 1;
    context.fillStyle = colour(name);
    const gap = right - x > 3 ? 0.5 : 0;
    context.fillRect(x, top + 3, right - x - gap, ROW - 6);
    const length = group.end[i] - group.start[i];
    if (row.sends && group.exposed[i] > 0 && length > 0) {
        const part = Math.min(1, group.exposed[i] / length) * (right - x);
        context.fillStyle = colour('waiting');
        context.fillRect(right - part, top + 3, part - gap, ROW - 6);
    }
    if (right - x > 46) drawSpanName(context, data.texts[group.spans.name[i]], x, right, top);
    context.globalAlpha = 1;
    last.x = Math.ceil(right);
    last.name = name;
}

function drawSpanName(context, name, x, right, top) {
    const room = Math.floor((right - x - 8) / 6);
    context.fillStyle = colour('on-bar');
    context.textAlign = 'left';
    context.fillText(name.length > room ? name.slice(0, Math.max(room - 1, 1)) + '…' : name, x + 4, top + ROW / 2);
}

function drawRow(context, row, top, width) {
    const { group } = row;
    context.textAlign = 'left';
    context.fillStyle = colour(row.head ? 'dim' : 'ink');
    if (row.head) {
        context.fillText(headText(group), 8, top + HEAD / 2 + 2);
        return;
    }
    context.fillText(row.name.length > 18 ? row.name.slice(0, 17) + '…' : row.name, 8, top + ROW / 2);
    const scale = timeScale(width), range = group.ranges[row.stream], last = { x: -1, name: '' };
    context.save();
    context.beginPath();
    context.rect(GUTTER, top, width - GUTTER - 8, ROW);
    context.clip();
    for (let i = firstAfter(group, range, view.from); i < range[1] && group.start[i] < view.to; i++)
        drawSpan(context, row, i, GUTTER + (group.start[i] - view.from) * scale,
            GUTTER + (group.end[i] - view.from) * scale, top, last);
    if (chosen.row === row && chosen.span >= 0) {
        const x = GUTTER + (group.start[chosen.span] - view.from) * scale;
        const right = GUTTER + (group.end[chosen.span] - view.from) * scale;
        context.strokeStyle = colour('ink');
        context.lineWidth = 2;
        context.strokeRect(x, top + 2, Math.max(right - x, 2), ROW - 4);
    }
    context.restore();
}

function paintSpans() {
    const height = spansHeight(), { context, width } = openCanvas(spanCanvas, height);
    const tops = rowTops();
    rows.forEach((row, i) => {
        if (row.head) {
            context.fillStyle = colour('faint');
            context.fillRect(0, tops[i], width, HEAD);
        }
    });
    drawTimeAxis(context, width, height, true);
    rows.forEach((row, i) => drawRow(context, row, tops[i], width));
}

/* What is under the pointer ------------------------------------------------------------------------ */

function spanAt(x, y) {
    const tops = rowTops();
    const index = rows.findIndex((row, i) => !row.head && y >= tops[i] && y < tops[i] + ROW);
    if (index < 0 || x < GUTTER) return null;
    const row = rows[index], { group } = row, range = group.ranges[row.stream];
    const near = 1.5 / timeScale(spanCanvas.clientWidth), time = timeAt(spanCanvas, x);
    const i = firstAfter(group, range, time - near);
    return i < range[1] && group.start[i] <= time + near ? { row, span: i } : null;
}

function spanPairs({ row, span }) {
    const { group } = row, { spans } = group;
    const pairs = [
        ['phase', PHASES[spans.phase[span]]],
        ['begins', secondsText(group.start[span])],
        ['takes', secondsText(group.end[span] - group.start[span])],
    ];
    const scope = data.texts[spans.scope[span]];
    if (scope) pairs.unshift(['module', scope]);
    if (group.bytes[span]) pairs.push(['bytes', bytesText(group.bytes[span])]);
    if (row.sends) pairs.push(['waited for', secondsText(group.exposed[span])]);
    if (group.count[span] > 1) pairs.push(['instructions', String(group.count[span])]);
    return pairs;
}

const spanTitle = ({ row, span }) => data.texts[row.group.spans.name[span]];

function choose(found) {
    chosen.row = found.row;
    chosen.span = found.span;
    const { group } = found.row;
    held = helds.find((each) => each.group === group) || held;
    byId('span-said').textContent = spanTitle(found) + ': ' + spanPairs(found).map((pair) => pair.join(' ')).join(', ');
    if (group.start[found.span] < view.from || group.end[found.span] > view.to) {
        const width = Math.max(view.to - view.from, (group.end[found.span] - group.start[found.span]) * 1.5);
        setView(group.start[found.span] - width / 3, group.start[found.span] - width / 3 + width);
    }
    paint();
}

/** The next instruction of the stream, or the one before it; of those that were found, where something is looked for. */
function step(by) {
    const row = chosen.row || rows.find((r) => !r.head);
    const { group } = row, [first, end] = group.ranges[row.stream];
    let i = chosen.span >= 0 ? chosen.span + by : firstAfter(group, [first, end], view.from);
    while (i >= first && i < end && group.found && !group.found[i]) i += by;
    if (i >= first && i < end) choose({ row, span: i });
}

/* Searching ---------------------------------------------------------------------------------------- */

function search(words) {
    const text = words.trim().toLowerCase();
    const hits = new Set();
    if (text) data.texts.forEach((known, i) => { if (known.toLowerCase().includes(text)) hits.add(i); });
    let count = 0, seconds = 0;
    for (const group of groups) {
        group.found = text ? group.spans.name.map((name, i) => hits.has(name) || hits.has(group.spans.scope[i])) : null;
        if (!group.found || group.measured) continue;
        group.found.forEach((hit, i) => {
            if (!hit) return;
            count += group.count[i];
            seconds += group.end[i] - group.start[i];
        });
    }
    byId('span-found').textContent = text ? `${count.toLocaleString('en')} found, ${secondsText(seconds)}` : '';
    chosen.span = -1;
    paint();
}

function stepFound() {
    if (chosen.span < 0) chosen.row = rows.find((r) => !r.head && r.group.found &&
        r.group.found.slice(...r.group.ranges[r.stream]).includes(true)) || chosen.row;
    if (chosen.row) step(1);
}

/* Memory ------------------------------------------------------------------------------------------- */

const HELD = 190;

/** The memory of a group: its kinds, in the order of KINDS, when it changes, and how much it is in all. */
function readHeld(group) {
    const kinds = KINDS.filter((kind) => group.memory.kinds[kind]);
    const times = group.memory.at.map((at) => at * 1e-9);
    const sums = times.map((_, i) => kinds.reduce((sum, kind) => sum + group.memory.kinds[kind][i], 0));
    return { group, kinds, times, sums, peak: sums.reduce((most, sum) => Math.max(most, sum), 0) };
}

/** That of the first group, until an instruction of another is chosen. All have one scale. */
const helds = groups.filter((group) => group.memory.at.length > 0).map(readHeld);
let held = helds[0];
const heldPeak = helds.reduce((most, each) => Math.max(most, each.peak), data.memory.peak);
const showsLimit = data.memory.limit <= 2.5 * heldPeak;
const heldTop = 1.08 * (showsLimit ? Math.max(heldPeak, data.memory.limit) : heldPeak);

function drawHeldAxis(context, width) {
    const y = (bytes) => HELD - 2 - bytes / heldTop * (HELD - 8);
    context.textAlign = 'right';
    context.strokeStyle = colour('line');
    context.fillStyle = colour('dim');
    for (const tick of byteTicks(1, heldTop, 4)) {
        context.beginPath();
        context.moveTo(GUTTER, Math.round(y(tick)) + 0.5);
        context.lineTo(width - 8, Math.round(y(tick)) + 0.5);
        context.stroke();
        context.fillText(bytesText(tick), GUTTER - 8, y(tick));
    }
    return y;
}

/** The area of a kind on top of those below it: steps from point to point. */
function drawKind(context, kind, below, x, y) {
    const { times } = held, bytes = held.group.memory.kinds[kind];
    const edge = (i) => (i + 1 < times.length ? times[i + 1] : data.time.seconds);
    context.fillStyle = colour('k' + KINDS.indexOf(kind));
    context.beginPath();
    for (let i = 0; i < bytes.length; i++) {
        context.lineTo(x(times[i]), y(below[i] + bytes[i]));
        context.lineTo(x(edge(i)), y(below[i] + bytes[i]));
    }
    for (let i = bytes.length; i-- > 0;) {
        context.lineTo(x(edge(i)), y(below[i]));
        context.lineTo(x(times[i]), y(below[i]));
        below[i] += bytes[i];
    }
    context.fill();
}

function drawLimit(context, width, y) {
    context.fillStyle = context.strokeStyle = colour('bad');
    context.textAlign = 'right';
    const text = 'limit ' + bytesText(data.memory.limit);
    if (!showsLimit) {
        context.fillText(`${text}, ${countText(data.memory.limit / heldPeak)} times the peak ↑`, width - 14, 12);
        return;
    }
    const at = Math.round(y(data.memory.limit)) + 0.5;
    context.setLineDash([4, 3]);
    context.beginPath();
    context.moveTo(GUTTER, at);
    context.lineTo(width - 8, at);
    context.stroke();
    context.setLineDash([]);
    context.fillText(text, width - 14, at > 20 ? at - 8 : at + 10);
}

let heldAt = -1;
function paintHeld() {
    const { context, width } = openCanvas(heldCanvas, HELD);
    if (!held) return;
    const scale = timeScale(width), x = (time) => GUTTER + (time - view.from) * scale;
    drawTimeAxis(context, width, HELD, false);
    const y = drawHeldAxis(context, width), below = new Float64Array(held.times.length);
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, width - GUTTER - 8, HELD);
    context.clip();
    for (const kind of held.kinds) drawKind(context, kind, below, x, y);
    if (heldAt >= 0) {
        const at = Math.round(x(held.times[heldAt])) + 0.5;
        context.strokeStyle = colour('ink');
        context.lineWidth = 1;
        context.beginPath();
        context.moveTo(at, 0);
        context.lineTo(at, HELD);
        context.stroke();
    }
    context.restore();
    drawLimit(context, width, y);
    if (helds.length > 1) {
        context.textAlign = 'left';
        context.fillStyle = colour('dim');
        context.fillText(headText(held.group), GUTTER + 6, 12);
    }
}

function showHeld(event) {
    const time = timeAt(heldCanvas, event.offsetX);
    heldAt = held ? held.times.findLastIndex((at) => at <= time) : -1;
    paint();
    if (heldAt < 0) { hideTip(); return; }
    const pairs = held.kinds.map((kind) => [kind, bytesText(held.group.memory.kinds[kind][heldAt])]).reverse();
    showTip(event.clientX, event.clientY, `${bytesText(held.sums[heldAt])} at ${secondsText(held.times[heldAt])}`, pairs);
}

/* Hands ---------------------------------------------------------------------------------------------- */

function startDragging(canvas) {
    let drag = null;
    canvas.addEventListener('pointerdown', (event) => {
        drag = { x: event.clientX, from: view.from, to: view.to };
        canvas.setPointerCapture(event.pointerId);
        canvas.classList.add('dragged');
    });
    canvas.addEventListener('pointermove', (event) => {
        if (!drag) return;
        const moved = (drag.x - event.clientX) / timeScale(canvas.clientWidth);
        setView(drag.from + moved, drag.to + moved);
    });
    for (const kind of ['pointerup', 'pointercancel'])
        canvas.addEventListener(kind, () => { drag = null; canvas.classList.remove('dragged'); });
    canvas.addEventListener('wheel', (event) => {
        if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            const moved = event.deltaX / timeScale(canvas.clientWidth);
            setView(view.from + moved, view.to + moved);
        } else {
            zoomAt(timeAt(canvas, event.offsetX), Math.exp(event.deltaY * 0.002));
        }
        event.preventDefault();
    }, { passive: false });
    canvas.addEventListener('dblclick', () => setView(0, lastTime));
}

const keys = {
    ArrowLeft: () => setView(view.from - (view.to - view.from) / 5, view.to - (view.to - view.from) / 5),
    ArrowRight: () => setView(view.from + (view.to - view.from) / 5, view.to + (view.to - view.from) / 5),
    ArrowUp: () => zoomAt((view.from + view.to) / 2, 0.7),
    ArrowDown: () => zoomAt((view.from + view.to) / 2, 1 / 0.7),
    0: () => setView(0, lastTime),
    n: () => step(1),
    p: () => step(-1),
};

function startTimeline() {
    painters.push(paintSpans, paintHeld);
    startDragging(spanCanvas);
    startDragging(heldCanvas);
    spanCanvas.addEventListener('pointermove', (event) => {
        const found = event.buttons ? null : spanAt(event.offsetX, event.offsetY);
        if (found) showTip(event.clientX, event.clientY, spanTitle(found), spanPairs(found));
        else hideTip();
    });
    spanCanvas.addEventListener('click', (event) => {
        const found = spanAt(event.offsetX, event.offsetY);
        if (found) choose(found);
    });
    heldCanvas.addEventListener('pointermove', (event) => { if (!event.buttons) showHeld(event); });
    for (const canvas of [spanCanvas, heldCanvas]) {
        canvas.addEventListener('pointerleave', () => { heldAt = -1; hideTip(); paint(); });
        canvas.addEventListener('keydown', (event) => {
            if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
            keys[event.key]();
            event.preventDefault();
        });
    }
    for (const button of document.querySelectorAll('[data-zoom]'))
        button.addEventListener('click', () => {
            const middle = (view.from + view.to) / 2, how = button.dataset.zoom;
            if (how === 'all') setView(0, lastTime);
            else zoomAt(middle, how === 'in' ? 0.5 : 2);
        });
    byId('span-search').addEventListener('input', (event) => search(event.target.value));
    byId('span-search').addEventListener('keydown', (event) => { if (event.key === 'Enter') stepFound(); });
}
