/* What needs no drawing: the plan at a glance, and its tables. */

const dotted = (kind, text) => make('span', {}, make('i', { class: 'dot ' + kind }), text);
const meshText = Object.entries(data.plan.mesh).map(([name, size]) => `${name}=${size}`).join(',');

function showGlance() {
    const { time, memory, plan, step } = data;
    const fact = (what, value, more, bad) => make('div', { class: 'fact' }, make('dt', {}, what),
        make('dd', {}, make('b', bad ? { class: 'bad' } : {}, value), make('small', {}, more)));
    const from = [`${step.name}, ${countText(step.parameters)} parameters, on ${data.cluster}: mesh `, make('code', {}, meshText),
        `, ${plural(plan.ranks, 'rank')}, made by ${plan.made_by}. Step `, make('code', {}, step.hash), '.'];
    if (plan.recompute) from.push(` ${plural(plan.recompute.nodes, 'op')} of the forward pass, ${percent(plan.recompute.share)} of the compute, recomputed.`);
    if (plan.repeated >= 0.01) from.push(` ${percent(plan.repeated)} of the compute of ranks is replicated.`);
    const shares = [['compute', 'compute', time.compute], ['waits', 'waiting for others', time.exposed]]
        .map(([kind, what, seconds]) => [kind, `${what} ${secondsText(seconds)}, ${shareText(seconds, time.seconds)}`, seconds / time.seconds]);
    const bar = make('div', { class: 'split', role: 'img', 'aria-label': shares.map((share) => share[1]).join('; ') });
    for (const [kind, , share] of shares) bar.append(make('i', { class: kind, style: `width:${100 * share}%` }));
    byId('glance').append(make('ul', { class: 'words' }, ...plan.words.map((word) => make('li', {}, word))),
        make('p', { class: 'from' }, ...from),
        make('dl', { class: 'facts' },
            fact('step, predicted', secondsText(time.seconds), `at least ${secondsText(time.bound)} on these devices`),
            fact('memory of a rank', bytesText(memory.peak), `of ${bytesText(memory.limit)}${memory.fits ? '' : ': it does not fit'}`, !memory.fits),
            fact('MFU', percent(time.mfu), `${countText(time.flops)} flop of products a step`),
            fact('communication of a rank', bytesText(time.traffic), `${secondsText(time.exposed)} waited for, ${secondsText(time.hidden)} hidden`),
            ...(time.measured ? [fact('step, measured', secondsText(time.measured), `prediction is ${shareText(time.seconds, time.measured)} of it`)] : [])),
        bar, make('p', { class: 'key' }, ...shares.map(([kind, text]) => make('span', { class: kind }, text))));
}

function showMemory() {
    const { peak, limit, kinds, where } = data.memory;
    const list = Object.entries(kinds).map(([name, bytes], number) => ({ name, bytes, number })).filter((kind) => kind.bytes);
    byId('memory').append(table('What a rank holds at its peak', {
        kind: (row) => (row.name ? dotted('k' + row.number, row.name) : 'all'),
        '#bytes': (row) => bytesText(row.bytes),
        '#share': (row) => (row.name ? [shareText(row.bytes, peak), row.bytes / peak] : `${shareText(peak, limit)} of ${bytesText(limit)}`),
    }, [...list, { bytes: peak }], (row) => (row.name ? '' : 'sum')), note(`The peak is ${where}.`));
}

/* Passes: the memory curve before and after each, under the limit. */

const CURVE = { wide: 600, high: 90, points: 300 };
const most = (list) => list.reduce((all, value) => Math.max(all, value), 0);

/** As many points as are drawn, each the most of its stretch. */
function thinned(curve) {
    const count = Math.min(curve.length, CURVE.points), at = (i) => Math.floor(i * curve.length / count);
    return Array.from({ length: count }, (_, i) => most(curve.slice(at(i), at(i + 1))));
}

function passChart(before, pass, limit) {
    const { wide, high } = CURVE, highest = Math.max(most(before.curve), most(pass.curve)), limited = limit < 2 * highest;
    const y = (bytes) => high * (1 - bytes / (1.05 * Math.max(highest, limited ? limit : 0)));
    const line = (name, curve) => makeSvg('polyline', { class: name, points: thinned(curve).map((bytes, i, all) =>
        `${wide * i / Math.max(all.length - 1, 1)},${y(bytes)}`).join(' ') });
    const svg = makeSvg('svg', { viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: 'none', role: 'img',
        'aria-label': 'memory by instruction before and after the pass' }, line('was', before.curve), line('is', pass.curve));
    if (limited) svg.append(makeSvg('line', { class: 'limit', x1: 0, x2: wide, y1: y(limit), y2: y(limit) }));
    return make('figure', { class: 'curve' }, make('figcaption', {},
        `${pass.name}: peak ${bytesText(most(pass.curve))}, before it ${bytesText(most(before.curve))}, limit ${bytesText(limit)}`), svg);
}

