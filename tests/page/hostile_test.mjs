// Names that try to be more than names, and pages that are damaged.
import fs from 'node:fs';
import path from 'node:path';
import {assert, functionsOf, hover, test} from './browser.mjs';

const NAMES = [
  "</script><script>alert('name')</script>",
  '<!--<script>',
  '"><img src=x onerror=alert(1)>',
  "'; alert(1); '",
  '${alert(1)}`{{data}}',
  'שלום::مرحبا',
  'evil gnp.exe',
  '函数🔥()',
  '__proto__',
  'constructor',
  'bad ?? bytes',
  'null byte',
];

await test('every name is shown literally, and is nothing but text', async (open) => {
  const page = await open('hostile');
  const rows = await functionsOf(page);
  assert.deepEqual(
    rows.map(({name}) => name),
    NAMES,
  );
  for (const {module} of rows) assert.equal(module, '<img src=x onerror=alert(1)>.so');
  assert.equal(await page.title(), "</title><script>document.title='owned'</script>: profile");
  assert.equal(
    await page.textContent('#program'),
    "</title><script>document.title='owned'</script>",
  );
  assert.equal(await page.locator('img, #view script, #view i[key], u').count(), 0);
  for (const name of NAMES) {
    await page.$$eval(
      '#functions-table tbody button',
      (buttons, wanted) => buttons.find(({title}) => title === wanted).click(),
      name,
    );
    assert.equal(await page.textContent('#function-details h2'), name);
    assert.ok((await page.textContent('#status')).startsWith(`${name}: total`));
  }
});

await test('hostile names of threads, labels and files are text, too', async (open) => {
  const page = await open('hostile');
  for (const [index, value] of [
    [0, '</script><script>alert(1)</script> (1)'],
    [0, ' daerht (2)'],
    [1, '<u>value</u>'],
  ]) {
    await page.locator('button.facet').nth(index).click();
    await page.locator('.popover:popover-open .text').first().waitFor();
    const texts = await page.locator('.popover:popover-open .text').allTextContents();
    assert.ok(texts.includes(value), texts.join('; '));
    await page.keyboard.press('Escape');
  }
  await page.click('#lives-summary');
  const lives = await page.textContent('#lives-table');
  assert.ok(lives.includes('</script><script>alert(1)</script> (1)'), lives);
  await page.focus('#flame canvas');
  await page.keyboard.press('Home');
  const place = await page.textContent('#details dl');
  assert.ok(place.includes("</script><script>alert('name')</script>"), place);
  const {height} = await page.locator('#flame canvas').boundingBox();
  assert.match(await hover(page, 5, height / 2), /^<\/script><script>alert\('name'\)<\/script>\n/);
});

await test('a search that takes for ever is given up, and the next is not', async (open) => {
  const page = await open('hostile');
  for (const pattern of ['^(.+)+#$', '^(.|.)*#$']) {
    await page.fill('#search', pattern);
    await page.waitForSelector('#match >> text=takes too long');
    await page.fill('#search', pattern);
    await page.fill('#search', 'script>alert');
    await page.waitForSelector('#match >> text=in 1 function');
  }
});

await test('a script or a style that is not the page’s own does not run', async (open) => {
  const page = await open('small');
  const result = await page.evaluate(async () => {
    const script = document.createElement('script');
    script.textContent = 'window.isOwned = true';
    document.body.append(script);
    document.body.setAttribute('onclick', 'window.isOwned = true');
    document.body.click();
    const style = document.createElement('style');
    style.textContent = 'body { opacity: 0.5 }';
    document.head.append(style);
    const request = await fetch('https://127.0.0.1:9/').then(
      () => 'loaded',
      () => 'refused',
    );
    return [window.isOwned === undefined, getComputedStyle(document.body).opacity, request];
  });
  assert.deepEqual(result, [true, '1', 'refused']);
  assert.ok(
    page.problems.length >= 3 &&
      page.problems.every((text) => /Content Security Policy/.test(text)),
    page.problems.join('\n'),
  );
  page.problems = [];
});

await test('a damaged page says so', async (open) => {
  const pages = process.env.STROBE_PAGES;
  const sound = fs.readFileSync(path.join(pages, 'small.html'), 'utf8');
  const begin = sound.indexOf('id="data">') + 10;
  const end = sound.indexOf('<', begin);
  const data = sound.slice(begin, end);
  const damages = {
    cut: data.slice(0, data.length / 2),
    changed: `${data.slice(0, 100)}AAAA${data.slice(104)}`,
    none: '',
    'not base64': '%%%%',
  };
  for (const [name, damaged] of Object.entries(damages)) {
    fs.writeFileSync(
      path.join(pages, 'damaged.html'),
      sound.slice(0, begin) + damaged + sound.slice(end),
    );
    const page = await open('damaged', {isSound: false});
    await page.waitForSelector('#problem:not([hidden])');
    assert.match(await page.textContent('#problem'), /^This profile cannot be shown: /, name);
    page.problems = [];
  }
});
