// Which head matters: each is switched off by itself, and A's text is weighed without it.
import { html } from "./view.js";
import { differenceColour } from "./colour.js";
import { choose, runSweep, stopSweep } from "./doing.js";
import { signed } from "./numbers.js";
import { clipped, shortName, shownText } from "./record.js";
import { set, state } from "./state.js";

export function Effect({ letter }) {
  const { sweep, runs, live } = state;
  const run = runs.A;
  if (!sweep || sweep.run !== run.run.id) {
    return html`<div class="pane"><h3>Which head matters for this text?</h3>
      <p>Every head is switched off once, by itself. The change is that of the log-probability of A’s text: below zero, the text becomes less likely without the head.</p>
      <button class="main" disabled=${!live} title=${live ? "" : "needs the model: saccade view"} onClick=${runSweep}>Switch off each head once</button></div>`;
  }
  const word = sweep.word ?? -1;
  const worth = (row) => (word < 0 ? row.changes.reduce((a, b) => a + b, 0) : row.changes[word]);
  const rows = [...sweep.rows].sort((a, b) => worth(a) - worth(b));
  const largest = Math.max(0.01, ...rows.map((row) => Math.abs(worth(row))));
  return html`<div class="pane">
    <div class="stepper"><progress max=${sweep.total || 1} value=${sweep.rows.length} aria-label="Heads done"></progress><span class="count">${sweep.rows.length} of ${sweep.total}</span>
      ${sweep.running ? html`<button onClick=${stopSweep}>Stop</button>` : html`<button class="quiet" onClick=${runSweep}>Again</button>`}</div>
    <label>For <select value=${word} onChange=${(event) => set({ sweep: { ...sweep, word: Number(event.target.value) } })}>
      <option value="-1">the whole text</option>
      ${sweep.pieces.slice(0, 300).map((piece, i) => html`<option value=${i}>${clipped(shownText(piece))}</option>`)}</select></label>
    <div class="scrolls" tabindex="0" role="region" aria-label="Heads by effect"><table class="effects"><thead><tr><th scope="col">Without</th><th scope="col">Δ log-probability</th></tr></thead>
      <tbody>${rows.map((row) => {
        const look = run.looks.findIndex((one) => one.site === row.site && one.part === state.part);
        const one = run.looks[look];
        return html`<tr><th scope="row">${one ? html`<button class="quiet" onClick=${() => choose(look, row.head, letter)}>${shortName(one)} ${one.layer}.${row.head + 1}</button>` : `${row.site} ${row.head + 1}`}</th>
          <td style=${{ background: differenceColour(worth(row), largest) }}>${signed(worth(row), 3)}</td></tr>`;
      })}</tbody></table></div>
  </div>`;
}
