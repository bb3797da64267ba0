// Search: the functions whose name fits a regular expression, and the share of what has one of them
// in its stack.

/**
 * Runs in a worker, because a regular expression may take for ever. It uses nothing of this page.
 * First come the names of each function, then expressions.
 */
function matchNames() {
  /** @type {string[][]} */
  let names = [];
  addEventListener('message', ({data}) => {
    if (data.names) {
      names = data.names;
      return;
    }
    const expression = new RegExp(data.source, data.flags);
    postMessage(
      Uint8Array.from(names, (all) => Number(all.some((name) => expression.test(name)))),
    );
  });
}

/** The worker. One expression at a time: a later one ends the earlier. */
class Matcher {
  /** @param {PageProfile} profile */
  constructor({functions, modules}) {
    this.names = functions.map(({name, module}) =>
      module === 0 ? [name] : [name, `${modules[module].name}!${name}`],
    );
    this.url = URL.createObjectURL(new Blob([`(${matchNames})()`], {type: 'text/javascript'}));
    /** @type {Worker|null} */
    this.worker = null;
    this.isBusy = false;
  }

  /**
   * Of each function: 1 if it matches; null if that takes too long.
   * @param {RegExp} expression @returns {Promise<Uint8Array|null>}
   */
  match(expression) {
    if (this.isBusy) this.end();
    const worker = this.worker ?? this.begin();
    this.isBusy = true;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        if (worker === this.worker) this.end();
        resolve(null);
      }, Matcher.MOST_MS);
      worker.onmessage = ({data}) => {
        clearTimeout(timer);
        this.isBusy = false;
        resolve(data);
      };
      worker.postMessage({source: expression.source, flags: expression.flags});
    });
  }

  begin() {
    this.worker = new Worker(this.url);
    this.worker.postMessage({names: this.names});
    return this.worker;
  }

  end() {
    this.worker?.terminate();
    this.worker = null;
    this.isBusy = false;
  }
}
Matcher.MOST_MS = 2000;

class Search {
  /** @param {Matcher} matcher */
  constructor(matcher) {
    this.matcher = matcher;
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
    this.matches = await this.matcher.match(expression);
    if (this.matches) this.count = this.matches.reduce((sum, is) => sum + is, 0);
    else this.error = 'takes too long: a simpler expression, please';
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
