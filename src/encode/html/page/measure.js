// What is measured of which rows: amounts per node, per function and per line, with the number of
// samples behind them.

/**
 * What is looked at.
 * @typedef {object} Subject
 * @property {number} type the value type
 * @property {Uint8Array} includes of each label set: 1 if its rows count
 * @property {Span|null} window only moments in it, in ns since the begin
 * @property {'none'|'base'|'rest'} comparison
 */

/**
 * The amount of each row, and the samples that it stands on.
 * @typedef {{amounts: Float64Array, counts: Float64Array}} RowAmounts
 */

/**
 * A line of a function.
 * @typedef {{file: string, line: number, self: number, total: number}} LineAmounts
 */

/**
 * The column that counts the samples of a value type: those are of CPU time, or of the only other
 * type. -1 if there is none.
 * @param {PageProfile} profile @param {number} type
 */
function countColumn({types}, type) {
  const column = types.findIndex((one) => one.type === 'samples' && one.unit === 'count');
  return type === column || types[type]?.type === 'cpu' || types.length === 2 ? column : -1;
}

/**
 * A row stands on as many samples as it counts. Samples that stood for several (of a thread whose
 * captures are fewer than its count) are no more than its captures.
 * @param {PageProfile} profile @param {Side} side @param {Subject} subject @returns {RowAmounts}
 */
function amountsOfRows(profile, side, {type, includes}) {
  const {labels, values, node} = side.rows;
  const amounts = new Float64Array(node.length);
  const counts = new Float64Array(node.length);
  const column = countColumn(profile, type);
  if (values.length === 0) return {amounts, counts};
  const counted = new Float64Array(side.threads.length);
  if (column >= 0)
    for (let row = 0; row < node.length; row++)
      counted[side.threadOfSet[labels[row]]] += values[column][row];
  const ratio = side.threads.map(({captures}, i) =>
    captures > 0 && captures < counted[i] ? captures / counted[i] : 1,
  );
  for (let row = 0; row < node.length; row++) {
    const value = values[type][row];
    if (value === 0 || !includes[labels[row]]) continue;
    amounts[row] = value;
    const thread = side.threadOfSet[labels[row]];
    if (column >= 0) counts[row] = values[column][row] * (thread < 0 ? 1 : ratio[thread]);
  }
  return {amounts, counts};
}

/**
 * Each moment is one sample.
 * @param {PageProfile} profile @param {Subject} subject @param {boolean} isInside whether the
 *     moments in the window count, or all others
 * @returns {RowAmounts}
 */
function amountsOfMoments(profile, {type, includes, window}, isInside) {
  const {labels, node} = profile.sides[0].rows;
  const amounts = new Float64Array(node.length);
  const counts = new Float64Array(node.length);
  const {row, time, values} = profile.moments;
  const {from, to} = window ?? {from: 0, to: Infinity};
  for (let i = 0; i < row.length; i++) {
    if (
      (time[i] >= from && time[i] < to) !== isInside ||
      !includes[labels[row[i]]] ||
      values[type][i] === 0
    )
      continue;
    amounts[row[i]] += values[type][i] * profile.momentStride;
    counts[row[i]]++;
  }
  return {amounts, counts};
}

/** What no sample says whose it is. */
const UNKNOWN_FRAMES = ['[lost]', '[residual]'];

/** One side of what is shown, summed over a tree. */
class Sums {
  /**
   * @param {CallTree} tree @param {Float64Array} self of each node
   * @param {Basis} basis of the whole @param {number} [whole] the sum of the sizes of all amounts
   */
  constructor(tree, self, basis, whole) {
    this.self = self;
    this.totals = tree.totals(self);
    this.sum = this.totals[0];
    this.basis = basis;
    /** Without signs: how large nodes are. */
    this.sizes = self.some((amount) => amount < 0) ? tree.totals(self.map(Math.abs)) : this.totals;
    /** What shares are of. */
    this.whole = whole ?? this.sizes[0];
  }

  /** @param {number} amount */
  shareOf(amount) {
    return this.whole > 0 ? amount / this.whole : 0;
  }
}

/**
 * @param {PageProfile} profile @param {Side} side @param {RowAmounts} rows
 * @param {Int32Array} nodeOf @param {CallTree} tree
 */
function samplesOf(profile, side, {amounts, counts}, nodeOf, tree) {
  const threadAmounts = new Float64Array(side.threads.length + 1); // the last for rows of no thread
  const threadCounts = new Float64Array(side.threads.length + 1);
  let unknown = 0;
  for (let row = 0; row < amounts.length; row++) {
    if (amounts[row] === 0) continue;
    const node = nodeOf[side.rows.node[row]];
    const code = profile.functions[functionOfFrame(tree.frame[node])];
    if (code?.isPseudo && UNKNOWN_FRAMES.includes(code.name)) {
      unknown += Math.abs(amounts[row]);
      continue;
    }
    const thread = side.threadOfSet[side.rows.labels[row]];
    threadAmounts[thread < 0 ? side.threads.length : thread] += amounts[row];
    threadCounts[thread < 0 ? side.threads.length : thread] += counts[row];
  }
  return basisOf(threadAmounts, threadCounts, unknown);
}

