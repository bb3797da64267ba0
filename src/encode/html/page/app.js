// App: what is looked at, and the views that show it.

const VIEWS = ['flame', 'functions', 'calls'];

class App {
  /** @param {PageProfile} profile @param {Measurer} measurer */
  constructor(profile, measurer) {
    this.profile = profile;
    this.measurer = measurer;
    this.matcher = new Matcher(profile);
    this.search = new Search(this.matcher);
    this.searchRun = 0;
    const facets = facetsOf(profile);
    const setCount = profile.labelSets.length;
    /** @type {Subject} */
    this.subject = {
      type: profile.defaultType,
      includes: includedSets(facets, setCount),
      window: null,
      comparison: profile.sides.length > 1 ? 'base' : 'none',
    };
    /** @type {'both'|'now'|'base'} */
    this.widths = 'both';
    this.view = 'flame';
    this.chosenFunction = -1;
    this.hasFullNames = false;
    this.palette = App.palette();
    this.measured = Measured.empty();
    this.sums = new FunctionSums(this.measured, 0);
    const unit = () => this.unit();
    this.summary = new Summary(profile);
    this.lives = new Lives(profile);
    this.details = new Details(profile, () => ({unit: this.unit(), measured: this.measured}));
    const host = this.flameHost();
    const flameName = 'Flame graph: arrow keys move, Enter zooms, Escape shows the whole graph';
    this.flame = new FlameGraph(byId('flame'), flameName, host, 'up');
    const choose = (index) => this.chooseFunction(index);
    this.functionsView = new FunctionsView(profile, this.details, unit, choose);
    this.sandwich = new Sandwich(profile, host, this.details, unit, choose);
    this.callsView = new CallsView(profile, this.details, unit, (node) =>
      this.fillDetails(byId('calls-details'), node),
    );
    this.heatmap = new Heatmap(
      byId('heatmap'),
      profile,
      () => this.palette,
      (window) => this.setWindow(window),
    );
    new Filters(
      byId('facets'),
      byId('chips'),
      facets,
      () => this.amountsOfSets(),
      unit,
      () => this.look({includes: includedSets(facets, setCount)}),
    );
    this.offerTypes();
    this.listen();
    this.update();
  }

  /** @returns {FlameHost} */
  flameHost() {
    return {
      nameOf: (frame) => {
        const code = this.profile.functions[functionOfFrame(frame)];
        const name = this.hasFullNames ? code.name : code.short;
        return isInlinedFrame(frame) ? `↳ ${name}` : name;
      },
      fillOf: (graph, node) => this.fillOf(graph.measured, node),
      palette: () => this.palette,
      isPseudo: (frame) => this.profile.functions[functionOfFrame(frame)].isPseudo,
      onHover: (graph, node, event) =>
        this.details.hover(node > 0 ? this.details.ofNode(graph.measured, node) : null, event),
      onSelect: (graph, node) => this.onSelect(graph, node),
      onZoom: (graph) => {
        if (graph === this.flame) this.fillPath();
      },
    };
  }

  static palette() {
    const wanted = byId('theme').value;
    const isSystemDark = matchMedia('(prefers-color-scheme: dark)').matches;
    return new Palette(wanted === 'dark' || (wanted !== 'light' && isSystemDark));
  }

  unit() {
    return this.profile.types[this.subject.type]?.unit ?? '';
  }

  /** @param {Measured} measured @param {number} node */
  fillOf(measured, node) {
    const frame = measured.tree.frame[node];
    const index = functionOfFrame(frame);
    const {matches} = this.search;
    if (matches) return matches[index] ? this.palette.match : this.palette.dim;
    if (!measured.base)
      return this.palette.ofCode(this.profile.functions[index], isInlinedFrame(frame));
    const {share, baseShare, difference} = measured.node(node);
    return this.palette.ofChange(share, baseShare, difference?.isSignificant ?? false);
  }

  /** The amounts of each label set. The choice of label sets does not change them. */
  amountsOfSets() {
    const amounts = new Float64Array(this.profile.labelSets.length);
    const includes = new Uint8Array(amounts.length).fill(1);
    const {now} = this.measurer.rowAmounts({...this.subject, includes});
    now.rows.amounts.forEach((amount, row) => {
      amounts[now.side.rows.labels[row]] += amount;
    });
    return amounts;
  }

  offerTypes() {
    const {types} = this.profile;
    const name = ({type, unit}) => (unit === 'count' ? type : `${type} (${unit})`);
    const options = types.map((type, i) => element('option', {value: String(i)}, name(type)));
    byId('type').append(...options);
    byId('type').value = String(this.subject.type);
    byId('type-field').hidden = types.length < 2;
    byId('time').hidden = this.profile.moments.row.length === 0;
  }

