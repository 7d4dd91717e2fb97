// What was changed, as chips in their order; with undo, redo, reset.
import { html } from "./view.js";
import { describeChange, redo, resetChanges, toggleChange, undo } from "./doing.js";
import { state } from "./state.js";

const MEANS = {
  hide: "Nobody may look at it; positions stay as they are.",
  head: "Its output is zero before the output projection.",
  layer: "The output of all its heads is zero before the output projection.",
};

export function Changes() {
  const { changes, undone, runs, live } = state;
  if (!runs.A) return null;
  if (!changes.length && !undone.length) {
    return html`<section class="changes" aria-label="Changes"><span class="name">Changes</span><span class="faint">none${live ? ": click a word of the input and hide it, or switch off a head, and the answer is written again" : ""}</span></section>`;
  }
  return html`<section class=${changes.length ? "changes changed" : "changes"} aria-label="Changes">
    <span class="name">Changes</span>
    <ol>${changes.map(
      (change) => html`<li class="chip" title=${MEANS[change.kind]}><bdi>${describeChange(change, runs.A)}</bdi>
        ${live && html`<button aria-label=${`Take back: ${describeChange(change, runs.A)}`} onClick=${() => toggleChange(change)}>×</button>`}</li>`,
    )}</ol>
    ${live && html`<span class="undoing">
      <button class="quiet" disabled=${!changes.length} onClick=${undo}>Undo</button>
      <button class="quiet" disabled=${!undone.length} onClick=${redo}>Redo</button>
      <button class="quiet" disabled=${!changes.length} onClick=${resetChanges}>Reset</button></span>`}
  </section>`;
}
