'use strict';
/* What all parts of the page share. Texts in the data come out of a user's files: they go into the page as text, never as
 * markup. */

const data = JSON.parse(document.getElementById('data').textContent);
const root = document.documentElement;
document.title = data.title;
document.querySelector('h1').append(data.title);

const byId = (id) => document.getElementById(id);

/** An element with attributes and children, which are elements or text. */
function make(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
    element.append(...children);
    return element;
}

function makeSvg(name, attributes, ...children) {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
    element.append(...children);
    return element;
}

/* Numbers: three digits and a unit, as the command prints them. */

function inUnits(value, step, units) {
    let unit = 0;
    while (unit + 1 < units.length && Math.abs(value) >= step * 0.9995) { value /= step; unit++; }
    const digits = Math.abs(value) >= 100 || (unit === 0 && Number.isInteger(value)) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
    return value.toFixed(digits) + units[unit];
}

const bytesText = (value) => inUnits(value, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB']);
const countText = (value) => inUnits(value, 1000, ['', ' k', ' M', ' G', ' T', ' P', ' E']);

function secondsText(value) {
    const size = Math.abs(value);
    const [scale, unit] = size >= 1 ? [1, ' s'] : size >= 1e-3 ? [1e3, ' ms'] : size >= 1e-6 || size === 0 ? [1e6, ' µs'] : [1e9, ' ns'];
    const scaled = value * scale;
    return scaled.toFixed(Math.abs(scaled) >= 100 || scaled === 0 ? 0 : Math.abs(scaled) >= 10 ? 1 : 2) + unit;
}

const shareText = (part, all) => (all > 0 ? (100 * part / all).toFixed(1) + ' %' : '-');

/* Tables. */

const percent = (share) => (100 * share).toFixed(1) + ' %';
const note = (...parts) => make('p', { class: 'note' }, ...parts);
const plural = (count, word, ending = 's') => `${count.toLocaleString('en')} ${word}${count === 1 ? '' : ending}`;

/** A cell with a bar of so much of it. */
function barCell(text, share) {
    const cell = make('td', { class: 'n bar' }, text);
    cell.style.setProperty('--share', percent(Math.min(Math.max(share || 0, 0), 1)).replace(' ', ''));
    return cell;
}

const headOf = (titles) => make('thead', {}, make('tr', {}, ...titles.map((title) =>
    make('th', title[0] === '#' ? { scope: 'col', class: 'n' } : { scope: 'col' }, title.replace('#', '')))));

/** A table: columns by title, with '#' those of numbers; each gives of a row a text, an element, or a text and the share of a bar. */
function table(caption, columns, list, classOf = () => '') {
    const cellOf = (title, value) => (Array.isArray(value) ? barCell(...value)
        : make('td', title[0] === '#' ? { class: 'n' } : {}, value));
    return make('div', { class: 'scroll' }, make('table', {}, make('caption', {}, caption), headOf(Object.keys(columns)),
        make('tbody', {}, ...list.map((row) => make('tr', { class: classOf(row) },
            ...Object.entries(columns).map(([title, get]) => cellOf(title, get(row))))))));
}

/* Colours of the style, as a canvas takes them. */

const probe = document.body.appendChild(make('i', { hidden: '' }));
let colourCache = {};
function colour(name) {
    if (!colourCache[name]) {
        probe.style.color = `var(--${name})`;
        colourCache[name] = getComputedStyle(probe).color;
    }
    return colourCache[name];
}

/* What is drawn is drawn again when sizes or colours change, at most once a frame. */

const painters = [];
let painting = false;
function paint() {
    if (painting) return;
    painting = true;
    requestAnimationFrame(() => { painting = false; for (const painter of painters) painter(); });
}

/** A canvas of that height, in the pixels of the screen. Returns its context and its width. */
function openCanvas(canvas, height) {
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.style.height = height + 'px';
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = '11px ' + getComputedStyle(document.body).fontFamily;
    context.textBaseline = 'middle';
    return { context, width };
}

/** Round steps of about `count` parts of a range. */
function ticks(from, to, count) {
    const rough = (to - from) / Math.max(count, 1);
    if (!(rough > 0)) return [];
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
    const all = [];
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) all.push(at);
    return all;
}

/** The same for bytes: powers of two. */
function byteTicks(from, to, count) {
    const rough = (to - from) / Math.max(count, 1);
    if (!(rough > 0)) return [];
    const step = 2 ** Math.ceil(Math.log2(rough));
    const all = [];
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) all.push(at);
    return all;
}

/* The tip beside the pointer: a title and pairs of words. */

const tip = byId('tip');
function showTip(x, y, title, pairs) {
    const list = make('dl');
    for (const [what, value] of pairs) list.append(make('dt', {}, what), make('dd', {}, value));
    tip.replaceChildren(make('b', {}, title), list);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16) + 'px';
    tip.style.top = Math.max(4, Math.min(y + 16, innerHeight - box.height - 4)) + 'px';
}
function hideTip() { tip.hidden = true; }

/* Colours: as the system has them, or as the reader wants them. */

const themes = ['auto', 'light', 'dark'];
function setTheme(theme) {
    const button = byId('theme');
    if (theme === 'auto') delete root.dataset.theme;
    else root.dataset.theme = theme;
    button.textContent = theme;
    button.setAttribute('aria-label', 'Colours: ' + (theme === 'auto' ? 'as the system has them' : theme));
    colourCache = {};
    paint();
}
function startThemes() {
    let theme = 'auto';
    try { theme = localStorage.getItem('sheaf-theme') || 'auto'; } catch { /* a file may have no storage */ }
    const asked = new URLSearchParams(location.hash.slice(1)).get('theme');
    setTheme(themes.includes(asked) ? asked : themes.includes(theme) ? theme : 'auto');
    byId('theme').addEventListener('click', () => {
        const next = themes[(themes.indexOf(byId('theme').textContent) + 1) % themes.length];
        try { localStorage.setItem('sheaf-theme', next); } catch { /* likewise */ }
        setTheme(next);
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { colourCache = {}; paint(); });
    new ResizeObserver(paint).observe(document.body);
}
