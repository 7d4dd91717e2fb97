// One number and where it comes from: the arrays of a head with their shapes, and sums whose terms add up to what is shown.
import { html } from "./view.js";
import { pinAt, planeName } from "./doing.js";
import { percent, plain, signed } from "./numbers.js";
import { axisLength, labelOf } from "./record.js";
import { askInside } from "./server.js";
import { chosenOf, set, state } from "./state.js";

const MOST_TERMS = 12;
const MOST_KEYS = 14;
let waitingFor = "";

export function Inspect({ run, letter }) {
  const { look, plane } = chosenOf(letter);
  const one = run.looks[look];
  if (!one) return html`<div class="pane"><p class="faint">No attention here.</p></div>`;
  if (!state.live) return html`<div class="pane"><p class="faint">Queries, keys and values are computed by the model: saccade view</p></div>`;
  if (one.site === "rollout" || plane >= one.heads) {
    return html`<div class="pane"><p>Choose one head: ${one.site === "rollout" ? "a roll-out" : "a mean"} has no queries and keys.</p><button onClick=${() => set({ chosen: { ...state.chosen, [letter === "M" ? "M" : "A"]: { look: one.site === "rollout" ? 0 : look, plane: 0 } } })}>Take head 1</button></div>`;
  }
  const row = Math.min(state.pin?.row ?? 0, axisLength(run.rows(look)) - 1);
  const key = `${run.run.id} ${look} ${plane} ${row}`;
  if (state.inside?.key !== key) {
    fetchInside(run, look, plane, row, key);
    return html`<div class="pane"><p class="faint">…</p></div>`;
  }
  if (state.inside.error) return html`<div class="pane"><p class="faint">${state.inside.error}</p></div>`;
  return html`<${Arithmetic} run=${run} look=${look} plane=${plane} row=${row} inside=${state.inside} letter=${letter} />`;
}

async function fetchInside(run, look, plane, row, key) {
  if (waitingFor === key) return;
  waitingFor = key;
  try {
    const { record, arrays } = await askInside(run, look, plane, row);
    if (waitingFor === key) set({ inside: { key, record, arrays } });
  } catch (error) {
    set({ inside: { key, error: error.message } });
  } finally {
    if (waitingFor === key) waitingFor = "";
  }
}

function Arithmetic({ run, look, plane, row, inside, letter }) {
  const { arrays, record } = inside;
  const [q, k, v, scores, weights, context] = ["q", "k", "v", "scores", "softmax", "context"].map((name) => arrays.get(name));
  const columns = run.columns(look);
  const strongest = weights.data.reduce((best, value, i) => (value > weights.data[best] ? i : best), 0);
  const column = Math.min(state.pin?.column ?? strongest, weights.data.length - 1);
  const part = run.record.architecture.flatMap((stack) => stack.parts).find((one) => one.site === run.looks[look].site);
  const who = labelOf(run.rows(look), row);
  const whom = labelOf(columns, column);
  return html`<div class="pane numbers">
    <h3>${planeName(run.looks[look], plane)}</h3>
    ${part && html`<p class="formula">${part.formula}</p>`}
    <ul class="shapes">${Object.entries(record.shapes).map(([name, shape]) => html`<li><code>${name}</code> ${shape.join(" × ")}</li>`)}</ul>
    <p><b><bdi>${who}</bdi></b> looks at <label><span class="unseen">Which key</span><select value=${column} onChange=${(event) => pinAt(row, Number(event.target.value), "row", letter)}>
      ${Array.from({ length: Math.min(weights.data.length, 600) }, (_, i) => html`<option value=${i}>${labelOf(columns, i)}</option>`)}</select></label></p>
    ${k.shape[1] === q.data.length ? html`<${ScoreSum} q=${q} k=${k} column=${column} score=${scores.data[column]} additive=${/tanh/.test(part?.formula ?? "")} scaled=${!/q · k$|W k/.test((part?.formula ?? "").split(";")[0])} />` : null}
    <${SoftmaxSum} scores=${scores} weights=${weights} column=${column} columns=${columns} whom=${whom} />
    <${ContextSum} v=${v} weights=${weights} context=${context} columns=${columns} off=${record.off} />
  </div>`;
}

