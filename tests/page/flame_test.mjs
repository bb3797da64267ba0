// The flame graph: by keyboard, mouse and finger.
import {assert, hover, pixel, test, tooltips, truth, zoomPath} from './browser.mjs';

const status = (page) => page.textContent('#status');
const totals = Object.fromEntries(truth['detailed 1'].tree.map(({path, total}) => [path, total]));
const {sum} = truth['detailed 1'];

/**
 * Waits until nothing moves: the page draws once a frame, and a zoom has its last frame after
 * 180 ms of the page's clock, whenever these come.
 */
async function settled(page) {
  await page.evaluate(
    () =>
      new Promise((resolve) => {
        const end = performance.now() + 300;
        let frames = 0;
        const step = () => {
          if (performance.now() > end) frames++;
          if (frames > 2) resolve();
          else requestAnimationFrame(step);
        };
        step();
      }),
  );
}

/** The height of a row, from where the names in the tooltip change. */
async function rowHeight(page) {
  const {height} = await page.locator('#flame canvas').boundingBox();
  const points = Array.from({length: Math.floor(height / 3)}, (_, i) => [4, 1 + 3 * i]);
  const rows = new Set((await tooltips(page, points)).map((text) => text.split('\n')[0]));
  rows.delete('');
  return height / rows.size;
}

await test('arrow keys go from frame to frame, and each is said', async (open) => {
  const page = await open('detailed');
  await page.locator('#zoom-out').evaluate((button) => (button.disabled = false));
  await page.focus('#zoom-out');
  await page.keyboard.press('Tab');
  const share = (path) => `${((100 * totals[path]) / sum).toFixed(1)} %`;
  assert.match(await status(page), /^main; total 980 ms, 93.1 % ± 2.\d; self 0, 0 %; depth 1$/);
  const busy = 'main;sample::Busy(int, std::vector<int> const&)';
  await page.keyboard.press('ArrowUp');
  assert.match(
    await status(page),
    new RegExp(`^sample::Busy.*total 950 ms, ${share(busy)}.*depth 2$`),
  );
  await page.keyboard.press('ArrowUp');
  assert.match(await status(page), /^sample::Loop<int>\(int\); inlined; total 950 ms/);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  assert.match(await status(page), /^0xffffffff81000000; total 20/);
  await page.keyboard.press('ArrowLeft');
  assert.match(await status(page), /^sample::Busy/);
  await page.keyboard.press('Home');
  for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowRight');
  assert.match(await status(page), /^\[.*\]; [A-Z].*\.; total 10/, 'a pseudo-frame is explained');
});

await test('Enter zooms, Backspace goes a caller back, Escape shows all', async (open) => {
  const page = await open('detailed');
  await page.focus('#flame canvas');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await settled(page);
  assert.deepEqual(await zoomPath(page), ['main', 'sample::Busy', 'sample::Loop']);
  const {width} = await page.locator('#flame canvas').boundingBox();
  const rowPx = await rowHeight(page);
  const text = await hover(page, width - 4, 2.5 * rowPx);
  assert.match(text, /^sample::Loop<int>\(int\)inlined/, 'the frame has the full width');
  await page.keyboard.press('Backspace');
  assert.deepEqual(await zoomPath(page), ['main', 'sample::Busy']);
  await page.keyboard.press('Escape');
  assert.deepEqual(await zoomPath(page), []);
  assert.equal(await page.isDisabled('#zoom-out'), true);
});

