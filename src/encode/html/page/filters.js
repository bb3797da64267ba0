// Filters: which threads and labels count. Within a key one of the chosen values is enough; of
// several keys each must fit.

const MAX_VALUES_SHOWN = 200;
const MISSING = '(none)';

/** One key of labels, with its values. */
class Facet {
  /** @param {string} name @param {string[]} valueOfSet of each label set */
  constructor(name, valueOfSet) {
    this.name = name;
    this.valueOfSet = valueOfSet;
    /** @type {Set<string>} those that count; all if empty */
    this.chosen = new Set();
  }

  /** How it is shown that some are chosen. */
  summary() {
    if (this.chosen.size === 0) return 'all';
    return this.chosen.size === 1 ? [...this.chosen][0] : `${this.chosen.size} chosen`;
  }
}

/** The facets of a profile: threads first, then each other key. @param {PageProfile} profile */
function facetsOf(profile) {
  const get = (set, key) => set.find((label) => label.key === key)?.value;
  const threads = profile.labelSets.map((set) => {
    const id = get(set, 'thread id');
    const name = get(set, 'thread name');
    if (id === undefined && name === undefined) return MISSING;
    return name ? (id === undefined ? name : `${name} (${id})`) : `${id}`;
  });
  const names = profile.labelSets.map((set) => get(set, 'thread name') ?? MISSING);
  const facets = [new Facet('Thread', threads)];
  // A name that several threads share is worth a choice of its own.
  if (new Set(names).size < new Set(threads).size && new Set(names).size > 1)
    facets.push(new Facet('Thread name', names));
  const keys = new Set(profile.labelSets.flatMap((set) => set.map(({key}) => key)));
  for (const key of [...keys].sort()) {
    if (key === 'thread id' || key === 'thread name') continue;
    facets.push(
      new Facet(
        key,
        profile.labelSets.map((set) => get(set, key) ?? MISSING),
      ),
    );
  }
  return facets.filter(({valueOfSet}) => new Set(valueOfSet).size > 1);
}

/** Of each label set: 1 if its rows count. @param {Facet[]} facets @param {number} setCount */
function includedSets(facets, setCount) {
  const includes = new Uint8Array(setCount).fill(1);
  for (const {chosen, valueOfSet} of facets) {
    if (chosen.size === 0) continue;
    for (let set = 0; set < setCount; set++) if (!chosen.has(valueOfSet[set])) includes[set] = 0;
  }
  return includes;
}

/** The buttons of the facets, and the list that each opens. */
class Filters {
  /**
   * @param {HTMLElement} host of the buttons @param {HTMLElement} chips of what is chosen
   * @param {Facet[]} facets
   * @param {() => Float64Array} amountsOfSets what each label set has, without any filter
   * @param {() => string} unit @param {() => void} onChange
   */
  constructor(host, chips, facets, amountsOfSets, unit, onChange) {
    this.chips = chips;
    this.amountsOfSets = amountsOfSets;
    this.unit = unit;
    this.onChange = onChange;
    this.facets = facets;
    this.buttons = facets.map((facet, i) => {
      const list = element('div', {
        className: 'popover',
        popover: 'auto',
        id: `facet-${i}`,
        role: 'dialog',
        'aria-label': facet.name,
      });
      const button = element('button', {
        type: 'button',
        className: 'facet',
        'aria-haspopup': 'dialog',
        'aria-expanded': 'false',
        onclick: () => list.togglePopover(),
      });
      list.addEventListener('toggle', (event) => {
        const isOpen = event.newState === 'open';
        button.setAttribute('aria-expanded', String(isOpen));
        if (isOpen) this.open(facet, list, button);
      });
      host.append(button, list);
      return button;
    });
    this.update();
  }

  /** Shows what is chosen. */
  update() {
    this.facets.forEach((facet, i) => {
      this.buttons[i].replaceChildren(
        `${facet.name}: `,
        element('bdi', {className: 'value'}, facet.summary()),
      );
      this.buttons[i].classList.toggle('active', facet.chosen.size > 0);
    });
    this.chips.replaceChildren(
      ...this.facets.flatMap((facet) =>
        [...facet.chosen].map((value) =>
          element(
            'button',
            {
              type: 'button',
              className: 'chip',
              'aria-label': `Remove ${facet.name}: ${value}`,
              onclick: () => {
                facet.chosen.delete(value);
                this.changed();
              },
            },
            `${facet.name}: `,
            element('bdi', {}, value),
            element('span', {'aria-hidden': 'true'}, ' ×'),
          ),
        ),
      ),
    );
  }

  changed() {
    this.update();
    this.onChange();
  }

  /** @param {Facet} facet @param {HTMLElement} list @param {HTMLElement} button */
  open(facet, list, button) {
    const box = button.getBoundingClientRect();
    list.style.left = `${Math.max(8, Math.min(box.left, innerWidth - list.offsetWidth - 8))}px`;
    list.style.top = `${box.bottom + 6}px`;
    const amounts = this.amountsOfSets();
    /** @type {Map<string, number>} */
    const sums = new Map();
    facet.valueOfSet.forEach((value, set) =>
      sums.set(value, (sums.get(value) ?? 0) + amounts[set]),
    );
    const all = [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    const total = all.reduce((sum, [, amount]) => sum + amount, 0);
    const rows = element('div', {className: 'rows'});
    const fill = (part) => {
      const wanted = all.filter(([value]) => value.toLowerCase().includes(part.toLowerCase()));
      rows.replaceChildren(
        ...wanted
          .slice(0, MAX_VALUES_SHOWN)
          .map(([value, amount]) => this.valueRow(facet, value, amount, total)),
      );
      if (wanted.length > MAX_VALUES_SHOWN)
        rows.append(
          element(
            'p',
            {className: 'hint'},
            `${wanted.length - MAX_VALUES_SHOWN} more: type a part of the name`,
          ),
        );
    };
    fill('');
    const find = element('input', {
      type: 'search',
      placeholder: 'Find',
      'aria-label': `Find in ${facet.name}`,
      oninput: () => fill(find.value),
    });
    const reset = element(
      'button',
      {
        type: 'button',
        onclick: () => {
          facet.chosen.clear();
          fill(find.value);
          this.changed();
        },
      },
      'All',
    );
    list.replaceChildren(element('div', {className: 'head'}, find, reset), rows);
    find.focus();
  }

  /** @param {Facet} facet @param {string} value @param {number} amount @param {number} total */
  valueRow(facet, value, amount, total) {
    const share = total > 0 ? amount / total : 0;
    const input = element('input', {
      type: 'checkbox',
      checked: facet.chosen.has(value),
      onchange: () => {
        if (input.checked) facet.chosen.add(value);
        else facet.chosen.delete(value);
        this.changed();
      },
    });
    return element(
      'label',
      {},
      input,
      element('bdi', {className: 'text'}, value),
      element(
        'span',
        {className: 'amount'},
        `${formatAmount(amount, this.unit())} · ${formatShare(share)}`,
      ),
      barElement(share),
    );
  }
}

/** A share as a bar. @param {number} share @param {string} [kind] */
function barElement(share, kind = '') {
  const bar = element('span', {className: `bar ${kind}`, 'aria-hidden': 'true'}, element('i'));
  bar.firstChild.style.width = `${Math.min(1, Math.abs(share)) * 100}%`;
  return bar;
}