  listen() {
    for (const view of VIEWS) {
      const tab = byId(`tab-${view}`);
      tab.addEventListener('click', () => this.setView(view));
      tab.addEventListener('keydown', (event) => this.tabKey(event, VIEWS.indexOf(view)));
    }
    const onChange = (id, run) => byId(id).addEventListener('change', () => run(byId(id).value));
    onChange('type', (value) => this.look({type: Number(value)}));
    onChange('comparison', (value) => this.look({comparison: value}));
    onChange('widths', (value) => {
      this.widths = value;
      this.update();
    });
    onChange('direction', (value) => this.flame.turn(value));
    onChange('full-names', () => {
      this.hasFullNames = byId('full-names').checked;
      this.redraw();
    });
    onChange('theme', (value) => {
      document.documentElement.style.colorScheme = value;
      this.redraw();
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
    byId('search').addEventListener('input', () => this.setSearch(byId('search').value));
    byId('zoom-out').addEventListener('click', () => this.flame.zoom(0));
    byId('help-button').addEventListener('click', () => byId('help').showModal());
    byId('window-all').addEventListener('click', () => this.setWindow(null));
    byId('window-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.readWindow();
    });
  }

  /** Arrow keys go from tab to tab. @param {KeyboardEvent} event @param {number} place */
  tabKey(event, place) {
    const steps = {ArrowRight: 1, ArrowLeft: VIEWS.length - 1};
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.setView(VIEWS[(place + steps[event.key]) % VIEWS.length]);
    byId(`tab-${this.view}`).focus();
  }

  /** @param {Partial<Subject>} change */
  look(change) {
    Object.assign(this.subject, change);
    this.update();
  }

  /** The window as it was typed. */
  readWindow() {
    const seconds = (id) => Number(byId(id).value.replace(',', '.')) * 1e9;
    const [from, to] = [seconds('window-from'), seconds('window-to')];
    if (to > from) this.setWindow({from, to});
    else announce('The window needs two times in seconds, the earlier one first.');
  }

  /** @param {Span|null} window */
  setWindow(window) {
    const isWithoutRest = this.subject.comparison === 'rest' && !window;
    const comparison = isWithoutRest ? 'none' : this.subject.comparison;
    this.heatmap.setWindow(window);
    byId('window-from').value = window ? (window.from / 1e9).toFixed(3) : '';
    byId('window-to').value = window ? (window.to / 1e9).toFixed(3) : '';
    this.look({window, comparison});
  }

  /** Measures anew, and shows it. */
  update() {
    const {profile, subject} = this;
    this.offerComparisons();
    this.measured = this.measurer.measure(subject);
    this.sums = new FunctionSums(
      this.measured,
      profile.functions.length,
      this.measurer.exactFunctions(subject),
    );
    this.summary.showSum(this.measured, subject.type);
    if (profile.moments.row.length > 0) this.showTime();
    this.showSearch();
    this.showView();
    this.showLegend();
  }

  offerComparisons() {
    const {subject} = this;
    const options = [['none', 'nothing']];
    if (this.profile.sides.length > 1) options.push(['base', 'the base profile']);
    if (subject.window) options.push(['rest', 'the rest of the time']);
    byId('comparison-field').hidden = options.length < 2;
    byId('comparison').replaceChildren(
      ...options.map(([value, name]) => element('option', {value}, name)),
    );
    byId('comparison').value = subject.comparison;
    byId('widths-field').hidden = subject.comparison === 'none';
  }

  showTime() {
    const {window} = this.subject;
    const {moments, momentStride} = this.profile;
    this.heatmap.show(this.subject);
    const one = momentStride > 1 ? `, one of ${momentStride}` : '';
    byId('time-text').textContent = window
      ? `${formatTime(window.from)} to ${formatTime(window.to)} is shown`
      : `${counted(moments.row.length, 'moment')}${one}: drag to see a part of the time alone`;
  }

  /** @param {string} view */
  setView(view) {
    this.view = view;
    for (const name of VIEWS) {
      byId(`tab-${name}`).setAttribute('aria-selected', String(name === view));
      byId(`tab-${name}`).tabIndex = name === view ? 0 : -1;
      byId(`panel-${name}`).hidden = name !== view;
    }
    this.showView();
  }

  /** Fills the visible view; the others wait until they are looked at. */
  showView() {
    this.details.hover(null, null);
    if (this.view === 'flame') {
      this.flame.show(this.measured, this.widths);
      this.fillDetails(byId('details'), this.flame.selected);
      this.fillPath();
    } else if (this.view === 'functions') {
      this.functionsView.show(this.measured, this.sums, this.search.matches);
      this.showSandwich();
    } else {
      this.callsView.show(this.measured);
      this.fillDetails(byId('calls-details'), this.callsView.active);
    }
  }

  /** Draws in the colours that count now. */
  redraw() {
    this.palette = App.palette();
    for (const graph of [this.flame, this.sandwich.callers, this.sandwich.callees]) graph.draw();
    this.heatmap.draw();
    this.showLegend();
  }

  showLegend() {
    const isSearch = this.search.matches !== null;
    this.summary.showLegend(this.palette, isSearch, this.measured.base !== null);
  }

  /** @param {string} pattern */
  async setSearch(pattern) {
    const run = ++this.searchRun;
    const search = new Search(this.matcher);
    await search.set(pattern);
    if (run !== this.searchRun) return; // a later one has begun
    this.search = search;
    this.showSearch();
    if (this.view === 'functions')
      this.functionsView.show(this.measured, this.sums, search.matches);
    this.redraw();
  }

  showSearch() {
    const {search, measured} = this;
    const match = byId('match');
    const isWrong = search.error !== '';
    byId('search').setAttribute('aria-invalid', String(isWrong));
    match.classList.toggle('problem', isWrong);
    if (!search.matches) {
      match.replaceChildren(search.error);
      return;
    }
    const amounts = search.amounts(measured);
    const {share, error, difference} = measured.compared(amounts.now, amounts.base);
    const where = ` ${formatError(error)} in ${counted(search.count, 'function')}`;
    const change = difference ? `; ${formatDifference(difference)}` : '';
    match.replaceChildren(dataElement(amounts.now, formatShare(share)), where + change);
  }

  /** @param {FlameGraph} graph @param {number} node */
  onSelect(graph, node) {
    if (node === 0) return;
    const detail = this.details.ofNode(graph.measured, node);
    announce(this.details.spoken(detail, graph.measured.tree.depth[node]));
    if (graph === this.flame) this.fillDetails(byId('details'), node);
  }

  /** The callers of the frame that is zoomed to, as a path. */
  fillPath() {
    const {zoomed, measured} = this.flame;
    byId('zoom-out').disabled = zoomed === 0;
    const nodes = measured.tree.pathTo(zoomed);
    const shown = nodes.length > 6 ? [...nodes.slice(0, 2), 0, ...nodes.slice(-3)] : nodes;
    const step = (node) => {
      if (node === 0) return element('span', {}, '…');
      const {short} = this.profile.functions[functionOfFrame(measured.tree.frame[node])];
      const current = node === zoomed ? 'true' : null;
      const onclick = () => this.flame.zoom(node);
      return element(
        'button',
        {type: 'button', className: 'link', 'aria-current': current, onclick},
        bdi(short),
      );
    };
    byId('path').replaceChildren(...shown.map(step));
  }

  /** @param {HTMLElement} panel @param {number} node of the whole tree */
  fillDetails(panel, node) {
    const chooseInFunctions = (index) => {
      this.setView('functions');
      this.chooseFunction(index);
    };
    if (node === 0) {
      this.details.fillTop(panel, this.measured, this.sums, chooseInFunctions);
      return;
    }
    const detail = this.details.ofNode(this.measured, node);
    const actions = [{name: 'Callers and callees', run: () => chooseInFunctions(detail.function)}];
    if (panel.id === 'details') actions.unshift({name: 'Zoom', run: () => this.flame.zoom(node)});
    const lines = this.measurer.linesOf(this.subject, (other) => other === node);
    this.details.fill(panel, detail, lines, actions);
  }

  /** @param {number} index of a function */
  chooseFunction(index) {
    this.chosenFunction = index;
    this.functionsView.choose(index);
    this.showSandwich();
    const detail = this.details.ofFunction(this.measured, this.sums, index);
    announce(`${this.profile.functions[index].name}: total ${this.details.totalText(detail)}`);
  }

  showSandwich() {
    const index = this.chosenFunction;
    byId('sandwich-hint').hidden = index >= 0;
    byId('sandwich-content').hidden = index < 0;
    if (index < 0) return;
    const {measured, profile} = this;
    const find = () => {
      const name = profile.functions[index].name.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
      byId('search').value = `^${name}$`;
      this.setSearch(byId('search').value);
    };
    const isOfFunction = (node) => functionOfFrame(measured.tree.frame[node]) === index;
    this.details.fill(
      byId('function-details'),
      this.details.ofFunction(measured, this.sums, index),
      this.measurer.linesOf(this.subject, isOfFunction),
      [{name: 'Search for it', run: find}],
    );
    this.sandwich.show(measured, index, this.widths);
  }
}

async function main() {
  try {
    const pace = new Pace();
    const bytes = await unpacked(byId('data').textContent.trim());
    byId('data').remove();
    const profile = await PageProfile.read(new ColumnReader(bytes), pace);
    const lines = new LineTree(profile);
    const {tree, nodeOf} = await mergedTree(profile, lines, pace);
    new App(profile, new Measurer(profile, lines, tree, nodeOf));
    // The second frame begins when the first one is on the screen.
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    await frame();
    await frame();
    document.documentElement.dataset.ready = performance.now().toFixed(1);
  } catch (error) {
    byId('problem').hidden = false;
    byId('problem').textContent = `This profile cannot be shown: ${error}`;
    throw error;
  }
}
main();
