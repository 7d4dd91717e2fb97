// The outputs, one below the other: A as the model is, B changed, C gone on, M another model. A is never overwritten.
import { html } from "./view.js";
import { differences } from "./differences.js";
import { differenceColour } from "./colour.js";
import { milliseconds, signed } from "./numbers.js";
import { modelName, shownText } from "./record.js";
import { set, state } from "./state.js";

const NAMES = { A: "as it is", B: "CHANGED", C: "gone on from your choice", M: "beside it" };

export function Outputs() {
  const { runs, busy } = state;
  const letters = ["A", "B", "C", "M"].filter((letter) => runs[letter] || busy?.letter === letter);
  return html`<section class="outputs" aria-label="Outputs">
    ${letters.map((letter) => html`<${Output} key=${letter} letter=${letter} run=${runs[letter]} busy=${busy?.letter === letter ? busy : null} />`)}
  </section>`;
}

function Output({ letter, run, busy }) {
  const { runs, showing, beside } = state;
  const text = run?.run.text ?? "";
  const first = runs.A?.run.text ?? "";
  const several = Object.keys(runs).length > 1;
  const stale = Boolean(busy && run && !busy.text); // until the first step of the new answer is there
  return html`<div class=${`output ${letter === "B" ? "isB" : ""} ${showing === letter ? "shown" : ""} ${stale ? "stale" : ""}`}>
    <div class="outhead">
      <button class="letter" aria-pressed=${showing === letter} disabled=${!run} title="Show this one"
        onClick=${() => set({ showing: letter, pin: null, inside: null })} aria-label=${`Show ${letter}${NAMES[letter] ? `, ${NAMES[letter]}` : ""}`}>${letter}</button>
      ${NAMES[letter] && html`<span class=${letter === "B" ? "stamp" : "faint"}>${NAMES[letter]}</span>`}
      ${(letter === "M" || letter === "A") && html`<span class="faint">${modelName(run?.run.model ?? "")}</span>`}
      ${stale && html`<span class="faint">previous input</span>`}
      ${several && run && showing !== letter && html`<button class="quiet" onClick=${() => set({ beside: beside === letter ? "" : letter })} aria-pressed=${beside === letter}>${beside === letter ? "Not beside" : "Beside"}</button>`}
    </div>
    <p class="text" dir="auto">${busy ? html`<bdi>${busy.text || text || "…"}</bdi><span class="caret" aria-hidden="true"></span>` : letter === "A" || !first ? html`<bdi>${text}</bdi>` : html`<${Differing} before=${first} after=${text} />`}</p>
    ${run && !busy && html`<p class="facts"><${Facts} letter=${letter} run=${run} /></p>`}
    ${run && letter === "B" && run.record.weighed && html`<${Weighed} weighed=${run.record.weighed} />`}
    ${run && run.run.others.length > 0 && html`<${Others} run=${run} />`}
  </div>`;
}

function Differing({ before, after }) {
  if (before === after) return html`<bdi>${after}</bdi> <span class="faint">(same words)</span>`;
  return html`<bdi>${differences(before, after).map(([kind, part]) =>
    kind === "+" ? html`<ins>${part}</ins>` : kind === "-" ? html`<del>${part}</del>` : part,
  )}</bdi>`;
}

function Facts({ letter, run }) {
  const { run: it, record } = run;
  const facts = [];
  if (it.score_kind === "probability") facts.push(`probability ${it.score.toFixed(3)}`);
  else {
    if (it.logprob !== null) facts.push(`log-probability ${it.logprob.toFixed(2)}`);
    if (it.score !== it.logprob) facts.push(`score ${it.score.toFixed(2)} (with length penalty)`);
  }
  facts.push(`${milliseconds(it.seconds)}, ${it.arithmetic === "exact" ? "exact" : it.arithmetic}`);
  if (it.prefix) facts.push("begins as you chose");
  const delta = letter === "B" ? record.weighed?.change : undefined;
  return html`${delta !== undefined && html`<b class="delta">${signed(delta)}</b> log-probability of A’s text · `}${facts.join(" · ")}
    ${it.notes.map((one) => html`<span class="caution">${one}</span>`)}`;
}

// What the change does to each piece of A's text.
function Weighed({ weighed }) {
  const changes = weighed.after.map((after, i) => after - weighed.before[i]);
  const largest = Math.max(0.5, ...changes.map(Math.abs));
  return html`<div class="weighed" aria-label="Change of the log-probability of each piece of A’s text">
    ${changes.slice(0, 200).map(
      (change, i) => html`<span class="bit" style=${{ background: differenceColour(change, largest) }}><bdi>${shownText(weighed.pieces[i])}</bdi><small>${signed(change, 1)}</small></span>`,
    )}</div>`;
}

function Others({ run }) {
  return html`<p class="others"><span class="faint">or</span> ${run.run.others.map((one) => html`<span><bdi>${one.text}</bdi> <small>${one.score.toFixed(3)}</small></span>`)}</p>`;
}
