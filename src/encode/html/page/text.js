// How numbers look, and how elements are made. Every text of a profile reaches the page as the
// content of a text node or of an attribute, never as HTML.

/**
 * Control characters, and those that change the direction of the text around them, as escapes: a
 * name must not be able to hide or to reorder what stands beside it.
 * @param {string} text
 */
function visible(text) {
  return text.replace(
    /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

/** @param {number} value @param {number} digits significant ones, at most 3 before the point */
function shortNumber(value, digits = 3) {
  if (value === 0) return '0';
  const before = Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toFixed(Math.max(0, Math.min(digits - before, 6)));
}

/** @type {Record<string, [number, string][]>} the largest first */
const UNITS = {
  nanoseconds: [
    [1e9, 's'],
    [1e6, 'ms'],
    [1e3, 'µs'],
    [1, 'ns'],
  ],
  bytes: [
    [2 ** 30, 'GiB'],
    [2 ** 20, 'MiB'],
    [2 ** 10, 'KiB'],
    [1, 'B'],
  ],
};
const MAX_EXACT_COUNT = 1e4;
const MINUS = '\u2212';

/**
 * "1.23 s", "4.5 MiB", "120 k".
 * @param {number} value @param {string} unit as in the profile: nanoseconds, bytes, count, …
 */
function formatAmount(value, unit) {
  if (value === 0) return '0';
  if (value < 0) return `${MINUS}${formatAmount(-value, unit)}`;
  const steps = UNITS[unit];
  if (steps) {
    const [divisor, name] = steps.find(([size]) => value >= size) ?? steps[steps.length - 1];
    return `${divisor === 1 ? Math.round(value) : shortNumber(value / divisor)} ${name}`;
  }
  const suffix = unit === 'count' ? '' : ` ${unit}`;
  if (value < MAX_EXACT_COUNT) return `${Math.round(value)}${suffix}`;
  const [divisor, letter] = value < 1e6 ? [1e3, 'k'] : value < 1e9 ? [1e6, 'M'] : [1e9, 'G'];
  return `${shortNumber(value / divisor)} ${letter}${suffix}`;
}

/** "12.3 %" @param {number} share */
function formatShare(share) {
  if (!Number.isFinite(share)) return '–';
  if (share === 0) return '0 %';
  const magnitude = Math.abs(share * 100);
  const sign = share < 0 ? MINUS : '';
  if (magnitude < 0.005) return `${sign}<0.01 %`;
  return `${sign}${magnitude.toFixed(magnitude < 1 ? 2 : 1)} %`;
}

/** "± 0.4": of a share, in percent. @param {number} error */
function formatError(error) {
  if (!Number.isFinite(error)) return '± unknown';
  const percent = error * 100;
  return `± ${percent.toFixed(percent < 0.1 ? 2 : 1)}`;
}

/** @param {number} count @param {string} one @param {string} many */
function counted(count, one, many = `${one}s`) {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}

/** Seconds since the profile began, from nanoseconds. @param {number} ns */
function formatTime(ns) {
  return `${(ns / 1e9).toFixed(ns < 1e8 ? 4 : 3)} s`;
}

/**
 * An element. A property named `on…` listens, one that the element has is set, any other is an
 * attribute; null leaves it out.
 * @param {string} tag @param {Record<string, any>} [properties]
 * @param {...(Node|string|null)} children
 * @returns {any}
 */
function element(tag, properties = {}, ...children) {
  const result = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith('on')) result.addEventListener(name.slice(2), value);
    else if (name in result) Object.assign(result, {[name]: value});
    else result.setAttribute(name, value);
  }
  result.append(...children.filter((child) => child !== null));
  return result;
}

/** The element of page.html with that id. @param {string} id @returns {any} */
function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
}

/** A text whose direction does not change the text around it. @param {string} text */
function bdi(text) {
  return element('bdi', {dir: 'ltr'}, text);
}

/**
 * A number as people read it, and exactly as its value.
 * @param {number} value @param {string} text
 */
function dataElement(value, text) {
  return element('data', {value: String(value)}, text);
}

/** Says something to those who listen to the page. @param {string} text */
function announce(text) {
  byId('status').textContent = text;
}
