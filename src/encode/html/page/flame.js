// FlameGraph: a tree of calls as nested bars on a canvas.

const MIN_LABEL_PX = 24;
const LABEL_PADDING_PX = 5;
const ZOOM_MS = 180;

/**
 * What a graph asks its page.
 * @typedef {object} FlameHost
 * @property {(frame: number) => string} nameOf in short, for a bar
 * @property {(graph: FlameGraph, node: number) => number} fillOf into the palette's fills
 * @property {() => Palette} palette
 * @property {(frame: number) => boolean} isPseudo
 * @property {(graph: FlameGraph, node: number, event: MouseEvent|null) => void} onHover
 * @property {(graph: FlameGraph, node: number) => void} onSelect
 * @property {(graph: FlameGraph, node: number) => void} onZoom
 */

class FlameGraph {
  /**
   * @param {HTMLElement} scroller @param {string} name @param {FlameHost} host
   * @param {'up'|'down'} direction from callers to callees
   */
  constructor(scroller, name, host, direction) {
    this.scroller = scroller;
    this.host = host;
    this.direction = direction;
    this.canvas = element('canvas', {
      tabIndex: 0,
      role: 'application',
      'aria-roledescription': 'flame graph',
      'aria-label': name,
    });
    this.spacer = element('div', {className: 'spacer'});
    scroller.classList.add('graph');
    scroller.append(this.canvas, this.spacer);
    /** @type {CanvasRenderingContext2D} */
    this.context = this.canvas.getContext('2d', {alpha: false});
    /** @type {Map<string, Map<string, number>>} by font and character */
    this.characterWidths = new Map();
    this.measured = Measured.empty();
    this.boxes = new Boxes(this.measured.tree, new Float64Array(1));
    this.selected = 0;
    this.zoomed = 0;
    /** @type {Span} */
    this.range = {from: 0, to: 1};
    this.animation = 0;
    this.isScheduled = false;
    this.pointer = 'mouse';
    this.rowPx = 20;
    this.widthPx = 0;
    this.heightPx = -1; // of all rows; -1 before the first layout
    this.visiblePx = 0;
    this.listen();
  }

  listen() {
    const {canvas, scroller, host} = this;
    new ResizeObserver(() => this.resize()).observe(scroller);
    scroller.addEventListener('scroll', () => this.schedule());
    canvas.addEventListener('pointerdown', (event) => {
      this.pointer = event.pointerType;
    });
    canvas.addEventListener('click', (event) => this.click(event));
    canvas.addEventListener('pointermove', (event) => {
      if (event.pointerType !== 'touch') host.onHover(this, this.nodeAt(event), event);
    });
    canvas.addEventListener('pointerleave', () => host.onHover(this, 0, null));
    canvas.addEventListener('keydown', (event) => this.key(event));
    canvas.addEventListener('focus', () => {
      const [first] = this.boxes.calleesOf(this.zoomed).nodes;
      if (this.selected === 0 && first !== undefined && canvas.matches(':focus-visible'))
        this.select(first);
      else this.schedule();
    });
    canvas.addEventListener('blur', () => this.schedule());
  }

  /** @param {Measured} measured @param {'both'|'now'|'base'} by */
  show(measured, by) {
    const isOther = this.measured.tree !== measured.tree;
    this.measured = measured;
    this.boxes = new Boxes(measured.tree, measured.widths(by));
    const {amounts} = this.boxes;
    if (isOther || !(amounts[this.zoomed] > 0)) this.zoomed = 0;
    if (isOther || !(amounts[this.selected] > 0)) this.selected = 0;
    this.range = this.boxes.rangeOf(this.zoomed);
    const width = this.scroller.clientWidth || innerWidth;
    this.boxes.addLevels(0, width);
    this.boxes.addLevels(this.zoomed, width);
    this.resize();
  }

  /** Takes the size that the scroller has, and draws. */
  resize() {
    if (this.scroller.clientWidth === 0) return;
    const rows = Math.max(1, this.boxes.levels);
    const isTouch = matchMedia('(pointer: coarse)').matches;
    this.rowPx = rows <= 14 ? 27 : isTouch ? 24 : rows <= 32 ? 21 : 18;
    const wasAtRoot = this.heightPx < 0 || this.isAtRoot();
    this.heightPx = rows * this.rowPx;
    this.spacer.style.height = '0';
    this.canvas.style.height = `${this.heightPx}px`; // so that the scroller takes the height it may
    this.visiblePx = Math.min(this.heightPx, this.scroller.clientHeight);
    this.canvas.style.height = `${this.visiblePx}px`;
    this.spacer.style.height = `${this.heightPx - this.visiblePx}px`;
    this.widthPx = this.scroller.clientWidth;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(this.widthPx * ratio);
    this.canvas.height = Math.round(this.visiblePx * ratio);
    if (wasAtRoot) this.scroller.scrollTop = this.direction === 'up' ? this.heightPx : 0;
    this.draw();
  }

