// A text as pieces that can be pointed at and pinned. Tints lie on a canvas behind the letters: no node changes on hover.
import { Component } from "./vendor/preact.js";
import { html } from "./view.js";
import { weightColour } from "./colour.js";
import { pinAt } from "./doing.js";
import { HALF } from "./numbers.js";
import { clipped, labelOf, shownText } from "./record.js";
import { focus } from "./linked.js";
import { onHover, setHover, state } from "./state.js";
import { scaleTop } from "./legend.js";

const AT_ONCE = 4000;

export class Strip extends Component {
  componentDidMount() {
    this.observer = new ResizeObserver(() => this.measure());
    this.observer.observe(this.box);
    this.off = onHover(() => this.paint());
    this.measure();
  }

  componentDidUpdate(before) {
    if (before.axis !== this.props.axis || before.run !== this.props.run) this.measure();
    else this.paint();
  }

  componentWillUnmount() {
    this.observer.disconnect();
    this.off();
  }

  measure() {
    const pieces = this.box.querySelectorAll(".piece");
    this.places = Array.from(pieces, (piece) => [piece.offsetLeft, piece.offsetTop, piece.offsetWidth, piece.offsetHeight]);
    const scale = Math.min(2, devicePixelRatio || 1);
    const { clientWidth, scrollHeight } = this.box;
    this.canvas.width = clientWidth * scale;
    this.canvas.height = Math.min(scrollHeight * scale, 32000);
    this.canvas.style.width = `${clientWidth}px`;
    this.canvas.style.height = `${this.canvas.height / scale}px`;
    this.scale = scale;
    this.paint();
  }

  // The weight of each piece of this text for what is focused in the other one.
  weights() {
    const { weights, side, letter } = this.props;
    const at = focus(letter);
    if (!weights) return null;
    if (side === "column" && at.row !== null && at.row !== undefined && at.row < weights.rows) {
      return (i) => HALF[weights.bits[at.row * weights.columns + i]];
    }
    if (side === "row" && (at.row === null || at.row === undefined) && at.column !== null && at.column < weights.columns) {
      return (i) => HALF[weights.bits[i * weights.columns + at.column]];
    }
    return null;
  }

  paint() {
    if (!this.canvas || !this.places) return;
    const { side, letter, weights } = this.props;
    const context = this.canvas.getContext("2d");
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const weightOf = this.weights();
    const top = scaleTop(weights);
    const at = focus(letter);
    const mine = side === "row" ? at.row : at.column;
    const style = getComputedStyle(document.documentElement);
    for (let i = 0; i < this.places.length; i++) {
      const [x, y, w, h] = this.places[i];
      const weight = weightOf ? weightOf(i) : 0;
      if (weight > 0.002) {
        context.fillStyle = weightColour(weight, undefined, top);
        context.beginPath();
        context.roundRect(x - 2, y, w + 4, h, 4);
        context.fill();
        // Letters stay as they are; a field darker than the middle is drawn as a bar below them.
      }
      if (i === mine) {
        context.strokeStyle = style.getPropertyValue("--accent");
        context.lineWidth = 2;
        context.beginPath();
        context.roundRect(x - 2, y, w + 4, h, 4);
        context.stroke();
      }
    }
    this.paintChances(context, style);
    this.ink(weightOf, top);
  }

  // Under what was written, how likely it was.
  paintChances(context, style) {
    const { run, look, side } = this.props;
    if (side !== "row") return;
    context.fillStyle = style.getPropertyValue("--accent");
    for (let i = 0; i < this.places.length; i++) {
      const number = run.stepOfRow(look, i);
      if (number === null) continue;
      const chosen = run.steps[run.looks[look].part][number].likely.find((one) => one.chosen);
      const [x, y, w, h] = this.places[i];
      context.globalAlpha = 0.85;
      context.fillRect(x, y + h - 3, Math.max(2, w * Math.exp(chosen?.logp ?? -9)), 2.5);
      context.globalAlpha = 1;
    }
  }

