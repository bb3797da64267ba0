// Sandwich: the callers of a chosen function above it, and what it calls below.

const MAX_NEIGHBOURS = 50;
const NO_FUNCTION = -1;

class Sandwich {
  /**
   * @param {PageProfile} profile @param {FlameHost} host @param {Details} details
   * @param {() => string} unit @param {(index: number) => void} onChoose
   */
  constructor(profile, host, details, unit, onChoose) {
    this.profile = profile;
    this.details = details;
    this.unit = unit;
    this.onChoose = onChoose;
    this.callers = new FlameGraph(byId('callers-graph'), 'Callers of the function', host, 'up');
    this.callees = new FlameGraph(byId('callees-graph'), 'What the function calls', host, 'down');
  }

  /** @param {Measured} measured @param {number} chosen @param {'both'|'now'|'base'} by */
  show(measured, chosen, by) {
    const callers = callersOf(measured, chosen);
    const callees = calleesOf(measured, chosen);
    this.callers.show(callers, by);
    this.callees.show(callees, by);
    this.fill(byId('callers-table'), callers, 'Called by', '(nothing: outermost)');
    this.fill(byId('callees-table'), callees, 'Calls', '(itself)');
  }

  /**
   * The functions beside the chosen one; `rest` is what it has without one.
   * @param {Measured} measured @param {string} rest
   * @returns {{index: number, name: string, isInlined: boolean, now: number, base: number}[]}
   */
  neighbours({tree, now, base}, rest) {
    const [root] = tree.childrenOf(0);
    if (root === undefined) return [];
    const selfs = {now: now.self[root], base: base?.self[root] ?? 0};
    const found = new Map();
    found.set(NO_FUNCTION, {index: NO_FUNCTION, name: rest, isInlined: false, ...selfs});
    for (const node of tree.childrenOf(root)) {
      const index = functionOfFrame(tree.frame[node]);
      const {short} = this.profile.functions[index];
      const isInlined = isInlinedFrame(tree.frame[node]);
      const entry = found.get(index) ?? {index, name: short, isInlined, now: 0, base: 0};
      entry.isInlined = entry.isInlined && isInlined;
      entry.now += now.totals[node];
      entry.base += base?.totals[node] ?? 0;
      found.set(index, entry);
    }
    const size = (entry) => Math.abs(entry.now) + Math.abs(entry.base);
    return [...found.values()]
      .filter((entry) => entry.now !== 0 || entry.base !== 0)
      .sort((a, b) => size(b) - size(a) || a.index - b.index)
      .slice(0, MAX_NEIGHBOURS);
  }

  /** @param {any} table @param {Measured} measured @param {string} title @param {string} rest */
  fill(table, measured, title, rest) {
    const isComparison = measured.base !== null;
    const names = ['Function', ...(isComparison ? ['Now', 'Base', 'Change'] : ['Amount'])];
    table.caption.textContent = title;
    table.tHead.replaceChildren(
      element(
        'tr',
        {},
        ...names.map((name) => element('th', {scope: 'col', className: name.toLowerCase()}, name)),
      ),
    );
    const rows = this.neighbours(measured, rest).map((entry) => this.row(measured, entry));
    table.tBodies[0].replaceChildren(...rows);
  }

  /**
   * @param {Measured} measured
   * @param {{index: number, name: string, isInlined: boolean, now: number, base: number}} entry
   */
  row(measured, {index, name, isInlined, now, base}) {
    const {share, baseShare, difference} = measured.compared(now, base);
    const title = this.profile.functions[index]?.name;
    const onclick = () => this.onChoose(index);
    const properties = {type: 'button', className: 'link', title, onclick};
    const cell = (key, value, part) =>
      element(
        'td',
        {className: `number ${key}`},
        dataElement(value, formatAmount(value, this.unit())),
        element('small', {}, formatShare(part)),
      );
    return element(
      'tr',
      {},
      element(
        'th',
        {scope: 'row'},
        index === NO_FUNCTION ? name : element('button', properties, bdi(name)),
        badge('inlined', isInlined),
      ),
      cell('total', now, share),
      difference ? cell('base', base, baseShare) : null,
      difference ? element('td', {className: 'number'}, changeElement(difference)) : null,
    );
  }
}
