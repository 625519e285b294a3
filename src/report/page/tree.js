/* The modules of the step: what they compute, how long that takes, what they hold, and how their tensors stand. */

const MOST_FOUND = 400;
const scopes = data.scopes.map(([parent, name, parameters, flops, seconds, waits, held, made, tensors], index) => ({
    index, parent, name: data.texts[name] || (index === 0 ? 'all' : '(no name)'), parameters, flops, seconds, waits, held,
    made: data.texts[made], tensors, children: [], open: index === 0,
}));
for (const scope of scopes) if (scope.parent >= 0) scopes[scope.parent].children.push(scope);

/** Siblings whose names differ in numbers alone stand in a row of their own, if they are many. */
function foldFamilies(scope) {
    const families = new Map();
    for (const child of scope.children) {
        const family = child.name.replace(/\d+/g, '#');
        families.set(family, (families.get(family) || []).concat(child));
    }
    scope.children = [...families.values()].flatMap((members) => (members.length < 4 ? members : [familyOf(members)]));
}

function familyOf(members) {
    const sum = (key) => members.reduce((all, member) => all + member[key], 0);
    return {
        name: `${members[0].name} … ${members[members.length - 1].name}`, times: members.length,
        parameters: sum('parameters'), flops: sum('flops'), seconds: sum('seconds'), waits: sum('waits'), held: sum('held'),
        made: '', tensors: [], children: members, open: false,
    };
}
scopes.forEach(foldFamilies);

let wanted = '';
const matches = (text) => wanted !== '' && text.toLowerCase().includes(wanted);
const pathOfScope = (scope) => (scope.parent > 0 ? pathOfScope(scopes[scope.parent]) + '/' : '') + scope.name;

/** The text with what was looked for marked. */
function marked(text) {
    const at = wanted ? text.toLowerCase().indexOf(wanted) : -1;
    if (at < 0) return [text];
    return [text.slice(0, at), make('mark', {}, text.slice(at, at + wanted.length)), text.slice(at + wanted.length)];
}

const numberCell = (text) => make('td', { class: 'n' }, text);

function scopeRow(scope, depth) {
    const all = scopes[0], hasMore = scope.children.length > 0 || scope.tensors.length > 0;
    const first = make('td');
    first.style.paddingLeft = depth * 18 + 'px';
    if (hasMore && !wanted) {
        const toggle = make('button', { type: 'button', 'aria-expanded': String(scope.open),
            'aria-label': (scope.open ? 'Fold ' : 'Unfold ') + scope.name }, scope.open ? '▾' : '▸');
        toggle.addEventListener('click', () => { scope.open = !scope.open; paintTree(scope); });
        scope.toggle = toggle;
        first.append(toggle);
    } else {
        first.style.paddingLeft = depth * 18 + 20 + 'px';
    }
    first.append(...marked(wanted && scope.index ? pathOfScope(scope) : scope.name));
    if (scope.times) first.append(make('small', {}, ` (${scope.times}×)`));
    return make('tr', {}, first, numberCell(scope.parameters ? countText(scope.parameters) : '-'),
        numberCell(countText(scope.flops)), barCell(secondsText(scope.seconds), scope.seconds / all.seconds),
        barCell(secondsText(scope.waits), scope.waits / all.seconds), barCell(bytesText(scope.held), scope.held / all.held),
        make('td', {}, make('code', {}, scope.made)));
}

/** A parameter: its layout, those of its gradient and of its state, and what a rank holds of it. */
function tensorRows(scope, depth) {
    const list = [];
    for (let i = 0; i < scope.tensors.length; i += 6) {
        const [name, type, layout, gradient, state] = scope.tensors.slice(i, i + 5).map((number) => data.texts[number]);
        if (wanted && !matches(name)) continue;
        const first = make('td', {}, ...marked(name));
        first.style.paddingLeft = depth * 18 + 20 + 'px';
        const stands = [['', layout], ['gradient ', gradient], ['state ', state]].filter((pair) => pair[1]);
        list.push(make('tr', { class: 'tensor' }, first, make('td', { colspan: '4' }, make('code', {}, type), ' ',
            ...stands.flatMap(([what, text]) => [what, make('code', {}, text), ' '])),
        numberCell(bytesText(scope.tensors[i + 5])), make('td')));
    }
    return list;
}

function openRows(scope, depth, list) {
    list.push(scopeRow(scope, depth));
    if (!scope.open) return;
    list.push(...tensorRows(scope, depth + 1));
    for (const child of scope.children) openRows(child, depth + 1, list);
}

function foundRows() {
    const list = [];
    for (const scope of scopes) {
        const tensors = tensorRows(scope, 1);
        if (!tensors.length && !(scope.index && matches(pathOfScope(scope)))) continue;
        list.push(scopeRow(scope, 0), ...tensors);
        if (list.length > MOST_FOUND) break;
    }
    return list;
}

const treeBody = make('tbody');
const treeFound = make('output');

/** Draws what is open, or what was found; the toggle that was used keeps the focus. */
function paintTree(used) {
    const list = [];
    if (wanted) list.push(...foundRows());
    else openRows(scopes[0], 0, list);
    treeBody.replaceChildren(...list);
    treeFound.textContent = !wanted ? '' : list.length > MOST_FOUND ? `the first ${MOST_FOUND} rows` : `${list.length} rows`;
    if (used && used.toggle) used.toggle.focus({ preventScroll: true });
}

function startTree() {
    const box = make('input', { type: 'search', placeholder: 'find a module or a parameter', spellcheck: 'false',
        'aria-label': 'Find a module or a parameter' });
    box.addEventListener('input', () => { wanted = box.value.trim().toLowerCase(); paintTree(); });
    const setAll = (open) => { for (const scope of scopes) scope.open = open || scope.index === 0; paintTree(); };
    const fold = make('button', { type: 'button' }, 'fold all');
    fold.addEventListener('click', () => setAll(false));
    const titles = ['module', '#parameters', '#flops', '#compute', '#waits', '#at peak', 'largest of its forward pass, and its layout'];
    byId('tree').append(make('div', { class: 'tools' }, box, fold, treeFound),
        make('div', { class: 'scroll' }, make('table', { class: 'tree' }, headOf(titles), treeBody)));
    paintTree();
}

startThemes();
showTables();
startTimeline();
startMatrix();
startFrontier();
startTree();
