// Trees of calls: a node is a function called by its parent's. Node 0 is the root, which is no
// function, and a parent has a lower number than its children.

/**
 * A frame is a function, called or inlined: 2 * function + (1 if inlined).
 * @param {number} frame
 */
const functionOfFrame = (frame) => frame >> 1;
/** @param {number} frame */
const isInlinedFrame = (frame) => (frame & 1) === 1;

class CallTree {
  constructor() {
    this.size = 1;
    this.parent = new Int32Array(64);
    this.frame = new Int32Array(64);
    this.depth = new Int32Array(64); // 0 of the root
    this.frame[0] = -1;
    this.slots = new Int32Array(256); // an open hash table of nodes, of which none is the root
    // Filled by finish().
    this.firstChild = new Int32Array(0);
    this.nextSibling = new Int32Array(0);
    /** Whether no caller of a node is the same function: of a recursion only the first call. */
    this.isOutermost = new Uint8Array(0);
  }

  /**
   * The child of `parent` with that frame; made if there is none.
   * @param {number} parent @param {number} frame
   */
  child(parent, frame) {
    const mask = this.slots.length - 1;
    for (let slot = CallTree.hash(parent, frame) & mask; ; slot = (slot + 1) & mask) {
      const node = this.slots[slot];
      if (node === 0) return this.add(parent, frame, slot);
      if (this.parent[node] === parent && this.frame[node] === frame) return node;
    }
  }

  /** @param {number} parent @param {number} frame */
  static hash(parent, frame) {
    const mixed = Math.imul(parent, 0x9e3779b1) ^ Math.imul(frame, 0x85ebca6b);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  }

  /** @param {number} parent @param {number} frame @param {number} slot */
  add(parent, frame, slot) {
    const node = this.size++;
    if (node === this.parent.length) {
      for (const name of /** @type {('parent'|'frame'|'depth')[]} */ ([
        'parent',
        'frame',
        'depth',
      ])) {
        const grown = new Int32Array(2 * this[name].length);
        grown.set(this[name]);
        this[name] = grown;
      }
    }
    this.parent[node] = parent;
    this.frame[node] = frame;
    this.depth[node] = this.depth[parent] + 1;
    this.slots[slot] = node;
    if (2 * this.size > this.slots.length) this.rehash();
    return node;
  }

  rehash() {
    this.slots = new Int32Array(2 * this.slots.length);
    const mask = this.slots.length - 1;
    for (let node = 1; node < this.size; node++) {
      let slot = CallTree.hash(this.parent[node], this.frame[node]) & mask;
      while (this.slots[slot] !== 0) slot = (slot + 1) & mask;
      this.slots[slot] = node;
    }
  }

  /** Call when all nodes are there. */
  finish() {
    this.slots = new Int32Array(0);
    this.firstChild = new Int32Array(this.size);
    this.nextSibling = new Int32Array(this.size);
    for (let node = this.size - 1; node > 0; node--) {
      this.nextSibling[node] = this.firstChild[this.parent[node]];
      this.firstChild[this.parent[node]] = node;
    }
    this.isOutermost = new Uint8Array(this.size);
    const isOpen = new Uint8Array(this.functionLimit());
    for (let node = this.firstChild[0]; node !== 0;) {
      const isFirst = isOpen[functionOfFrame(this.frame[node])] === 0;
      this.isOutermost[node] = isFirst ? 1 : 0;
      if (isFirst) isOpen[functionOfFrame(this.frame[node])] = 1;
      let next = this.firstChild[node];
      while (next === 0 && node !== 0) {
        if (this.isOutermost[node]) isOpen[functionOfFrame(this.frame[node])] = 0;
        next = this.nextSibling[node];
        node = this.parent[node];
      }
      node = next;
    }
    return this;
  }

  /** One more than the largest number of a function. */
  functionLimit() {
    let limit = 0;
    for (let node = 1; node < this.size; node++)
      limit = Math.max(limit, functionOfFrame(this.frame[node]) + 1);
    return limit;
  }

  /** The nodes that `node` calls. @param {number} node @returns {number[]} */
  childrenOf(node) {
    const result = [];
    for (let child = this.firstChild[node]; child !== 0; child = this.nextSibling[child])
      result.push(child);
    return result;
  }

  /** From the outermost caller to `node`. @param {number} node @returns {number[]} */
  pathTo(node) {
    const path = [];
    for (; node !== 0; node = this.parent[node]) path.unshift(node);
    return path;
  }

  /** What each node has with all that it calls. @param {Float64Array} self */
  totals(self) {
    const totals = self.slice();
    for (let node = this.size - 1; node > 0; node--) totals[this.parent[node]] += totals[node];
    return totals;
  }
}

/** The nodes of the page's data, where lines of a function are apart. */
class LineTree {
  /** @param {PageProfile} profile */
  constructor(profile) {
    const count = profile.siteOfNode.length + 1;
    this.site = profile.siteOfNode; // of node i + 1
    this.parent = new Int32Array(count);
    for (let node = 1; node < count; node++) {
      let parent = node - 1;
      for (let up = profile.levelsUp[node - 1]; up > 0; up--) parent = this.parent[parent];
      this.parent[node] = parent;
    }
  }
}

/**
 * The tree in which the lines of a function are one node, and that node of each node with lines.
 * @param {PageProfile} profile @param {LineTree} lines @param {Pace} pace
 */
async function mergedTree(profile, lines, pace) {
  const tree = new CallTree();
  const nodeOf = new Int32Array(lines.parent.length);
  const {sites} = profile;
  for (let node = 1; node < nodeOf.length; node++) {
    const site = lines.site[node - 1];
    nodeOf[node] = tree.child(
      nodeOf[lines.parent[node]],
      sites.function[site] * 2 + sites.isInlined[site],
    );
    if ((node & 0x3fff) === 0) await pace.rest();
  }
  return {tree: tree.finish(), nodeOf};
}
