// Calls: the tree as a table that unfolds row by row. It has what the flame graph has, for the
// keyboard and for screen readers.

const MAX_CHILDREN_SHOWN = 100;
const UNFOLD_SHARE = 0.6; // of its caller: a call that has as much is unfolded at first
const MAX_UNFOLDED = 12;
const MAX_INDENT = 40; // levels

class CallsView {
  /**
   * @param {PageProfile} profile @param {Details} details @param {() => string} unit
   * @param {(node: number) => void} onSelect
   */
  constructor(profile, details, unit, onSelect) {
    this.profile = profile;
    this.details = details;
    this.unit = unit;
    this.onSelect = onSelect;
    this.table = byId('calls-table');
    this.active = 0;
    this.measured = Measured.empty();
    this.unfolded = new Set([0]);
    this.table.addEventListener('keydown', (event) => this.key(event));
    this.table.addEventListener('click', (event) => {
      const row = event.target.closest('tr[data-node]');
      if (!row) return;
      if (event.target.closest('.twist')) this.toggle(Number(row.dataset.node));
      this.activate(Number(row.dataset.node));
    });
  }

  /** @param {Measured} measured */
  show(measured) {
    const isOther = this.measured?.tree !== measured.tree;
    this.measured = measured;
    if (isOther) {
      this.unfolded = new Set([0]);
      let node = 0;
      for (let i = 0; i < MAX_UNFOLDED; i++) {
        const [first] = this.childrenOf(node);
        if (
          first === undefined ||
          (node !== 0 && this.weight(first) < UNFOLD_SHARE * this.weight(node))
        )
          break;
        this.unfolded.add(first);
        node = first;
      }
    }
    this.render();
  }

  /** @param {number} node */
  weight(node) {
    return this.measured.now.sizes[node] + (this.measured.base?.sizes[node] ?? 0);
  }

  /** @param {number} node */
  childrenOf(node) {
    return this.measured.tree
      .childrenOf(node)
      .filter((child) => this.weight(child) > 0)
      .sort((a, b) => this.weight(b) - this.weight(a) || a - b);
  }

  render() {
    const {measured} = this;
    const names = [
      'Function',
      'Total',
      'Self',
      ...(measured.base ? ['Base', 'Change of share'] : []),
    ];
    this.table.tHead.replaceChildren(
      element(
        'tr',
        {role: 'row'},
        ...names.map((name) => element('th', {scope: 'col', role: 'columnheader'}, name)),
      ),
    );
    const rows = /** @type {any[]} */ ([]);
    const visit = (node) => {
      const children = this.childrenOf(node);
      children.slice(0, MAX_CHILDREN_SHOWN).forEach((child, i) => {
        rows.push(this.row(child, i + 1, children.length));
        if (this.unfolded.has(child)) visit(child);
      });
    };
    visit(0);
    this.table.tBodies[0].replaceChildren(...rows);
    if (!rows.some((row) => row.tabIndex === 0) && rows.length > 0) rows[0].tabIndex = 0;
  }

  /** @param {number} node @param {number} place among its siblings @param {number} siblings */
  row(node, place, siblings) {
    const {measured} = this;
    const {now, base} = measured;
    const detail = this.details.ofNode(measured, node);
    const hasCallees = this.childrenOf(node).length > 0;
    const isActive = node === this.active;
    const cell = (...content) => element('td', {role: 'gridcell', className: 'number'}, ...content);
    const amount = (value, share, ...more) =>
      cell(
        dataElement(value, formatAmount(value, this.unit())),
        element('small', {}, formatShare(share)),
        ...more,
      );
    return element(
      'tr',
      {
        role: 'row',
        tabIndex: isActive ? 0 : -1,
        className: isActive ? 'chosen' : '',
        'aria-level': measured.tree.depth[node],
        'aria-posinset': place,
        'aria-setsize': siblings,
        'aria-expanded': hasCallees ? String(this.unfolded.has(node)) : null,
        'aria-selected': String(isActive),
        'data-node': node,
      },
      this.nameCell(node, detail, hasCallees),
      amount(detail.total, detail.share, barElement(detail.share)),
      amount(detail.self, now.shareOf(detail.self)),
      base ? amount(detail.baseTotal, detail.baseShare) : null,
      detail.difference ? cell(changeElement(detail.difference)) : null,
    );
  }

  /** @param {number} node @param {Detail} detail @param {boolean} hasCallees */
  nameCell(node, detail, hasCallees) {
    const {name, short, isPseudo} = this.profile.functions[detail.function];
    const twist = !hasCallees ? '' : this.unfolded.has(node) ? '▾' : '▸';
    const cell = element(
      'td',
      {role: 'gridcell', className: 'tree-name', title: name},
      element('span', {className: 'twist', 'aria-hidden': 'true'}, twist),
      bdi(short),
      badge('inlined', detail.isInlined),
      badge('not code', isPseudo),
    );
    const depth = Math.min(this.measured.tree.depth[node] - 1, MAX_INDENT);
    cell.style.setProperty('--depth', String(depth));
    return cell;
  }

  /** @param {number} node */
  toggle(node) {
    if (this.unfolded.has(node)) this.unfolded.delete(node);
    else this.unfolded.add(node);
    this.render();
  }

  /** @param {number} node */
  activate(node) {
    this.active = node;
    for (const row of this.table.tBodies[0].rows) {
      const isActive = Number(row.dataset.node) === node;
      row.tabIndex = isActive ? 0 : -1;
      row.setAttribute('aria-selected', String(isActive));
      row.classList.toggle('chosen', isActive);
      if (isActive) row.focus({preventScroll: false});
    }
    this.onSelect(node);
  }

  /** As in every tree of rows. @param {KeyboardEvent} event */
  key(event) {
    const row = event.target instanceof Element ? event.target.closest('tr') : null;
    if (!row?.dataset.node || event.ctrlKey || event.metaKey || event.altKey) return;
    const node = Number(row.dataset.node);
    const rows = [...this.table.tBodies[0].rows];
    const place = rows.indexOf(row);
    const isUnfolded = this.unfolded.has(node);
    const hasCallees = this.childrenOf(node).length > 0;
    const nodeAt = (index) => Number(rows[index]?.dataset.node ?? node);
    const targets = {
      ArrowDown: () => nodeAt(place + 1),
      ArrowUp: () => nodeAt(place - 1),
      Home: () => nodeAt(0),
      End: () => nodeAt(rows.length - 1),
      ArrowRight: () => (isUnfolded ? (this.childrenOf(node)[0] ?? node) : node),
      ArrowLeft: () => (isUnfolded ? node : this.measured.tree.parent[node] || node),
      Enter: () => node,
      ' ': () => node,
    };
    if (!(event.key in targets)) return;
    event.preventDefault();
    const target = targets[event.key]();
    const turns = {ArrowRight: !isUnfolded, ArrowLeft: isUnfolded, Enter: true, ' ': true};
    if (hasCallees && turns[event.key]) this.toggle(node);
    this.activate(target);
  }
}
