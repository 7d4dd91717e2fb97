// Every layer and head as a small picture: rows are layers, columns are heads, the last one the mean.
import { Component } from "./vendor/preact.js";
import { html } from "./view.js";
import { currentTheme, shadePixels } from "./colour.js";
import { choose, isChanged, planeName, switchHead } from "./doing.js";
import { groupName } from "./record.js";
import { set, state } from "./state.js";

const ROLES = { previous: "looks at the piece before", next: "looks at the piece after", "same place": "looks at itself", "same word": "looks at the same word", punctuation: "looks at punctuation", marks: "looks at (begin) or (end)", diagonal: "goes along with the text", spread: "looks everywhere" };
const SORTS = { place: "by layer", entropy: "sharpest first", role: "by what they do", effect: "by effect" };

export function Heads({ run, letter, chosen }) {
  const one = run.looks[chosen.look];
  const groups = run.groups(state.part);
  if (!one) return html`<section class="heads" aria-label="Heads"><h2>Heads</h2><p class="faint">This model has no attention: it hands over one vector, and there is nothing to look at.</p></section>`;
  const layers = one.site === "rollout" ? run.group("encoder", one.memory, one.part) : run.group(one.kind, one.memory, one.part);
  const rollout = one.kind === "encoder" ? run.rollout(one.memory, one.part) : null;
  return html`<section class="heads" aria-label="Heads">
    <h2>Heads</h2>
    ${run.parts > 1 && html`<label class="part">Sentence <select value=${state.part} onChange=${(event) => choosePart(run, Number(event.target.value), letter)}>
      ${Array.from({ length: run.parts }, (_, number) => html`<option value=${number}>${number + 1} of ${run.parts}</option>`)}</select></label>`}
    <div class="groups" role="group" aria-label="Who looks at what">
      ${groups.map((group) => {
        const on = group.kind === one.kind && group.memory === one.memory;
        return html`<button aria-pressed=${on} onClick=${() => chooseGroup(run, group, letter)}>${groupName(group)}</button>`;
      })}
    </div>
    <${Grid} run=${run} letter=${letter} layers=${layers} chosen=${chosen} />
    <div class="headtools">
      <label>Order <select value=${state.sort} onChange=${(event) => set({ sort: event.target.value })}>
        ${Object.entries(SORTS).map(([key, name]) => html`<option value=${key} disabled=${key === "effect" && !state.sweep?.rows.length}>${name}</option>`)}</select></label>
      ${rollout !== null && html`<button class="quiet" aria-pressed=${chosen.look === rollout} title="Through all layers: half of what a position was, half of what it looked at (Abnar & Zuidema 2020)" onClick=${() => choose(rollout, 0, letter)}>Roll-out</button>`}
    </div>
    <p class="chosen"><b>${planeName(one, chosen.plane)}</b>${one.site !== "rollout" && html`<br /><span class="faint">${run.role(chosen.look, chosen.plane) ? `${ROLES[run.role(chosen.look, chosen.plane)] ?? run.role(chosen.look, chosen.plane)}; ` : ""}<span title="0: each piece looks at one thing; 1: each looks at all alike">entropy ${(run.entropy(chosen.look, chosen.plane) ?? 0).toFixed(2)} of 1</span></span>`}</p>
    ${one.site !== "rollout" && html`<div class="headtools">
      <button disabled=${!state.live || chosen.plane >= one.heads} aria-pressed=${isChanged({ kind: "head", site: one.site, head: chosen.plane })} title=${!state.live ? "needs the model: saccade view" : chosen.plane >= one.heads ? "This is the mean of all heads: choose one of the small pictures" : "X"} onClick=${() => switchHead()}>${isChanged({ kind: "head", site: one.site, head: chosen.plane }) ? "Switch on" : "Switch off head"}</button>
      <button disabled=${!state.live} aria-pressed=${isChanged({ kind: "layer", site: one.site })} title=${state.live ? "Shift+X" : "needs the model: saccade view"} onClick=${() => switchHead(true)}>${isChanged({ kind: "layer", site: one.site }) ? "Layer on" : "Layer off"}</button>
    </div>
    ${state.live && chosen.plane >= one.heads && one.heads > 1 && html`<p class="faint small">To switch off one head, choose its small picture.</p>`}`}
  </section>`;
}

function chooseGroup(run, group, letter) {
  const layers = run.group(group.kind, group.memory, state.part);
  const best = layers.reduce((a, b) => ((run.entropy(b, run.looks[b].heads) ?? 1) < (run.entropy(a, run.looks[a].heads) ?? 1) ? b : a));
  choose(best, run.looks[best].heads, letter);
}

