// The page from top to bottom; the order here is the order of Tab.
import { html } from "./view.js";
import { Changes } from "./changes.js";
import { Heads } from "./heads.js";
import { InputBar } from "./inputbar.js";
import { KeysDialog } from "./keys.js";
import { Outputs } from "./outputs.js";
import { Panel } from "./panel.js";
import { Tour } from "./tour.js";
import { ViewCard } from "./viewcard.js";
import { chosenOf, set, state } from "./state.js";

export function App() {
  const { runs, showing, beside, error, note } = state;
  const run = runs[showing] ?? runs.A;
  document.title = titleOf(run);
  return html`
    <${InputBar} />
    <${Changes} />
    ${error && html`<p class="alarm" role="alert"><span>${error}</span><button onClick=${() => set({ error: "" })}>Close</button></p>`}
    ${note && html`<p class="notice" role="status"><span>${note}</span><button onClick=${() => set({ note: "" })}>Close</button></p>`}
    <main class=${run ? "room" : "room empty"}>
      ${run
        ? html`
            <${Heads} run=${run} letter=${showing} chosen=${chosenOf(showing)} />
            <div class="middle">
              <${Outputs} />
              <div class=${beside && runs[beside] ? "sides two" : "sides"}>
                <${ViewCard} key=${showing} run=${run} letter=${showing} />
                ${beside && beside !== showing && runs[beside] && html`<${ViewCard} key=${"beside" + beside} run=${runs[beside]} letter=${beside} />`}
              </div>
              <p class="honest">Where it looked, not why.</p>
            </div>
            <${Panel} run=${run} letter=${showing} />
          `
        : html`<p class="waiting">${state.error ? "" : state.busy ? "The model reads …" : "Type something, and press Enter."}</p>`}
    </main>
    <div class="unseen" aria-live="polite">${state.said}</div>
    ${state.dialog === "keys" && html`<${KeysDialog} />`}
    <${Tour} />
  `;
}

function titleOf(run) {
  if (!run) return "Saccade";
  const what = (run.run.input.text || run.run.text || run.run.model).slice(0, 60);
  return state.showing === "B" ? `Changed: ${what} · Saccade` : `${what} · Saccade`;
}
