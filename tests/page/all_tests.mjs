// Every case, in one browser: node all_tests.mjs [SUBJECT...], as page.py calls it.
import {finish} from './browser.mjs';

const subjects = ['tables', 'flame', 'comparison', 'time', 'hostile', 'looks'];
const chosen = process.argv.length > 2 ? process.argv.slice(2) : subjects;
for (const subject of chosen) {
  console.log(`== ${subject}`);
  await import(`./${subject}_test.mjs`);
}
await finish();
