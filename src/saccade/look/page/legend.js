// The scale of colours, fixed from 0 to 1 unless it is said to be stretched; and what the pointer is over, in words.
import { Component } from "./vendor/preact.js";
import { html } from "./view.js";
import { weightColour } from "./colour.js";
import { spokenPlace } from "./doing.js";
import { HALF, percent } from "./numbers.js";
import { focus } from "./linked.js";
import { onHover, set, state } from "./state.js";

const largestOf = new WeakMap();

export function largestWeight(weights) {
  if (!weights) return 1;
  if (!largestOf.has(weights.bits)) {
    let most = 0;
    for (const bits of weights.bits) if (bits > most) most = bits; // positive halves are ordered as their bits
    largestOf.set(weights.bits, Math.max(HALF[most], 1e-6));
  }
  return largestOf.get(weights.bits);
}

export function scaleTop(weights) {
  return state.stretched ? largestWeight(weights) : 1;
}

export function Legend({ weights, sure }) {
  const top = scaleTop(weights);
  return html`<div class="legend">
    <span>0</span>
    <span class="ramp" aria-hidden="true">${Array.from({ length: 24 }, (_, i) => html`<i style=${{ background: weightColour((i / 23) ** 2, undefined, 1) }}></i>`)}</span>
    <span>${percent(top)}${state.stretched ? ", stretched" : ""}</span>
    <span class="faint">root scale</span>
    <label><input type="checkbox" checked=${state.stretched} onChange=${(event) => set({ stretched: event.target.checked })} /> stretch to the largest</label>
    ${sure && html`<span class="faint"><i class="surebar" aria-hidden="true"></i> under a piece: how likely it was when it was written</span>`}
    ${weights?.partial && html`<span class="caution">the 16 largest of each row</span>`}
  </div>`;
}

export class Readout extends Component {
  componentDidMount() {
    this.off = onHover(() => this.write());
    this.write();
  }

  componentDidUpdate() {
    this.write();
  }

  componentWillUnmount() {
    this.off();
  }

  write() {
    if (!this.line) return;
    const at = focus(this.props.letter);
    const text = spokenPlace(this.props.run, this.props.letter, at.row, at.column);
    this.line.textContent = text || "Point at a word to see where it looked; click to pin it.";
  }

  render() {
    return html`<p class="readout" ref=${(element) => { this.line = element; }}></p>`;
  }
}