/** What is shown: a tree, and what its nodes have now and, in a comparison, in the base. */
class Measured {
  /** @param {CallTree} tree @param {Sums} now @param {Sums|null} base */
  constructor(tree, now, base) {
    this.tree = tree;
    this.now = now;
    this.base = base;
  }

  /** Of nothing. */
  static empty() {
    const tree = new CallTree().finish();
    return new Measured(tree, new Sums(tree, new Float64Array(1), NO_BASIS), null);
  }

  /**
   * How wide each node is. In a comparison: by its share of one side, or the mean of both, so that
   * nothing is hidden that only one of them has.
   * @param {'both'|'now'|'base'} by @returns {Float64Array}
   */
  widths(by) {
    const {now, base} = this;
    if (!base || by === 'now') return now.sizes;
    if (by === 'base') return base.sizes;
    return now.sizes.map(
      (amount, node) => (now.shareOf(amount) + base.shareOf(base.sizes[node])) / 2,
    );
  }

  /**
   * The amounts of a function or node as shares, with what is known of them.
   * @param {number} now @param {number} base
   */
  compared(now, base) {
    const share = this.now.shareOf(now);
    if (!this.base)
      return {share, error: errorOf(share, this.now.basis), difference: null, baseShare: 0};
    const baseShare = this.base.shareOf(base);
    return {
      share,
      error: errorOf(share, this.now.basis),
      baseShare,
      difference: difference(share, this.now.basis, baseShare, this.base.basis),
    };
  }

  /** @param {number} node */
  node(node) {
    const now = this.now.totals[node];
    const base = this.base?.totals[node] ?? 0;
    return {
      total: now,
      self: this.now.self[node],
      baseTotal: base,
      baseSelf: this.base?.self[node] ?? 0,
      ...this.compared(now, base),
    };
  }
}

/**
 * The amounts of all functions. A function counts once in each stack, however often it is there.
 */
class FunctionSums {
  /**
   * @param {Measured} measured @param {number} functionCount
   * @param {(FunctionAmounts|null)[]} exact of both sides, where stacks are left out and all of the
   *     others are shown
   */
  constructor(measured, functionCount, [exactNow, exactBase] = [null, null]) {
    const {tree, now, base} = measured;
    const of = (sums) => {
      const self = new Float64Array(functionCount);
      const total = new Float64Array(functionCount);
      for (let node = 1; node < tree.size; node++) {
        const index = functionOfFrame(tree.frame[node]);
        self[index] += sums.self[node];
        if (tree.isOutermost[node]) total[index] += sums.totals[node];
      }
      return {self, total};
    };
    this.now = exactNow ?? of(now);
    this.base = base ? (exactBase ?? of(base)) : null;
  }
}

/** @typedef {{self: Column, total: Column}} FunctionAmounts */

/** What the page shows, from a subject. */
class Measurer {
  /**
   * @param {PageProfile} profile @param {LineTree} lines @param {CallTree} tree
   * @param {Int32Array} nodeOf
   */
  constructor(profile, lines, tree, nodeOf) {
    this.profile = profile;
    this.lines = lines;
    this.tree = tree;
    this.nodeOf = nodeOf;
  }

  /**
   * The sides of a subject: what is shown, and what it is compared with.
   * @param {Subject} subject
   */
  rowAmounts(subject) {
    const {sides} = this.profile;
    const now = subject.window
      ? amountsOfMoments(this.profile, subject, true)
      : amountsOfRows(this.profile, sides[0], subject);
    /** @type {{side: Side, rows: RowAmounts}|null} */
    let base = null;
    if (subject.comparison === 'rest' && subject.window)
      base = {side: sides[0], rows: amountsOfMoments(this.profile, subject, false)};
    else if (subject.comparison === 'base' && sides.length > 1)
      base = {side: sides[1], rows: amountsOfRows(this.profile, sides[1], subject)};
    return {now: {side: sides[0], rows: now}, base};
  }

  /** @param {Subject} subject */
  measure(subject) {
    const {now, base} = this.rowAmounts(subject);
    const sum = ({side, rows}) => {
      const self = new Float64Array(this.tree.size);
      for (let row = 0; row < rows.amounts.length; row++)
        self[this.nodeOf[side.rows.node[row]]] += rows.amounts[row];
      const whole = rows.amounts.reduce((all, amount) => all + Math.abs(amount), 0);
      const basis = samplesOf(this.profile, side, rows, this.nodeOf, this.tree);
      return new Sums(this.tree, self, basis, whole);
    };
    return new Measured(this.tree, sum(now), base ? sum(base) : null);
  }