function ScoreSum({ q, k, column, score, additive, scaled }) {
  if (additive) return html`<h4>1 · Score</h4><p>energyᵀ tanh(W q + U k) = <b>${plain(score)}</b></p>`;
  const width = q.data.length;
  const terms = Array.from(q.data, (value, i) => [i, value, k.data[column * width + i], value * k.data[column * width + i]]);
  const sum = terms.reduce((total, one) => total + one[3], 0);
  const ordered = [...terms].sort((a, b) => Math.abs(b[3]) - Math.abs(a[3]));
  const shown = ordered.slice(0, MOST_TERMS);
  const others = sum - shown.reduce((total, one) => total + one[3], 0);
  const expected = scaled ? sum / Math.sqrt(width) : sum;
  const hidden = score < -1e30;
  const bias = score - expected;
  return html`<h4>1 · Score: q · k${scaled ? ` / √${width}` : ""}</h4>
    <table class="terms"><thead><tr><th scope="col">i</th><th scope="col">qᵢ</th><th scope="col">kᵢ</th><th scope="col">qᵢ kᵢ</th></tr></thead>
      <tbody>${shown.map(([i, a, b, product]) => html`<tr><td>${i + 1}</td><td>${plain(a)}</td><td>${plain(b)}</td><td>${signed(product, 3)}</td></tr>`)}
        ${width > MOST_TERMS && html`<tr><td colspan="3">the other ${width - MOST_TERMS}</td><td>${signed(others, 3)}</td></tr>`}
        <tr class="sum"><td colspan="3">sum</td><td>${plain(sum)}</td></tr></tbody></table>
    ${hidden
      ? html`<p>It may not look there: the mask makes the score the lowest number there is.</p>`
      : html`<p>${scaled ? html`${plain(sum)} / √${width} = ` : ""}<b>${plain(expected)}</b>${Math.abs(bias) > 2e-3 ? html` ${signed(bias, 3)} for the distance = <b>${plain(score)}</b>` : ""}</p>`}`;
}

function SoftmaxSum({ scores, weights, column, columns, whom }) {
  const seen = Array.from(scores.data).filter((score) => score > -1e30);
  const most = Math.max(...seen);
  const powers = Array.from(scores.data, (score) => (score > -1e30 ? Math.exp(score - most) : 0));
  const total = powers.reduce((a, b) => a + b, 0);
  const order = powers.map((power, i) => [power, i]).sort((a, b) => b[0] - a[0]).slice(0, MOST_KEYS);
  const rest = total - order.reduce((sum, [power]) => sum + power, 0);
  return html`<h4>2 · Softmax over ${powers.length} keys</h4>
    <table class="terms"><thead><tr><th scope="col">key</th><th scope="col">score</th><th scope="col">e^(score − max)</th><th scope="col">share</th></tr></thead>
      <tbody>${order.map(([power, i]) => html`<tr class=${i === column ? "mine" : ""}><td><bdi>${labelOf(columns, i)}</bdi></td><td>${scores.data[i] > -1e30 ? plain(scores.data[i]) : "masked"}</td><td>${plain(power)}</td><td>${percent(weights.data[i])}</td></tr>`)}
        ${powers.length > MOST_KEYS && html`<tr><td colspan="2">the other ${powers.length - MOST_KEYS}</td><td>${plain(rest)}</td><td></td></tr>`}
        <tr class="sum"><td colspan="2">sum</td><td>${plain(total)}</td><td>100 %</td></tr></tbody></table>
    <p>${plain(powers[column])} / ${plain(total)} = <b>${percent(weights.data[column])}</b> of the look at <bdi>${whom}</bdi></p>`;
}

function ContextSum({ v, weights, context, columns, off }) {
  const channel = 0;
  const width = context.data.length;
  const terms = Array.from(weights.data, (weight, i) => [i, weight, v.data[i * width + channel], weight * v.data[i * width + channel]]);
  const order = [...terms].sort((a, b) => Math.abs(b[3]) - Math.abs(a[3])).slice(0, MOST_KEYS);
  const sum = terms.reduce((total, one) => total + one[3], 0);
  const rest = sum - order.reduce((total, one) => total + one[3], 0);
  return html`<h4>3 · Context, its first number of ${width}</h4>
    <table class="terms"><thead><tr><th scope="col">key</th><th scope="col">share</th><th scope="col">v₁</th><th scope="col">share · v₁</th></tr></thead>
      <tbody>${order.map(([i, weight, value, product]) => html`<tr><td><bdi>${labelOf(columns, i)}</bdi></td><td>${percent(weight)}</td><td>${plain(value)}</td><td>${signed(product, 3)}</td></tr>`)}
        ${terms.length > MOST_KEYS && html`<tr><td colspan="3">the other ${terms.length - MOST_KEYS}</td><td>${signed(rest, 3)}</td></tr>`}
        <tr class="sum"><td colspan="3">sum</td><td>${plain(sum)}</td></tr></tbody></table>
    ${off && html`<p class="caution">The head is switched off: what goes on is ${plain(context.data[channel])}.</p>`}`;
}
