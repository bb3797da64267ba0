// Search: the functions whose name fits a regular expression, and the share of what has one of them
// in its stack.

class Search {
  /** @param {PageProfile} profile */
  constructor(profile) {
    this.profile = profile;
    /** @type {Uint8Array|null} of each function: 1 if it matches; null without a search */
    this.matches = null;
    this.count = 0;
    this.error = '';
  }

  /**
   * A pattern without capital letters ignores case. Names are matched in full, as
   * "module!name" too: "^libc" finds a library's functions.
   * @param {string} pattern
   */
  async set(pattern) {
    this.error = '';
    this.count = 0;
    this.matches = null;
    if (pattern === '') return;
    let expression;
    try {
      expression = new RegExp(pattern, /[A-Z]/.test(pattern) ? 'u' : 'iu');
    } catch {
      try {
        expression = new RegExp(pattern, /[A-Z]/.test(pattern) ? '' : 'i'); // more lenient
      } catch (error) {
        this.error = `${error}`.replace(
          /^.*Invalid regular expression/,
          'not a regular expression',
        );
        return;
      }
    }
    const {functions, modules} = this.profile;
    const matches = new Uint8Array(functions.length);
    const pace = new Pace();
    let count = 0;
    for (let i = 0; i < functions.length; i++) {
      const {name, module} = functions[i];
      if (
        expression.test(name) ||
        (module !== 0 && expression.test(`${modules[module].name}!${name}`))
      ) {
        matches[i] = 1;
        count++;
      }
      if ((i & 0x3ff) === 0) await pace.rest();
    }
    this.matches = matches;
    this.count = count;
  }

  /** What has a matching function in its stack, of each side. @param {Measured} measured */
  amounts({tree, now, base}) {
    const {matches} = this;
    const isBelow = new Uint8Array(tree.size);
    let nowSum = 0;
    let baseSum = 0;
    if (!matches) return {now: 0, base: 0};
    for (let node = 1; node < tree.size; node++) {
      const parentIs = isBelow[tree.parent[node]];
      const is = parentIs || matches[functionOfFrame(tree.frame[node])];
      isBelow[node] = is;
      if (is && !parentIs) {
        nowSum += now.totals[node];
        baseSum += base?.totals[node] ?? 0;
      }
    }
    return {now: nowSum, base: baseSum};
  }
}
