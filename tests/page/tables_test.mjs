// The tables of the page against what C++ says of the same profile.
import {
  assert,
  chooseFunction,
  chooseValue,
  expectFunctions,
  functionsOf,
  test,
  truth,
} from './browser.mjs';

const SCAN = 'store::Cursor::Scan(unsigned int)';
const PARSE_VALUE = 'json::Parser::ParseValue<(json::Kind)3>(char const*&)';

for (const name of ['small', 'unsymbolized', 'detailed', 'random_200x30_shared_26']) {
  await test(`functions of each value type of ${name}`, async (open) => {
    const page = await open(name);
    const types = await page.$$eval('#type option', (options) => options.length);
    for (let type = 0; type < types; type++) {
      await page.$eval(
        '#type',
        (select, value) => {
          select.value = value;
          select.dispatchEvent(new Event('change'));
        },
        String(type),
      );
      await expectFunctions(page, truth[`${name} ${type}`]);
    }
  });
}

await test('an empty profile is shown as such', async (open) => {
  const page = await open('empty');
  assert.match(await page.textContent('#summary'), /^0 cpu · 0 samples · 0 threads/);
  assert.match(await page.textContent('#details'), /Nothing was measured/);
  for (const view of ['functions', 'calls', 'flame']) await page.click(`#tab-${view}`);
});

await test('amounts may be less than 0', async (open) => {
  const page = await open('difference');
  assert.match(await page.textContent('#summary'), /^−2.00 MiB inuse_space/);
  const rows = await functionsOf(page);
  const amounts = rows.map(({name, self, total}) => [name, self, total]);
  assert.deepEqual(amounts, [
    ['freed', -3 << 20, -3 << 20],
    ['grown(int)', 1 << 20, 1 << 20],
    ['main', 0, -2 << 20],
  ]);
  const [first] = await page.$$eval('#functions-table td.self', (cells) =>
    cells.map((cell) => cell.textContent),
  );
  assert.equal(first, '−3.00 MiB−75.0 %');
});

await test('functions are exact although stacks are left out', async (open) => {
  const page = await open('cut');
  assert.match(await page.textContent('#summary'), /in \[small stacks\]/);
  await expectFunctions(page, truth.cut);
});

await test('functions of a server, by value type', async (open) => {
  const page = await open('server');
  await expectFunctions(page, truth['server cpu']);
  await page.selectOption('#type', {label: 'samples'});
  await expectFunctions(page, truth['server samples']);
});

await test('functions of chosen threads and labels', async (open) => {
  const page = await open('server');
  await chooseValue(page, 'Thread', 'worker (9001)');
  await expectFunctions(page, truth['server cpu, worker 9001']);
  await page.getByRole('button', {name: 'Remove Thread: worker (9001)'}).click();
  await expectFunctions(page, truth['server cpu']);
  await chooseValue(page, 'Thread name', 'worker');
  await chooseValue(page, 'endpoint', '/index.html');
  await expectFunctions(page, truth['server cpu, workers, /index.html']);
});

await test('callers and callees, also of a recursive function', async (open) => {
  const page = await open('server');
  for (const name of [SCAN, PARSE_VALUE, 'main', 'malloc']) {
    await chooseFunction(page, name);
    for (const kind of ['callers', 'callees']) {
      const rows = await page.$$eval(`#${kind}-table tbody tr`, (all) =>
        all.map((row) => [
          row.querySelector('button')?.title ?? '',
          Number(row.querySelector('data').value),
        ]),
      );
      const expected = truth['server cpu'][kind].filter(({of}) => of === name);
      assert.deepEqual(
        new Map(rows),
        new Map(expected.map(({neighbour, total}) => [neighbour, total])),
        `${kind} of ${name}`,
      );
    }
  }
});

await test('a caller in the sandwich can be chosen in turn', async (open) => {
  const page = await open('server');
  await chooseFunction(page, SCAN);
  await page.click('#callees-table tbody button >> nth=0');
  const title = await page.textContent('#function-details h2');
  assert.match(title, /operator</);
  assert.equal(await page.$eval('tr[aria-current=true] button', ({title: name}) => name), title);
});