  // On a dark field letters are light; only the few pieces that change sides are touched.
  ink(weightOf, top) {
    const dark = new Set();
    if (weightOf) {
      for (let i = 0; i < this.places.length; i++) if (Math.sqrt(Math.min(1, weightOf(i) / top)) > 0.52) dark.add(i);
    }
    const before = this.dark ?? new Set();
    const pieces = this.box.querySelectorAll(".piece");
    for (const i of before) if (!dark.has(i)) pieces[i]?.classList.remove("strong");
    for (const i of dark) if (!before.has(i)) pieces[i]?.classList.add("strong");
    this.dark = dark;
  }

  over(event) {
    const piece = event.target.closest?.(".piece");
    const { side, letter } = this.props;
    if (!piece) return setHover(null, null, letter);
    const i = Number(piece.dataset.i);
    setHover(side === "row" ? i : null, side === "row" ? null : i, letter);
  }

  click(event) {
    const piece = event.target.closest?.(".piece");
    if (piece) this.pin(Number(piece.dataset.i));
  }

  pin(i) {
    const { side, letter } = this.props;
    if (state.pin && state.pin.side === side && (side === "row" ? state.pin.row : state.pin.column) === i) return pinAt(null, null);
    pinAt(side === "row" ? i : null, side === "row" ? null : i, side, letter);
  }

  key(event) {
    const count = this.props.axis.pieces.length;
    const { side } = this.props;
    const at = state.pin && state.pin.side === side ? (side === "row" ? state.pin.row : state.pin.column) : -1;
    const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
    let next = null;
    if (event.key in moves) next = Math.min(count - 1, Math.max(0, at + moves[event.key]));
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = count - 1;
    if (next === null) return;
    event.preventDefault();
    if (next !== at) this.pin(next);
  }

  render({ axis, side, name, run, look, letter, pin }) {
    const one = run.looks[look];
    const at = pin && pin.side === side ? (side === "row" ? pin.row : pin.column) : null;
    const hidden = (i) => side === "column" && run.run.changes.some((change) => change.kind === "hide" && change.memory === one.memory && change.place === i);
    const shown = axis.pieces.slice(0, AT_ONCE);
    return html`<div class="strip">
      <span class="stripname" id=${`strip-${letter}-${side}`}>${name}</span>
      <div class="pieces" dir="auto" role="listbox" tabindex="0" aria-labelledby=${`strip-${letter}-${side}`} aria-activedescendant=${at !== null && at !== undefined ? `piece-${letter}-${side}-${at}` : undefined}
        ref=${(element) => { this.box = element; }}
        onPointerMove=${(event) => this.over(event)} onPointerLeave=${() => setHover(null, null, letter)}
        onClick=${(event) => this.click(event)} onKeyDown=${(event) => this.key(event)}>
        <canvas aria-hidden="true" ref=${(element) => { this.canvas = element; }}></canvas>
        ${shown.map((piece, i) => html`<${Piece} piece=${piece} apart=${standsApart(piece, shown[i - 1])} i=${i} id=${`piece-${letter}-${side}-${i}`} at=${i === at} hidden=${hidden(i)} label=${labelOf(axis, i)} />`)}
        ${axis.pieces.length > AT_ONCE && html`<span class="faint">and ${axis.pieces.length - AT_ONCE} more</span>`}
      </div>
    </div>`;
  }
}

// Phonemes and other names stand apart, letters of a word do not.
function standsApart(piece, before) {
  if (!before || before.mark || piece.word === before.word) return Boolean(before?.mark);
  const named = (text) => text.length > 1 && /[\p{L}\p{N}]/u.test(text);
  return /[\p{L}\p{N}]/u.test(piece.text) && /[\p{L}\p{N}]/u.test(before.text) && (named(piece.text) || named(before.text));
}

class Piece extends Component {
  shouldComponentUpdate(next) {
    const { piece, at, hidden, id } = this.props;
    return next.piece !== piece || next.at !== at || next.hidden !== hidden || next.id !== id;
  }

  render({ piece, apart, i, id, at, hidden, label }) {
    const begins = /^\s/.test(piece.text) || piece.mark || apart;
    const kind = `piece${piece.mark ? " mark" : ""}${begins ? " begins" : ""}${hidden ? " hidden" : ""}`;
    return html`<span class=${kind} id=${id} data-i=${i} role="option" aria-selected=${at} aria-label=${hidden ? `${label}, hidden` : label}><bdi>${at ? shownText(piece.text) : clipped(shownText(piece.text))}</bdi></span>${piece.text.includes("\n") ? html`<br />` : null}`;
  }
}
