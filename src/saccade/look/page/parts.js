// The model as its own record describes it: from the input to the output; an attention leads to its looks.
import { html } from "./view.js";
import { choose } from "./doing.js";
import { modelName } from "./record.js";
import { chosenOf, set, state } from "./state.js";

export function Parts({ run, letter }) {
  const stacks = run.record.architecture ?? [];
  const { look } = chosenOf(letter);
  const site = run.looks[look]?.site;
  const open = state.partOpen ?? site;
  if (!stacks.length) return html`<div class="pane"><p class="faint">This model has a form that is not drawn here.</p></div>`;
  return html`<div class="pane parts">
    <p><b>${modelName(run.run.model)}</b> <span class="faint">weights ${run.run.digest}</span></p>
    ${stacks.map((stack, number) => html`
      ${number > 0 && html`<p class="arrow" aria-hidden="true">↓ <span class="faint">${stack.name === "head" ? "" : "what was read"}</span></p>`}
      <section class="stack"><h3>${stack.title}</h3>
        <ol>${stack.parts.map((part, i) => {
          const key = part.site || `${stack.name} ${i}`;
          const there = run.looks.findIndex((one) => one.site === part.site && one.part === state.part);
          return html`<li class=${`partbox ${part.kind} ${part.site && part.site === site ? "on" : ""} ${run.run.changes.some((change) => change.site === part.site) ? "off" : ""}`}>
            <button aria-expanded=${open === key} onClick=${() => { set({ partOpen: open === key ? "" : key }); if (there >= 0) choose(there, run.looks[there].heads, letter); }}>
              <span>${part.title}</span><small>${part.shape}</small></button>
            ${open === key && html`<div class="partinfo"><p class="formula">${part.formula}</p>${there >= 0 && html`<button class="quiet" onClick=${() => { choose(there, 0, letter); set({ panel: "inspect" }); }}>See its numbers</button>`}</div>`}
          </li>`;
        })}</ol></section>`)}
  </div>`;
}
