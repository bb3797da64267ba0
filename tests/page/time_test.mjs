// The heatmap of time: a window's flame graph, and its comparison with the rest.
import {assert, expectChanges, expectFunctions, functionsOf, test, truth} from './browser.mjs';

async function typeWindow(page, from, to) {
  await page.fill('#window-from', from);
  await page.fill('#window-to', to);
  await page.click('#window-form button[type=submit]');
}

const windowText = (page) => page.textContent('#time-text');

await test('a window that is typed shows its moments alone', async (open) => {
  const page = await open('server');
  assert.match(await windowText(page), /^20,000 moments: /);
  await typeWindow(page, '18', '21.0');
  assert.equal(await windowText(page), '18.000 s to 21.000 s is shown');
  await expectFunctions(page, truth['server cpu, window']);
  await page.click('#window-all');
  await expectFunctions(page, truth['server cpu']);
});

await test('a window is compared with the rest of the time', async (open) => {
  const page = await open('server');
  assert.equal(await page.isVisible('#comparison'), false, 'there is nothing to compare with');
  await typeWindow(page, '18', '21');
  await page.selectOption('#comparison', 'rest');
  expectChanges(await functionsOf(page), truth['server cpu, window against the rest']);
  await page.click('#window-all');
  assert.equal(await page.isVisible('#comparison'), false);
  await expectFunctions(page, truth['server cpu']);
});

await test('a window is dragged with the mouse', async (open) => {
  const page = await open('server');
  const box = await page.locator('#heatmap canvas').boundingBox();
  const x = (seconds) => box.x + (seconds / 30) * box.width;
  await page.mouse.move(x(18.2), box.y + 2);
  await page.mouse.down();
  await page.mouse.move(x(19), box.y + 30);
  await page.mouse.move(x(20.8), box.y + box.height - 2);
  await page.mouse.up();
  assert.equal(await windowText(page), '18.000 s to 21.000 s is shown');
  await expectFunctions(page, truth['server cpu, window']);
  assert.deepEqual(
    await page.$$eval('#window-form input', (fields) => fields.map(({value}) => value)),
    ['18.000', '21.000'],
  );
});

await test('a window is chosen with the keyboard', async (open) => {
  const page = await open('server');
  await page.focus('#heatmap canvas');
  const press = async (key, times) => {
    for (let i = 0; i < times; i++) await page.keyboard.press(key);
  };
  await press('ArrowRight', 36); // columns of half a second
  assert.match(await page.textContent('#status'), /^18.000 s to 18.025 s: /);
  await press('Shift+ArrowRight', 5);
  await press('Shift+ArrowDown', 19);
  assert.match(await page.textContent('#status'), /^18.000 s to 21.000 s: 37.\d s$/);
  await press('Enter', 1);
  assert.equal(await windowText(page), '18.000 s to 21.000 s is shown');
  await press('Escape', 1);
  assert.match(await windowText(page), /^20,000 moments/);
});

await test('the heatmap is darker where there was more', async (open) => {
  const page = await open('server');
  const {width, height} = await page.locator('#heatmap canvas').boundingBox();
  const lightness = (seconds) =>
    page.$eval(
      '#heatmap canvas',
      (canvas, [x, rows]) => {
        const data = canvas.getContext('2d').getImageData(x, 0, 4, rows).data;
        let sum = 0;
        for (let i = 0; i < data.length; i += 4)
          sum += ((765 - data[i] - data[i + 1] - data[i + 2]) * data[i + 3]) / 255;
        return -sum;
      },
      [Math.round((seconds / 30) * width) + 4, Math.floor(height)],
    );
  const [idle, usual, busy] = [await lightness(9.5), await lightness(5), await lightness(19)];
  assert.ok(idle > usual && usual > busy, `${idle} ${usual} ${busy}`);
});

await test('a window of nothing is said to be one', async (open) => {
  const page = await open('server');
  await typeWindow(page, '21', '18');
  assert.match(await page.textContent('#status'), /needs two times/);
  await typeWindow(page, '9.2', '9.8');
  assert.match(await page.textContent('#summary'), /^0 cpu · 0 samples/);
  await typeWindow(page, '100', '200');
  assert.match(await page.textContent('#summary'), /^0 cpu/);
});

await test('without moments there is no heatmap', async (open) => {
  const page = await open('small');
  assert.equal(await page.isVisible('#time'), false);
});

await test('lives of threads say when each began and ended', async (open) => {
  const page = await open('server');
  assert.equal(await page.textContent('#lives-summary'), 'Threads: 6 lives');
  await page.click('#lives-summary');
  const rows = await page.$$eval('#lives-table tbody tr', (all) =>
    all.map((row) => [...row.cells].map((cell) => cell.textContent)),
  );
  assert.equal(rows.length, 6);
  assert.deepEqual(rows[0].slice(0, 5), ['worker (9005)', '', '10.000 s', '20.000 s', '2.50 s']);
  assert.deepEqual(rows[5].slice(0, 5), ['acceptor (9000)', '', 'before', 'after', '0']);
  const box = (selector) => page.locator(selector).first().boundingBox();
  const [whole, part] = [await box('#lives-table .bar'), await box('#lives-table .bar i')];
  assert.ok(Math.abs((part.x - whole.x) / whole.width - 1 / 3) < 0.02, 'begins at a third');
  assert.ok(Math.abs(part.width / whole.width - 1 / 3) < 0.02, 'lasts for a third');
});