  isAtRoot() {
    const {scrollTop, clientHeight} = this.scroller;
    return this.direction === 'up' ? scrollTop + clientHeight >= this.heightPx - 2 : scrollTop <= 2;
  }

  /** @param {'up'|'down'} direction */
  turn(direction) {
    this.direction = direction;
    this.heightPx = -1;
    this.resize();
  }

  schedule() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame(() => {
      this.isScheduled = false;
      this.draw();
    });
  }

  /** Where a row begins on the canvas; row 0 has the outermost frames. @param {number} row */
  topOf(row) {
    const rows = Math.max(1, this.boxes.levels);
    return (
      (this.direction === 'down' ? row : rows - 1 - row) * this.rowPx - this.scroller.scrollTop
    );
  }

  /** @param {number} y on the canvas */
  rowAt(y) {
    const row = Math.floor((y + this.scroller.scrollTop) / this.rowPx);
    return this.direction === 'down' ? row : Math.max(1, this.boxes.levels) - 1 - row;
  }

  draw() {
    if (this.widthPx === 0) return;
    const begin = performance.now();
    const ends = [this.rowAt(0), this.rowAt(this.visiblePx - 1)];
    this.boxes.find(this.range, Math.min(...ends), Math.max(...ends), this.widthPx);
    this.paint();
    this.canvas.dataset.frames = String(this.boxes.nodes.length);
    this.canvas.dataset.drawMs = (performance.now() - begin).toFixed(2);
  }

  paint() {
    const {context, boxes, host, rowPx} = this;
    const palette = host.palette();
    const ratio = devicePixelRatio || 1;
    const style = getComputedStyle(this.scroller);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = style.backgroundColor;
    context.fillRect(0, 0, this.widthPx, this.visiblePx);
    const fills = boxes.nodes.map((node) => (node < 0 ? palette.rest : host.fillOf(this, node)));
    // A change of colour costs more than a box.
    /** @type {number[][]} */
    const boxesOfFill = palette.fills.map(() => []);
    fills.forEach((fill, i) => boxesOfFill[fill].push(i));
    boxesOfFill.forEach((indices, fill) => {
      context.fillStyle = palette.fills[fill];
      for (const i of indices) {
        const gap = boxes.widths[i] > 3 ? 1 : 0;
        context.fillRect(
          boxes.lefts[i],
          this.topOf(boxes.rows[i]),
          boxes.widths[i] - gap,
          rowPx - 1,
        );
      }
    });
    context.textBaseline = 'middle';
    context.direction = 'ltr';
    const font = `${rowPx > 20 ? 13 : 12}px ${style.fontFamily}`;
    boxes.nodes.forEach((node, i) => {
      if (node < 0 || boxes.widths[i] < MIN_LABEL_PX) return;
      this.label(i, fills[i] === palette.dim ? palette.dimText : palette.text, font, palette);
    });
    this.ring(palette);
  }

  /** @param {number} box @param {string} colour @param {string} font @param {Palette} palette */
  label(box, colour, font, palette) {
    const {context, boxes, host} = this;
    const frame = boxes.tree.frame[boxes.nodes[box]];
    const [left, width, top] = [boxes.lefts[box], boxes.widths[box], this.topOf(boxes.rows[box])];
    const isPseudo = host.isPseudo(frame);
    if (isPseudo) this.stripe(left, top, width - 1, palette);
    context.font = isPseudo || isInlinedFrame(frame) ? `italic ${font}` : font;
    context.fillStyle = colour;
    const text = this.fitted(host.nameOf(frame), width - 2 * LABEL_PADDING_PX);
    if (text) context.fillText(text, left + LABEL_PADDING_PX, top + this.rowPx / 2);
  }

  /**
   * Marks a pseudo-frame.
   * @param {number} left @param {number} top @param {number} width @param {Palette} palette
   */
  stripe(left, top, width, palette) {
    const {context, rowPx} = this;
    context.save();
    context.beginPath();
    context.rect(left, top, width, rowPx - 1);
    context.clip();
    context.beginPath();
    for (let x = left - rowPx; x < left + width; x += 8) {
      context.moveTo(x, top + rowPx);
      context.lineTo(x + rowPx, top);
    }
    context.strokeStyle = palette.stripe;
    context.lineWidth = 3;
    context.stroke();
    context.restore();
  }

  /** Marks the selected frame. @param {Palette} palette */
  ring(palette) {
    const {context, boxes, rowPx} = this;
    const i = this.selected === 0 ? -1 : boxes.nodes.indexOf(this.selected);
    if (i < 0) return;
    context.strokeStyle = palette.ring;
    context.lineWidth = document.activeElement === this.canvas ? 3 : 2;
    const inset = context.lineWidth / 2;
    const width = Math.max(1, boxes.widths[i] - 2 * inset - 1);
    const top = this.topOf(boxes.rows[i]) + inset;
    context.strokeRect(boxes.lefts[i] + inset, top, width, rowPx - 1 - 2 * inset);
  }

  /**
   * As much of a text as fits; measures a character only once.
   * @param {string} text @param {number} room
   */
  fitted(text, room) {
    const {context} = this;
    const widths = this.characterWidths.get(context.font) ?? new Map();
    this.characterWidths.set(context.font, widths);
    const widthOf = (character) => {
      if (!widths.has(character)) widths.set(character, context.measureText(character).width);
      return widths.get(character) ?? 0;
    };
    const dots = widthOf('…');
    let used = 0;
    let end = 0;
    let cut = 0; // where the text must end for "…" to fit behind it
    for (const character of text) {
      used += widthOf(character);
      if (used > room) return cut > 1 ? `${text.slice(0, cut)}…` : '';
      end += character.length;
      if (used + dots <= room) cut = end;
    }
    return text;
  }

  /** The node under the pointer, or 0. @param {MouseEvent} event */
  nodeAt(event) {
    const {left, top} = this.canvas.getBoundingClientRect();
    return this.boxes.at(event.clientX - left, this.rowAt(event.clientY - top));
  }

  /** A mouse zooms at once; a finger sees first what it has found. @param {MouseEvent} event */
  click(event) {
    const node = this.nodeAt(event);
    if (node === 0) return;
    const isSecond = this.selected === node;
    this.select(node);
    if (this.pointer === 'touch' && !isSecond) return;
    this.zoom(node === this.zoomed ? this.measured.tree.parent[node] : node);
  }

  /** @param {number} node */
  select(node) {
    this.selected = node;
    if (node !== 0) this.reveal(node);
    this.schedule();
    this.host.onSelect(this, node);
  }

  /** Scrolls so that a node's row is visible. @param {number} node */
  reveal(node) {
    const top = this.topOf(this.measured.tree.depth[node] - 1);
    if (top < 0) this.scroller.scrollTop += top;
    else if (top + this.rowPx > this.visiblePx)
      this.scroller.scrollTop += top + this.rowPx - this.visiblePx;
  }

  /** Shows a node at full width. @param {number} node */
  zoom(node) {
    this.zoomed = node;
    if (this.boxes.addLevels(node, this.widthPx || innerWidth)) this.resize();
    const from = {...this.range};
    const to = this.boxes.rangeOf(node);
    const begin = performance.now();
    cancelAnimationFrame(this.animation);
    const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches;
    const step = () => {
      const part = isStill ? 1 : Math.min(1, (performance.now() - begin) / ZOOM_MS);
      const eased = 1 - (1 - part) ** 3;
      const between = (a, b) => (part === 1 ? b : a + (b - a) * eased);
      this.range = {from: between(from.from, to.from), to: between(from.to, to.to)};
      this.draw();
      if (part < 1) this.animation = requestAnimationFrame(step);
    };
    step();
    this.host.onZoom(this, node);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = this.nextOf(event.key);
    if (next >= 0) this.select(next);
    else if (!this.zoomByKey(event.key)) return;
    event.preventDefault();
  }

  /** The node that a key goes to; -1 if it goes nowhere. @param {string} key */
  nextOf(key) {
    const {boxes, selected} = this;
    const deeper = this.direction === 'up' ? 'ArrowUp' : 'ArrowDown';
    const widest = (node) => boxes.calleesOf(node).nodes[0] ?? node;
    if (key === deeper) return widest(selected);
    if (key === 'ArrowUp' || key === 'ArrowDown') return boxes.tree.parent[selected] || selected;
    if (key === 'ArrowRight') return boxes.neighbour(selected, 1);
    if (key === 'ArrowLeft') return boxes.neighbour(selected, -1);
    return key === 'Home' ? widest(0) : -1;
  }

  /** True if the key zooms. @param {string} key */
  zoomByKey(key) {
    if (key === 'Enter' || key === ' ' || key === '+') this.zoom(this.selected);
    else if (key === 'Backspace' || key === '-') this.zoom(this.measured.tree.parent[this.zoomed]);
    else if (key === 'Escape' || key === '0') this.zoom(0);
    else return false;
    return true;
  }
}
