// Details: what is known of one function or frame, as a tooltip and as a panel.

const MAX_LINES_SHOWN = 12;
const MAX_TOP_SHOWN = 10;

/** What html_data.cc calls the stacks that it leaves out. */
const SMALL_STACKS = '[small stacks]';

/** @type {Record<string, string>} */
const PSEUDO_FRAMES = {
  '[truncated]': 'The stack was deeper than the limit on frames; its outermost part is missing.',
  '[broken stack]': 'The chain of frames broke; the outermost part of the stack is missing.',
  '[no unwind info]':
    'A frame without unwind information ended the stack; its outermost part is missing.',
  '[lost]': 'Samples that could not be recorded: their weight is kept, their stacks are not.',
  '[residual]': 'Time that the clock counted and no sample saw.',
  '[overflow]': 'Stacks beyond the profiler’s memory limit.',
  '[coroutine]': 'The stack of a coroutine, which is complete.',
  [SMALL_STACKS]: 'The smallest stacks, left out to keep this page small; their sum is exact.',
};

/** @param {CodeFunction} code */
function explanationOf(code) {
  return code.isPseudo ? (PSEUDO_FRAMES[code.name] ?? 'No code: a mark of the profiler.') : '';
}

/** "file.cc:12", or "". @param {string} file @param {number} line */
function placeText(file, line) {
  if (!file) return line ? `line ${line}` : '';
  return line ? `${file}:${line}` : file;
}

/** @param {Difference} change */
function changeElement(change) {
  const kind = !change.isSignificant ? 'none' : change.change > 0 ? 'more' : 'less';
  return element('span', {className: `change ${kind}`}, formatDifference(change));
}

/** A small mark beside a name. @param {string} text @param {boolean} isShown */
function badge(text, isShown) {
  return isShown ? element('span', {className: 'badge'}, text) : null;
}

/**
 * Amounts of a function or a frame.
 * @typedef {object} Detail
 * @property {number} function
 * @property {boolean} isInlined
 * @property {number} total
 * @property {number} self
 * @property {number} share of the total in the whole
 * @property {number} error of the share
 * @property {number} baseTotal
 * @property {number} baseSelf
 * @property {number} baseShare
 * @property {Difference|null} difference of the shares; null without a comparison
 */

class Details {
  /** @param {PageProfile} profile @param {() => {unit: string, measured: Measured}} context */
  constructor(profile, context) {
    this.profile = profile;
    this.context = context;
    this.tooltip = byId('tooltip');
  }

  /** @param {Measured} measured @param {number} node @returns {Detail} */
  ofNode(measured, node) {
    const frame = measured.tree.frame[node];
    const code = {function: functionOfFrame(frame), isInlined: isInlinedFrame(frame)};
    return {...code, ...measured.node(node)};
  }

  /**
   * @param {Measured} measured @param {FunctionSums} sums @param {number} index
   * @returns {Detail}
   */
  ofFunction(measured, sums, index) {
    const total = sums.now.total[index];
    const baseTotal = sums.base?.total[index] ?? 0;
    return {
      function: index,
      isInlined: false,
      total,
      baseTotal,
      self: sums.now.self[index],
      baseSelf: sums.base?.self[index] ?? 0,
      ...measured.compared(total, baseTotal),
    };
  }

  /** "810 ms, 76.9 % ± 4.1". @param {Detail} detail */
  totalText(detail) {
    const amount = formatAmount(detail.total, this.context().unit);
    return `${amount}, ${formatShare(detail.share)} ${formatError(detail.error)}`;
  }

  /** "20 ms, 1.9 %". @param {Detail} detail */
  selfText(detail) {
    const {unit, measured} = this.context();
    return `${formatAmount(detail.self, unit)}, ${formatShare(measured.now.shareOf(detail.self))}`;
  }

  /** What a screen reader says of a frame. @param {Detail} detail @param {number} depth */
  spoken(detail, depth) {
    const code = this.profile.functions[detail.function];
    const parts = [code.name, detail.isInlined ? 'inlined' : '', explanationOf(code)];
    parts.push(`total ${this.totalText(detail)}`, `self ${this.selfText(detail)}`);
    if (detail.difference) parts.push(`change ${formatDifference(detail.difference)}`);
    parts.push(`depth ${depth}`);
    return parts.filter((part) => part).join('; ');
  }

  /** @param {Detail|null} detail @param {MouseEvent|null} event */
  hover(detail, event) {
    const {tooltip} = this;
    tooltip.hidden = !detail || !event;
    if (!detail || !event) return;
    const code = this.profile.functions[detail.function];
    const {difference, baseShare} = detail;
    const lines = [`Total ${this.totalText(detail)}`, `Self ${this.selfText(detail)}`];
    if (difference)
      lines.push(`Base ${formatShare(baseShare)}; change: ${formatDifference(difference)}`);
    lines.push(explanationOf(code));
    const where = [placeText(code.file, code.line), this.profile.modules[code.module].name];
    tooltip.replaceChildren(
      element('strong', {}, bdi(code.name), badge('inlined', detail.isInlined)),
      ...lines.filter((line) => line).map((line) => element('span', {}, line)),
      element('span', {className: 'where'}, bdi(where.filter((part) => part).join(' · '))),
    );
    const {offsetWidth: width, offsetHeight: height} = tooltip;
    const left = Math.min(event.clientX + 14, innerWidth - width - 8);
    const below = event.clientY + 18;
    const top = below + height > innerHeight - 8 ? event.clientY - height - 12 : below;
    tooltip.style.left = `${Math.max(8, left)}px`;
    tooltip.style.top = `${Math.max(8, top)}px`;
  }

