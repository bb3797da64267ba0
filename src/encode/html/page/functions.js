// Functions: the table of all functions, by what they have themselves and with their callees.

const ROWS_AT_FIRST = 100;
const ROWS_MORE = 400;

/**
 * What the table is sorted by.
 * @typedef {'name'|'module'|'self'|'total'|'base'|'change'} SortKey
 */

class FunctionsView {
  /**
   * @param {PageProfile} profile @param {Details} details @param {() => string} unit
   * @param {(index: number) => void} onChoose a function
   */
  constructor(profile, details, unit, onChoose) {
    this.profile = profile;
    this.details = details;
    this.unit = unit;
    this.onChoose = onChoose;
    this.chosen = -1;
    this.measured = Measured.empty();
    this.sums = new FunctionSums(this.measured, 0);
    /** @type {Uint8Array|null} */
    this.matches = null;
    /** The largest shares of the table, which have the longest bars. */
    this.largest = {self: 1, total: 1};
    /** @type {SortKey} */
    this.sortBy = 'self';
    this.isDescending = true;
    this.shown = ROWS_AT_FIRST;
    this.table = byId('functions-table');
    this.more = byId('functions-more');
    this.more.addEventListener('click', () => {
      this.shown += ROWS_MORE;
      this.render();
    });
    this.table.addEventListener('keydown', (event) => this.key(event));
  }

  /** @param {Measured} measured @param {FunctionSums} sums @param {Uint8Array|null} matches */
  show(measured, sums, matches) {
    this.measured = measured;
    this.sums = sums;
    this.matches = matches;
    const isOfComparison = this.sortBy === 'base' || this.sortBy === 'change';
    if (measured.base === null && isOfComparison) this.sortBy = 'self';
    this.shown = ROWS_AT_FIRST;
    this.render();
  }

  /** The functions that have anything, in the order of the table. */
  ordered() {
    const {now, base} = this.sums;
    const {functions, modules} = this.profile;
    const baseTotal = (i) => base?.total[i] ?? 0;
    const change = (i) => {
      const {difference, share} = this.measured.compared(now.total[i], baseTotal(i));
      return difference?.change ?? share;
    };
    const keys = {
      name: (i) => functions[i].short,
      module: (i) => modules[functions[i].module].name,
      self: (i) => Math.abs(now.self[i]),
      total: (i) => Math.abs(now.total[i]),
      base: (i) => Math.abs(baseTotal(i)),
      change,
    };
    const found = [];
    for (let i = 0; i < functions.length; i++) {
      if (this.matches && !this.matches[i]) continue;
      const isThere = now.total[i] !== 0 || now.self[i] !== 0 || baseTotal(i) !== 0;
      if (isThere) found.push({index: i, key: keys[this.sortBy](i)});
    }
    const sign = this.isDescending ? -1 : 1;
    const order = (a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : 0);
    const total = ({index}) => Math.abs(now.total[index]);
    found.sort((a, b) => order(a, b) || total(b) - total(a) || a.index - b.index);
    return found.map(({index}) => index);
  }

  /** @returns {{key: SortKey, name: string}[]} */
  columns() {
    const isComparison = this.measured.base !== null;
    /** @type {[SortKey, string, boolean][]} */
    const all = [
      ['name', 'Function', true],
      ['self', 'Self', true],
      ['total', 'Total', true],
      ['base', 'Base total', isComparison],
      ['change', 'Change', isComparison],
      ['module', 'Module', true],
    ];
    return all.filter(([, , isShown]) => isShown).map(([key, name]) => ({key, name}));
  }

  render() {
    const order = this.ordered();
    const {now} = this.measured;
    const largest = (amounts) => order.reduce((most, i) => Math.max(most, Math.abs(amounts[i])), 0);
    this.largest.self = now.shareOf(largest(this.sums.now.self)) || 1;
    this.largest.total = now.shareOf(largest(this.sums.now.total)) || 1;
    const columns = this.columns();
    const heads = columns.map((column) => this.head(column));
    const keys = columns.map(({key}) => key);
    const rows = order.slice(0, this.shown).map((index) => this.row(index, keys));
    this.table.tHead.replaceChildren(element('tr', {}, ...heads));
    this.table.tBodies[0].replaceChildren(...rows);
    this.table.setAttribute('aria-rowcount', String(order.length + 1));
    const left = order.length - this.shown;
    this.more.hidden = left <= 0;
    const all = counted(order.length, 'function');
    this.more.textContent = `Show ${Math.min(ROWS_MORE, left)} more of ${all}`;
  }

