// Opens pages in headless Chromium and prints, as lines of JSON, the time until the first picture and
// the longest frame while it zooms; page.py calls it. Each page is opened anew, in turns.
import fs from 'node:fs';
import path from 'node:path';
import {createRequire} from 'node:module';

const {STROBE_PAGES: PAGES, STROBE_NODE_MODULES: MODULES, STROBE_CHROMIUM: CHROMIUM} = process.env;
const require = createRequire(path.join(MODULES, 'package.json'));
const {chromium} = require('playwright-core');

const REPETITIONS = 5;
const ZOOMS = 8;
const CASES = ['related', 'random', 'server'];

const PEER_PATIENCE_MS = 60_000;

let browser;
let page;
async function start() {
  await browser?.close();
  browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--allow-file-access-from-files'],
  });
  page = await (await browser.newContext({viewport: {width: 1440, height: 900}})).newPage();
  page.setDefaultTimeout(120_000);
}

/** Until a picture is on the screen, in ms since the page was asked for. */
async function openOurs(name) {
  await page.goto(`file://${path.resolve(PAGES, `${name}.html`)}`);
  await page.waitForFunction(() => document.documentElement.dataset.ready !== undefined);
  return Number(await page.evaluate(() => document.documentElement.dataset.ready));
}

/** The intervals between frames, in ms, while the graph zooms in and out by its keys. */
async function zoomOurs() {
  return page.evaluate(async (zooms) => {
    const canvas = document.querySelector('#flame canvas');
    const press = (key) => canvas.dispatchEvent(new KeyboardEvent('keydown', {key}));
    const intervals = [];
    const watch = async (ms) => {
      const begin = performance.now();
      let before = begin;
      while (performance.now() - begin < ms) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        const now = performance.now();
        intervals.push(now - before);
        before = now;
      }
    };
    press('Home');
    for (let i = 0; i < zooms; i++) {
      for (let deeper = 0; deeper < 1 + 3 * i; deeper++) press('ArrowUp');
      if (i % 2 === 1) press('ArrowRight');
      press('Enter');
      await watch(300);
    }
    press('Escape');
    await watch(300);
    return intervals;
  }, ZOOMS);
}

/**
 * As speedscope's own command opens a file: by a script that holds it. NaN if it does not show a
 * picture, or crashes.
 */
async function openSpeedscope(name) {
  const root = path.join(MODULES, 'node_modules/speedscope/dist/release');
  const script = path.resolve(PAGES, `${name}.js`);
  const base64 = fs.readFileSync(path.join(PAGES, `${name}.pb.gz`)).toString('base64');
  fs.writeFileSync(script, `speedscope.loadFileFromBase64('${name}.pb.gz', '${base64}')`);
  try {
    await page.goto('about:blank');
    const url = `file://${path.join(root, 'index.html')}#localProfilePath=${script}`;
    await page.goto(url, {waitUntil: 'commit'});
    const hasPicture = () => document.title.includes('.pb.gz') && document.querySelector('canvas');
    await page.waitForFunction(hasPicture, null, {timeout: PEER_PATIENCE_MS});
    return await page.evaluate(() => performance.now());
  } catch {
    await start();
    return NaN;
  }
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const report = (name, contender, metric, value, unit) =>
  console.log(
    JSON.stringify({case: name, contender, metric, value: Math.round(value * 10) / 10, unit}),
  );

const hasSpeedscope = fs.existsSync(path.join(MODULES, 'node_modules/speedscope'));
if (!hasSpeedscope) console.error('skipped: speedscope (npm could not install it)');
const ours = Object.fromEntries(CASES.map((name) => [name, []]));
const theirs = Object.fromEntries(CASES.map((name) => [name, []]));
const frames = Object.fromEntries(CASES.map((name) => [name, []]));
await start();
const failed = new Set();
for (let i = 0; i < REPETITIONS; i++) {
  for (const name of CASES) {
    ours[name].push(await openOurs(name));
    frames[name].push(await zoomOurs());
    if (!hasSpeedscope || failed.has(name)) continue;
    theirs[name].push(await openSpeedscope(name));
    if (Number.isNaN(theirs[name].at(-1))) failed.add(name);
  }
}
for (const name of CASES) {
  report(name, 'strobe', 'first picture', median(ours[name]), 'ms');
  if (failed.has(name))
    console.error(
      `skipped: speedscope ${name} (no picture in ${PEER_PATIENCE_MS / 1000} s, or a crash)`,
    );
  else if (hasSpeedscope) report(name, 'speedscope', 'first picture', median(theirs[name]), 'ms');
  report(name, 'strobe', 'frame while zooming, median', median(frames[name].flat()), 'ms');
  report(
    name,
    'strobe',
    'longest frame while zooming',
    median(frames[name].map((all) => Math.max(...all))),
    'ms',
  );
  report(name, 'strobe', 'file', fs.statSync(path.join(PAGES, `${name}.html`)).size / 1e6, 'MB');
}
await browser.close();
