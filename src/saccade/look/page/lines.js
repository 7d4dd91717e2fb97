// One head as lines between two texts: at rest the three strongest of each row, under the pointer 95 % of all.
import { Component } from "./vendor/preact.js";
import { html } from "./view.js";
import { pinAt } from "./doing.js";
import { HALF, percent } from "./numbers.js";
import { clipped, edgeLabel } from "./record.js";
import { focus } from "./linked.js";
import { onHover, setHover } from "./state.js";

const LINE = 26;
const TALLEST_LIST = 560;
const AT_REST = 3;
const SHARE = 0.95;

export class Lines extends Component {
  componentDidMount() {
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.box);
    this.off = onHover(() => this.draw());
    this.draw();
  }

  componentDidUpdate() {
    this.draw();
  }

  componentWillUnmount() {
    this.observer.disconnect();
    this.off();
  }

  draw() {
    const { run, look, weights, letter } = this.props;
    if (!this.canvas || !weights || !this.box.clientWidth) return;
    const width = this.box.clientWidth;
    const whole = Math.max(weights.rows, weights.columns) * LINE + 8;
    const height = Math.min(whole, TALLEST_LIST);
    const scale = Math.min(2, devicePixelRatio || 1);
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    this.room.style.height = `${whole}px`;
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const scroll = this.box.scrollTop;
    const style = getComputedStyle(document.documentElement);
    const colours = { text: style.getPropertyValue("--text"), faint: style.getPropertyValue("--muted"), accent: style.getPropertyValue("--accent") };
    const side = Math.min(220, width * 0.36);
    const at = focus(letter);
    const y = (place) => place * LINE + LINE / 2 + 4 - scroll;
    const seen = (place) => y(place) > -LINE * 20 && y(place) < height + LINE * 20;
    context.strokeStyle = colours.accent;
    const chosen = this.chosenLines(weights, at);
    for (const [row, column, weight] of chosen.lines) {
      if (!seen(row) && !seen(column)) continue;
      context.globalAlpha = 0.18 + 0.8 * Math.sqrt(weight);
      context.lineWidth = 0.6 + 6 * weight;
      context.beginPath();
      context.moveTo(side, y(column));
      context.bezierCurveTo(width / 2, y(column), width / 2, y(row), width - side, y(row));
      context.stroke();
    }
    context.globalAlpha = 1;
    context.font = "15px system-ui, sans-serif";
    context.textBaseline = "middle";
    const first = Math.max(0, Math.floor((scroll - 8) / LINE));
    const last = Math.ceil((scroll + height) / LINE);
    const write = (axis, count, x, align, mine) => {
      context.textAlign = align;
      for (let i = first; i < Math.min(count, last); i++) {
        context.font = i === mine ? "700 15px system-ui, sans-serif" : "15px system-ui, sans-serif";
        context.fillStyle = i === mine ? colours.accent : chosen.touched && !chosen.touched(axis === run.columns(look) ? "column" : "row", i) ? colours.faint : colours.text;
        context.fillText(clipped(edgeLabel(axis, i), 26), x, y(i), side - 12);
      }
    };
    write(run.columns(look), weights.columns, side - 10, "right", at.column);
    write(run.rows(look), weights.rows, width - side + 10, "left", at.row);
    if (chosen.rest !== null && at.row !== null && seen(at.row)) {
      context.textAlign = "right";
      context.font = "13px system-ui, sans-serif";
      context.fillStyle = colours.faint;
      context.fillText(`rest ${percent(chosen.rest)}`, width - 4, Math.min(height - 8, y(at.row) + 17));
    }
  }

  chosenLines(weights, at) {
    const lines = [];
    if (at.row !== null && at.row !== undefined && at.row < weights.rows) {
      const row = Array.from({ length: weights.columns }, (_, c) => [at.row, c, HALF[weights.bits[at.row * weights.columns + c]]]).sort((a, b) => b[2] - a[2]);
      const total = row.reduce((sum, one) => sum + one[2], 0);
      let sum = 0;
      for (const one of row) {
        if (sum >= SHARE * total || one[2] <= 0) break;
        lines.push(one);
        sum += one[2];
      }
      const columns = new Set(lines.map((one) => one[1]));
      return { lines, rest: total - sum, touched: (side, i) => (side === "column" ? columns.has(i) : i === at.row) };
    }
    if (at.column !== null && at.column !== undefined && at.column < weights.columns) {
      for (let r = 0; r < weights.rows; r++) {
        const weight = HALF[weights.bits[r * weights.columns + at.column]];
        if (weight > 0.01) lines.push([r, at.column, weight]);
      }
      const rows = new Set(lines.map((one) => one[0]));
      return { lines, rest: null, touched: (side, i) => (side === "row" ? rows.has(i) : i === at.column) };
    }
    return { lines: this.strongest(weights), rest: null, touched: null };
  }

  // Of every row the three largest, found once per head.
  strongest(weights) {
    if (this.strong?.of === weights.bits) return this.strong.lines;
    const lines = [];
    for (let r = 0; r < weights.rows; r++) {
      const best = [];
      for (let c = 0; c < weights.columns; c++) {
        const bits = weights.bits[r * weights.columns + c];
        if (best.length < AT_REST || bits > best.at(-1)[1]) {
          best.push([c, bits]);
          best.sort((a, b) => b[1] - a[1]);
          if (best.length > AT_REST) best.pop();
        }
      }
      for (const [c, bits] of best) if (HALF[bits] > 0.03) lines.push([r, c, HALF[bits]]);
    }
    this.strong = { of: weights.bits, lines };
    return lines;
  }

  placeAt(event) {
    const { weights } = this.props;
    const bounds = this.canvas.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const place = Math.floor((event.clientY - bounds.top - 4 + this.box.scrollTop) / LINE);
    if (x < bounds.width * 0.4) return place < weights.columns ? { row: null, column: place } : null;
    if (x > bounds.width * 0.6) return place < weights.rows ? { row: place, column: null } : null;
    return null;
  }

  render({ letter }) {
    return html`<div class="lines" ref=${(element) => { this.box = element; }} onScroll=${() => this.draw()} tabindex="0" role="img" aria-label="Lines between the two texts: the same numbers stand in the table">
      <div ref=${(element) => { this.room = element; }}>
        <canvas aria-hidden="true" ref=${(element) => { this.canvas = element; }}
          onPointerMove=${(event) => { const at = this.placeAt(event); setHover(at?.row ?? null, at?.column ?? null, letter); }}
          onPointerLeave=${() => setHover(null, null, letter)}
          onClick=${(event) => { const at = this.placeAt(event); if (at) pinAt(at.row, at.column, at.row === null ? "column" : "row", letter); }}></canvas>
      </div>
    </div>`;
  }
}