function showPasses() {
    const { passes, plan, memory } = data;
    if (!passes) return;
    byId('memory').append(table('Passes', {
        pass: (row) => row.name, '#step': (row) => secondsText(row.seconds), '#waited for': (row) => secondsText(row.exposed),
        '#memory': (row) => bytesText(row.memory), '#collectives': (row) => String(row.collectives),
        '#traffic': (row) => bytesText(row.traffic), 'what it did': (row) => row.note,
    }, passes), note('Memory of a rank, instruction by instruction, before each pass (thin) and after it, and the limit (dashed) where it is near.'),
    ...passes.slice(1).map((pass, i) => passChart(passes[i], pass, plan.pass_memory || memory.limit)));
}

function showTraffic() {
    const { collectives, traffic } = data, longest = most(collectives.map((comm) => comm.exposed));
    const used = (level) => collectives.reduce((sum, comm) => sum + (comm.links >> level & 1 ? comm.seconds : 0), 0);
    if (!collectives.length) { byId('collectives').append(note('Ranks send nothing.')); return; }
    byId('collectives').append(table('Collectives of a step', {
        collective: (row) => row.kind, axes: (row) => row.axes, link: (row) => traffic.levels[row.level],
        '#count': (row) => row.count.toLocaleString('en'), '#bytes': (row) => bytesText(row.bytes), '#time': (row) => secondsText(row.seconds),
        '#hidden': (row) => secondsText(Math.max(row.seconds - row.exposed, 0)), '#waited for': (row) => [secondsText(row.exposed), row.exposed / longest],
    }, collectives), table('By link', {
        link: ([name, level]) => dotted('l' + level, name), '#sent by a rank': ([, level]) => bytesText(traffic.sent[level]),
        '#in use': ([, level]) => secondsText(used(level)),
    }, [...traffic.levels.entries()].map(([level, name]) => [name, level]).filter(([, level]) => traffic.sent[level] || used(level))));
}

/** Other plans beside this one, which bars are at most three times as long as; and what cannot be, by reason. */
function others(caption, columns, list, nameOf) {
    const { seconds } = data.time, can = list.filter((other) => !other.refused), why = new Map();
    const longest = Math.min(most([seconds, ...can.map((other) => other.seconds)]), 3 * seconds);
    for (const other of list) if (other.refused) why.set(other.refused, (why.get(other.refused) || []).concat(nameOf(other)));
    return [table(caption, { ...columns,
        '#step': (row) => [secondsText(row.seconds), row.seconds / longest],
        '#slower by': (row) => (row.seconds < seconds ? '' : '+') + percent(row.seconds / seconds - 1),
        '#memory': (row) => bytesText(row.memory),
        fits: (row) => make('span', row.fits ? {} : { class: 'bad' }, (row.fits ? 'yes' : 'no') + (row.exact ? '' : ', estimated')),
    }, can, (row) => (row.chosen ? 'chosen' : '')), ...[...why].map(([text, names]) => note(`Not possible: ${names.join(', ')}. ${text}.`))];
}

function showOthers() {
    const mine = { name: 'this plan', mesh: meshText, seconds: data.time.seconds, memory: data.memory.peak, fits: data.memory.fits, exact: true, chosen: true };
    byId('frontier-table').append(...others('This plan with more or less recomputed, in more or fewer micro-batches',
        { recompute: (row) => row.recompute, '#micro-batches': (row) => String(row.micro_batches) }, data.frontier,
        (row) => `${row.recompute} with ${plural(row.micro_batches, 'micro-batch', 'es')}`));
    const [list, ...refused] = others('Recipes', { what: (row) => row.name, mesh: (row) => row.mesh }, [mine, ...data.recipes], (row) => row.name);
    byId('recipes').append(list, note(`Here: ${data.recipes_from}.`), ...refused);
}

function showSchedule() {
    byId('schedule').hidden = !data.schedule.length;
    byId('schedule').append(make('ol', {}, ...data.schedule.map((line) => make('li', {}, make('code', {}, line)))));
}

function showMeasured() {
    const { time, measured, differences } = data;
    if (!measured) {
        for (const element of [byId('measured'), document.querySelector('nav a[href="#measured"]')]) element.remove();
        return;
    }
    const beside = { '#simulated': (row) => secondsText(row.simulated), '#measured': (row) => secondsText(row.measured),
        '#of measured': (row) => shareText(row.simulated, row.measured) };
    const kinds = measured.filter((row) => row.kind !== 'comm' && row.kind !== 'copy').concat(
        { kind: 'waiting', simulated: time.exposed, measured: time.measured_exposed },
        { kind: 'step', simulated: time.seconds, measured: time.measured });
    byId('measured').append(make('div', { class: 'columns' },
        table('By kind of instruction', { what: (row) => row.kind, ...beside }, kinds, (row) => (row.kind === 'step' ? 'sum' : '')),
        table('Largest differences', { op: (row) => row.op, phase: (row) => row.phase, module: (row) => row.scope, ...beside }, differences)));
}

function showTables() {
    for (const show of [showGlance, showMemory, showPasses, showTraffic, showOthers, showSchedule, showMeasured]) show();
}