  /** @param {{key: SortKey, name: string}} column */
  head({key, name}) {
    const isSorted = this.sortBy === key;
    const sort = !isSorted ? 'none' : this.isDescending ? 'descending' : 'ascending';
    const arrow = !isSorted ? '' : this.isDescending ? ' ▾' : ' ▴';
    return element(
      'th',
      {scope: 'col', className: key, 'aria-sort': sort},
      element(
        'button',
        {type: 'button', onclick: () => this.sort(key)},
        name,
        element('span', {'aria-hidden': 'true'}, arrow),
      ),
    );
  }

  /** @param {SortKey} key */
  sort(key) {
    const isText = key === 'name' || key === 'module';
    this.isDescending = this.sortBy === key ? !this.isDescending : !isText;
    this.sortBy = key;
    this.render();
    this.table.querySelector(`th.${key} button`).focus();
  }

  /** @param {number} index of a function @param {SortKey[]} keys of the columns */
  row(index, keys) {
    const detail = this.details.ofFunction(this.measured, this.sums, index);
    const {now} = this.measured;
    const {self, total} = this.largest;
    const cells = {
      name: () => this.nameCell(index),
      module: () => this.moduleCell(index),
      self: () => this.amountCell('self', detail.self, now.shareOf(detail.self) / self, ''),
      total: () =>
        this.amountCell('total', detail.total, detail.share / total, formatError(detail.error)),
      base: () => this.amountCell('base', detail.baseTotal, detail.baseShare / total, ''),
      change: () =>
        element('td', {className: 'number'}, detail.difference && changeElement(detail.difference)),
    };
    const isChosen = index === this.chosen;
    return element(
      'tr',
      {
        className: isChosen ? 'chosen' : '',
        'aria-current': isChosen ? 'true' : null,
        'data-function': index,
      },
      ...keys.map((key) => cells[key]()),
    );
  }

  /** @param {number} index of a function */
  nameCell(index) {
    const {name, short, isPseudo} = this.profile.functions[index];
    const onclick = () => this.onChoose(index);
    const properties = {type: 'button', className: 'link', title: name, onclick};
    const button = element('button', properties, bdi(short));
    return element('th', {scope: 'row'}, button, badge('not code', isPseudo));
  }

  /** @param {number} index of a function */
  moduleCell(index) {
    const {name, path} = this.profile.modules[this.profile.functions[index].module];
    return element('td', {className: 'module', title: path}, bdi(name));
  }

  /**
   * In a comparison the shares count.
   * @param {SortKey} key @param {number} value @param {number} bar its length, at most 1
   * @param {string} error
   */
  amountCell(key, value, bar, error) {
    const {now, base} = this.measured;
    const text = formatAmount(value, this.unit());
    const share = formatShare((key === 'base' && base ? base : now).shareOf(value));
    return element(
      'td',
      {className: `number ${key}`, title: base ? text : ''},
      dataElement(value, base ? share : text),
      base ? null : element('small', {}, share),
      error ? element('small', {className: 'error'}, error) : null,
      barElement(bar),
    );
  }

  /** Marks a function. @param {number} index */
  choose(index) {
    this.chosen = index;
    for (const row of this.table.tBodies[0].rows) {
      const isChosen = Number(row.dataset.function) === index;
      row.classList.toggle('chosen', isChosen);
      if (isChosen) row.setAttribute('aria-current', 'true');
      else row.removeAttribute('aria-current');
    }
  }

  /** Up and down go from function to function. @param {KeyboardEvent} event */
  key(event) {
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    const buttons = [...this.table.tBodies[0].querySelectorAll('button')];
    const place = buttons.findIndex((button) => button === document.activeElement);
    if (place < 0) return;
    event.preventDefault();
    buttons[place + (event.key === 'ArrowDown' ? 1 : -1)]?.focus();
  }
}