  /**
   * The panel of what is selected.
   * @param {HTMLElement} panel @param {Detail} detail @param {LineAmounts[]} lines
   * @param {{name: string, run: () => void}[]} actions
   */
  fill(panel, detail, lines, actions) {
    const code = this.profile.functions[detail.function];
    const explanation = explanationOf(code);
    const rows = this.rowsOf(detail).filter(({value}) => value !== '');
    panel.replaceChildren(
      element('h2', {}, bdi(code.name)),
      element(
        'p',
        {className: 'badges'},
        badge('inlined', detail.isInlined),
        badge('not code', code.isPseudo),
      ),
      explanation ? element('p', {className: 'hint'}, explanation) : '',
      element(
        'dl',
        {},
        ...rows.flatMap(({name, value}) => [element('dt', {}, name), element('dd', {}, value)]),
      ),
      element(
        'div',
        {className: 'actions'},
        ...actions.map(({name, run}) => element('button', {type: 'button', onclick: run}, name)),
      ),
      this.linesTable(lines),
    );
  }

  /** @param {Detail} detail @returns {{name: string, value: Node|string}[]} */
  rowsOf(detail) {
    const code = this.profile.functions[detail.function];
    const module = this.profile.modules[code.module];
    const {unit, measured} = this.context();
    const {now, base} = measured;
    const amount = (value, text) => dataElement(value, `${formatAmount(value, unit)} · ${text}`);
    const share = `${formatShare(detail.share)} ${formatError(detail.error)}`;
    const rows = [
      {name: 'Total', value: amount(detail.total, share)},
      {name: 'Self', value: amount(detail.self, formatShare(now.shareOf(detail.self)))},
    ];
    if (detail.difference && base) {
      const baseSelf = formatShare(base.shareOf(detail.baseSelf));
      rows.push(
        {name: 'Base total', value: amount(detail.baseTotal, formatShare(detail.baseShare))},
        {name: 'Base self', value: amount(detail.baseSelf, baseSelf)},
        {name: 'Change', value: changeElement(detail.difference)},
      );
    }
    const place = placeText(code.file, code.line);
    rows.push(
      {name: 'Samples', value: `${counted(Math.round(now.basis.taken), 'sample')} in all`},
      {name: 'Module', value: module.path ? bdi(module.path) : ''},
      {name: 'Build id', value: module.buildId ? element('code', {}, module.buildId) : ''},
      {name: 'Defined', value: place ? bdi(place) : ''},
    );
    return rows;
  }

  /** @param {LineAmounts[]} lines */
  linesTable(lines) {
    if (lines.every(({line}) => line === 0)) return '';
    const {unit} = this.context();
    const cell = (value) => element('td', {}, dataElement(value, formatAmount(value, unit)));
    const row = ({line, self, total}) =>
      element(
        'tr',
        {},
        element('th', {scope: 'row'}, line === 0 ? 'unknown' : String(line)),
        cell(self),
        cell(total),
      );
    const head = ['Line', 'Self', 'Total'].map((name) => element('th', {scope: 'col'}, name));
    return element(
      'table',
      {className: 'lines'},
      element('caption', {}, 'Lines of ', bdi(baseName(lines[0].file) || 'an unknown file')),
      element('thead', {}, element('tr', {}, ...head)),
      element('tbody', {}, ...lines.slice(0, MAX_LINES_SHOWN).map(row)),
    );
  }

  /**
   * What there is to say before anything is selected: the functions with the most of their own, or
   * those that changed most.
   * @param {HTMLElement} panel @param {Measured} measured @param {FunctionSums} sums
   * @param {(index: number) => void} onChoose
   */
  fillTop(panel, measured, sums, onChoose) {
    const isComparison = measured.base !== null;
    const entries = this.profile.functions.map((code, index) => {
      const now = sums.now.self[index];
      const compared = measured.compared(now, sums.base?.self[index] ?? 0);
      const {share, difference} = compared;
      const change = difference?.isSignificant ? Math.abs(difference.change) : 0;
      return {code, index, now, size: isComparison ? change : Math.abs(share), ...compared};
    });
    const top = entries
      .filter(({size}) => size > 0)
      .sort((a, b) => b.size - a.size || a.index - b.index)
      .slice(0, MAX_TOP_SHOWN);
    const title = isComparison ? 'Largest significant changes (self)' : 'Top functions (self)';
    const nothing = isComparison ? 'No function changed significantly.' : 'Nothing was measured.';
    const hint = top.length > 0 ? 'Select a frame to see what is known of it.' : nothing;
    const row = ({code, index, now, share, error, difference, size}) => {
      const onclick = () => onChoose(index);
      const properties = {type: 'button', className: 'link', title: code.name, onclick};
      const kind = !difference ? '' : difference.change > 0 ? 'more' : 'less';
      const text = difference
        ? changeElement(difference)
        : dataElement(now, `${formatShare(share)} ${formatError(error)}`);
      return element(
        'li',
        {},
        element('button', properties, bdi(code.short)),
        element('span', {className: 'amount'}, text),
        barElement(size / top[0].size, kind),
      );
    };
    panel.replaceChildren(
      element('h2', {className: 'plain'}, title),
      element('ol', {className: 'top'}, ...top.map(row)),
      element('p', {className: 'hint'}, hint),
    );
  }
}