await test('lines of a function', async (open) => {
  const page = await open('server');
  for (const name of [SCAN, PARSE_VALUE]) {
    await chooseFunction(page, name);
    const rows = await page.$$eval('#function-details .lines tbody tr', (all) =>
      all.map((row) => ({
        line: Number(row.cells[0].textContent),
        self: Number(row.cells[1].firstChild.value),
        total: Number(row.cells[2].firstChild.value),
      })),
    );
    const expected = truth['server cpu'].lines
      .filter((line) => line.name === name)
      .map(({line, self, total}) => ({line, self, total}))
      .sort((a, b) => b.total - a.total);
    assert.deepEqual(rows, expected);
  }
});

await test('the share of what a search matches', async (open) => {
  const page = await open('server');
  const {sum, searches} = truth['server cpu'];
  for (const {pattern, total} of searches) {
    await page.fill('#search', pattern);
    await page.waitForFunction(
      (value) => Number(document.querySelector('#match data')?.value) === value,
      total,
    );
    const percent = (100 * total) / sum;
    const share = total === 0 ? '0' : percent.toFixed(percent < 1 ? 2 : 1);
    assert.match(await page.textContent('#match'), new RegExp(`^${share} % ± `));
  }
  await page.fill('#search', 'json::');
  await page.waitForSelector('#match >> text=in 3 functions');
  await page.click('#tab-functions');
  assert.equal(await page.locator('#functions-table tbody tr').count(), 3);
});

await test('capitals in a pattern are exact, and a wrong pattern is named', async (open) => {
  const page = await open('server');
  for (const [pattern, count] of [
    ['skipspace', 1],
    ['Skipspace', 0],
    ['SkipSpace', 1],
    ['^libz\\.so\\.1!', 2],
  ]) {
    await page.fill('#search', pattern);
    await page.waitForSelector(`#match >> text=in ${count} function`);
  }
  await page.fill('#search', 'a(b');
  await page.waitForSelector('#match >> text=not a regular expression');
  assert.equal(await page.getAttribute('#search', 'aria-invalid'), 'true');
  await page.fill('#search', '');
  await page.waitForFunction(() => document.querySelector('#match').textContent === '');
});

await test('the table is sorted by each column', async (open) => {
  const page = await open('server');
  await page.click('#tab-functions');
  const sorted = async (column, index) => {
    await page.click(`#functions-table thead th.${column} button`);
    const values = await page.$$eval(
      '#functions-table tbody tr',
      (rows, place) => rows.map((row) => Number(row.cells[place].querySelector('data').value)),
      index,
    );
    return values;
  };
  const down = await sorted('total', 2);
  assert.deepEqual(
    down,
    [...down].sort((a, b) => b - a),
  );
  const up = await sorted('total', 2);
  assert.deepEqual(
    up,
    [...up].sort((a, b) => a - b),
  );
  assert.equal(await page.getAttribute('#functions-table th.total', 'aria-sort'), 'ascending');
});

await test('the call tree, unfolded by the keyboard', async (open) => {
  const page = await open('detailed');
  await page.click('#tab-calls');
  await page.locator('#calls-table tr[tabindex="0"]').focus();
  await page.keyboard.press('Home');
  // Unfolds each folded row, from the first row to the last.
  for (let row = 0; row < 100; row++) {
    const active = page.locator('#calls-table tr[aria-selected=true]');
    if ((await active.getAttribute('aria-expanded')) === 'false')
      await page.keyboard.press('ArrowRight');
    const node = await active.getAttribute('data-node');
    await page.keyboard.press('ArrowDown');
    if ((await active.getAttribute('data-node')) === node) break;
  }
  const rows = await page.$$eval('#calls-table tbody tr', (all) => {
    const path = [];
    return all.map((row) => {
      path.length = Number(row.getAttribute('aria-level')) - 1;
      const isInlined = [...row.querySelectorAll('.badge')].some(
        ({textContent}) => textContent === 'inlined',
      );
      path.push(`${isInlined ? '^' : ''}${row.cells[0].title}`);
      const [total, self] = [...row.querySelectorAll('data')].map(({value}) => Number(value));
      return {path: path.join(';'), self, total};
    });
  });
  const expected = truth['detailed 1'].tree.filter(({total}) => total > 0);
  const byPath = (a, b) => (a.path < b.path ? -1 : 1);
  assert.deepEqual(
    rows.sort(byPath),
    expected.map(({path, self, total}) => ({path, self, total})).sort(byPath),
  );
});
