// Heatmap: when there was how much. Time runs down a column, and column by column to the right, so
// that a second has a place of its own at every scale.

const CELL_PX = 9;
const MS = 1e6;
const ROUNDING = 1e-6; // of a cell: times that people type lie on its border
/** What a column can last, in ns. */
const COLUMN_NS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 3e5, 6e5, 36e5,
].map((ms) => ms * MS);

class Heatmap {
  /**
   * @param {HTMLElement} host @param {PageProfile} profile @param {() => Palette} palette
   * @param {(window: Span|null) => void} onWindow
   */
  constructor(host, profile, palette, onWindow) {
    this.host = host;
    this.profile = profile;
    this.palette = palette;
    this.onWindow = onWindow;
    const {time} = profile.moments;
    this.first = time.length > 0 ? time[0] : 0;
    this.last = time.length > 0 ? time[time.length - 1] + 1 : 1;
    /** @type {Span|null} */
    this.window = null;
    this.anchor = -1;
    this.cursor = 0;
    this.type = 0;
    /** @type {Uint8Array} */
    this.includes = new Uint8Array(0);
    this.amounts = new Float64Array(0);
    this.most = 0;
    this.rows = 1;
    this.columns = 1;
    this.columnNs = 1;
    this.cellNs = 1;
    this.cellWidth = 1;
    this.cellHeight = 1;
    this.origin = 0;
    this.canvas = element('canvas', {
      tabIndex: 0,
      role: 'application',
      'aria-roledescription': 'heatmap of time',
      'aria-label':
        'Heatmap of time: arrow keys move, Shift extends, Enter shows the window, Escape all',
    });
    this.context = this.canvas.getContext('2d');
    host.append(this.canvas);
    this.listen();
  }

