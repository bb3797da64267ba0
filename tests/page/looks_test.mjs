// How the page looks, and who can use it: themes, contrast, keyboard, small windows. The pictures
// stay in the folder `pictures`.
import fs from 'node:fs';
import path from 'node:path';
import {assert, chooseValue, modules, picture, test} from './browser.mjs';

const PHONE = {
  hasTouch: true,
  isMobile: true,
  viewport: {width: 390, height: 844},
  deviceScaleFactor: 2,
};
const WIDE = {viewport: {width: 1440, height: 900}};
const VIEWS = ['flame', 'functions', 'calls'];

/** Shows a view with as much in it as it can have. */
async function show(page, view) {
  await page.click(`#tab-${view}`);
  if (view === 'functions') await page.click('#functions-table tbody button >> nth=2');
  if (view === 'calls') await page.click('#calls-table tbody tr >> nth=3');
  // Transitions of colours.
  await page.evaluate(() => Promise.allSettled(document.getAnimations().map((it) => it.finished)));
}

let axe = '';
try {
  axe = fs.readFileSync(modules.resolve('axe-core/axe.min.js'), 'utf8');
} catch {
  console.log('skipped: axe-core (npm could not install it)');
}

for (const theme of ['light', 'dark']) {
  for (const [size, options] of Object.entries({wide: WIDE, phone: PHONE})) {
    await test(`${theme}, ${size}: every view is accessible and fits`, async (open) => {
      for (const name of ['server', 'slower_parser', 'detailed']) {
        const page = await open(name, {colorScheme: theme, ...options});
        for (const view of VIEWS) {
          await show(page, view);
          const fullPage = size === 'phone';
          await picture(page, `${name}_${view}_${theme}_${size}`, {fullPage});
          const width = await page.evaluate(() => document.documentElement.scrollWidth);
          const overflow = width - options.viewport.width;
          assert.ok(overflow <= 0, `${name} ${view} is ${overflow} pixels too wide`);
          if (!axe) continue;
          await page.evaluate(axe);
          const {violations} = await page.evaluate(() => window.axe.run(document));
          const found = violations.flatMap(({id, nodes}) =>
            nodes.map(({html, failureSummary}) => `${id}: ${html} ${failureSummary}`),
          );
          assert.deepEqual(found, [], `${name} ${view}`);
        }
      }
    });
  }
}

await test('open lists and the help are accessible', async (open) => {
  const page = await open('server', {...WIDE});
  await page.locator('button.facet').first().click();
  await page.keyboard.press('Escape');
  await chooseValue(page, 'endpoint', '/api/items');
  await page.locator('button.facet').first().click();
  await picture(page, 'server_filters');
  if (axe) {
    await page.evaluate(axe);
    assert.deepEqual(
      (await page.evaluate(() => window.axe.run(document))).violations.map(({id}) => id),
      [],
    );
  }
  await page.keyboard.press('Escape');
  await page.click('#help-button');
  await picture(page, 'help');
  if (axe)
    assert.deepEqual(
      (await page.evaluate(() => window.axe.run(document))).violations.map(({id}) => id),
      [],
    );
  await page.keyboard.press('Escape');
  assert.equal(await page.isVisible('#help'), false);
});

await test('the theme is the system’s, unless one is chosen', async (open) => {
  const ground = (page) =>
    page.evaluate(() => getComputedStyle(document.body.parentElement).backgroundColor);
  const graph = (page) =>
    page.$eval('#flame canvas', (canvas) =>
      [...canvas.getContext('2d').getImageData(3, canvas.height - 6, 1, 1).data].slice(0, 3),
    );
  const sum = ([red, green, blue]) => red + green + blue;
  const page = await open('detailed', {colorScheme: 'light'});
  const [lightGround, lightGraph] = [await ground(page), await graph(page)];
  await page.emulateMedia({colorScheme: 'dark'});
  await page.waitForFunction((before) => {
    const canvas = document.querySelector('#flame canvas');
    return canvas.getContext('2d').getImageData(3, canvas.height - 6, 1, 1).data[0] !== before;
  }, lightGraph[0]);
  const [darkGround, darkGraph] = [await ground(page), await graph(page)];
  assert.ok(sum(darkGraph) < sum(lightGraph) - 150, `${darkGraph} ${lightGraph}`);
  await page.selectOption('#theme', 'light');
  assert.deepEqual([await ground(page), await graph(page)], [lightGround, lightGraph]);
  await page.emulateMedia({colorScheme: 'light'});
  await page.selectOption('#theme', 'dark');
  assert.deepEqual([await ground(page), await graph(page)], [darkGround, darkGraph]);
});

await test('every fill has contrast to the text on it', async (open) => {
  const page = await open('small');
  const source = fs.readFileSync(
    path.join(process.env.STROBE_SOURCE, 'src/encode/html/page/colors.js'),
    'utf8',
  );
  const low = await page.evaluate(`(() => {
    ${source}
    const context = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const luminance = (colour) => {
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      const [red, green, blue] = [...context.getImageData(0, 0, 1, 1).data].map((part) => {
        const value = part / 255;
        return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const contrast = (a, b) => {
      const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
      return (high + 0.05) / (low + 0.05);
    };
    const low = [];
    for (const isDark of [false, true]) {
      const palette = new Palette(isDark);
      palette.fills.forEach((colour, fill) => {
        if (palette.heat.includes(fill)) return; // without a text
        const value = contrast(colour, fill === palette.dim ? palette.dimText : palette.text);
        if (value < 4.5) low.push([isDark, fill, colour, value]);
      });
    }
    return low;
  })()`);
  assert.deepEqual(low, []);
});

await test('Tab reaches everything, and what has the focus can be seen', async (open) => {
  const page = await open('server', {...WIDE});
  const wanted = [
    'theme',
    'help-button',
    'tab-flame',
    'type',
    'search',
    'window-from',
    'window-to',
    'direction',
    'full-names',
  ];
  const seen = [];
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press('Tab');
    const focus = await page.evaluate(() => {
      const {activeElement: active} = document;
      const style = getComputedStyle(active);
      const box = active.getBoundingClientRect();
      return {
        name: active.id || active.className || active.tagName,
        isCanvas: active.tagName === 'CANVAS',
        hasOutline: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
        isVisible: box.width > 0 && box.height > 0,
        text: active.textContent,
      };
    });
    if (focus.name === 'BODY') break;
    assert.ok(
      focus.hasOutline && focus.isVisible,
      `the focus of ${JSON.stringify(focus)} cannot be seen`,
    );
    seen.push(focus.name);
  }
  for (const name of wanted)
    assert.ok(seen.includes(name), `${name} is not reached: ${seen.join(' ')}`);
  assert.equal(seen.filter((name) => name === 'facet').length, 3);
  assert.equal(seen.filter((name) => name === 'CANVAS').length, 2);
});

await test('tabs and lists are used by keys alone', async (open) => {
  const page = await open('server');
  await page.focus('#tab-flame');
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.isVisible('#panel-functions'), true);
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.isVisible('#panel-calls'), true);
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.isVisible('#panel-flame'), true);
  await page.locator('button.facet').first().focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('.popover:popover-open input:focus');
  for (const key of ['Tab', 'Tab', 'Space', 'Escape']) await page.keyboard.press(key);
  assert.equal(await page.locator('.chip').count(), 1);
  await page.locator('.chip').focus();
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('.chip').count(), 0);
});