await test('a click zooms to a frame, and a click on its caller goes back', async (open) => {
  const page = await open('detailed');
  const {width, height} = await page.locator('#flame canvas').boundingBox();
  const rowPx = await rowHeight(page);
  const row = (index) => height - (index + 0.5) * rowPx;
  const box = await page.locator('#flame canvas').boundingBox();
  const click = async (x, index) => {
    await page.mouse.click(box.x + x, box.y + row(index));
    await settled(page);
  };
  assert.match(await hover(page, width - 30, row(1)), /^sample::Busy/);
  await click(width - 30, 1);
  const [first] = await zoomPath(page);
  assert.match(first, /^\[/, 'the frame of a pseudo-frame');
  assert.match(await hover(page, 3, row(0)), /^\[/, 'callers have the full width too');
  assert.match(await hover(page, width - 3, row(0)), /^\[/);
  assert.match(await page.textContent('#details h2'), /^sample::Busy/);
  await page.click('#zoom-out');
  await settled(page);
  assert.match(await hover(page, 3, row(0)), /^main/);
});

await test('the tooltip says what is known of a frame', async (open) => {
  const page = await open('detailed');
  const {height} = await page.locator('#flame canvas').boundingBox();
  const lines = (await hover(page, 20, height - 5)).split('\n');
  assert.equal(lines[0], 'main');
  assert.match(lines[1], /^Total 980 ms, 93.1 % ± 2.\d$/);
  assert.equal(lines[2], 'Self 0, 0 %');
  assert.equal(lines[3], '/src/sample/main.cc:10 · sample_program');
  const {width} = await page.locator('#flame canvas').boundingBox();
  assert.match(
    await hover(page, width - 30, height - 5),
    /\nThe stack|\nSamples|\nA frame|\nThe chain/,
  );
});

await test('an icicle has the callers above', async (open) => {
  const page = await open('detailed');
  const {height} = await page.locator('#flame canvas').boundingBox();
  assert.match(await hover(page, 20, height - 5), /^main/);
  await page.selectOption('#direction', 'down');
  assert.match(await hover(page, 20, 5), /^main/);
  await page.focus('#flame canvas');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowDown');
  assert.match(await status(page), /^sample::Busy/, 'down goes to what is called');
});

await test('a finger selects first and zooms then', async (open) => {
  const page = await open('detailed', {
    hasTouch: true,
    isMobile: true,
    viewport: {width: 390, height: 800},
  });
  const canvas = page.locator('#flame canvas');
  await canvas.scrollIntoViewIfNeeded();
  const {height} = await canvas.boundingBox();
  const position = {x: 60, y: height - 1.5 * 27};
  await canvas.tap({position});
  assert.match(await page.textContent('#details h2'), /^sample::Busy/);
  assert.deepEqual(await zoomPath(page), []);
  await canvas.tap({position});
  assert.deepEqual(await zoomPath(page), ['main', 'sample::Busy']);
});

await test('without motion a zoom is there at once', async (open) => {
  const page = await open('detailed', {reducedMotion: 'reduce'});
  await page.focus('#flame canvas');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowUp');
  await page.evaluate(() => {
    window.draws = 0;
    const canvas = document.querySelector('#flame canvas');
    new MutationObserver(() => window.draws++).observe(canvas, {attributeFilter: ['data-draw-ms']});
    canvas.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}));
  });
  await settled(page);
  const moves = await page.evaluate(() => window.draws);
  assert.ok(moves <= 2, `${moves} draws`);
});

await test('a search marks what matches', async (open) => {
  const page = await open('server');
  const {height} = await page.locator('#flame canvas').boundingBox();
  const before = await pixel(page, 400, height - 4);
  await page.fill('#search', 'json');
  await page.waitForSelector('#match data');
  await settled(page);
  const [red, green, blue] = await pixel(page, 400, height - 4);
  assert.notDeepEqual([red, green, blue], before);
  assert.ok(Math.max(red, green, blue) - Math.min(red, green, blue) < 8, 'the rest is grey');
});

await test('a stack deeper than the window can be scrolled, by keys too', async (open) => {
  const page = await open('random_200x30_shared_26', {viewport: {width: 1000, height: 500}});
  const scroller = page.locator('#flame');
  assert.ok(await scroller.evaluate((box) => box.scrollHeight > box.clientHeight + 100));
  assert.ok(
    await scroller.evaluate((box) => box.scrollTop + box.clientHeight >= box.scrollHeight - 2),
    'the outermost frames are shown first',
  );
  await page.focus('#flame canvas');
  await page.keyboard.press('Home');
  for (let i = 0; i < 27; i++) await page.keyboard.press('ArrowUp');
  assert.match(await status(page), /; depth 28$/);
  assert.ok(await scroller.evaluate((box) => box.scrollTop < 60));
});