function choosePart(run, part, letter) {
  set({ part, pin: null, step: 0 });
  const first = run.groups(part)[0];
  if (first) chooseGroup(run, first, letter);
}

function effectOf(run, look, plane) {
  const row = state.sweep?.rows.find((one) => one.site === run.looks[look].site && one.head === plane);
  return row ? row.changes.reduce((a, b) => a + b, 0) : null;
}

function Grid({ run, letter, layers, chosen }) {
  const fields = layers.flatMap((look) => Array.from({ length: run.looks[look].heads + 1 }, (_, plane) => ({ look, plane })));
  if (state.sort === "place") {
    const most = Math.max(...layers.map((look) => run.looks[look].heads)) + 1;
    return html`<div class="grid" style=${{ gridTemplateColumns: `auto repeat(${most}, minmax(0, 1fr))` }}>
      ${layers.map((look) => html`<span class="axis" aria-hidden="true">${run.looks[look].layer}</span>
        ${Array.from({ length: most }, (_, plane) => plane <= run.looks[look].heads ? html`<${Head} key=${`${look}.${plane}`} run=${run} letter=${letter} look=${look} plane=${plane} chosen=${chosen} />` : html`<span></span>`)}`)}
      <span></span>${Array.from({ length: most }, (_, plane) => html`<span class="axis" aria-hidden="true">${plane === most - 1 ? "mean" : plane + 1}</span>`)}
    </div>`;
  }
  if (state.sort === "role") return html`<${ByRole} run=${run} letter=${letter} fields=${fields} chosen=${chosen} />`;
  const worth = ({ look, plane }) => state.sort === "entropy" ? (run.entropy(look, plane) ?? 1) : (effectOf(run, look, plane) ?? 0);
  const sorted = fields.filter(({ look, plane }) => plane < run.looks[look].heads).sort((a, b) => worth(a) - worth(b));
  return html`<div class="grid flow">${sorted.map(({ look, plane }) => html`<${Head} key=${`${look}.${plane}`} run=${run} letter=${letter} look=${look} plane=${plane} chosen=${chosen} worth=${worth({ look, plane })} />`)}</div>`;
}

// Heads that look at the same kind of place stand together.
function ByRole({ run, letter, fields, chosen }) {
  const roles = new Map();
  for (const field of fields) {
    if (field.plane >= run.looks[field.look].heads) continue;
    const role = run.role(field.look, field.plane) || "nothing clear";
    roles.set(role, [...(roles.get(role) ?? []), field]);
  }
  return html`${[...roles].map(([role, some]) => html`<h3 key=${role}>${role} <span class="faint">${some.length}</span></h3>
    <div class="grid flow">${some.map(({ look, plane }) => html`<${Head} key=${`${look}.${plane}`} run=${run} letter=${letter} look=${look} plane=${plane} chosen=${chosen} worth=${0} />`)}</div>`)}`;
}

class Head extends Component {
  componentDidMount() {
    this.draw();
  }

  componentDidUpdate() {
    this.draw();
  }

  draw() {
    const { run, look, plane } = this.props;
    const thumb = run.thumb(look, plane);
    const key = `${run.run.id} ${look} ${plane} ${currentTheme()}`;
    if (!thumb || !this.canvas || this.drawn === key) return;
    this.drawn = key;
    this.canvas.width = thumb.columns;
    this.canvas.height = thumb.rows;
    const pixels = new Uint32Array(thumb.rows * thumb.columns);
    const table = shadePixels(currentTheme());
    for (let i = 0; i < pixels.length; i++) pixels[i] = table[thumb.shades[i]];
    const context = this.canvas.getContext("2d");
    context.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), thumb.columns, thumb.rows), 0, 0);
  }

  render({ run, letter, look, plane, chosen, worth }) {
    const one = run.looks[look];
    const on = chosen.look === look && chosen.plane === plane;
    const off = run.run.changes.some((change) => change.site === one.site && (change.kind === "layer" || change.head === plane));
    const name = `${planeName(one, plane)}, entropy ${(run.entropy(look, plane) ?? 0).toFixed(2)}${off ? ", switched off" : ""}`;
    return html`<button class=${`head ${off ? "off" : ""}`} aria-pressed=${on} aria-label=${name} title=${name} onClick=${() => choose(look, plane, letter)}>
      <canvas ref=${(element) => { this.canvas = element; }} aria-hidden="true"></canvas>
      ${worth !== undefined && html`<small>${one.layer}.${plane + 1}</small>`}
    </button>`;
  }
}
