// Looks at a picture: bright where the focused word looked, and the path that the looks took, word by word.
import { Component } from "./vendor/preact.js";
import { html } from "./view.js";
import { pinAt } from "./doing.js";
import { HALF } from "./numbers.js";
import { focus } from "./linked.js";
import { onHover, setHover, state } from "./state.js";
import { scaleTop } from "./legend.js";

const pictures = new Map();
const MOST_PICTURES = 8;

// The picture of a run, from the bytes that came with it.
export function pictureOf(run, whenLoaded) {
  const found = run.array("picture");
  if (!found) return null;
  if (!pictures.has(run.run.id)) {
    const image = new Image();
    image.onload = whenLoaded;
    image.src = URL.createObjectURL(new Blob([found.data], { type: "image/png" }));
    pictures.set(run.run.id, image);
    for (const [id, old] of pictures) {
      if (pictures.size <= MOST_PICTURES) break;
      URL.revokeObjectURL(old.src);
      pictures.delete(id);
    }
  }
  return pictures.get(run.run.id);
}

export class Picture extends Component {
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
    const { run, axis, weights, letter, look } = this.props;
    if (!this.canvas || !this.box.clientWidth) return;
    const image = pictureOf(run, () => this.draw());
    const [rows, columns] = axis.shape;
    const shape = image?.naturalWidth ? image.naturalHeight / image.naturalWidth : rows / columns;
    const width = Math.min(this.box.clientWidth, 520 / Math.max(shape, 0.3));
    const height = width * shape;
    const scale = Math.min(2, devicePixelRatio || 1);
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.size = [width, height];
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    if (image?.naturalWidth) context.drawImage(image, 0, 0, width, height);
    const at = focus(letter);
    const row = at.row ?? (state.pin?.row ?? null);
    if (weights && row !== null && row < weights.rows) this.veil(context, weights, row, width / columns, height / rows, columns);
    this.marks(context, width / columns, height / rows, columns, run, look);
    if (weights && run.looks[look].kind === "cross") this.path(context, weights, width / columns, height / rows, columns);
  }

  // Where it did not look is veiled: a picture stays readable where it matters.
  veil(context, weights, row, w, h, columns) {
    const top = state.stretched ? scaleTop(weights) : largestOfRow(weights, row);
    for (let c = 0; c < weights.columns; c++) {
      const share = Math.sqrt(Math.min(1, HALF[weights.bits[row * weights.columns + c]] / top));
      context.fillStyle = `rgb(10 16 30 / ${(0.82 * (1 - share)).toFixed(3)})`;
      const [left, above] = [Math.round((c % columns) * w), Math.round(Math.floor(c / columns) * h)];
      const [right, below] = [Math.round(((c % columns) + 1) * w), Math.round((Math.floor(c / columns) + 1) * h)];
      context.fillRect(left, above, right - left, below - above);
    }
  }

  marks(context, w, h, columns, run, look) {
    for (const change of run.run.changes) {
      if (change.kind !== "hide" || change.memory !== run.looks[look].memory) continue;
      const x = (change.place % columns) * w;
      const y = Math.floor(change.place / columns) * h;
      context.fillStyle = "#14171c";
      context.fillRect(x, y, w, h);
      context.strokeStyle = "#fdba74";
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(x + w, y + h);
      context.stroke();
    }
    const column = focus(this.props.letter).column;
    if (column === null || column === undefined) return;
    context.strokeStyle = "#fff";
    context.lineWidth = 3;
    context.strokeRect((column % columns) * w, Math.floor(column / columns) * h, w, h);
    context.strokeStyle = "#0b57d0";
    context.lineWidth = 1.5;
    context.strokeRect((column % columns) * w, Math.floor(column / columns) * h, w, h);
  }

  // From the strongest look of one word to that of the next.
  path(context, weights, w, h, columns) {
    const points = Array.from({ length: Math.min(weights.rows, 60) }, (_, r) => {
      let best = 0;
      for (let c = 1; c < weights.columns; c++) if (weights.bits[r * weights.columns + c] > weights.bits[r * weights.columns + best]) best = c;
      return [((best % columns) + 0.5) * w, (Math.floor(best / columns) + 0.5) * h];
    });
    if (points.length < 2) return;
    for (const [colour, line] of [["rgb(255 255 255 / .9)", 4], ["#0b57d0", 2]]) {
      context.strokeStyle = colour;
      context.lineWidth = line;
      context.beginPath();
      points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.stroke();
    }
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    const seen = new Map();
    points.forEach(([x, y], i) => seen.set(`${x} ${y}`, [...(seen.get(`${x} ${y}`) ?? []), i + 1]));
    for (const [key, numbers] of seen) {
      const [x, y] = key.split(" ").map(Number);
      context.fillStyle = "#0b57d0";
      context.beginPath();
      context.arc(x, y, 11, 0, 2 * Math.PI);
      context.fill();
      context.fillStyle = "#fff";
      context.fillText(numbers.length > 1 ? `${numbers[0]}…` : String(numbers[0]), x, y);
    }
  }

  cellAt(event) {
    if (!this.size) return null;
    const [rows, columns] = this.props.axis.shape;
    const bounds = this.canvas.getBoundingClientRect();
    const c = Math.floor(((event.clientX - bounds.left) / bounds.width) * columns);
    const r = Math.floor(((event.clientY - bounds.top) / bounds.height) * rows);
    return r >= 0 && r < rows && c >= 0 && c < columns ? r * columns + c : null;
  }

  key(event) {
    const [rows, columns] = this.props.axis.shape;
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = (state.pin?.side === "column" ? state.pin.column : 0) + by;
    if (next >= 0 && next < rows * columns) pinAt(null, next, "column", this.props.letter);
  }

  render({ letter, run }) {
    return html`<div class="picture" ref=${(element) => { this.box = element; }}>
      <canvas role="img" tabindex="0" aria-label=${`The picture that was looked at, in ${this.props.axis.shape.join(" by ")} fields; arrow keys choose a field`}
        ref=${(element) => { this.canvas = element; }}
        onPointerMove=${(event) => { const c = this.cellAt(event); setHover(null, c, letter); }} onPointerLeave=${() => setHover(null, null, letter)}
        onClick=${(event) => { const c = this.cellAt(event); if (c !== null) pinAt(null, c, "column", letter); }} onKeyDown=${(event) => this.key(event)}></canvas>
    </div>`;
  }
}

function largestOfRow(weights, row) {
  let most = 0;
  for (let c = 0; c < weights.columns; c++) most = Math.max(most, HALF[weights.bits[row * weights.columns + c]]);
  return Math.max(most, 1e-6);
}
