// What the tests of the page share: the browser, the pages and the truth about them, and how to
// read a page as its user does.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import {createRequire} from 'node:module';

// page.py says where things are.
const {STROBE_PAGES: PAGES, STROBE_NODE_MODULES: MODULES, STROBE_CHROMIUM: CHROMIUM} = process.env;
export const modules = createRequire(path.join(MODULES, 'package.json'));
const {chromium} = modules('playwright-core');

// To start and to end a process of the browser can take many seconds on a busy machine. So all
// cases with the same options use the same tab, one after the other.
const PATIENCE_MS = 60_000;
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  timeout: 2 * PATIENCE_MS,
  args: ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb'],
});
const tabs = new Map(); // by options, as JSON
export const truth = JSON.parse(fs.readFileSync(path.join(PAGES, 'truth.json'), 'utf8'));

const failures = [];
let count = 0;

/** Runs one case; says what failed, and goes on. */
export async function test(name, run) {
  const opened = new Set();
  const begin = performance.now();
  try {
    await run(async (page, options) => {
      const tab = await openPage(page, options);
      opened.add(tab);
      return tab;
    });
    for (const tab of opened) assert.deepEqual(tab.problems, [], 'the page itself has problems');
    count++;
    console.log(`passed: ${name} (${Math.round(performance.now() - begin)} ms)`);
  } catch (error) {
    failures.push(name);
    console.log(`FAILED: ${name}\n${error.stack}`);
  }
}

/** Call at the end. */
export async function finish() {
  await browser.close();
  console.log(`${count} cases passed, ${failures.length} failed ${failures.join('; ')}`);
  process.exit(failures.length === 0 ? 0 : 1);
}

