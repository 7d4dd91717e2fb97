// One head as a matrix: a canvas for weights, one above it for what is pointed at, and one cell in words for readers.
import { Component } from "./vendor/preact.js";
import { html } from "./view.js";
import { currentTheme, inkOn, weightPixels } from "./colour.js";
import { pinAt, spokenPlace } from "./doing.js";
import { scaleTop } from "./legend.js";
import { HALF } from "./numbers.js";
import { axisLength, clipped, edgeLabel } from "./record.js";
import { focus } from "./linked.js";
import { onHover, setHover, state } from "./state.js";

const LARGEST_CELL = 42;
const TALLEST = 560;
const FONT = "13px system-ui, sans-serif";

export class Matrix extends Component {
  componentDidMount() {
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.box);
    this.off = onHover(() => this.mark());
    this.draw();
  }

  componentDidUpdate() {
    this.draw();
  }

  componentWillUnmount() {
    this.observer.disconnect();
    this.off();
  }

  // Sizes in CSS pixels: margins for labels, and of a cell.
  layout() {
    const { weights, run, look } = this.props;
    const width = this.box.clientWidth;
    const context = this.base.getContext("2d");
    context.font = FONT;
    const longest = (axis, most) => {
      let found = 24;
      for (let i = 0; i < Math.min(axisLength(axis), 400); i++) {
        found = Math.max(found, Math.min(most, context.measureText(clipped(edgeLabel(axis, i), 24)).width + 12));
      }
      return found;
    };
    const left = Math.min(longest(run.rows(look), 150), width * 0.35);
    const above = Math.min(longest(run.columns(look), 110) * 0.72 + 14, 100);
    const across = Math.max(0.01, Math.min(LARGEST_CELL, (width - left - 30) / weights.columns));
    const down = Math.max(0.01, Math.min(LARGEST_CELL, TALLEST / weights.rows, Math.max(across * 3, 14)));
    return { width, left, above, across, down, height: Math.ceil(above + down * weights.rows + 4) };
  }

  draw() {
    const { weights, run, look } = this.props;
    if (!this.base || !weights || !this.box.clientWidth) return;
    const at = this.layout();
    const theme = currentTheme();
    const top = scaleTop(weights);
    const key = [run.run.id, look, this.props.plane, at.width, theme, top, weights.bits.length].join();
    if (this.drawn !== key) {
      this.drawn = key;
      this.at = at;
      const scale = Math.min(2, devicePixelRatio || 1);
      for (const canvas of [this.base, this.over]) {
        canvas.width = at.width * scale;
        canvas.height = at.height * scale;
        canvas.style.width = `${at.width}px`;
        canvas.style.height = `${at.height}px`;
      }
      this.scale = scale;
      const context = this.base.getContext("2d");
      context.setTransform(scale, 0, 0, scale, 0, 0);
      this.drawWeights(context, weights, at, theme, top);
      this.drawLabels(context, at);
    }
    this.mark();
  }

  drawWeights(context, weights, at, theme, top) {
    const shrunk = shrink(weights, Math.ceil(at.down * weights.rows * this.scale), Math.ceil(at.across * weights.columns * this.scale));
    const table = weightPixels(theme, top);
    const pixels = new Uint32Array(shrunk.bits.length);
    for (let i = 0; i < pixels.length; i++) pixels[i] = table[shrunk.bits[i]];
    const picture = new OffscreenCanvas(shrunk.columns, shrunk.rows);
    picture.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), shrunk.columns, shrunk.rows), 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(picture, at.left, at.above, at.across * weights.columns, at.down * weights.rows);
    const style = getComputedStyle(document.documentElement);
    context.strokeStyle = style.getPropertyValue("--line");
    context.lineWidth = 1;
    context.strokeRect(at.left - 0.5, at.above - 0.5, at.across * weights.columns + 1, at.down * weights.rows + 1);
    if (Math.min(at.across, at.down) >= 10) {
      context.beginPath();
      for (let r = 1; r < weights.rows; r++) {
        context.moveTo(at.left, at.above + r * at.down);
        context.lineTo(at.left + at.across * weights.columns, at.above + r * at.down);
      }
      for (let c = 1; c < weights.columns; c++) {
        context.moveTo(at.left + c * at.across, at.above);
        context.lineTo(at.left + c * at.across, at.above + at.down * weights.rows);
      }
      context.globalAlpha = 0.5;
      context.stroke();
      context.globalAlpha = 1;
    }
    if (at.across >= 32 && at.down >= 20) this.drawNumbers(context, weights, at, theme, top);
  }

  drawNumbers(context, weights, at, theme, top) {
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let r = 0; r < weights.rows; r++) {
      for (let c = 0; c < weights.columns; c++) {
        const weight = HALF[weights.bits[r * weights.columns + c]];
        if (weight < 0.005) continue;
        context.fillStyle = inkOn(weight, theme, top);
        context.fillText((100 * weight).toFixed(0), at.left + (c + 0.5) * at.across, at.above + (r + 0.5) * at.down);
      }
    }
  }

  drawLabels(context, at) {
    const { run, look } = this.props;
    context.font = FONT;
    context.textBaseline = "middle";
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--text");
    if (at.down >= 13) {
      context.textAlign = "right";
      const rows = run.rows(look);
      for (let r = 0; r < axisLength(rows); r++) context.fillText(clipped(edgeLabel(rows, r), 24), at.left - 8, at.above + (r + 0.5) * at.down, at.left - 10);
    }
    if (at.across >= 13) {
      context.textAlign = "left";
      const columns = run.columns(look);
      for (let c = 0; c < axisLength(columns); c++) {
        context.save();
        context.translate(at.left + (c + 0.5) * at.across, at.above - 8);
        context.rotate(-Math.PI / 4);
        context.fillText(clipped(edgeLabel(columns, c), 16), 0, 0, 130);
        context.restore();
      }
    }
  }

  // What is pointed at, or pinned: a row, a column, a cell.
  mark() {
    const { run, look, letter, weights } = this.props;
    if (!this.over || !this.at || !weights) return;
    const context = this.over.getContext("2d");
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    context.clearRect(0, 0, this.at.width, this.at.height);
    const { row, column } = focus(letter);
    const { left, above, across, down } = this.at;
    const style = getComputedStyle(document.documentElement);
    const accent = style.getPropertyValue("--accent");
    context.strokeStyle = accent;
    context.lineWidth = 2;
    if (row !== null && row !== undefined && row < weights.rows) {
      context.strokeRect(left, above + row * down, across * weights.columns, Math.max(2, down));
    }
    if (column !== null && column !== undefined && column < weights.columns) {
      context.strokeRect(left + column * across, above, Math.max(2, across), down * weights.rows);
    }
    // Where cells are too small for labels, those that are pointed at stand beside them.
    context.font = FONT;
    context.textBaseline = "middle";
    const tag = (text, x, y, align) => {
      const width = context.measureText(text).width + 10;
      const from = align === "right" ? x - width : x;
      context.fillStyle = accent;
      context.beginPath();
      context.roundRect(Math.max(0, Math.min(from, this.at.width - width)), y - 10, width, 20, 4);
      context.fill();
      context.fillStyle = style.getPropertyValue("--ground");
      context.textAlign = "left";
      context.fillText(text, Math.max(0, Math.min(from, this.at.width - width)) + 5, y);
    };
    if (down < 13 && row !== null && row !== undefined && row < weights.rows) tag(clipped(edgeLabel(run.rows(look), row), 20), left - 4, above + (row + 0.5) * down, "right");
    if (across < 13 && column !== null && column !== undefined && column < weights.columns) tag(clipped(edgeLabel(run.columns(look), column), 20), left + column * across, above - 12, "left");
  }

  cellAt(event) {
    const { weights } = this.props;
    const bounds = this.over.getBoundingClientRect();
    const column = Math.floor((event.clientX - bounds.left - this.at.left) / this.at.across);
    const row = Math.floor((event.clientY - bounds.top - this.at.above) / this.at.down);
    const inside = row >= 0 && row < weights.rows && column < weights.columns;
    if (!inside) return null;
    return { row, column: column < 0 ? null : column };
  }

  move(event) {
    if (!this.at || !this.props.weights) return;
    const cell = this.cellAt(event);
    setHover(cell?.row ?? null, cell?.column ?? null, this.props.letter);
  }

  click(event) {
    const cell = this.cellAt(event);
    if (cell) pinAt(cell.row, cell.column, "row", this.props.letter);
  }

  key(event) {
    const { weights, letter } = this.props;
    if (!weights) return;
    const row = state.pin?.row ?? 0;
    const column = state.pin?.column ?? 0;
    const to = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], PageDown: [10, 0], PageUp: [-10, 0] }[event.key];
    let next = to && [row + to[0], column + to[1]];
    if (event.key === "Home") next = [row, 0];
    if (event.key === "End") next = [row, weights.columns - 1];
    if (!next) return;
    event.preventDefault();
    pinAt(Math.min(weights.rows - 1, Math.max(0, next[0])), Math.min(weights.columns - 1, Math.max(0, next[1])), "row", letter);
  }

  render({ run, look, letter, weights, pin }) {
    const row = Math.min(pin?.row ?? 0, (weights?.rows ?? 1) - 1);
    const column = Math.min(pin?.column ?? 0, (weights?.columns ?? 1) - 1);
    return html`<div class="matrix" ref=${(element) => { this.box = element; }}>
      <canvas aria-hidden="true" ref=${(element) => { this.base = element; }}></canvas>
      <canvas aria-hidden="true" class="over" ref=${(element) => { this.over = element; }} onPointerMove=${(event) => this.move(event)} onPointerLeave=${() => setHover(null, null, letter)} onClick=${(event) => this.click(event)}></canvas>
      <div class="cellmirror" role="grid" aria-label=${`Weights, ${weights?.rows ?? 0} rows, ${weights?.columns ?? 0} columns`} aria-rowcount=${weights?.rows} aria-colcount=${weights?.columns}>
        <div role="row" aria-rowindex=${row + 1}><div role="gridcell" tabindex="0" aria-colindex=${column + 1} onKeyDown=${(event) => this.key(event)}>${spokenPlace(run, letter, row, column)}</div></div>
      </div>
    </div>`;
  }
}

// No smaller than it is drawn; of several weights in one pixel the largest stays, or lone peaks would vanish.
export function shrink(weights, mostRows, mostColumns) {
  const rows = Math.max(1, Math.min(weights.rows, mostRows));
  const columns = Math.max(1, Math.min(weights.columns, mostColumns));
  if (rows === weights.rows && columns === weights.columns) return weights;
  const bits = new Uint16Array(rows * columns);
  const columnOf = new Uint32Array(weights.columns);
  for (let c = 0; c < weights.columns; c++) columnOf[c] = Math.floor((c * columns) / weights.columns);
  for (let r = 0; r < weights.rows; r++) {
    const to = Math.floor((r * rows) / weights.rows) * columns;
    const from = r * weights.columns;
    for (let c = 0; c < weights.columns; c++) {
      const value = weights.bits[from + c];
      if (value > bits[to + columnOf[c]]) bits[to + columnOf[c]] = value;
    }
  }
  return { bits, rows, columns };
}
