#!/usr/bin/env bash
# The page of sheaf report in a browser without a head: it opens without errors, and what people do with it works.
# SHEAF_BROWSER names a Chromium; unless set, those on the path are tried.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
browser=${SHEAF_BROWSER:-}
for name in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v "$name")
done
if [ -z "$browser" ]; then
    echo "there is no chromium"
    exit 77
fi
case $SHEAF_SANITIZE in thread) echo "threads are tested elsewhere" && exit 77 ;; esac
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
cd "$work" || exit 1

# Notes errors from the first script on.
listen='<script>window.problems = []; addEventListener("error", (e) => problems.push(e.message));'
listen+='addEventListener("securitypolicyviolation", (e) => problems.push("fetches " + e.blockedURI));</script>'

# What people do. Each line of `should` holds or is a problem.
cat >hands.html <<'END'
<script>
addEventListener('load', () => {
    const should = (truth, what) => { if (!truth) problems.push(what); };
    const key = (element, name) => element.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true }));
    const type = (box, text) => { box.value = text; box.dispatchEvent(new Event('input')); };
    const draw = () => painters.forEach((painter) => painter());
    const inked = (canvas) => new Set(new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size;
    try {
        draw();
        root.dataset.opened = Math.round(performance.now());
        should(inked(spanCanvas) > 4, 'the timeline is empty');
        should(inked(heldCanvas) > 4, 'the memory curve is empty');
        should(document.querySelectorAll('img, iframe, [onerror]').length === 0, 'a name became markup');
        should(document.scripts.length === 4, 'a name became a script');
        key(spanCanvas, 'ArrowUp');
        should(view.to - view.from < lastTime, 'a key does not zoom');
        const width = view.to - view.from, from = view.from;
        key(spanCanvas, 'ArrowRight');
        should(view.from > from && Math.abs(view.to - view.from - width) < 1e-9, 'a key does not pan');
        key(spanCanvas, '0');
        should(view.from === 0 && view.to === lastTime, 'a key does not show all');
        spanCanvas.dispatchEvent(new WheelEvent('wheel', { deltaY: -300, cancelable: true }));
        should(view.to - view.from < lastTime, 'the wheel does not zoom');
        document.querySelector('[data-zoom=all]').click();
        should(view.to === lastTime, 'a button does not show all');
        key(spanCanvas, 'n');
        should(byId('span-said').textContent.includes('takes'), 'a key goes to no instruction');
        const { group } = rows.find((row) => !row.head), middle = group.ranges[0][1] >> 1;
        const x = GUTTER + (group.start[middle] + group.end[middle]) / 2 * timeScale(spanCanvas.clientWidth);
        const box = spanCanvas.getBoundingClientRect();
        spanCanvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + x, clientY: box.top + AXIS + HEAD + ROW / 2 }));
        should(!tip.hidden && tip.textContent.includes('takes'), 'hovering says nothing');
        type(byId('span-search'), 'dot_general');
        should(/[1-9].* found/.test(byId('span-found').textContent), 'an op is not found');
        draw();
        type(byId('span-search'), 'no such op');
        should(byId('span-found').textContent.startsWith('0 '), 'what is not there is found');
        type(byId('span-search'), '');
        const before = treeBody.rows.length;
        treeBody.querySelector('button[aria-expanded=false]').click();
        should(treeBody.rows.length > before, 'a module does not unfold');
        should(document.activeElement.getAttribute('aria-expanded') === 'true', 'the focus is lost');
        type(document.querySelector('#tree input'), 'kernel');
        should(treeBody.querySelectorAll('.tensor mark').length > 0, 'no parameter is found');
        type(document.querySelector('#tree input'), '');
        should(treeBody.rows.length > before, 'the tree does not come back');
        for (const theme of ['light', 'dark', 'auto']) {
            byId('theme').click();
            should(byId('theme').textContent === theme, 'colours do not change to ' + theme);
            draw();
        }
        const colours = ['light', 'dark'].map((theme) => { setTheme(theme); return getComputedStyle(document.body).backgroundColor; });
        should(colours[0] !== colours[1], 'light is dark');
        for (const words of ['What a rank holds at its peak', 'Collectives of a step', 'Recipes', 'this plan', 'activations', 'at least'])
            should(byId('main').textContent.includes(words) || (words.startsWith('Coll') && !data.collectives.length), `'${words}' is not there`);
        should(!!byId('measured') === !!data.measured, 'what was measured is not there, or nothing is');
        should(document.title === data.title && document.querySelector('h1').textContent === data.title, 'another title');
        should(document.querySelectorAll('#recipes tbody tr').length > 1, 'no recipes');
        should(document.querySelectorAll('#frontier-chart circle').length > 1, 'there is no frontier');
        should(document.body.scrollWidth <= innerWidth, 'the page is wider than the window');
    } catch (error) { problems.push(String(error)); }
    root.dataset.result = problems.length ? problems.join('; ') : 'good';
});
</script>
END

