// The comparison of two profiles against what C++ says of the difference.
import {
  assert,
  chooseFunction,
  expectChanges,
  functionsOf,
  pixel,
  test,
  tooltips,
  truth,
} from './browser.mjs';

await test('every function says what changed, and whether that is significant', async (open) => {
  const page = await open('slower_parser');
  const {now, base, changes} = truth.slower_parser;
  const rows = await functionsOf(page);
  expectChanges(rows, changes);
  assert.ok(changes.some(({change, isSignificant}) => isSignificant && change > 0));
  assert.ok(changes.some(({change, isSignificant}) => isSignificant && change < 0));
  for (const row of rows) {
    const find = (side) =>
      side.functions.find(({name, module}) => name === row.name && module === row.module);
    assert.equal(row.total, find(now).total, row.name);
    assert.equal(row.base, find(base).total, row.name);
  }
  const sums = await page.$$eval('#summary data', (all) => all.map(({value}) => Number(value)));
  assert.deepEqual(sums, [now.sum, base.sum]);
});

await test('two runs of the same program differ in nothing significant', async (open) => {
  const page = await open('equal_runs');
  expectChanges(await functionsOf(page), truth.equal_runs.changes);
  assert.equal(await page.locator('.change.more, .change.less').count(), 0);
  await page.click('#tab-flame');
  assert.match(await page.textContent('#details'), /No function changed significantly/);
});

await test('more is red, less is blue, chance is grey', async (open) => {
  const page = await open('slower_parser');
  const {width, height} = await page.locator('#flame canvas').boundingBox();
  const kinds = new Set();
  const points = [];
  for (let y = height - 8; y > 0; y -= 27) for (let x = 12; x < width; x += 23) points.push([x, y]);
  const texts = await tooltips(page, points);
  for (const [i, [x, y]] of points.entries()) {
    const change = /change: (.*)/.exec(texts[i])?.[1];
    if (!change) continue;
    const [red, , blue] = await pixel(page, x, y + 5);
    const kind = change === 'not significant' ? 'grey' : change.startsWith('+') ? 'red' : 'blue';
    const shade = red > blue + 12 ? 'red' : blue > red + 12 ? 'blue' : 'grey';
    assert.equal(shade, kind, texts[i]);
    kinds.add(kind);
  }
  assert.deepEqual([...kinds].sort(), ['blue', 'grey', 'red']);
  assert.match(await page.textContent('#legend'), /more.*less.*not significant/);
});

await test('widths are those of one side or of both', async (open) => {
  const page = await open('slower_parser');
  const wanted = {now: 'now', base: 'base'};
  for (const [by, side] of Object.entries(wanted)) {
    await page.selectOption('#widths', by);
    const {tree, sum} = truth.slower_parser[side];
    const {total} = tree.find(({path}) => /;epoll_wait$/.test(path));
    const {width, height} = await page.locator('#flame canvas').boundingBox();
    const points = Array.from({length: Math.floor(width)}, (_, x) => [x, height - 2.5 * 27]);
    const texts = await tooltips(page, points);
    const pixels = texts.filter((text) => text.startsWith('epoll_wait')).length;
    assert.ok(Math.abs(pixels / width - total / sum) < 0.01, `${by}: ${pixels} of ${width}`);
  }
});

await test('the sandwich compares callers and callees', async (open) => {
  const page = await open('slower_parser');
  await chooseFunction(page, 'malloc');
  const rows = await page.$$eval('#callers-table tbody tr', (all) =>
    all.map((row) => ({
      name: row.querySelector('button').title,
      values: [...row.querySelectorAll('data')].map(({value}) => Number(value)),
      change: row.querySelector('.change').textContent,
    })),
  );
  for (const {name, values} of rows) {
    const total = (side) =>
      truth.slower_parser[side].callers.find(
        ({of, neighbour}) => of === 'malloc' && neighbour === name,
      ).total;
    assert.deepEqual(values, [total('now'), total('base')], name);
  }
  assert.match(rows.find(({name}) => name.startsWith('json::Parser::ParseValue')).change, /^\+/);
});

await test('the comparison can be left', async (open) => {
  const page = await open('slower_parser');
  await page.selectOption('#comparison', 'none');
  await page.click('#tab-functions');
  assert.equal(await page.locator('#functions-table th.change').count(), 0);
  assert.equal(await page.isVisible('#widths'), false);
});
