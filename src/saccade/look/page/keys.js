// Keys, off while something is typed.
import { html } from "./view.js";
import { cancel, choose, hidePinned, pinAt, redo, switchHead, undo } from "./doing.js";
import { listenForFiles } from "./inputbar.js";
import { chosenOf, set, shownRun, state } from "./state.js";

const KEYS = [
  ["Enter", "in the input: run; Shift+Enter breaks the line"],
  ["Esc", "stop, unpin, close"],
  ["Tab", "from part to part"],
  ["Arrows", "in a text, the matrix or a picture: the next piece; Home and End, Page up and down"],
  ["[ ]", "layer before, layer after"],
  [", .", "head before, head after"],
  ["H", "hide the pinned word of the input"],
  ["X, Shift+X", "switch the head, the layer off or on"],
  ["← →", "outside of these: step before, step after"],
  ["Ctrl+Z, Ctrl+Shift+Z", "undo, redo a change"],
  ["/", "to the input"],
  ["?", "these keys"],
];

export function listenToKeys() {
  listenForFiles();
  addEventListener("click", (event) => {
    if (state.dialog === "share" && !event.target.closest?.(".menu, .opens")) set({ dialog: "" });
  });
  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("textarea, select, input[type=text], input[type=number]");
    if (event.key === "Escape") return escape();
    if (typing || event.defaultPrevented || event.altKey) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") {
      event.preventDefault();
      return event.shiftKey ? redo() : undo();
    }
    if (event.ctrlKey || event.metaKey) return;
    const done = act(event);
    if (done) event.preventDefault();
  });
}

function escape() {
  if (state.tour >= 0) return set({ tour: -1 });
  if (state.dialog) return set({ dialog: "" });
  if (state.full) return set({ full: "" });
  if (cancel()) return;
  if (state.pin) pinAt(null, null);
}

function act(event) {
  if (event.key === "?") set({ dialog: state.dialog === "keys" ? "" : "keys" });
  else if (event.key === "/") document.getElementById("input")?.focus();
  else if (event.key === "[") move(-1, 0);
  else if (event.key === "]") move(1, 0);
  else if (event.key === ",") move(0, -1);
  else if (event.key === ".") move(0, 1);
  else if (event.key === "h" || event.key === "H") hidePinned();
  else if (event.key === "x") switchHead();
  else if (event.key === "X") switchHead(true);
  else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    if (event.target.closest?.("[role=listbox], [role=gridcell], [role=img], [type=range]")) return false;
    const { look } = chosenOf(state.showing);
    const run = shownRun();
    const steps = run?.steps[state.part]?.length ?? 0;
    if (!steps || look < 0) return false;
    const next = Math.min(steps - 1, Math.max(0, state.step + (event.key === "ArrowLeft" ? -1 : 1)));
    const row = run.rowOfStep(look, next);
    set({ step: next });
    if (row !== null) pinAt(row, null, "row");
  } else return false;
  return true;
}

function move(layers, heads) {
  const run = shownRun();
  const { look, plane } = chosenOf(state.showing);
  const one = run?.looks[look];
  if (!one || one.site === "rollout") return;
  if (layers) {
    const group = run.group(one.kind, one.memory, one.part);
    const next = group[group.indexOf(look) + layers];
    if (next !== undefined) choose(next, Math.min(plane, run.looks[next].heads), state.showing);
  } else {
    const count = one.heads + 1;
    choose(look, (plane + heads + count) % count, state.showing);
  }
}

export function KeysDialog() {
  return html`<div class="shade" onClick=${() => set({ dialog: "" })}><div class="dialog" role="dialog" aria-modal="true" aria-labelledby="keys" onClick=${(event) => event.stopPropagation()}>
    <h2 id="keys">Keys</h2>
    <dl>${KEYS.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <button ref=${(element) => element?.focus()} onClick=${() => set({ dialog: "" })}>Close</button>
  </div></div>`;
}