/** A tab in which whatever a page writes to the console, or loads, is kept as a problem. */
async function newTab(options) {
  const context = await browser.newContext({viewport: {width: 1280, height: 800}, ...options});
  const tab = await context.newPage();
  tab.setDefaultTimeout(PATIENCE_MS);
  tab.on('console', (message) => {
    // Only the tests read a canvas back.
    if (!message.text().includes('willReadFrequently'))
      tab.problems.push(`console: ${message.text()}`);
  });
  tab.on('pageerror', (error) => tab.problems.push(`error: ${error.message}`));
  tab.on('request', (request) => {
    // A blob is of the page itself: its worker.
    const url = request.url();
    if (url !== tab.wanted && !url.startsWith('blob:')) tab.problems.push(`request: ${url}`);
  });
  tab.on('dialog', (dialog) => {
    tab.problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  return tab;
}

/** A page of the folder, ready, if it is sound. */
async function openPage(name, {isSound = true, ...options} = {}) {
  const key = JSON.stringify(options);
  if (!tabs.has(key)) tabs.set(key, await newTab(options));
  const tab = tabs.get(key);
  tab.problems = [];
  tab.wanted = `file://${path.resolve(PAGES, `${name}.html`)}`;
  await tab.mouse.move(0, 0);
  await tab.goto(tab.wanted);
  if (isSound)
    await tab.waitForFunction(() => document.documentElement.dataset.ready !== undefined);
  return tab;
}

/** Keeps a picture in the folder `pictures` beside the pages. */
export async function picture(page, name, options = {}) {
  await page.screenshot({path: path.join(PAGES, 'pictures', `${name}.png`), ...options});
}

/** The rows of the table of functions, all of them, as {name, module, self, total, …}. */
export async function functionsOf(page) {
  await page.click('#tab-functions');
  const more = page.locator('#functions-more');
  while (await more.isVisible()) await more.click();
  return page.$$eval('#functions-table tbody tr', (rows) =>
    rows.map((row) => {
      const keys = [...row.closest('table').querySelectorAll('thead th')].map((th) => th.className);
      const cell = (key) => row.cells[keys.indexOf(key)];
      const value = (key) => Number(cell(key)?.querySelector('data')?.value ?? NaN);
      return {
        name: cell('name').querySelector('button').title,
        module: cell('module').textContent,
        self: value('self'),
        total: value('total'),
        base: value('base'),
        error: cell('total').querySelector('.error').textContent,
        change: cell('change')?.textContent ?? '',
      };
    }),
  );
}

const key = ({name, module}) => `${name} ${module}`;

/** Checks the table of functions against the truth. */
export async function expectFunctions(page, expected) {
  const shown = new Map((await functionsOf(page)).map((row) => [key(row), row]));
  const wanted = expected.functions.filter(({total}) => total > 0);
  assert.deepEqual([...shown.keys()].sort(), wanted.map(key).sort());
  for (const code of wanted) {
    const row = shown.get(key(code));
    assert.equal(row.self, code.self, `self of ${code.name}`);
    assert.equal(row.total, code.total, `total of ${code.name}`);
    const percent = code.error * 100;
    const error =
      code.error === null ? '± unknown' : `± ${percent.toFixed(percent < 0.1 ? 2 : 1)}`;
    assert.equal(row.error, error, `error of ${code.name}`);
  }
  const sum = await page.$eval('#summary data', (data) => Number(data.value));
  assert.equal(sum, expected.sum);
  const samples = Math.round(expected.samples).toLocaleString('en');
  assert.match(await page.textContent('#summary'), new RegExp(` ${samples} samples? `));
}

/** Chooses a value of a facet in its list. */
export async function chooseValue(page, facet, value) {
  await page.locator('button.facet', {hasText: new RegExp(`^${facet}: `)}).click();
  const list = page.locator('.popover:popover-open');
  await list.locator('label', {hasText: value}).locator('input').check();
  await page.keyboard.press('Escape');
}

/** Opens the sandwich of a function. */
export async function chooseFunction(page, name) {
  await page.click('#tab-functions');
  await page
    .locator('#functions-table tbody button', {has: page.locator('bdi')})
    .evaluateAll(
      (buttons, wanted) => buttons.find((button) => button.title === wanted).click(),
      name,
    );
}

/** The path of names that is zoomed to. */
export function zoomPath(page) {
  return page.$$eval('#path button', (buttons) => buttons.map((button) => button.textContent));
}

/** Moves the mouse over a graph's canvas; what the tooltip says then, or ''. */
export async function hover(page, x, y, canvas = '#flame canvas') {
  const box = await page.locator(canvas).boundingBox();
  await page.mouse.move(box.x + x, box.y + y);
  return page.$eval('#tooltip', (tooltip) =>
    tooltip.hidden ? '' : [...tooltip.children].map((child) => child.textContent).join('\n'),
  );
}

/** What the tooltip says at many points [x, y] of a canvas, without moving the real mouse. */
export function tooltips(page, points, canvas = '#flame canvas') {
  return page.$eval(
    canvas,
    (element, places) => {
      const {left, top} = element.getBoundingClientRect();
      const tooltip = document.querySelector('#tooltip');
      const texts = places.map(([x, y]) => {
        const at = {clientX: left + x, clientY: top + y, pointerType: 'mouse'};
        element.dispatchEvent(new PointerEvent('pointermove', at));
        const lines = [...tooltip.children].map((child) => child.textContent);
        return tooltip.hidden ? '' : lines.join('\n');
      });
      element.dispatchEvent(new PointerEvent('pointerleave'));
      return texts;
    },
    points,
  );
}

/** The colour of one pixel of a canvas, as [red, green, blue]. */
export function pixel(page, x, y, canvas = '#flame canvas') {
  return page.$eval(
    canvas,
    (element, [left, top]) => [
      ...element
        .getContext('2d')
        .getImageData(left * devicePixelRatio, top * devicePixelRatio, 1, 1)
        .data.slice(0, 3),
    ],
    [x, y],
  );
}

/** As the page writes it. */
function changeText({change, error, isSignificant}) {
  if (!isSignificant) return 'not significant';
  const digits = (percent, limit) => percent.toFixed(percent < limit ? 2 : 1);
  const percent = Math.abs(100 * change);
  return `${change < 0 ? '\u2212' : '+'}${digits(percent, 1)} % ± ${digits(100 * error, 0.1)}`;
}

/** Compares the changes in the table of functions. */
export function expectChanges(rows, changes) {
  const shown = new Map(rows.map((row) => [`${row.name} ${row.module}`, row.change]));
  assert.equal(shown.size, changes.length);
  for (const change of changes)
    assert.equal(shown.get(`${change.name} ${change.module}`), changeText(change), change.name);
}

export {assert};