# use FILE [WIDTH]: opens a page and does that.
use() {
    sed "s|<head>|<head>$listen|" "$1" >used.html
    cat hands.html >>used.html
    "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --window-size="${2:-1280},900" \
        --dump-dom "file://$work/used.html" >dom.html 2>browser.err
    result=$(sed -n 's/.*<html[^>]* data-result="\([^"]*\)".*/\1/p' dom.html)
    opened=$(sed -n 's/.*<html[^>]* data-opened="\([^"]*\)".*/\1/p' dom.html)
    [ "$result" = good ] || fail "$1: ${result:-nothing came of it: $(tail -n 3 browser.err)}"
}

expect 0 pin "$step" -r 2d -n 4 --recompute layer -o plan.json
expect 0 report plan.json -c 2x2xV100 -o page.html
use page.html
use page.html 600
expect 0 pin "$step" -r dp -n 2 --micro-batches 2 -o turns.json
expect 0 run --plan turns.json --steps 2 --profile timed.json
expect 0 report turns.json -c 1x2xCPU --against timed.json -o turns.html
use turns.html
expect 0 pin "$step" -r dp -n 1 -o one.json
expect 0 report one.json -c 1x1xCPU -o one.html
use one.html
sed 's/layer_0/<\/script><img src=x onerror=problems.push(1)><!--/g' "$step" >evil.mlir
expect 0 pin evil.mlir -r zero1 -n 2 -o evil.json --sidecar none
expect 0 report evil.json -c 1x2xCPU -o evil.html --title '</title></script><img src=x onerror=problems.push(2)>'
use evil.html

# Many layers and ranks: small, and soon open. What else the machine does may make a browser slow, but not three times.
"$SHEAF_BUILD/test/gpt_step" 72 512 8 8 1024 51200 >large.mlir || fail "no step"
expect 0 pin large.mlir -r 2d+zero1 -M data=8,model=8 -o large.json
expect 0 report large.json -c 8x8xV100 -o large.html
[ "$(wc -c <large.html)" -lt 5000000 ] || fail "the page of 72 layers has $(wc -c <large.html) bytes"
for _ in 1 2 3; do
    use large.html
    [ "${opened:-9999}" -ge 2000 ] || break
done
[ "${opened:-9999}" -lt 2000 ] || fail "the page of 72 layers opens in $opened ms"
echo "72 layers on 64 ranks: $(wc -c <large.html) bytes, open in $opened ms"

# The page of a tuner: a map of each two of three variables, with lines between settings, and all trials.
if "$SHEAF_BIN" version | grep -q '^lua: in'; then
    cat >s.lua <<'LUA'
local sch = sheaf.schedule()
local data = tune.choice("data", {1, 2, 4})
sch:mesh{{"data", data}, {"model", 4 // data}}
sch:recipe(data == 4 and "dp" or "2d")
sch:micro_batches(tune.int("batches", 1, 4 // data))
sch:recompute(tune.choice("recompute", {"none", "layer"}))
LUA
    expect 0 tune s.lua "$step" --cluster 1x4xCPU --algorithm exhaustive --page tune.html
    cat >hands.html <<'END'
<script>
addEventListener('load', () => {
    const should = (truth, what) => { if (!truth) problems.push(what); };
    should(document.querySelectorAll('svg').length === 3, 'not a map of each two variables');
    should(document.querySelectorAll('tbody tr').length === data.trials.length, 'not all trials are there');
    should(document.querySelectorAll('tr.sum').length === 1, 'no trial is the best');
    should([...document.querySelectorAll('path')].some((path) => path.getAttribute('d')), 'no contour lines');
    root.dataset.result = problems.length ? problems.join('; ') : 'good';
});
</script>
END
    use tune.html
fi

[ "$failures" -eq 0 ]
