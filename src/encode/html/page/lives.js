// Lives: the threads that were registered in the period, also those of which there is no sample:
// when each began and ended, its CPU time, and how often it was sampled.

class Lives {
  /** @param {PageProfile} profile */
  constructor({sides}) {
    const [side, base] = sides;
    if (side.lives.length === 0) return;
    byId('lives').hidden = false;
    const title = counted(side.lifeCount, 'life', 'lives');
    byId('lives-summary').textContent = `Threads: ${title}${base ? ' of this profile' : ''}`;
    const heads = ['Thread', 'Life in the period', 'Begin', 'End', 'CPU time', 'Samples'];
    const head = (name, i) =>
      element('th', {scope: 'col', className: i === 1 ? 'module' : ''}, name);
    const table = byId('lives-table');
    table.tHead.replaceChildren(element('tr', {}, ...heads.map(head)));
    table.tBodies[0].replaceChildren(...side.lives.map((life) => Lives.row(life, side.durationNs)));
    const left = side.lifeCount - side.lives.length;
    byId('lives-more').textContent =
      left > 0 ? `and ${counted(left, 'life', 'lives')} with less CPU time` : '';
  }

  /** @param {ThreadLife} life @param {number} durationNs of the period */
  static row({id, name, beginNs, endNs, cpuNs, captures}, durationNs) {
    const number = (...content) => element('td', {className: 'number'}, ...content);
    const amount = (ns, text) => (ns < 0 ? number(text) : number(dataElement(ns, formatTime(ns))));
    const cpu = dataElement(cpuNs, formatAmount(cpuNs, 'nanoseconds'));
    return element(
      'tr',
      {},
      element('th', {scope: 'row'}, bdi(name ? `${name} (${id})` : id)),
      element('td', {className: 'module'}, Lives.bar(beginNs, endNs, durationNs)),
      amount(beginNs, 'before'),
      amount(endNs, 'after'),
      number(cpuNs < 0 ? 'unknown' : cpu),
      number(dataElement(captures, captures.toLocaleString('en'))),
    );
  }

  /** What part of the period a life takes. */
  static bar(beginNs, endNs, durationNs) {
    const share = (ns) => (durationNs > 0 ? Math.min(Math.max(ns / durationNs, 0), 1) : 0);
    const begin = share(beginNs);
    const end = endNs < 0 ? 1 : Math.max(share(endNs), begin);
    const part = element('i');
    part.style.marginInlineStart = `${(begin * 100).toFixed(2)}%`;
    part.style.width = `max(2px, ${((end - begin) * 100).toFixed(2)}%)`;
    return element('span', {className: 'bar life', 'aria-hidden': 'true'}, part);
  }
}
