// Opens each file in speedscope's page, and prints a line of JSON for each: its list of profiles, the one that is shown first, and the
// table of functions of that one.   node speedscope.js CHROMIUM NODE_MODULES FILE...
const fs = require('fs');
const http = require('http');
const path = require('path');

const [chromium, modules, ...files] = process.argv.slice(2);
const playwright = require(path.join(modules, 'playwright-core'));
const release = path.join(modules, 'speedscope/dist/release');
const TYPES = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css'};
const TIMEOUT_MS = 60000;

// The page, and below /profile/ the files.
const server = http.createServer((request, response) => {
  const place = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
  const profile = /^\/profile\/(\d+)\//.exec(place);
  const file = profile ? files[Number(profile[1])] : path.join(release, path.normalize(place));
  if (!file || !fs.existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, {'content-type': TYPES[path.extname(file)] || 'application/octet-stream'}).end(fs.readFileSync(file));
});

// The rows that are there now. Long tables have only those that are in view.
const rows = () => [...document.querySelectorAll('tr')].map((row) => [...row.querySelectorAll('td')].map((cell) => cell.innerText));

async function read(browser, index) {
  const page = await browser.newPage({viewport: {width: 1400, height: 1200}});
  page.setDefaultTimeout(TIMEOUT_MS);
  const errors = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('dialog', (dialog) => { errors.push(dialog.message()); dialog.dismiss(); });
  const origin = `http://127.0.0.1:${server.address().port}`;
  const url = `${origin}/profile/${index}/${path.basename(files[index])}`;
  await page.goto(`${origin}/index.html#profileURL=${encodeURIComponent(url)}`);
  await page.getByText('Sandwich').waitFor();
  await page.getByText('Sandwich').click();
  await page.getByText('Symbol Name').waitFor();
  const shown = await page.evaluate(() => document.body.innerText.split('\n').find((line) => /,.*\(\d+\/\d+\)$/.test(line)) || '');
  const cells = await page.evaluate(rows);
  await page.close();
  return {
    file: files[index], errors, shown,
    profiles: cells.filter((row) => row.length === 3 && /^\d+$/.test(row[0])).map((row) => row.slice(1)),
    table: Object.fromEntries(cells.filter((row) => row.length === 3 && !/^\d+$/.test(row[0])).map((row) => [row[2], row.slice(0, 2)])),
  };
}

async function main() {
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const browser = await playwright.chromium.launch({executablePath: chromium, args: ['--no-sandbox', '--headless=new'], timeout: TIMEOUT_MS});
  for (let i = 0; i < files.length; ++i) console.log(JSON.stringify(await read(browser, i)));
  await browser.close();
  server.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
