// Summary: the texts around the views: what was profiled, how much there is, what the colours mean.

const MODULES_IN_LEGEND = 4;

class Summary {
  /** @param {PageProfile} profile */
  constructor(profile) {
    this.profile = profile;
    const [side, base] = profile.sides;
    byId('program').replaceChildren(element('bdi', {}, side.program || 'Profile'));
    byId('about').replaceChildren(
      ...this.account(side, 'This profile'),
      ...(base ? this.account(base, 'The base that it is compared with') : []),
    );
  }

  /** @param {Side} side @param {string} title */
  account({program, processId, sequence, beginMs, durationNs, comments}, title) {
    const when = `from ${Summary.date(beginMs)} for ${formatAmount(durationNs, 'nanoseconds')}`;
    const lines = [
      element('li', {}, bdi(program), `, process ${processId}, period ${sequence}, ${when}`),
      ...comments.map((comment) => element('li', {}, bdi(comment))),
    ];
    return [element('h3', {}, title), element('ul', {}, ...lines)];
  }

  /** @param {number} ms since 1970 */
  static date(ms) {
    const date = new Date(ms);
    if (Number.isNaN(date.getTime())) return 'an unknown time';
    return `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  }

  /** @param {Measured} measured @param {number} type */
  showSum({tree, now, base}, type) {
    const [side] = this.profile.sides;
    const {type: name, unit} = this.profile.types[type] ?? {type: 'nothing measured', unit: ''};
    const strong = (sum) => element('strong', {}, dataElement(sum, formatAmount(sum, unit)));
    const parts = [strong(now.sum), ` ${name}`];
    if (base) parts.push(' against ', strong(base.sum));
    parts.push(` · ${counted(Math.round(now.basis.taken), 'sample')}`);
    if (base) parts.push(` against ${Math.round(base.basis.taken).toLocaleString('en')}`);
    parts.push(` · ${counted(side.threads.length, 'thread')}`);
    if (side.durationNs > 0) {
      const duration = formatAmount(side.durationNs, 'nanoseconds');
      parts.push(` · ${duration} from ${Summary.date(side.beginMs)}`);
    }
    const small = this.profile.functions.findIndex(
      ({isPseudo, name: code}) => isPseudo && code === SMALL_STACKS,
    );
    if (small >= 0) {
      const left = now.self.reduce(
        (sum, amount, node) => sum + (functionOfFrame(tree.frame[node]) === small ? amount : 0),
        0,
      );
      parts.push(` · ${formatShare(now.shareOf(left))} in ${SMALL_STACKS}`);
    }
    byId('summary').replaceChildren(...parts);
  }

  /** @param {Palette} palette @param {boolean} isSearch @param {boolean} isComparison */
  showLegend(palette, isSearch, isComparison) {
    const swatch = (fill, name) => {
      const box = element('i');
      box.style.background = palette.fills[fill];
      return element('span', {}, box, bdi(name));
    };
    const legend = byId('legend');
    if (isSearch) {
      legend.replaceChildren(
        swatch(palette.match, 'matches'),
        swatch(palette.dim, 'does not match'),
      );
    } else if (isComparison) {
      legend.replaceChildren(
        swatch(palette.more[CHANGE_STEPS - 1], 'more'),
        swatch(palette.less[CHANGE_STEPS - 1], 'less'),
        swatch(palette.plain, 'not significant'),
      );
    } else {
      const modules = this.profile.modules.slice(1);
      const shown = modules.slice(0, MODULES_IN_LEGEND);
      legend.replaceChildren(...shown.map(({name}, i) => swatch(palette.ofModule(i + 1), name)));
      if (modules.length > shown.length) legend.append(`and ${modules.length - shown.length} more`);
    }
  }
}
