// Boxes: where the frames of a tree are in a flame graph. Only what is visible is laid out, so the
// cost depends on the window and not on the profile.

const MIN_FRAME_PX = 0.6; // narrower frames are drawn as one

/** The layout of a tree: widths are amounts, and the widest callee comes first. */
class Boxes {
  /** @param {CallTree} tree @param {Float64Array} amounts of each node */
  constructor(tree, amounts) {
    this.tree = tree;
    this.amounts = amounts;
    /** @type {Map<number, {nodes: number[], starts: number[]}>} */
    this.known = new Map();
    this.levels = 0;
    /** What is visible, of equal length; a node of -1 stands for frames too narrow to be drawn. */
    this.nodes = [0].slice(1);
    this.lefts = [0].slice(1);
    this.widths = [0].slice(1);
    this.rows = [0].slice(1);
  }

  /** The callees of a node that have anything, and where they begin in it. @param {number} node */
  calleesOf(node) {
    const known = this.known.get(node);
    if (known) return known;
    const {amounts} = this;
    const nodes = this.tree
      .childrenOf(node)
      .filter((child) => amounts[child] > 0)
      .sort((a, b) => amounts[b] - amounts[a] || a - b);
    const starts = new Array(nodes.length);
    let next = 0;
    nodes.forEach((child, i) => {
      starts[i] = next;
      next += amounts[child];
    });
    const result = {nodes, starts};
    this.known.set(node, result);
    return result;
  }

  /** The range that a node has in the whole. @param {number} node @returns {Span} */
  rangeOf(node) {
    let from = 0;
    for (let child = node; child !== 0; child = this.tree.parent[child]) {
      const {nodes, starts} = this.calleesOf(this.tree.parent[child]);
      from += starts[nodes.indexOf(child)];
    }
    return {from, to: from + this.amounts[node]};
  }

  /**
   * Makes room for the rows that are visible when `node` has the full width; true if there are more
   * rows than before.
   * @param {number} node @param {number} widthPx
   */
  addLevels(node, widthPx) {
    const least = (this.amounts[node] / widthPx) * MIN_FRAME_PX;
    const {depth, size} = this.tree;
    const before = this.levels;
    for (let i = 1; i < size; i++) {
      if (depth[i] > this.levels && this.amounts[i] > 0 && this.amounts[i] >= least)
        this.levels = depth[i];
    }
    return this.levels !== before;
  }

  /**
   * Finds the boxes of a range in the rows from `first` to `last`; row 0 has the outermost frames.
   * @param {Span} range @param {number} first @param {number} last @param {number} widthPx
   */
  find(range, first, last, widthPx) {
    this.nodes.length = this.lefts.length = this.widths.length = this.rows.length = 0;
    const {amounts, tree} = this;
    const scale = widthPx / (range.to - range.from || 1);
    const open = [0];
    const begins = [0];
    while (open.length > 0) {
      const node = open.pop() ?? 0;
      const begin = begins.pop() ?? 0;
      const row = tree.depth[node]; // of the callees
      if (row > last) continue;
      const {nodes, starts} = this.calleesOf(node);
      for (let i = Boxes.lastBefore(starts, range.from - begin); i < nodes.length; i++) {
        const amount = amounts[nodes[i]];
        const start = begin + starts[i];
        if (start >= range.to) break;
        if (amount * scale < MIN_FRAME_PX) {
          // The callees that follow are no wider.
          const end = starts[nodes.length - 1] + amounts[nodes[nodes.length - 1]];
          const rest = begin + end - start;
          if (row >= first && rest * scale >= MIN_FRAME_PX)
            this.add(-1, (start - range.from) * scale, rest * scale, row, widthPx);
          break;
        }
        if (start + amount <= range.from) continue;
        if (row >= first)
          this.add(nodes[i], (start - range.from) * scale, amount * scale, row, widthPx);
        open.push(nodes[i]);
        begins.push(start);
      }
    }
  }

  /**
   * @param {number} node @param {number} left @param {number} width @param {number} row
   * @param {number} widthPx
   */
  add(node, left, width, row, widthPx) {
    this.nodes.push(node);
    this.lefts.push(Math.max(0, left));
    this.widths.push(Math.min(widthPx, left + width) - Math.max(0, left));
    this.rows.push(row);
  }

  /**
   * The last of the sorted `starts` that is not after `position`, or 0.
   * @param {number[]} starts @param {number} position
   */
  static lastBefore(starts, position) {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle] <= position) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  /** The node of a row at `x`, or 0. @param {number} x @param {number} row */
  at(x, row) {
    const {nodes, lefts, widths, rows} = this;
    for (let i = 0; i < nodes.length; i++)
      if (rows[i] === row && x >= lefts[i] && x < lefts[i] + widths[i])
        return Math.max(0, nodes[i]);
    return 0;
  }

  /**
   * The next visible node at the same depth, or the node itself.
   * @param {number} node @param {1|-1} step
   */
  neighbour(node, step) {
    const {nodes} = this.calleesOf(this.tree.parent[node]);
    const next = nodes[nodes.indexOf(node) + step];
    if (next !== undefined) return next;
    // Of another caller.
    const row = this.tree.depth[node] - 1;
    const inRow = this.nodes
      .map((_, i) => i)
      .filter((i) => this.rows[i] === row && this.nodes[i] > 0)
      .sort((a, b) => this.lefts[a] - this.lefts[b])
      .map((i) => this.nodes[i]);
    const place = inRow.indexOf(node);
    return place < 0 ? node : (inRow[place + step] ?? node);
  }
}
