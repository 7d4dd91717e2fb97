// What of the input mattered for the output: scores with their standard errors, and a check that can fail.
import { html } from "./view.js";
import { differenceColour } from "./colour.js";
import { signed } from "./numbers.js";
import { axisLength, clipped, labelOf } from "./record.js";
import { explainRun, newId } from "./server.js";
import { PixelMap } from "./pixelmap.js";
import { set, state } from "./state.js";

const METHODS = {
  rise: "RISE: covers at random, many times",
  occlusion: "Occlusion: covers one after the other",
  attention: "Attention of the shown layer kind",
  rollout: "Roll-out of attention",
};

async function askWhy(run) {
  const id = newId("explain");
  const { method = "rise", word = 0, words = [] } = state.explanation ?? {};
  set({ explanation: { method, word, words, run: run.run.id, waiting: true } });
  try {
    const found = await explainRun(run, id, method, word);
    set({ explanation: { method, word, run: run.run.id, found, words: found.words }, said: "explained" });
  } catch (error) {
    set({ explanation: { method, word, words, run: run.run.id, failed: error.message } });
  }
}

export function Explain({ run }) {
  const { live } = state;
  const known = state.explanation ?? { method: "rise", word: 0 };
  const { found, waiting, failed } = known.run === run.run.id ? known : {};
  return html`<div class="pane">
    <h3>What of the input mattered?</h3>
    <p class="faint">Attention says where it looked. This covers parts of the input and measures what the output loses.</p>
    <p><label>For <select value=${known.word ?? 0} onChange=${(event) => set({ explanation: { ...known, word: Number(event.target.value), found: null } })}>
      <option value="0">the whole output</option>
      ${(known.run === run.run.id ? (known.words ?? []) : []).slice(0, 200).map((word, i) => html`<option value=${i + 1}>${clipped(word)}</option>`)}</select></label></p>
    <p><label>By <select value=${known.method ?? "rise"} onChange=${(event) => set({ explanation: { ...known, method: event.target.value, found: null } })}>
      ${Object.entries(METHODS).map(([key, name]) => html`<option value=${key}>${name}</option>`)}</select></label></p>
    <button class="main" disabled=${!live || waiting} title=${live ? "" : "needs the model: saccade view"} onClick=${() => askWhy(run)}>${waiting ? "Covers …" : "Explain"}</button>
    ${failed && html`<p class="caution">${failed}</p>`}
    ${found && html`<${Scores} found=${found} run=${run} />`}
  </div>`;
}

function Scores({ found, run }) {
  const { check } = found;
  const largest = Math.max(1e-6, ...found.values.map(Math.abs));
  const title = `Without its most important places the score loses ${check.lost.toFixed(3)}; without places at random ${check.random.toFixed(3)}`;
  return html`
    <p class=${check.passed ? "badge passed" : "badge failed"} title=${title}>${check.passed ? "✓ checked" : "✕ check failed"}: covering what it points at loses ${check.lost.toFixed(3)}, at random ${check.random.toFixed(3)}</p>
    ${found.axis.pieces
      ? html`<table class="effects"><thead><tr><th scope="col">Shown</th><th scope="col">adds to the score</th></tr></thead><tbody>
          ${found.values.slice(0, 400).map((value, i) => html`<tr><th scope="row"><bdi>${labelOf(found.axis, i)}</bdi></th>
            <td style=${{ background: differenceColour(value, largest) }}>${signed(value, 3)}${found.errors ? html` <small>± ${found.errors[i].toFixed(3)}</small>` : ""}</td></tr>`)}</tbody></table>`
      : html`<${PixelMap} run=${run} axis=${found.axis} values=${found.values} />`}
    <p class="faint">Score of the whole input ${found.score.toFixed(3)}${found.masks ? `; ${found.masks} random masks` : ""}; ${axisLength(found.axis)} places.</p>`;
}