  listen() {
    const {canvas} = this;
    new ResizeObserver(() => this.resize()).observe(this.host);
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      const cell = this.cellAt(event);
      if (!event.shiftKey || this.anchor < 0) this.anchor = cell;
      this.move(cell);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (canvas.hasPointerCapture(event.pointerId)) this.move(this.cellAt(event));
    });
    canvas.addEventListener('pointerup', () => this.take());
    canvas.addEventListener('keydown', (event) => this.key(event));
    for (const name of ['focus', 'blur']) canvas.addEventListener(name, () => this.draw());
  }

  /** The amounts to show. @param {Subject} selection */
  show({type, includes}) {
    this.type = type;
    this.includes = includes;
    this.resize();
  }

  resize() {
    const width = this.host.clientWidth;
    if (width === 0 || this.includes.length === 0) return;
    const span = this.last - this.first;
    const maxColumns = Math.max(1, Math.floor(width / CELL_PX));
    this.columnNs = COLUMN_NS.find((ns) => span / ns <= maxColumns) ?? span / maxColumns;
    // No more rows than moments can fill.
    const perColumn = this.profile.moments.row.length / Math.max(1, span / this.columnNs);
    this.rows = [1, 2, 4, 5, 10, 20].filter((rows) => rows <= Math.max(1, perColumn)).pop() ?? 1;
    this.origin = Math.floor(this.first / this.columnNs) * this.columnNs;
    this.columns = Math.max(1, Math.ceil((this.last - this.origin) / this.columnNs));
    this.cellNs = this.columnNs / this.rows;
    this.cellWidth = width / this.columns;
    this.cellHeight = this.rows >= 10 ? 7 : this.rows >= 4 ? 10 : 32 / this.rows;
    this.fill();
    const ratio = devicePixelRatio || 1;
    const height = Math.ceil(this.rows * this.cellHeight);
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.draw();
  }

  fill() {
    const {row, time, values} = this.profile.moments;
    const {labels} = this.profile.sides[0].rows;
    this.amounts = new Float64Array(this.columns * this.rows);
    for (let i = 0; i < row.length; i++)
      if (this.includes[labels[row[i]]])
        this.amounts[this.cellOf(time[i])] += values[this.type][i] * this.profile.momentStride;
    this.most = this.amounts.reduce((most, amount) => Math.max(most, amount), 0);
  }

  /** Cells are numbered in the order of time. @param {number} time */
  cellOf(time) {
    return Math.max(
      0,
      Math.min(
        this.columns * this.rows - 1,
        Math.floor((time - this.origin) / this.cellNs + ROUNDING),
      ),
    );
  }

  /** @param {number} cell */
  timeOf(cell) {
    return this.origin + cell * this.cellNs;
  }

  /** @param {{clientX: number, clientY: number}} event */
  cellAt(event) {
    const {left, top} = this.canvas.getBoundingClientRect();
    const column = Math.max(
      0,
      Math.min(this.columns - 1, Math.floor((event.clientX - left) / this.cellWidth)),
    );
    const row = Math.max(
      0,
      Math.min(this.rows - 1, Math.floor((event.clientY - top) / this.cellHeight)),
    );
    return column * this.rows + row;
  }

  draw() {
    const {context, amounts, rows} = this;
    const ratio = devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.host.clientWidth, rows * this.cellHeight);
    const {fills, heat, ring} = this.palette();
    const box = (cell) => [
      Math.floor(cell / rows) * this.cellWidth,
      (cell % rows) * this.cellHeight,
    ];
    for (let cell = 0; cell < amounts.length; cell++) {
      if (amounts[cell] === 0) continue;
      const [x, y] = box(cell);
      const level = Math.floor((amounts[cell] / this.most) * heat.length);
      context.fillStyle = fills[heat[Math.min(heat.length - 1, level)]];
      context.fillRect(x, y, Math.max(1, this.cellWidth - 1), Math.max(1, this.cellHeight - 1));
    }
    const selected = this.selectedCells();
    if (selected) {
      context.fillStyle = getComputedStyle(this.canvas).color;
      context.globalAlpha = 0.3;
      for (let cell = selected[0]; cell <= selected[1]; cell++)
        context.fillRect(...box(cell), this.cellWidth, this.cellHeight);
      context.globalAlpha = 1;
    }
    if (this.canvas.matches(':focus-visible') || this.anchor >= 0) {
      const [x, y] = box(this.cursor);
      context.strokeStyle = ring;
      context.lineWidth = 2;
      context.strokeRect(
        x + 1,
        y + 1,
        Math.max(2, this.cellWidth - 2),
        Math.max(2, this.cellHeight - 2),
      );
    }
  }

  /** The first and the last cell of the selection, or null. */
  selectedCells() {
    if (this.anchor >= 0)
      return [Math.min(this.anchor, this.cursor), Math.max(this.anchor, this.cursor)];
    if (!this.window) return null;
    return [
      this.cellOf(this.window.from),
      Math.max(
        this.cellOf(this.window.from),
        Math.ceil((this.window.to - this.origin) / this.cellNs - ROUNDING) - 1,
      ),
    ];
  }

  /** @param {number} cell */
  move(cell) {
    this.cursor = Math.max(0, Math.min(this.columns * this.rows - 1, cell));
    const [first, last] = this.selectedCells() ?? [this.cursor, this.cursor];
    const unit = this.profile.types[this.type].unit;
    let sum = 0;
    for (let i = first; i <= last; i++) sum += this.amounts[i];
    const [from, to] = [this.timeOf(first), this.timeOf(last + 1)];
    announce(`${formatTime(from)} to ${formatTime(to)}: ${formatAmount(sum, unit)}`);
    this.draw();
  }

  take() {
    const cells = this.selectedCells() ?? [this.cursor, this.cursor];
    this.anchor = -1;
    this.onWindow({from: this.timeOf(cells[0]), to: this.timeOf(cells[1] + 1)});
  }

  /** @param {Span|null} window */
  setWindow(window) {
    this.window = window;
    this.draw();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const steps = /** @type {Record<string, number>} */ ({
      ArrowLeft: -this.rows,
      ArrowRight: this.rows,
      ArrowUp: -1,
      ArrowDown: 1,
    });
    if (event.key in steps) {
      if (!event.shiftKey) this.anchor = -1;
      else if (this.anchor < 0) this.anchor = this.cursor;
      this.move(this.cursor + steps[event.key]);
    } else if (event.key === 'Enter' || event.key === ' ') {
      if (this.anchor < 0) this.anchor = this.cursor;
      this.take();
    } else if (event.key === 'Escape') {
      this.anchor = -1;
      this.onWindow(null);
    } else {
      return;
    }
    event.preventDefault();
  }
}