  /**
   * What functions have in all stacks, those that are left out included, of both sides; null where
   * the rows say it, or only a part of them is looked at.
   * @param {Subject} subject @returns {(FunctionAmounts|null)[]}
   */
  exactFunctions({type, includes, window}) {
    const isAll = !window && includes.every((isIncluded) => isIncluded === 1);
    return this.profile.sides.map((side) => {
      const amounts = side.functionAmounts[type];
      return isAll && amounts && amounts.self.length > 0 ? amounts : null;
    });
  }

  /**
   * The lines of a node, or of all nodes of a function: what each has itself and with its calls.
   * @param {Subject} subject @param {(node: number) => boolean} isWanted of a node of the tree
   * @returns {LineAmounts[]} the largest first
   */
  linesOf(subject, isWanted) {
    const {side, rows} = this.rowAmounts(subject).now;
    const totals = new Float64Array(this.lines.parent.length);
    for (let row = 0; row < rows.amounts.length; row++)
      totals[side.rows.node[row]] += rows.amounts[row];
    const selfs = totals.slice();
    for (let node = totals.length - 1; node > 0; node--)
      totals[this.lines.parent[node]] += totals[node];
    const {sites, functions} = this.profile;
    /** @type {Map<number, LineAmounts>} */
    const found = new Map();
    for (let node = 1; node < totals.length; node++) {
      if (totals[node] === 0 || !isWanted(this.nodeOf[node])) continue;
      const site = this.lines.site[node - 1];
      const line = sites.line[site];
      const entry = found.get(line) ?? {
        file: functions[sites.function[site]].file,
        line,
        self: 0,
        total: 0,
      };
      entry.self += selfs[node];
      if (!this.isBelow(node, site)) entry.total += totals[node];
      found.set(line, entry);
    }
    return [...found.values()].sort((a, b) => b.total - a.total || a.line - b.line);
  }

  /**
   * Whether a caller of `node` is the same function at the same line.
   * @param {number} node @param {number} site
   */
  isBelow(node, site) {
    const {sites} = this.profile;
    for (let caller = this.lines.parent[node]; caller !== 0; caller = this.lines.parent[caller]) {
      const other = this.lines.site[caller - 1];
      if (sites.function[other] === sites.function[site] && sites.line[other] === sites.line[site])
        return true;
    }
    return false;
  }
}

/**
 * What a function calls: the trees below its outermost calls, as one.
 * @param {Measured} measured @param {number} chosen the function @returns {Measured}
 */
function calleesOf({tree, now, base}, chosen) {
  const result = new CallTree();
  const place = new Int32Array(tree.size);
  for (let node = 1; node < tree.size; node++) {
    const isChosen = functionOfFrame(tree.frame[node]) === chosen;
    if (place[tree.parent[node]] !== 0)
      place[node] = result.child(place[tree.parent[node]], tree.frame[node]);
    else if (isChosen) place[node] = result.child(0, chosen * 2);
  }
  const sum = (sums) => {
    const self = new Float64Array(result.size);
    for (let node = 1; node < tree.size; node++)
      if (place[node] !== 0) self[place[node]] += sums.self[node];
    return withSum(new Sums(result, self, sums.basis, sums.whole), sums);
  };
  result.finish();
  return new Measured(result, sum(now), base ? sum(base) : null);
}

/**
 * What calls a function: the paths from its outermost calls to the root, as a tree. Its only node
 * below the root is the function, and callers are children.
 * @param {Measured} measured @param {number} chosen the function @returns {Measured}
 */
function callersOf({tree, now, base}, chosen) {
  const result = new CallTree();
  /** @type {[number, number][]} */
  const ends = []; // of each outermost call: its node, and where its path ends
  for (let node = 1; node < tree.size; node++) {
    if (functionOfFrame(tree.frame[node]) !== chosen || !tree.isOutermost[node]) continue;
    if (now.sizes[node] === 0 && !base?.sizes[node]) continue;
    let end = result.child(0, chosen * 2);
    for (let caller = tree.parent[node]; caller !== 0; caller = tree.parent[caller])
      end = result.child(end, tree.frame[caller]);
    ends.push([node, end]);
  }
  const sum = (sums) => {
    const self = new Float64Array(result.size);
    for (const [node, end] of ends) self[end] += sums.totals[node];
    return withSum(new Sums(result, self, sums.basis, sums.whole), sums);
  };
  result.finish();
  return new Measured(result, sum(now), base ? sum(base) : null);
}

/** The sum of a part is that of the whole. @param {Sums} part @param {Sums} whole */
function withSum(part, whole) {
  part.sum = whole.sum;
  return part;
}
